package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider"
)

// testFlags are the flags of the command provider test.
type testFlags struct {
	agent string
	env   []string
	cwd   string
	json  bool
}

func (a *app) providerTestCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use: "test [NAME]", Annotations: frame.StartsRun.Annotation(),
		Short: "Start an agent, open a session, and report; no prompt is sent",
		Long: `Start an agent, open a session, set the mode that a run would use, and end the agent. No
prompt is sent, so this makes no call and uses no model. Without NAME it is the default agent.

The command prints the agent's name and version, its abilities, its ways to log in, its modes
and options, the duration of each step, and the end of its process. The exit code is 1 if the
agent is not ready for a prompt.`,
		Example: `  perlica provider test claude
  perlica provider test --agent 'my-agent --acp'
  perlica provider test codex --json | jq .steps`,
		Args:              frame.Between(0, "NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.agent != "" && len(args) > 0 {
				return frame.UsageErrorf("give a NAME or --agent, not both")
			}
			return a.providerTest(cmd.Context(), f, strings.Join(args, ""))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "use the ACP agent that this `command` starts: 'CMD ARG…'")
	fl.StringArrayVar(&f.env, "env", nil, "pass this environment `variable` to the agent, too")
	fl.StringVar(&f.cwd, "cwd", "", "the agent's working `directory`")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) providerTest(ctx context.Context, f testFlags, name string) error {
	p, err := a.locateValid()
	if err != nil {
		return err
	}
	agent, err := a.testedAgent(p, f, name)
	if err != nil {
		return err
	}
	dir := p.Dir
	if f.cwd != "" {
		if dir, err = filepath.Abs(f.cwd); err != nil {
			return err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return frame.UsageErrorf("--cwd %s: no such directory", f.cwd)
		}
	}
	redactor, err := p.Redactor()
	if err != nil {
		return err
	}
	ctx, stop := frame.CatchSignals(ctx, 0)
	defer stop.Release()
	go func() {
		select {
		case s := <-stop.First: // No prompt was sent, so there is nothing to cancel.
			stop.End(errors.New(s.Why))
		case <-ctx.Done():
		}
	}()
	needs, err := a.modelNeeds(ctx, p, &agent)
	if err != nil {
		return err
	}
	r := agents.Probe(ctx, agent, agents.ProbeOptions{
		Dir: dir, Environ: a.Environ, Servers: p.Servers(), Version: a.Version, Redactor: redactor,
	})
	r.Requirements = needs
	if err := a.printProbe(r, f.json); err != nil {
		return err
	}
	switch {
	case r.Err == nil:
		return nil
	case f.json:
		return frame.ExitFailure.With(nil)
	}
	return frame.ExitFailure.With(frame.WithHint(r.Err, "%s",
		probeHint(r, f.agent != "", agent.HeldBack(a.Environ, r.Err.LoginVars))))
}

// modelNeeds checks the requirements of a model that runs without an agent program, and sends one request to the
// model. The error names the first requirement that is missing.
func (a *app) modelNeeds(ctx context.Context, p *project.Project, agent *agents.Agent) ([]agents.Requirement, error) {
	if !agent.Model {
		return nil, nil
	}
	list := p.Resolver().Requirements(ctx, agent.ID, true, p.Dirs, a.Getenv)
	for _, n := range list {
		if !n.OK {
			return list, frame.ExitFailure.With(frame.WithHint(fmt.Errorf("%s is not ready, its %s: %s", agent.ID, n.Name,
				n.Detail), "%s", n.Hint))
		}
	}
	return list, p.Resolver().UseModel(agent, "", nil, p.Dirs, a.Getenv)
}

// testedAgent finds the agent that the command tests.
func (a *app) testedAgent(p *project.Project, f testFlags, name string) (agent agents.Agent, err error) {
	res := p.Resolver()
	switch {
	case f.agent != "":
		agent, err = res.AdHoc(f.agent)
	case name != "":
		agent, err = res.Named(name)
	default:
		agent, err = res.Default()
	}
	agent.Env = append(agent.Env, f.env...)
	return agent, err
}

// probeHint returns a hint for an agent that is not ready.
func probeHint(r agents.ProbeReport, adHoc bool, held []string) string {
	switch r.Err.Type {
	case provider.TypeAuth:
		return frame.LoginHint(r.Provider, adHoc, held)
	case provider.TypeTimeout:
		return frame.TimeoutHint(r.Provider, adHoc)
	case provider.TypeStart:
		if frame.IsTooManyOpenFiles(r.Err) {
			return frame.HintOf(r.Err)
		}
		return "see 'perlica provider show " + r.Provider + "'"
	}
	if r.Stderr != "" {
		return "what the agent wrote to its standard error is above"
	}
	return "is this an agent that speaks ACP on its standard input and output? See 'perlica provider show " + r.Provider +
		"'"
}

