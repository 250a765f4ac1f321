package hub

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// Kept is the last checkpoint of a worker's log that a keeper cosigned. The keeper cosigns only
// extensions of it.
type Kept struct {
	evidence.Checkpoint
	Line string // the signature
}

// Keeper verifies the copies and cosigns the newest checkpoint of each sound copy: it adds its own signature, as a
// neutral witness. One goroutine uses it.
type Keeper struct {
	Hub  *Hub
	Name string          // the name of its signatures
	Own  string          // the name of this machine's own log, which the keeper does not cosign
	Kept map[string]Kept // by worker

	// Keys returns all verifier keys of a worker. Witnesses holds the verifiers of the cosigning
	// members.
	Keys      func(worker string) []string
	Witnesses []note.Verifier

	// Sign signs a checkpoint and records the signature before it returns. nil disables cosigning.
	Sign func(ctx context.Context, worker string, c evidence.Checkpoint) (line string, err error)

	// Audit returns an auditor of a copy's events for a reading that begins with the first event. If it is nil, the
	// keeper audits nothing.
	Audit func() verify.Auditor

	trees map[string]tree.Range // the trees of the verified events, by worker
	there map[string]int64      // sizes of the checkpoints that have this keeper's signature
}

// Verdict is a keeper's result for a copy.
type Verdict struct {
	Copy
	verify.Report
	Problem  string // the fault of the copy; "" means that it has none
	Cosigned int64  // number of events under a signature of this keeper
}

// Sound reports whether the copy was read and is as it was written. A sound copy may still have a
// Problem, such as a worker's log with another history.
func (v Verdict) Sound() bool { return v.OK() && (v.Problem == "" || v.Events > 0) }

// Round verifies all copies. If "whole" is set, it begins at the first event; otherwise it begins at the end of the
// last round.
func (k *Keeper) Round(ctx context.Context, whole bool) (list []Verdict, err error) {
	if whole {
		k.trees = map[string]tree.Range{}
	}
	all, err := ListCopies(ctx, k.Hub)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, c := range all {
		there[c.Worker] = true
		v, err := k.Look(ctx, c)
		if err != nil {
			return list, fmt.Errorf("the copy of %s: %w", c.Worker, err)
		}
		list = append(list, v)
	}
	for worker, kept := range k.Kept {
		if !there[worker] {
			list = append(list, Verdict{Copy: Copy{Worker: worker, Origin: kept.Origin}, Problem: lost(kept, 0),
				Cosigned: kept.Size})
		}
	}
	return list, nil
}

// lost describes a copy that has become shorter.
func lost(kept Kept, size int64) string {
	return fmt.Sprintf(
		"it has %d events, and %d were cosigned: the hub was restored from a backup, or somebody deleted them; the worker "+
			"sends them again", size, kept.Size)
}

// Look verifies a copy and cosigns its newest checkpoint.
func (k *Keeper) Look(ctx context.Context, c Copy) (v Verdict, err error) {
	if k.trees == nil {
		k.trees = map[string]tree.Range{}
	}
	kept := k.Kept[c.Worker]
	v = Verdict{Copy: c, Cosigned: kept.Size}
	var keys []note.Verifier
	for _, member := range k.Keys(c.Worker) {
		vkey, err := evidence.KeyUnder(member, c.Origin, false)
		if err != nil {
			continue // skip a key that cannot sign a log
		}
		key, err := evidence.NewVerifier(vkey)
		if err != nil {
			return v, err
		}
		keys = append(keys, key)
	}
	switch {
	case kept.Origin != "" && kept.Origin != c.Origin:
		v.Problem = fmt.Sprintf("it is named as one of the log %s, and one of %s was cosigned", c.Origin, kept.Origin)
		return v, nil
	case c.Size < kept.Size:
		delete(k.trees, c.Worker)
		v.Problem = lost(kept, c.Size)
		return v, nil
	case len(keys) == 0:
		v.Problem = "no key of a member of that name is known here"
		return v, nil
	}
	var newest evidence.Checkpoint
	err = ReadCopy(ctx, k.Hub, c.Worker, k.trees[c.Worker], func(src *CopySource) error {
		v.Copy = src.Copy
		v.Report, err = k.checkCopy(ctx, src, keys, kept)
		if err == nil && v.OK() {
			k.trees[c.Worker] = src.Tree()
			newest, _ = src.Checkpoint(v.Signed)
		}
		return err
	})
	if err != nil {
		return v, err
	}
	if !v.OK() {
		delete(k.trees, c.Worker)
		v.Problem = problem(v.Report)
		return v, nil
	}
	if c.Forked != 0 {
		v.Problem =
			fmt.Sprintf(
				"the worker's log has another event %d: it was rewritten or put back, or is the log of two machines, or the "+
					"copy was edited", c.Forked)
		return v, nil
	}
	return v, k.cosignCheckpoint(ctx, &v, newest, keys)
}

// checkCopy verifies a copy from the end of the last verification.
func (k *Keeper) checkCopy(ctx context.Context, src *CopySource, keys []note.Verifier,
	kept Kept) (verify.Report, error) {
	opt := verify.Options{Keys: append(keys, k.Witnesses...), Signers: keys}
	if kept.Size > src.from.Size {
		since := kept.Checkpoint
		since.Note = ""
		opt.Since = &since
	}
	if src.from.Size == 0 && k.Audit != nil {
		opt.Audit = k.Audit()
	}
	return verify.Check(ctx, src, opt)
}

// problem returns the first finding of a report.
func problem(rep verify.Report) string {
	text := rep.Findings[0].Error()
	if more := len(rep.Findings) - 1 + rep.More; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// cosignCheckpoint signs the newest checkpoint that the worker's key has signed, if this checkpoint extends the last
// cosigned one.
func (k *Keeper) cosignCheckpoint(ctx context.Context, v *Verdict, newest evidence.Checkpoint,
	keys []note.Verifier) error {
	kept := k.Kept[v.Worker]
	if k.Sign == nil || v.Origin == k.Own {
		return nil
	}
	if _, err := newest.Verify(keys...); err == nil && newest.Size > kept.Size {
		line, err := k.Sign(ctx, v.Worker, newest)
		if err != nil {
			return err
		}
		kept = Kept{newest, line}
		k.Kept[v.Worker], v.Cosigned = kept, kept.Size
	}
	if kept.Size == k.there[v.Worker] {
		return nil
	}
	// A signature of an earlier process may have been lost on its way, so it is sent again.
	err := cosign(ctx, k.Hub, v.Worker, kept.Size, k.Name, kept.Line)
	if err != nil && !errors.Is(err, ErrNoClaim) { // the checkpoint no longer exists
		return err
	}
	if k.there == nil {
		k.there = map[string]int64{}
	}
	k.there[v.Worker] = kept.Size
	return nil
}
