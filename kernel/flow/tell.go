package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
)

// listLength is the number of flow runs in a list for people.
const listLength = 10

// Teller returns the function that the command /flow needs. It describes the newest flow runs of a log in Markdown or,
// with the id of one, its steps.
func Teller(p *project.Project, r *kernel.Runner) func(context.Context, string, *language.Sentences) (string, error) {
	return func(ctx context.Context, ref string, say *language.Sentences) (string, error) {
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return "", err
		}
		log := &r.Log().Reader
		if ref != "" {
			id, err := FindRun(ctx, log, ref)
			if err != nil {
				return "", err
			}
			s, err := Look(ctx, log, paths.Locks, id)
			if err != nil {
				return "", err
			}
			return s.tell(say), nil
		}
		all, err := List(ctx, log)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, f := range slices.Backward(all[max(len(all)-listLength, 0):]) {
			outcome := f.Outcome
			if outcome == "" { // a run that cannot be read keeps its line
				if s, err := Look(ctx, log, paths.Locks, f.ID); err == nil {
					outcome = s.Outcome()
				}
			}
			fmt.Fprintf(&b, "- `%s` — `%s`, %s, %s\n", f.ID, f.Name, say.Word(outcome),
				f.Started.Local().Format(time.DateTime))
		}
		return b.String(), nil
	}
}

// tell returns the steps as lines of code. A step is further to the right than the steps that it needs.
func (s *State) tell(say *language.Sentences) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```\n%s: %s %s\n", s.ID, s.Flow.Name, say.Word(s.Outcome()))
	for _, st := range s.Steps {
		line := strings.Repeat("· ", s.Depth(st)) + st.ID + " " + say.Word(string(st.Phase))
		if st.Expanded {
			line += fmt.Sprintf(" %d/%d", st.Count(Done), len(st.Items))
		}
		if st.Answer != "" {
			line += ": " + st.Answer
		}
		if fault := st.Fault(); fault != nil {
			line += ": " + say.Say(fault)
		}
		const most = 200
		b.WriteString(strings.ReplaceAll(say.Card.Line(line, most), "```", "'''") + "\n")
	}
	return b.String() + "```\n"
}
