package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// TestAnswerUnattended checks that an input is called once for its id, and that its mode answers the questions.
func TestAnswerUnattended(t *testing.T) {
	dir := t.TempDir()
	p, err := Find(dir, append(os.Environ(), "PERLICA_HOME="+filepath.Join(dir, "home")), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, done, err := p.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	for mode, allowed := range map[policy.Mode]int{policy.ModeDeny: 0, policy.ModeAllow: 1} {
		u := Unattended{Provider: "predictable", Permissions: mode}
		u.Input = kernel.Input{ID: event.InputID("because:" + mode), Text: "@ask execute Build command=make"}
		first, err := p.AnswerUnattended(t.Context(), r, u)
		if err != nil || first.Outcome != record.OutcomeResponded || first.Permissions.Allowed != allowed ||
			first.Permissions.Denied != 1-allowed {
			t.Fatalf("%s: %+v, %v", mode, first, err)
		}
		if again, err := p.AnswerUnattended(t.Context(), r, u); err != nil || again.Run != first.Run {
			t.Errorf("%s: a second call: %+v, %v", mode, again, err)
		}
	}
}
