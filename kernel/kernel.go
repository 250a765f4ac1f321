// Package kernel is the contract: it takes one input, makes at most one call for it, and
// sees to it that what happened is on the record whatever happens.
//
// It promises that a call is made once for an input id, for ever; that the intent, an
// answer and a cancellation are on disk before they take effect; that every intent gets
// exactly one outcome; and that what an agent says is on disk before anybody is shown
// it. It refuses to retry, to guess what became of a call, and to say yes by itself. It
// prints nothing: the caller shows what it gets through a function.
//
// The one idea is the order of every effect: change the state, append the event, act,
// append what came of it. The act may be lost, its trace never is. Recovery is the same
// reading of the log, after a crash.
package kernel
