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

// Kept is what a keeper cosigned last of a worker's log: it cosigns nothing that does not hold all of it.
type Kept struct {
	evidence.Checkpoint
	Line string // the signature
}

// Keeper verifies the copies, and cosigns the newest checkpoint of each that is sound, as a witness does. It is used
// by one goroutine.
type Keeper struct {
	Hub  *Hub
	Name string          // under which its signatures are there
	Own  string          // the name of this machine's own log, which it does not cosign
	Kept map[string]Kept // by worker

	// Keys returns the verifier keys that a worker had, as its member; Witnesses those of members as keepers.
	Keys      func(worker string) []string
	Witnesses []note.Verifier

	// Sign signs, and puts on record what is signed before it returns; nil: nothing is cosigned.
	Sign func(ctx context.Context, worker string, c evidence.Checkpoint) (line string, err error)

	// Audit judges the events of a copy that is read from its first one; nil judges nothing.
	Audit func() verify.Auditor

	trees map[string]tree.Range // of what was verified
	there map[string]int64      // the sizes of the checkpoints under which its signature is
}

// Verdict is what a keeper found of a copy.
type Verdict struct {
	Copy
	verify.Report
	Problem  string // why it is not what it should be; "": it is
	Cosigned int64  // how many events are below a signature of this keeper's
}

// Sound reports whether the copy was read and is as it was written. It may have a Problem all the same, such as a
// worker's log of another history.
func (v Verdict) Sound() bool { return v.OK() && (v.Problem == "" || v.Events > 0) }

// Round looks at all copies. With whole they are verified from the first event on, else from where the round before
// ended.
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
			list = append(list, Verdict{Copy: Copy{Worker: worker, Origin: kept.Origin}, Problem: lost(kept, 0), Cosigned: kept.Size})
		}
	}
	return list, nil
}

// lost says that a copy is shorter than it was.
func lost(kept Kept, size int64) string {
	return fmt.Sprintf("it has %d events, and %d were cosigned: the hub was restored from a backup, or somebody deleted them; the worker sends them again", size, kept.Size)
}

// Look verifies a copy, and cosigns its newest checkpoint.
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
			continue // of another kind than a log is signed with
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
		v.Report, err = k.check(ctx, src, keys, kept)
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
		v.Problem = fmt.Sprintf("the worker's log has another event %d: it was rewritten or put back, or is the log of two machines, or the copy was edited", c.Forked)
		return v, nil
	}
	return v, k.cosign(ctx, &v, newest, keys)
}

// check verifies a copy from where it was verified before.
func (k *Keeper) check(ctx context.Context, src *CopySource, keys []note.Verifier, kept Kept) (verify.Report, error) {
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

// problem is what a report says first.
func problem(rep verify.Report) string {
	text := rep.Findings[0].Error()
	if more := len(rep.Findings) - 1 + rep.More; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// cosign signs the newest checkpoint that a key of the worker's signed, if it holds more than what was cosigned.
func (k *Keeper) cosign(ctx context.Context, v *Verdict, newest evidence.Checkpoint, keys []note.Verifier) error {
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
	// Also what was signed before this process, and was lost on its way.
	err := Cosign(ctx, k.Hub, v.Worker, kept.Size, k.Name, kept.Line)
	if err != nil && !errors.Is(err, ErrNoClaim) { // or the checkpoint is not there any more
		return err
	}
	if k.there == nil {
		k.there = map[string]int64{}
	}
	k.there[v.Worker] = kept.Size
	return nil
}
