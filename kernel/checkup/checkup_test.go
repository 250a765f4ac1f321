package checkup

import (
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
)

// TestCheckupSurvivesItsChecks checks that a panic in a check becomes a failed check, and that the other checks still
// run.
func TestCheckupSurvivesItsChecks(t *testing.T) {
	var got []Check
	e := &examination{report: func(c Check) { got = append(got, c) }}
	e.guarded("first", func(*examination) { panic("boom") })
	e.guarded("second", func(e *examination) { e.ok("fine") })
	if len(got) != 2 || got[0].Status != Fail || !strings.Contains(got[0].Detail, "boom") || got[1].Status != OK {
		t.Errorf("got %+v", got)
	}
}

// TestCheckupOfNothing checks that a checkup also works if no project was found.
func TestCheckupOfNothing(t *testing.T) {
	failed := map[string]bool{}
	none := func(string) (string, error) { return "", os.ErrNotExist }
	Checkup{Config: &config.Config{}, Broken: config.ErrNoHome,
		Agents: agents.Resolver{Config: &config.Config{}, Self: os.Args[0], LookPath: none}}.
		Run(t.Context(), func(c Check) {
			if strings.Contains(c.Detail, "crashed") {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
			failed[c.Name] = failed[c.Name] || c.Status == Fail
		})
	if !failed["configuration"] || !failed["workspace"] {
		t.Errorf("got %v", failed)
	}
}
