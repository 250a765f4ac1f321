package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/hindsight"
)

func (a *app) policySuggestCommand() *cobra.Command {
	var f pastFlags
	var choose bool
	cmd := &cobra.Command{
		Use: "suggest", Annotations: frame.ReadOnly.Annotation(),
		Short: "Suggest rules for the questions that were always answered alike",
		Long: `Suggest a small set of rules that would have answered the questions that a person always
answered in one way. Each rule comes with its evidence, as TOML for the configuration.

No suggested rule allows a question that a person denied in that time, or denies one that a
person allowed. Each allowing rule has tier = "ordinary", so it allows no always-asked or
refused request. A rule with a wildcard answers at least two different requests. Perlica
suggests no rule for modes and tools of an unknown kind.

With --choose you take the rules one by one at the terminal, and the taken ones are printed.
Nothing is written: put the rules into your configuration file yourself. To see their effect
first, put them into a file for 'perlica policy try --file'.`,
		Example: `  perlica policy suggest --since 30d
  perlica policy suggest --all > rules.toml && perlica policy try --all --file rules.toml
  perlica policy suggest --choose`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case choose && f.json:
				return frame.UsageErrorf("--choose and --json exclude each other")
			case choose && !screen.IsTerminal(a.Stderr):
				return frame.WithHint(frame.UsageErrorf("--choose needs a terminal"), "without it all rules are printed")
			}
			return a.policySuggest(cmd.Context(), f, choose)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&choose, "choose", false, "take the rules one by one at the terminal")
	return cmd
}

func (a *app) policySuggest(ctx context.Context, f pastFlags, choose bool) error {
	present, list, damaged, err := a.pastQuestions(ctx, f)
	if err != nil {
		return err
	}
	judge, err := hindsight.NewJudge(present, nil)
	if err != nil {
		return frame.UsageErrorf("%w", err)
	}
	s, err := judge.Suggest(ctx, list)
	if err != nil {
		return err
	}
	if f.json {
		return errors.Join(a.PrintJSON(s), damaged)
	}
	a.Note(summary(s))
	rules := s.Rules
	if choose {
		if rules, err = a.chooseRules(ctx, rules, f.all); err != nil {
			return errors.Join(err, damaged)
		}
	}
	return errors.Join(a.Write(func(w io.Writer) error {
		for i, r := range rules {
			if i > 0 {
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(w, "# %s\n%s", evidence(r, f.all), r.TOML); err != nil {
				return err
			}
		}
		return nil
	}), damaged)
}

// chooseRules shows each rule at the terminal and returns the rules that the person accepts.
func (a *app) chooseRules(ctx context.Context, rules []hindsight.Suggestion, all bool) (taken []hindsight.Suggestion,
	err error) {
	for i, r := range rules {
		if _, err := fmt.Fprintf(a.Stderr, "\n%d of %d: %s\n%s", i+1, len(rules), evidence(r, all), r.TOML); err != nil {
			return nil, err
		}
		yes, err := a.Confirm(ctx, "Take this rule?")
		if err != nil {
			return nil, err
		}
		if yes {
			taken = append(taken, r)
		}
	}
	return taken, nil
}

// evidence describes the answers from which the rule follows.
func evidence(r hindsight.Suggestion, all bool) string {
	text := fmt.Sprintf("allowed %s, denied %d", frame.Count(r.Allowed, "time"), r.Denied)
	if r.Denied > 0 {
		text = fmt.Sprintf("denied %s, allowed %d", frame.Count(r.Denied, "time"), r.Allowed)
	}
	if all {
		text += ", in " + frame.Count(r.Projects, "project")
	}
	return text
}

// summary counts the questions that the rules answer and the questions that a person must still answer.
func summary(s hindsight.Suggestions) string {
	text := fmt.Sprintf("%s to a person: %s would have answered %d of them", frame.Count(s.Questions, "question"),
		frame.Count(len(s.Rules), "new rule"), s.Answered)
	var rest []string
	for _, r := range []struct {
		n    int
		what string
	}{
		{s.Decided, "answered by the present rules"}, {s.Mixed, "allowed at one time and denied at another"},
		{s.Unanswered, "not answered"}, {s.Careful, "always asked or refused"}, {s.NoRule, "without a safe rule"},
		{s.Unjudged, "not to be judged again"},
	} {
		if r.n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	if len(rest) > 0 {
		text += " (" + strings.Join(rest, ", ") + ")"
	}
	return screen.Sanitize(text)
}
