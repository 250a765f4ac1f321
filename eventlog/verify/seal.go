package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
)

// seal is a checkpoint that is compared with the log. It may come from the log itself, its anchor, the head of the
// source, or the user.
type seal struct {
	evidence.Checkpoint
	// size is the number of events at which the checkpoint is compared with the log. A damaged checkpoint may contain
	// another number.
	size  int64
	where *message.Text
	// kind is the kind of damage to report if the checkpoint does not match the log.
	kind   Damage
	known  bool                 // a known key signed the checkpoint
	wanted bool                 // a key of Options.Signers signed the checkpoint
	others []evidence.Signature // signatures of known witnesses
	// claim means that the source has this tree head without a signature. A mismatch shows only that the source is
	// damaged.
	claim bool
	// bare means that this is a line of the anchor without a signature, although the checkpoint of the same size has
	// one.
	bare bool
	// fault is the reason why the checkpoint is invalid for any log. It is nil for a valid checkpoint.
	fault *message.Text
}

// addHeads adds two checkpoints to v.seals: the tree head of the source, and Options.Since.
func (v *verification) addHeads(ctx context.Context) error {
	var first []seal
	if h := &v.head; h.Root != (tlog.Hash{}) {
		s := seal{Checkpoint: h.Checkpoint, size: h.Size, where: h.Where, kind: Checkpoint, claim: h.Note == ""}
		if h.Note != "" {
			v.readNote(&s)
		}
		first = append(first, s)
	}
	if c := v.opt.Since; c != nil {
		if v.head.Origin != "" && c.Origin != v.head.Origin && (v.file == nil || !v.file.isNamed(ctx, c.Origin)) {
			return fmt.Errorf("eventlog: %w: %s, not %s", ErrOtherLog, c.Origin, v.head.Origin)
		}
		s := seal{Checkpoint: *c, size: c.Size, where: keptElsewhere, kind: Checkpoint}
		if c.Note != "" {
			if v.readNote(&s); s.fault != nil {
				return fmt.Errorf("eventlog: %w: %s", evidence.ErrCheckpoint, s.fault)
			}
		}
		first = append(first, s)
	}
	v.seals = append(first, v.seals...)
	sort.SliceStable(v.seals, func(i, j int) bool { return v.seals[i].size < v.seals[j].size })
	return nil
}

// compareStored compares a line of the anchor with the stored checkpoints of the same size. The line must equal one
// of them. If there are none, the signature of the line itself is verified.
func (v *verification) compareStored(a *seal) {
	line, stored := anchor.Format(a.Checkpoint), false
	for i := range v.same {
		s := &v.same[i]
		if s.size != a.size {
			break
		}
		a.bare = a.bare || a.Note == "" && s.known
		if s.fault == nil && anchor.Format(s.Checkpoint) == line {
			a.known, a.wanted = s.known, s.wanted
			return
		}
		stored = stored || s.fault == nil
	}
	if a.Note == "" {
		return
	}
	if v.readNote(a); stored && a.fault == nil {
		a.fault = notStored
	}
}

// readNote parses the note of s and verifies the signatures of known keys.
func (v *verification) readNote(s *seal) {
	n, err := note.Open([]byte(s.Note), v.verifiers)
	var unverified *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unverified):
		n = unverified.Note
	case errors.As(err, &invalid):
		s.fault = badSignature.With(evidence.KeyName(invalid.Name, invalid.Hash))
		return
	case err != nil:
		s.fault = message.Of(err)
		return
	}
	c, err := evidence.ParseCheckpointText(n.Text)
	if err != nil {
		s.fault = message.Of(err)
		return
	}
	c.Note = s.Note
	s.Checkpoint, s.known = c, len(n.Sigs) > 0
	s.wanted = slices.ContainsFunc(n.Sigs, func(sig note.Signature) bool {
		return slices.ContainsFunc(v.opt.Signers, func(k note.Verifier) bool {
			return k.Name() == sig.Name &&
				k.KeyHash() == sig.Hash
		})
	})
	for _, sig := range evidence.SignaturesOf(n, v.opt.Keys) {
		if !sig.Time.IsZero() {
			s.others = append(s.others, sig)
		}
	}
	for _, u := range n.UnverifiedSigs {
		v.unknown.countKey(evidence.KeyName(u.Name, u.Hash))
	}
}

// strangers counts the signatures of unknown keys.
type strangers struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (s *strangers) countKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	if _, ok := s.n[key]; ok || len(s.n) < maxFindings {
		s.n[key]++
	}
}

// sentences returns one sentence for each unknown key.
func (s *strangers) sentences() (list []*message.Text) {
	for key, n := range s.n {
		what := unknownKey.With(key)
		if n > 1 {
			what = unknownKeys.With(n, key)
		}
		list = append(list, what)
	}
	slices.SortFunc(list, func(a, b *message.Text) int { return cmp.Compare(a.Text, b.Text) })
	return list
}
