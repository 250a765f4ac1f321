package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestUncheckedIsCounted damages the beginning of a log, so that no checkpoint can be checked. The report must count
// stored checkpoints, lines of the anchor and the checkpoint of Options.Since separately. Several checkpoints of one
// size must count once.
func TestUncheckedIsCounted(t *testing.T) {
	l, keyDir := openSigned(t)
	var first evidence.Checkpoint
	for i := range 3 {
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
		c, err := l.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = c
		}
		if i == 1 { // this checkpoint is cosigned, and the anchor has it twice
			continue
		}
		if err := l.StoreCheckpoint(t.Context(), c.Note+"— witness.example AAAAAAAA\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	line, path := anchor.Format(first), filepath.Join(t.TempDir(), "eventlog.db")
	b, err := os.ReadFile(l.Path())
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(anchor.Path(l.Path()))
	if err == nil {
		err = os.WriteFile(anchor.Path(path), []byte(line+strings.TrimPrefix(string(b), line)+line), 0o600)
	}
	if err = errors.Join(err, execFile(path,
		loosen+`UPDATE events SET actor = 'x', leaf = zeroblob(32) WHERE seq = 1`)); err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	rep := verifyFile(t, path, verify.Options{Keys: keys.Verifiers(first.Origin), Since: &first})
	if rep.Unchecked != 3 || rep.UncheckedAnchors != 3 || rep.Checkpoints != 0 || rep.Anchors != 0 {
		t.Errorf("%+v", rep)
	}
	for _, want := range []string{
		"3 checkpoints in the file could not be checked, because their part of the log is absent or damaged",
		"3 lines of the anchor could not be checked, because their part of the log is absent or damaged",
		"the checkpoint kept elsewhere could not be checked: some of its 1 events are absent or damaged",
	} {
		if !slices.Contains(rep.WarningTexts(), want) {
			t.Errorf("%q lacks %q", rep.Warnings, want)
		}
	}
}
