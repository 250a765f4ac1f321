package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/descent"
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
		u := Unattended{Choice: Choice{Provider: "predictable"}, Permissions: mode}
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

// TestAnswerUnattendedLimits checks that a run of the agent itself cannot loosen the mode of the input, although the
// configured mode is looser.
func TestAnswerUnattendedLimits(t *testing.T) {
	dir := t.TempDir()
	p, err := Find(dir, append(os.Environ(), "PERLICA_HOME="+filepath.Join(dir, "home")),
		map[string]string{"permissions.mode": "allow"})
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
	u := Unattended{Choice: Choice{Provider: "predictable"}, Permissions: policy.ModeDeny,
		Input: kernel.Input{ID: "limits", Text: "@show env " + descent.LimitVariable}}
	if res, err := p.AnswerUnattended(t.Context(), r, u); err != nil || !strings.Contains(res.Text, "deny") {
		t.Errorf("got %q, %v", res.Text, err)
	}
}
