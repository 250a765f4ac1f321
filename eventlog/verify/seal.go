package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/evidence"
)

// seal is a checkpoint that the log is held against, wherever it lies.
type seal struct {
	evidence.Checkpoint
	size   int64 // where it is looked at: that of the checkpoint, unless that is damaged
	where  string
	kind   Damage               // what it is if it does not hold
	known  bool                 // one of the known keys signed it
	wanted bool                 // one of Options.Signers did
	others []evidence.Signature // of known witnesses
	claim  bool                 // unsigned, of the source itself: it shows nothing but its own damage
	bare   bool                 // a line of the anchor without the signature that is stored for its size
	fault  string               // why it is none, whatever the log is
}

// keptElsewhere is where Options.Since is from.
const keptElsewhere = "the checkpoint kept elsewhere"

// remember takes in the tree head that the source claims, and the checkpoint that was kept elsewhere.
func (v *verification) remember(ctx context.Context) error {
	var first []seal
	if h := &v.head; h.Root != (tlog.Hash{}) {
		s := seal{Checkpoint: h.Checkpoint, size: h.Size, where: h.Where, kind: Checkpoint, claim: h.Note == ""}
		if h.Note != "" {
			v.sign(&s)
		}
		first = append(first, s)
	}
	if c := v.opt.Since; c != nil {
		if v.head.Origin != "" && c.Origin != v.head.Origin && (v.file == nil || !v.file.named(ctx, c.Origin)) {
			return fmt.Errorf("eventlog: %w: %s, not %s", ErrOtherLog, c.Origin, v.head.Origin)
		}
		s := seal{Checkpoint: *c, size: c.Size, where: keptElsewhere, kind: Checkpoint}
		if c.Note != "" {
			if v.sign(&s); s.fault != "" {
				return fmt.Errorf("eventlog: %w: %s", evidence.ErrCheckpoint, s.fault)
			}
		}
		first = append(first, s)
	}
	v.seals = append(first, v.seals...)
	slices.SortStableFunc(v.seals, bySize)
	return nil
}

func bySize(a, b seal) int { return cmp.Compare(a.size, b.size) }

// compare holds a line of the anchor against the checkpoints stored for the same size, of
// which it must be one if there are any; else its own signature counts.
func (v *verification) compare(a *seal) {
	line, stored := anchor.Format(a.Checkpoint), false
	for i := range v.same {
		s := &v.same[i]
		if s.size != a.size {
			break
		}
		a.bare = a.bare || a.Note == "" && s.known
		if s.fault == "" && anchor.Format(s.Checkpoint) == line {
			a.known, a.wanted = s.known, s.wanted
			return
		}
		stored = stored || s.fault == ""
	}
	if a.Note == "" {
		return
	}
	if v.sign(a); stored && a.fault == "" {
		a.fault = "it is not the checkpoint that is stored for as many events"
	}
}

// sign reads the note of s and verifies the signatures of known keys.
func (v *verification) sign(s *seal) {
	n, err := note.Open([]byte(s.Note), v.verifiers)
	var unverified *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unverified):
		n = unverified.Note
	case errors.As(err, &invalid):
		s.fault = fmt.Sprintf("its signature by %s does not hold", evidence.KeyName(invalid.Name, invalid.Hash))
		return
	case err != nil:
		s.fault = err.Error()
		return
	}
	c, err := evidence.ParseCheckpointText(n.Text)
	if err != nil {
		s.fault = err.Error()
		return
	}
	c.Note = s.Note
	s.Checkpoint, s.known = c, len(n.Sigs) > 0
	s.wanted = slices.ContainsFunc(n.Sigs, func(sig note.Signature) bool {
		return slices.ContainsFunc(v.opt.Signers, func(k note.Verifier) bool { return k.Name() == sig.Name && k.KeyHash() == sig.Hash })
	})
	for _, sig := range evidence.SignaturesOf(n, v.opt.Keys) {
		if !sig.Time.IsZero() {
			s.others = append(s.others, sig)
		}
	}
	for _, u := range n.UnverifiedSigs {
		v.unknown.count(evidence.KeyName(u.Name, u.Hash))
	}
}

// strangers counts the signatures of keys that are not known.
type strangers struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (s *strangers) count(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	if _, ok := s.n[key]; ok || len(s.n) < maxFindings {
		s.n[key]++
	}
}

// list has a sentence for each of the keys.
func (s *strangers) list() (lines []string) {
	for key, n := range s.n {
		what := "a signature"
		if n > 1 {
			what = fmt.Sprintf("%d signatures", n)
		}
		lines = append(lines, fmt.Sprintf("%s by a key that is not known here: %s", what, key))
	}
	slices.Sort(lines)
	return lines
}
