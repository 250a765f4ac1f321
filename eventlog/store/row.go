package store

import "github.com/perlica/perlica/eventlog/event"

// Columns are the columns of events, in the order of AppendArgs.
const Columns = `seq, event_id, ts, type, class, actor, writer, context_id,
	session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
	payload_len, payload_sha256, leaf, payload`

const rowMarks = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertOne is the statement that inserts one event; AppendArgs makes its arguments.
const InsertOne = `INSERT INTO events (` + Columns + `) VALUES ` + rowMarks

// AppendArgs appends the values of an event's row.
func AppendArgs(args []any, e *event.Event) []any {
	return append(args,
		int64(e.Seq), e.ID, e.Time.UnixNano(), string(e.Type), string(e.Class), e.Actor, e.Writer, e.Context,
		string(e.Session), string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input),
		e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:], Stored(e))
}

// Stored is the payload as a row has it: NULL would mean withheld.
func Stored(e *event.Event) []byte {
	if e.Payload == nil {
		return []byte{}
	}
	return e.Payload
}
