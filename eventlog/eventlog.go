// Package eventlog is the record: an append-only, verifiable log of events in one
// SQLite file.
//
// It promises that an event whose [Log.Append] returned nil survives a power
// failure, that events are never changed or reordered, and that all of this can be
// recomputed by a stranger: every event is a leaf of an RFC 6962 Merkle tree whose
// encoding is specified beside [event.Event.Leaf]. It refuses to interpret payloads and
// to write anything after a commit whose fate is unknown.
//
// The one idea: there is one writer goroutine a process. Anyone who needs an event on
// disk waits for the batch that holds it; anyone who does not, records it and goes on.
// Order is the order of the calls, so waiting for one event waits for all that
// were recorded before it. Several processes may append to one file; SQLite's write
// lock orders them.
//
// What somebody who has not got the log checks it with, checkpoints, keys and consistency
// proofs, is package evidence.
package eventlog
