// Package eventlog is the record: an append-only, verifiable log of events in one SQLite file.
//
// The package makes three promises. An event survives a power failure once its [Log.Append] has returned nil. Events
// are never changed or reordered. A stranger can verify the log: every event is a leaf of an RFC 6962 Merkle tree,
// and [event.Event.Leaf] specifies the encoding. The package does not interpret payloads. After a commit with an
// unknown result, a log writes nothing until it is reopened.
//
// The one idea is the group commit. A caller that needs its event on disk waits for the batch with the event. Other
// callers record their events and continue. The log stores events in the order of the calls, so a caller that waits
// for one event also waits for all earlier events. Several processes may append to one file. SQLite's write lock
// orders their commits.
//
// Each [Log] has one goroutine, which commits events without a waiting caller. A waiting caller commits its own
// events if no other goroutine is committing. Log.commitMu allows one commit at a time. It is locked before the mutex
// of the queue.
//
// Package evidence has the checkpoints, keys and consistency proofs. They verify a log without the
// log itself.
package eventlog
