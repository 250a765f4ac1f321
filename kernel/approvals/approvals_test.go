package approvals

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/config"
)

type decision struct{ What string }

// here returns vouchers for a state folder that does not exist yet.
func here(t *testing.T) Vouchers {
	t.Helper()
	return NewVouchers(config.Dirs{State: filepath.Join(t.TempDir(), "state")})
}

// counts checks for each decision in want whether the user's log vouches for it.
func (v Vouchers) counts(t *testing.T, want map[string]bool) {
	t.Helper()
	known, err := v.Known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, counts := range want {
		if known.Has(decision{what}) != counts {
			t.Errorf("%s counts: %t", what, !counts)
		}
	}
}

// holds checks that the user's own log verifies and that its last checkpoint covers all events. It returns the number
// of events.
func (v Vouchers) holds(t *testing.T) int64 {
	t.Helper()
	paths, err := v.dirs.EnsureOwn()
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.OpenReader(t.Context(), paths.EventLog)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	rep, err := verify.Log(t.Context(), log, verify.Options{})
	if err != nil || !rep.OK() {
		t.Fatalf("the user's own log: %+v, %v", rep, err)
	}
	c, ok, err := log.LastCheckpoint(t.Context(), 0)
	if err != nil || !ok || c.Size != rep.Events || rep.Anchors == 0 {
		t.Errorf("signed: %d of %d events, %v", c.Size, rep.Events, err)
	}
	return rep.Events
}

// TestVouchers checks that a decision is valid after Add, invalid after Revoke, and valid after another Add. It also
// checks that reading creates no file.
func TestVouchers(t *testing.T) {
	v := here(t)
	for _, step := range []struct {
		do   func(context.Context, any) error
		want bool
	}{{nil, false}, {v.Add, true}, {v.Add, true}, {v.Revoke, false}, {v.Add, true}} {
		if step.do != nil {
			if err := step.do(t.Context(), decision{"yes"}); err != nil {
				t.Fatal(err)
			}
		}
		v.counts(t, map[string]bool{"yes": step.want, "another": false})
		if _, err := os.Stat(v.dirs.State); step.do == nil && err == nil {
			t.Error("reading made something")
		}
	}
	if n := v.holds(t); n != 4 {
		t.Errorf("%d events", n)
	}
	var none Vouchers
	none.counts(t, map[string]bool{"yes": false})
	if err := none.Add(t.Context(), decision{"yes"}); !errors.Is(err, config.ErrNoHome) {
		t.Errorf("without a state: %v", err)
	}
}

// TestVouchersAtOnce checks that concurrent calls lose no decision and write none twice.
func TestVouchersAtOnce(t *testing.T) {
	v := here(t)
	if err := v.Add(t.Context(), decision{"gone"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"gone": false}
	var wg sync.WaitGroup
	for _, what := range []string{"a", "b", "c", "d"} {
		want[what] = true
		wg.Go(func() {
			if err := v.Add(t.Context(), decision{what}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if err := v.Revoke(t.Context(), decision{"gone"}); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	v.counts(t, want)
	if n := v.holds(t); n != 6 {
		t.Errorf("%d events", n)
	}
}

// TestVouchersKilled kills processes that call Add in a loop. It checks that all acknowledged decisions are still valid
// and that the log accepts new events.
func TestVouchersKilled(t *testing.T) {
	v := here(t)
	if state := os.Getenv("PERLICA_TEST_STATE"); state != "" {
		v = NewVouchers(config.Dirs{State: state})
		for i := 0; ; i++ {
			what := string(rune('A'+i%26)) + os.Getenv("PERLICA_TEST_ROUND")
			if err := v.Add(context.Background(), decision{what}); err != nil {
				t.Fatal(err)
			}
			os.Stdout.WriteString(what + "\n")
		}
	}
	want := map[string]bool{"never": false}
	for round := range 12 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestVouchersKilled$")
		cmd.Env = append(os.Environ(), "PERLICA_TEST_STATE="+v.dirs.State, "PERLICA_TEST_ROUND="+string(rune('a'+round)))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		b := make([]byte, 1)
		for n := 0; n < round%4; { // waits until up to three decisions are acknowledged
			if _, err := out.Read(b); err != nil {
				t.Fatal(err)
			}
			said.Write(b)
			n = strings.Count(said.String(), "\n")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the error says that the process was killed
		for _, what := range strings.Fields(said.String()) {
			want[what] = true
		}
		v.counts(t, want)
	}
	if err := v.Add(t.Context(), decision{"last"}); err != nil {
		t.Fatal(err)
	}
	v.counts(t, want)
	v.holds(t)
}

// TestVouchersThatCannotBeWritten checks that Add returns an error if the log cannot be written, and that a damaged log
// vouches for no decision.
func TestVouchersThatCannotBeWritten(t *testing.T) {
	v := here(t)
	if err := os.WriteFile(v.dirs.State, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(t.Context(), decision{"a"}); err == nil {
		t.Error("a file in place of the folder is no error")
	}
	if err := os.Remove(v.dirs.State); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(v.dirs.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.dirs.State, config.DirName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(t.Context(), decision{"b"}); err == nil {
		t.Error("the log cannot be made, and it is no error")
	}
	if err := os.Remove(filepath.Join(v.dirs.State, config.DirName)); err != nil {
		t.Fatal(err)
	}
	v.counts(t, map[string]bool{"a": false, "b": false})
	if err := v.Add(t.Context(), decision{"b"}); err != nil {
		t.Fatal(err)
	}
	paths, err := v.dirs.EnsureOwn()
	if err == nil {
		err = os.WriteFile(paths.EventLog, []byte(strings.Repeat("no database", 1000)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if known, err := v.Known(t.Context()); err == nil || known.Has(decision{"b"}) {
		t.Errorf("a damaged log: %v, %v", known, err)
	}
	if err := v.Add(t.Context(), decision{"c"}); err == nil {
		t.Error("a damaged log takes vouchers")
	}
}
