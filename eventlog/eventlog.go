// Package eventlog is the record: an append-only, verifiable log of events in one SQLite file.
//
// The package makes three promises. An event survives a power failure once its [Log.Append] has
// returned nil. Events are never changed or reordered. A stranger can recompute both: every event
// is a leaf of an RFC 6962 Merkle tree, and [event.Event.Leaf] specifies the encoding. The package
// does not interpret payloads. After a commit with an unknown result it writes nothing.
//
// The one idea is the group commit. A caller that needs its event on disk waits for the batch with
// the event. Other callers record their events and continue. Events have the order of the calls, so
// a caller that waits for one event waits for all earlier ones. Several processes may append to one
// file; SQLite's write lock orders them.
//
// Each [Log] has one goroutine for commits without a waiting caller. A waiting caller
// commits itself if no other goroutine does. Log.commitMu orders them and is locked before the
// mutex of the queue.
//
// Package evidence has the checkpoints, keys and consistency proofs. They verify a log without the
// log itself.
package eventlog
