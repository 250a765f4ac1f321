package kernel

import (
	"database/sql"
	"github.com/perlica/perlica/kernel/record"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestAgentLeavesDuringTheOutcome checks that the agent's process can exit while the outcome is written. In this test
// the write is blocked until the agent has exited.
func TestAgentLeavesDuringTheOutcome(t *testing.T) {
	r := openRunner(t)
	db, err := sql.Open("sqlite", r.opt.Paths.EventLog+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	exec := func(statement string) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Error(err)
		}
	}
	var lock, unlock sync.Once
	r.opt.Trail = slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "the input has ended") {
			unlock.Do(func() { exec(`ROLLBACK`) })
		}
	}), nil))
	res, err := hostileTurn(t, r, "@say begun\n@sleep 50ms", func(turn *Turn) {
		r.opt.Environ = append(os.Environ(), scenarioVar+"=#\n[eof]\n@stderr the input has ended", "GORACE=atexit_sleep_ms=0")
		turn.Show = func(n record.Notice) {
			if _, ok := n.(record.Updated); ok {
				lock.Do(func() { exec(`BEGIN IMMEDIATE`) })
			}
		}
	})
	unlock.Do(func() { t.Error("the agent did not leave") })
	if err != nil || res.Outcome != record.OutcomeResponded || len(res.Warnings) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// writerFunc is an io.Writer that passes each line to a function.
type writerFunc func(line string)

func (f writerFunc) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}
