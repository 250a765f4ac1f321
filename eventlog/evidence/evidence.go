// Package evidence verifies checkpoints, signatures and proofs of a log without reading the log.
//
// The package promises that its verdicts depend only on the given texts and keys, and never on the log. It does not
// read or write a log. Package eventlog makes checkpoints and proofs. This package reads and writes one file: the
// user's own [Keys].
//
// The one idea is that a [Checkpoint] commits to all events of the log up to it. Anyone with an old checkpoint can
// detect a change of earlier events, without the log and without its owner. The texts follow https://c2sp.org, so
// other programs can read them.
package evidence
