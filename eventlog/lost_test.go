package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// called opens the log at path. It returns "called" if the log has a call for the input, "lost" if only the .intents
// file names one, and "" otherwise. It also returns the report of Verify.
func called(t *testing.T, path string, input event.InputID) (known string, rep verify.Report) {
	t.Helper()
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		return "refused", rep
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	if rep, err = verify.Log(t.Context(), &l.Reader, verify.Options{NoImport: true}); err != nil {
		t.Fatal(err)
	}
	_, ok, err := l.Intent(t.Context(), input)
	switch lost := (*LostIntentError)(nil); {
	case errors.As(err, &lost) && lost.Input == input:
		return "lost", rep
	case err != nil:
		t.Fatal(err)
	case ok:
		known = "called"
	}
	return known, rep
}

// copyFolder copies the files of a folder, so that the copies look as if the process had died now.
func copyFolder(from, to string) error {
	return errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)))
}

// TestLossOfAFile removes, empties or replaces each file of the log's folder. The log must still know that the agent
// was called for the input. If the record of that call is lost, Verify must report the loss.
func TestLossOfAFile(t *testing.T) {
	dir := t.TempDir()
	old, left := filepath.Join(dir, "old"), filepath.Join(dir, "left")
	path := filepath.Join(dir, "log", "eventlog.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.Requested, event.Refs{Run: "before", Input: "before"}))
	if err := errors.Join(l.Close(), copyFolder(filepath.Dir(path), old)); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(t.Context(), path, Options{Context: "default"}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.Requested, event.Refs{Run: "run", Input: "input"}))
	if err := errors.Join(copyFolder(filepath.Dir(path), left), l.Close()); err != nil {
		t.Fatal(err)
	}
	all := []string{"eventlog.db", "eventlog.db-wal", "eventlog.db-shm", "eventlog.intents"}
	for name, lose := range map[string]func(path, old string) error{
		"removed": func(path, _ string) error { return os.Remove(path) },
		"emptied": func(path, _ string) error { return os.Truncate(path, 0) },
		"cut":     func(path, _ string) error { return halve(path) },
		"older":   replaceBy,
		"zeros":   func(path, _ string) error { return zero(path) },
	} {
		for _, files := range [][]string{all[:1], all[1:2], all[2:3], all[3:], all[:2]} {
			now := filepath.Join(dir, "now")
			if err := copyFolder(left, now); err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if err := lose(filepath.Join(now, f), filepath.Join(old, f)); err != nil {
					t.Fatal(err)
				}
			}
			known, rep := called(t, filepath.Join(now, "eventlog.db"), "input")
			if known == "" || known == "lost" == rep.OK() && known != "refused" {
				t.Errorf("%s %s: the input is %q, findings %v", files, name, known, rep.Findings)
			}
		}
	}
}

func halve(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, fi.Size()/2)
}

func zero(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, make([]byte, len(b)), 0o600)
}

// replaceBy replaces a file by the file with the path "old". If that file does not exist, replaceBy removes the file at
// path.
func replaceBy(path, old string) error {
	b, err := os.ReadFile(old)
	if errors.Is(err, os.ErrNotExist) {
		return os.Remove(path)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// TestDeathBetweenTheTwoPlaces checks an input that the .intents file names and the log does not have. If the process
// died, the input counts as called. If only the append failed, the input may be called again, because no prompt left.
func TestDeathBetweenTheTwoPlaces(t *testing.T) {
	dir := t.TempDir()
	path, died := filepath.Join(dir, "log", "eventlog.db"), filepath.Join(dir, "died")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	armed := false
	l, err := Open(t.Context(), path, Options{Context: "default", fail: func(point string) error {
		if point != "commit" || !armed {
			return nil
		}
		armed = false
		return errors.Join(errors.New("no"), copyFolder(filepath.Dir(path), died))
	}})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.Requested, event.Refs{Run: "before", Input: "before"}))
	armed = true
	intent := fact(event.Requested, event.Refs{Run: "run", Input: "input"})
	if _, err := l.Append(t.Context(), intent); err == nil {
		t.Fatal("it was appended")
	}
	known, rep := called(t, filepath.Join(died, "eventlog.db"), "input")
	if known != "lost" || !rep.OK() || !strings.Contains(strings.Join(rep.WarningTexts(), "\n"),
		"lists 1 calls that are not in the log") {
		t.Errorf("died: the input is %q, findings %v, warnings %v", known, rep.Findings, rep.Warnings)
	}
	if _, ok, err := l.Intent(t.Context(), "input"); ok || err != nil {
		t.Errorf("failed: %t, %v", ok, err)
	}
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, intent)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if known, rep := called(t, path, "input"); known != "called" || !rep.OK() || len(rep.Warnings) > 1 {
		t.Errorf("failed, then appended: the input is %q, findings %v, warnings %v", known, rep.Findings, rep.Warnings)
	}
}

// TestSecondPlaceFails checks that an intent is refused if the .intents file cannot be written.
func TestSecondPlaceFails(t *testing.T) {
	l := openTest(t)
	if err := os.Mkdir(intents.Path(l.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := l.Append(t.Context(), fact(event.Requested, event.Refs{Run: "run", Input: "input"}))
	if write := (*WriteError)(nil); !errors.As(err, &write) || !strings.Contains(fmt.Sprint(err), "the .intents file: ") {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(os.Remove(intents.Path(l.Path())), l.Reopen(t.Context())); err != nil {
		t.Fatal(err)
	}
	if size, _, err := l.Head(t.Context()); size != 0 || err != nil {
		t.Errorf("%d events, %v", size, err)
	}
}

// TestOtherProcessCalledAndTheLogForgot checks an intent of another process that the log has lost. The input must not
// be called again.
func TestOtherProcessCalledAndTheLogForgot(t *testing.T) {
	l := openTest(t)
	mustAppend(t, l, fact(event.Requested, event.Refs{Run: "mine", Input: "mine"}))
	theirs := store.OriginOf("theirs")
	e, err := intents.Open(l.Path()).Begin(intents.Log{Name: theirs,
		After: func(int64) ([]intents.Call, error) { return nil, nil }}, []intents.Call{{Seq: 2, Input: "input"}})
	if err != nil {
		t.Fatal(err)
	}
	e.End(intents.Writing)
	_, err = l.Append(t.Context(), fact(event.Requested, event.Refs{Run: "run", Input: "input"}))
	if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) || conflict.Type != event.Requested {
		t.Errorf("got %v", err)
	}
	mustAppend(t, l, fact(event.Requested, event.Refs{Run: "run", Input: "another"}))
}
