package team

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// line is an input as a line of NDJSON.
type line struct {
	ID          string    `json:"id"`
	Text        string    `json:"text"`
	Files       []string  `json:"files"`
	Project     string    `json:"project"`
	Provider    string    `json:"provider"`
	Labels      []string  `json:"labels"`
	Permissions string    `json:"permissions"`
	Priority    int       `json:"priority"`
	NotBefore   time.Time `json:"not_before"`
	Replaces    string    `json:"replaces"`
}

// maxLine is the longest line that is read.
const maxLine = team.MaxInput * 2

func (a *app) submitCommand() *cobra.Command {
	var file, name string
	cmd := &cobra.Command{
		Use: "submit -f FILE", Annotations: cli.Acts.On(),
		Short: "Hand many inputs to the team",
		Long: `Hand many inputs to the team: a JSON object a line, with text and, if wanted, id, files,
project, provider, labels, permissions, priority (higher first), not_before (RFC 3339) and
replaces (the id of an input that this one is to be done instead of). An id that the hub
knows is not submitted again; under another text it is an error.

With --json each id is printed with what it came to: new, there or differs.`,
		Example: `  perlica team submit -f inputs.ndjson
  jq -c '{id: .number|tostring, text: .title}' issues.json | perlica team submit -f -`,
		Args: cli.Exactly(), ValidArgsFunction: cli.NoFiles,
	}
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object a line")
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the inputs from a `file`; - is standard input")
	cmd.Flags().StringVar(&name, "project", "", "the project of lines that name none, by its `name`; else that of this folder")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return exitcode.WithHint(exitcode.Usagef("'perlica team submit' needs a file"), "perlica team submit -f inputs.ndjson; one input: perlica run --team")
		}
		return a.with(cmd.Context(), func(t *team.Team, p *project.Project) error {
			drafts, err := a.drafts(file, cmp.Or(name, p.Name()))
			if err != nil {
				return exitcode.Usage.With(err)
			}
			return a.submit(cmd.Context(), t, drafts, *asJSON)
		})
	}
	return cmd
}

// drafts reads all lines before any is submitted: one mistake submits nothing.
func (a *app) drafts(file, name string) (drafts []team.Draft, err error) {
	in := io.Reader(a.Stdin)
	dir := ""
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // read from only
		in, dir = f, filepath.Dir(file)
	}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxLine)
	lines := map[string]int{} // by id
	for n := 1; scan.Scan(); n++ {
		if strings.TrimSpace(scan.Text()) == "" {
			continue
		}
		d, err := draft(scan.Bytes(), dir, name)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if before := lines[d.ID]; before > 0 && d.ID != "" {
			return nil, fmt.Errorf("line %d: the id %s stands in line %d, too", n, d.ID, before)
		}
		lines[d.ID] = n
		drafts = append(drafts, d)
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	if len(drafts) == 0 {
		return nil, errors.New("there is no input")
	}
	return drafts, nil
}

func draft(b []byte, dir, name string) (d team.Draft, err error) {
	var l line
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return d, err
	}
	if dec.More() {
		return d, errors.New("there is more behind the object")
	}
	d = team.Draft{
		ID: l.ID, Text: l.Text, Project: l.Project, Provider: l.Provider, Labels: l.Labels, Permissions: l.Permissions, Priority: l.Priority,
		NotBefore: l.NotBefore, Replaces: l.Replaces,
	}
	if d.Project == "" {
		d.Project = name
	}
	for _, f := range l.Files {
		if !filepath.IsAbs(f) {
			f = filepath.Join(dir, f)
		}
		file, err := team.ReadFile(f)
		if err != nil {
			return d, err
		}
		d.Attachments = append(d.Attachments, file)
	}
	return d, d.Check()
}