func (a *app) printProbe(r agents.ProbeReport, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			OK bool `json:"ok"`
			agents.ProbeReport
		}{r.Err == nil, r})
	}
	s := a.Styles(a.Stdout)
	return a.Write(func(w io.Writer) error {
		if err := writeRows(w, s, probeRows(r)); err != nil {
			return err
		}
		if r.Err == nil || r.Stderr == "" {
			return nil
		}
		_, err := fmt.Fprintln(w, s.Dim("standard error")+"\n"+indentedTail(r.Stderr))
		return err
	})
}

// indentedTail returns the last lines of a longer text, indented and sanitized.
func indentedTail(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-20):]
	for i, l := range lines {
		lines[i] = "  " + screen.Sanitize(l)
	}
	return strings.Join(lines, "\n")
}

func probeRows(r agents.ProbeReport) []row {
	rows := []row{{"provider", r.Provider}, {"command", agents.CommandLine(r.Command)}}
	for _, n := range r.Requirements {
		rows = append(rows, row{n.Name, n.Detail})
	}
	if r.Agent != nil {
		rows = append(rows, row{"agent", strings.TrimSpace(r.Agent.Name + " " + r.Agent.Version)})
	}
	if r.Protocol > 0 {
		rows = append(rows,
			row{"protocol", fmt.Sprintf("ACP version %d", r.Protocol)},
			row{"capabilities", strings.Join(capabilities(r.Capabilities), " ")},
			row{"login", logins(r.Logins)})
	}
	rows = append(rows, row{"modes", modes(r)})
	for _, o := range r.Options {
		if s := o.Select; len(r.Modes) > 0 && s != nil && s.Category != nil &&
			*s.Category == acp.SessionConfigOptionCategoryMode {
			continue // The name is the same as the id, so it adds nothing.
		}
		rows = append(rows, optionRow(o, r.Selected))
	}
	for _, w := range r.Warnings {
		rows = append(rows, row{"warning", w})
	}
	rows = append(rows, row{"steps", steps(r.Steps)}, row{"process", r.Exit})
	if r.Err == nil {
		rows = append(rows, row{"result", "ready for a prompt; none was sent"})
	}
	return rows
}

// capabilities returns the names of an agent's capabilities, as paths in its answer to initialize.
func capabilities(c acp.AgentCapabilities) []string {
	b, err := json.Marshal(c)
	if err != nil {
		return nil
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil
	}
	return flatten("", v)
}

// flatten returns the paths of all fields of v that are true or empty objects.
func flatten(path string, v map[string]any) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		name := strings.TrimPrefix(path+"."+key, ".")
		switch x := v[key].(type) {
		case bool:
			if x {
				names = append(names, name)
			}
		case map[string]any:
			inner := flatten(name, x)
			if len(x) == 0 && path != "" {
				inner = []string{name}
			}
			names = append(names, inner...)
		}
	}
	return names
}

func logins(methods []acp.AuthMethod) string {
	var names []string
	for _, m := range methods {
		switch {
		case m.Agent != nil:
			names = append(names, m.Agent.Name)
		case m.EnvVar != nil:
			names = append(names, m.EnvVar.Name)
		case m.Terminal != nil:
			names = append(names, m.Terminal.Name)
		}
	}
	return strings.Join(names, "; ")
}

func modes(r agents.ProbeReport) string {
	var names []string
	for _, m := range r.Modes {
		name := string(m.Id)
		// A name is printed after its id, because --mode needs the id.
		if called := agents.ModeName(r.Modes, name); called != name {
			name = called + ": " + name
		}
		if string(m.Id) == r.Mode {
			name += " (selected)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func optionRow(o acp.SessionConfigOption, selected map[string]string) row {
	id, _, now, values := agents.DescribeOption(o)
	if id == "" {
		return row{}
	}
	if v, ok := selected[id]; ok {
		now = v
	}
	return row{"option " + frame.OneLine(id), fmt.Sprintf("%s, of: %s", now, strings.Join(values, ", "))}
}

func steps(list []agents.ProbeStep) string {
	var words []string
	for _, s := range list {
		word := s.Name + " " + s.Duration.Round(10*time.Microsecond).String()
		if s.Duration > time.Second {
			word = s.Name + " " + s.Duration.Round(10*time.Millisecond).String()
		}
		if !s.OK {
			word += " (failed)"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
