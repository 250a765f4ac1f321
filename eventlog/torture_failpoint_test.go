package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// failpoints are the points of a commit at which tests can make it fail, in their order. Only a commit that ends a
// run reaches the last two.
var failpoints = []struct {
	name string
	// applied means that the log has the events from this point on.
	applied bool
	// acknowledged means that the caller may already have a result at this point.
	acknowledged bool
}{
	{"begin", false, false},    // before the first statement
	{"insert", false, false},   // before the end of the transaction
	{"commit", false, false},   // directly before COMMIT
	{"committed", true, false}, // the events are on disk; a fault here is still reported as a failure
	{"anchor", true, true},     // before the line of the anchor
	{"anchored", true, true},   // after the line of the anchor
}

var errFailpoint = errors.New("made to fail")

// armLog installs the fault of the script in the log. That is no race, because the committing goroutine reads the hook
// only when it has a batch.
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

// moments chooses some of the n times at which a point is reached. A long test uses all of them. Otherwise the first,
// the last and some others are used.
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

// afterFailpoint checks the log of a writer that stopped at a failpoint.
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

// TestTortureFailpoints kills writers and lets commits fail at every failpoint of a commit. Before COMMIT the log must
// not have the events. After COMMIT it must have them, even if the caller got an error. It must never have a part of a
// batch.
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

			// This writer reopens its failed log and continues. It must not lose or repeat events.
			s.Path, s.Revive, s.passed = filepath.Join(dir, name+" revived.db"), true, nil
			if err := s.perform(io.Discard); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			} else if _, err := checkLog(s.Path, len(tell(s).events), tell(s)); err != nil {
				t.Errorf("%s, revived: %v", name, err)
			}
			revived++
		}
	}
	// This writer acknowledges events before the commit. The test must find that fault.
	early := script{Path: filepath.Join(dir, "early.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys,
		Early: true, Point: "commit", Nth: 2}
	out, _ := early.command(t).Output() // the command was killed, so it returns an error
	acked, _ := said(out)
	if err := afterFailpoint(early, acked, false, false); !errors.Is(err, errLost) {
		t.Errorf("%d events acknowledged before their commit were not missed: %v", acked, err)
	}
	t.Logf("seed %d: %d writers died, %d gave up, %d went on, %d were revived; points were passed %v",
		*tortureSeed, died, failed, went, revived, passages)
}
