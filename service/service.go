// Package service is the messaging bridge: people drive their agent from a phone.
//
// It promises that a message is on disk before it is acknowledged, that it makes at most one
// call, that replies keep their order, and that after a crash everybody is told the truth. It
// refuses strangers without a word, takes no free text for a yes, and retries only polling and
// sending, never a call.
//
// The one idea: everything that the bridge knows is an event, and its database a view of them.
// A [channel.Channel] carries messages and knows nothing else.
package service
