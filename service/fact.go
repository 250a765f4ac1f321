package service

import "github.com/perlica/perlica/kernel/fact/bridge"

// What a message of a contact is.
const (
	kindInput   bridge.Kind = "input"   // one call
	kindCommand bridge.Kind = "command" // a slash command
	kindAnswer  bridge.Kind = "answer"  // of a question
	kindRefused bridge.Kind = "refused" // nothing is done but saying why; Word holds it
)

// What became of it.
const (
	endAnswered bridge.Ending = "answered"
	endFailed   bridge.Ending = "failed"
	endUnknown  bridge.Ending = "unknown" // no one knows what became of its call
	endDone     bridge.Ending = "done"    // of a command, of an answer that counts
	endRefused  bridge.Ending = "refused"
)

// What a message to a contact is.
const (
	outAck    bridge.OutKind = "ack"
	outReply  bridge.OutKind = "reply"
	outCard   bridge.OutKind = "card"
	outNotice bridge.OutKind = "note"
	outStatus bridge.OutKind = "status"
	outEdit   bridge.OutKind = "edit" // of a message that was sent
)

// once reports whether a message of this kind is better lost than sent twice.
func once(k bridge.OutKind) bool { return k == outAck || k == outStatus }
