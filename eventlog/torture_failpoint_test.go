package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// failpoints are the places of a commit that can fail in a test, in their order. Only commits that
// end a run pass the last two.
var failpoints = []struct {
	name string
	// applied says that the events are in the log from this point on.
	applied bool
	// acknowledged says that the caller may have a result.
	acknowledged bool
}{
	{"begin", false, false},    // before the first statement
	{"insert", false, false},   // before the end of the transaction
	{"commit", false, false},   // directly before COMMIT
	{"committed", true, false}, // durable, although a fault here is reported as a failure
	{"anchor", true, true},     // before the line of the anchor
	{"anchored", true, true},   // after the line of the anchor
}

var errFailpoint = errors.New("made to fail")

// armLog installs the fault of the script. The committing goroutine reads the hook only when it has
// a batch.
func (s script) armLog(l *Log) {
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

// moments chooses the passages at which a writer suffers, of n. A long run has all of them. Others
// have the first, the last and some between.
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

// afterFailpoint checks the log of a writer that stopped at a point of a commit.
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

// TestTortureFailpoints lets writers die and commits fail at every point of a commit. Before COMMIT
// the events must not be in the log, and after it they must be, whatever was reported. No batch may
// be there in part.
func TestTortureFailpoints(t *testing.T) {
	dir, keys := quickDir(t), signingKeys(t)
	s := script{Path: filepath.Join(dir, "whole.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys,
		passed: map[string]int{}}
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
				went++ // The log continues without its anchor.
				_, err = checkLog(s.Path, acked, tell(s))
			default:
				err = fmt.Errorf("reported as %w", orTaken(err))
			}
			if err != nil {
				t.Errorf("%s, failed: %v", name, err)
			}

			// After Reopen the writer sees the result and need not lose or repeat events.
			s.Path, s.Revive, s.passed = filepath.Join(dir, name+" revived.db"), true, nil
			if err := s.perform(io.Discard); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			} else if _, err := checkLog(s.Path, len(tell(s).events), tell(s)); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			}
			revived++
		}
	}
	// The control acknowledges before the commit, and the test must find that.
	early := script{Path: filepath.Join(dir, "early.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys,
		Early: true, Point: "commit", Nth: 2}
	out, _ := early.command(t).Output() // it was killed
	acked, _ := said(out)
	if err := afterFailpoint(early, acked, false, false); !errors.Is(err, errLost) {
		t.Errorf("%d events acknowledged before their commit were not missed: %v", acked, err)
	}
	t.Logf("seed %d: %d writers died, %d gave up, %d went on, %d were revived; points were passed %v",
		*tortureSeed, died, failed, went, revived, passages)
}
