// Package evidence verifies checkpoints, signatures and proofs of a log without reading the log.
//
// The package promises that its verdicts depend only on the given texts and keys, and never on the
// log. It reads and writes no log; package eventlog makes checkpoints and proofs. The only file
// that it reads and writes is the file of the user's own [Keys].
//
// The one idea: a [Checkpoint] stands for the whole log up to it. Anyone with an old checkpoint can
// detect a change of earlier events, without the log and without its owner. The texts follow
// https://c2sp.org, so other programs can read them.
package evidence