func (a *app) submit(ctx context.Context, t *team.Team, drafts []team.Draft, asJSON bool) error {
	status := term.NewStatus(a.Stderr, term.StatusWidth(a.Stderr, a.Getenv), a.Styles(a.Stderr), term.SystemClock())
	came, err := t.Submit(ctx, drafts, func(n int) { status.Set(fmt.Sprintf("submitted %d of %d", n, len(drafts))) })
	_ = status.Close() // a terminal that is gone shows nothing
	counts := map[string]int{}
	for _, d := range drafts {
		counts[came[d.ID]]++
	}
	if asJSON {
		werr := a.Write(func(w io.Writer) error {
			enc := json.NewEncoder(w)
			for _, d := range drafts {
				if what := came[d.ID]; what != "" {
					if err := enc.Encode(map[string]string{"id": d.ID, "state": what}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		err = errors.Join(err, werr)
	} else if len(came) > 0 {
		err = errors.Join(err, a.Say("%d new, %d there before, %d under the id of another input", counts[hub.New], counts[hub.There], counts[hub.Differs]))
	}
	var fate *team.FateError
	switch {
	case errors.As(err, &fate):
		return exitcode.WithHint(err, "nothing is sent to another generation by itself; 'perlica team inputs' shows what is there")
	case errors.Is(err, hub.ErrUnsure):
		a.Note("warning: the standby has not confirmed them: if the server fails now they may be lost")
	case err != nil:
		return err
	}
	if counts[hub.Differs] > 0 {
		return exitcode.WithHint(errors.New("some ids are those of other inputs"), "another input takes another id; --json says which")
	}
	return nil
}

// states are what inputs are listed by.
var states = []string{hub.Waiting, hub.Queued, hub.Claimed, "responded", "provider_error", "outcome_unknown", hub.Refused, hub.Withdrawn, hub.Adopted, hub.Resolved, hub.Lost}

func (a *app) inputsCommand() *cobra.Command {
	var state string
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "inputs [ID]", Annotations: cli.Reads.On(),
		Short: "List the newest inputs and what has become of them, or show one",
		Long: `List the newest inputs and what has become of them, or show one with its result.

States: waiting (its time has not come), queued, claimed, responded, provider_error,
outcome_unknown, refused (by its owner, without a call), withdrawn, adopted (closed by an
adoption: unknown), resolved (a person's opinion), lost (in no queue and no claim: somebody
changed the database).`,
		Args: cli.Between(0, "ID"), ValidArgsFunction: cli.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if state != "" && !slices.Contains(states, state) {
				return exitcode.Usagef("--state is one of %s", strings.Join(states, ", "))
			}
			return a.with(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				if len(args) > 0 {
					return a.showInput(cmd.Context(), t, args[0], asJSON)
				}
				list, err := t.Hub.Inputs(cmd.Context(), state, most)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(append([]hub.Status{}, list...))
				}
				g := printing.Grid{Head: []string{"INPUT", "SUBMITTED", "FROM", "PROJECT", "STATE", "WORKER"}}
				for _, s := range list {
					g.Add(s.ID, s.Submitted.Local().Format(time.DateTime), s.Sender, s.Project, s.State, s.Worker)
				}
				return a.Table(g)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only inputs in this `state`")
	cmd.Flags().IntVar(&most, "limit", 50, "how many, a `number`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.CompleteFlag(cmd, "state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// find returns what has become of an input.
func find(ctx context.Context, t *team.Team, id string) (hub.Status, error) {
	s, ok, err := t.Hub.Status(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("there is no input %s on this hub", id)
	}
	return s, err
}

func (a *app) showInput(ctx context.Context, t *team.Team, id string, asJSON bool) error {
	s, err := find(ctx, t, id)
	if err != nil {
		return err
	}
	return a.Show(asJSON, s, func(w io.Writer, st term.Styles) error {
		rows := [][2]string{
			{"input     ", s.ID}, {"submitted ", s.Submitted.Local().Format(time.DateTime) + " by " + s.Sender}, {"project   ", s.Project},
			{"generation", s.Generation}, {"state     ", s.State}, {"worker    ", s.Worker}, {"note      ", s.Note}, {"replaces  ", s.Replaces},
		}
		if r, err := team.ResultOf(s); err == nil {
			rows = append(rows, [2]string{"run       ", r.RunID})
			if r.Error != nil {
				rows = append(rows, [2]string{"error     ", r.Error.Message})
			}
		}
		for _, row := range rows {
			if row[1] != "" {
				if _, err := fmt.Fprintln(w, st.Dim(row[0]), printing.OneLine(row[1])); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Annotations: cli.Acts.On(),
		Short: "Withdraw an input that waits, or have its worker stop it",
		Args:  cli.Exactly("ID"), ValidArgsFunction: cli.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				s, err := find(cmd.Context(), t, args[0])
				if err != nil {
					return err
				}
				if s.Ended() {
					return fmt.Errorf("the input is over: %s", s.State)
				}
				withdrawn, err := t.Cancel(cmd.Context(), args[0], cli.UserName(a.Getenv), "terminal")
				switch {
				case err != nil:
					return err
				case withdrawn:
					return a.Say("withdrawn: it is not called")
				}
				return a.Say("%s is asked to stop it", s.Worker)
			})
		},
	}
}

func (a *app) resolveCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "resolve ID", Annotations: cli.Acts.On(),
		Short: "Close an input whose owner does not come back, by your opinion",
		Long: `Close an input whose owner does not come back. That is an opinion beside the record: it
moves nothing, and is overtaken by what the owner's log says if it comes back after all.
To have it done again, submit a new input under a new id, with "replaces" naming this one.`,
		Args: cli.Exactly("ID"), ValidArgsFunction: cli.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				s, err := find(cmd.Context(), t, args[0])
				switch {
				case err != nil:
					return err
				case s.State != hub.Claimed && s.State != hub.Adopted && s.State != hub.Lost && s.State != "outcome_unknown":
					return exitcode.WithHint(fmt.Errorf("the input is %s", s.State), "what waits is withdrawn: perlica team cancel %s", args[0])
				}
				if err := t.Resolve(cmd.Context(), args[0], note); err != nil {
					return err
				}
				return a.Say("closed by your opinion; what its owner's log says counts before it")
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why, a `text`")
	return cmd
}
