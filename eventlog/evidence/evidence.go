// Package evidence is what a stranger checks a log with: checkpoints, the keys that sign them,
// their signatures, and proofs that one checkpoint holds all that an earlier one held.
//
// It promises that what it verifies holds whatever the log says: it looks at nothing but the
// texts and keys that it is given. It refuses to touch a log; package eventlog makes checkpoints
// and proofs of one. The only file that it reads and writes is that of the user's own [Keys].
//
// The one idea: a [Checkpoint] stands for the whole log up to it, so that anyone who kept one needs
// neither the log nor its owner to find out that something before it was changed. The texts are
// those of https://c2sp.org, which others read, too.
package evidence
