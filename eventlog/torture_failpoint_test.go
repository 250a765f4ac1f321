package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// failpoints are the places of a commit at which it can be made to fail, in the order in
// which they are passed. The last two are passed by the commits that end a run.
var failpoints = []struct {
	name         string
	applied      bool // its events are in the log from there on
	acknowledged bool // the caller may know
}{
	{"begin", false, false},    // nothing has been done yet
	{"insert", false, false},   // all is written but the transaction's end
	{"commit", false, false},   // and now
	{"committed", true, false}, // it is safe: what fails here was applied although it is reported as failed
	{"anchor", true, true},     // nothing outside the database knows of it
	{"anchored", true, true},   // and now it does
}

var errFailpoint = errors.New("made to fail")

// arm has the log do what the script asks for at its point. The writer goroutine reads the
// hook only after it has taken something from the queue.
func (s script) arm(l *Log) {
	l.batch.fail = func(point string) error {
		s.passed[point]++
		switch {
		case point != s.Point || s.passed[point] != s.Nth:
			return nil
		case s.Fail:
			return errFailpoint
		case s.Meddle != "":
			return meddlings[s.Meddle].do(s.Path)
		}
		die()
		return nil
	}
}

// moments returns at which of n passages of a point a writer suffers: all of them in a long
// run, else the first, the last and some between.
func moments(n int) []int {
	step := 1
	if *tortureStates < 10_000 {
		step = max(1, n/4)
	}
	var at []int
	for i := 1; i < n; i += step {
		at = append(at, i)
	}
	return append(at, n)
}

// afterFailpoint looks at the log of a writer that did not get beyond a point of a commit.
func afterFailpoint(s script, acked int, applied, acknowledged bool) error {
	found, err := checkLog(s.Path, acked, tell(s))
	switch {
	case err != nil || acknowledged:
		return err
	case !applied && found != acked:
		return fmt.Errorf("%d events, %d were acknowledged and no more applied", found, acked)
	case applied && found == acked:
		return fmt.Errorf("%d events, but more had been applied", found)
	}
	return nil
}

// TestTortureFailpoints has writers die and commits fail at every point of a commit. On
// either side of it the log must say what is so: before COMMIT the events are not there,
// behind it they are, whatever was reported. Nothing is ever there by half.
func TestTortureFailpoints(t *testing.T) {
	dir, keys := quickDir(t), signingKeys(t)
	s := script{Path: filepath.Join(dir, "whole.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys, passed: map[string]int{}}
	if err := s.perform(new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	passages, died, failed, went, revived := s.passed, 0, 0, 0, 0
	for _, point := range failpoints {
		if passages[point.name] == 0 {
			t.Errorf("no commit passes %q", point.name)
			continue
		}
		for _, nth := range moments(passages[point.name]) {
			s := script{Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys, Point: point.name, Nth: nth}
			name := fmt.Sprint(point.name, " ", nth)

			s.Path = filepath.Join(dir, name+" died.db")
			out, err := s.command(t).Output()
			if acked, why := said(out); err == nil || why != "" {
				t.Errorf("%s: the writer did not die: %v, %s", name, err, why)
			} else if err := afterFailpoint(s, acked, point.applied, point.acknowledged); err != nil {
				t.Errorf("%s, died: %v", name, err)
			}
			died++

			s.Path, s.Fail = filepath.Join(dir, name+" failed.db"), true
			var printed bytes.Buffer
			err = s.perform(&printed)
			acked, _ := said(printed.Bytes())
			switch write := (*WriteError)(nil); {
			case errors.Is(err, errFailpoint) && errors.As(err, &write) && write.Unknown == point.applied:
				failed++
				err = afterFailpoint(s, acked, point.applied, point.acknowledged)
			case err == nil && point.acknowledged:
				went++ // the log lives on without its anchor
				_, err = checkLog(s.Path, acked, tell(s))
			default:
				err = fmt.Errorf("reported as %w", orTaken(err))
			}
			if err != nil {
				t.Errorf("%s, failed: %v", name, err)
			}

			// Who opens the log again sees what became of it, and need not lose or repeat anything.
			s.Path, s.Revive, s.passed = filepath.Join(dir, name+" revived.db"), true, nil
			if err := s.perform(io.Discard); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			} else if _, err := checkLog(s.Path, len(tell(s).events), tell(s)); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			}
			revived++
		}
	}
	// The control: who acknowledges before the commit is found out.
	early := script{Path: filepath.Join(dir, "early.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys, Early: true, Point: "commit", Nth: 2}
	out, _ := early.command(t).Output() // it was killed
	acked, _ := said(out)
	if err := afterFailpoint(early, acked, false, false); !errors.Is(err, errLost) {
		t.Errorf("%d events acknowledged before their commit were not missed: %v", acked, err)
	}
	t.Logf("seed %d: %d writers died, %d gave up, %d went on, %d were revived; points were passed %v",
		*tortureSeed, died, failed, went, revived, passages)
}
