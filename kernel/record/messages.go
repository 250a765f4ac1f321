package record

import "github.com/perlica/perlica/eventlog/message"

// These sentences say how far a run came.
var (
	answerUnused = message.New("record.answer-unused",
		"the prompt was sent; the agent's last answer is on record, but Perlica did not act on it; %s came "+
			"back")
	beingSent    = message.New("record.being-sent", "the prompt was being sent or was already sent; %s came back")
	intentOnly   = message.New("record.intent-only", "the call is on record, but not whether the prompt was sent")
	intentPruned = message.New("record.intent-pruned", "the call is on record; the other events were pruned")
	reasonPruned = message.New("record.reason-pruned", "the reason was pruned")
	unreadable   = message.New("record.unreadable", "an event that this version cannot read: %s")
)

var (
	oneLine   = message.New("record.line", "1 line")
	manyLines = message.New("record.lines", "%d lines")
)

// lines returns "1 line" or a number of lines, as a part of a sentence.
func lines(n int) *message.Text {
	if n == 1 {
		return oneLine
	}
	return manyLines.With(n)
}
