package dialog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/sandbox"
)

// Flags are the values of the flags that belong to a turn.
type Flags struct {
	Provider, Agent   string
	Env               []string
	Session           string
	Cont              bool
	InputID           string
	File              string
	Attach            []string
	Cwd, Model, Mode  string
	Permissions       string
	WaitPermissions   time.Duration
	Allow, Deny       []string // commands in the notation of policy rules
	Format            string
	Json, Quiet       bool
	Newline           bool // The answer ends with a newline, also if standard output is a pipe or file.
	Thoughts, Verbose bool
	Append            string   // text for the system prompt, or @ and a file name
	AddDirs           []string // more root directories of the agent's session
	McpFile           string   // file with MCP servers
	SaveTo            string   // directory for the parts of an answer that are not text
	Timeout           time.Duration
	Wait, Strict      bool
	RequireSandbox    bool
	SchemaFile        string
	Schema            json.RawMessage // content of the schema file

	Program string // name of the program as the user typed it
	Empty   string // name of a flag that has an empty value

	Files *Files // Files reads the files that flags name. If Files is nil, the reading cannot be stopped.
}

// AddFlags adds the flags that run and chat share.
func AddFlags(cmd *cobra.Command, f *Flags) {
	fl := cmd.Flags()
	fl.StringVar(&f.Provider, "provider", "", "use the agent with this `name` in the configuration or the registry")
	fl.StringVar(&f.Agent, "agent", "", "use the ACP agent that this `command` starts: 'CMD ARG…'")
	fl.StringArrayVar(&f.Env, "env", nil, "pass this environment `variable` to the agent, too")
	fl.StringVarP(&f.Session, "session", "s", "",
		"continue this `session`: its name, its id, or the beginning of its id")
	fl.BoolVarP(&f.Cont, "continue", "c", false, "continue the session that was used last")
	fl.StringVar(&f.Cwd, "cwd", "", "the agent's working `directory`")
	fl.StringArrayVar(&f.AddDirs, "add-dir", nil,
		"give the agent this `directory` in addition to its working directory; may be repeated")
	fl.StringVar(&f.Model, "model", "", "the `id` of the agent's model")
	fl.StringVar(&f.SaveTo, "save-to", "", "save the images and files of the agent's answers in this `directory`")
	fl.StringVar(&f.Mode, "mode", "", "the `id` of the agent's mode; \"none\" keeps the mode in which the agent starts")
	cmd.MarkFlagsMutuallyExclusive("provider", "agent")
	cmd.MarkFlagsMutuallyExclusive("session", "continue")
}

// Check refuses invalid values that no later step notices.
func (f Flags) Check() error {
	// A shell variable that is not set leaves the value empty. An empty --input-id would allow a second call.
	if f.Empty != "" {
		return frame.UsageErrorf("--%s is empty", f.Empty)
	}
	switch policy.Mode(f.Permissions) {
	case "", policy.ModeAsk, policy.ModeReads, policy.ModeDeny, policy.ModeAllow:
	default:
		return frame.UsageErrorf("--permissions is ask, reads, deny or allow, not %q", f.Permissions)
	}
	if f.Timeout < 0 {
		return frame.UsageErrorf("--timeout is negative: %s", f.Timeout)
	}
	if f.WaitPermissions < 0 {
		return frame.UsageErrorf("--wait-permissions is negative: %s", f.WaitPermissions)
	}
	if len(f.InputID) > 200 || !utf8.ValidString(f.InputID) ||
		strings.ContainsFunc(f.InputID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return frame.UsageErrorf("--input-id is at most 200 bytes of UTF-8 without control characters")
	}
	if err := (kernel.Input{ID: event.InputID(f.InputID), Source: "run"}).CheckID(); err != nil {
		return frame.ExitUsage.With(err)
	}
	if _, err := process.Environ(nil, f.Env); err != nil {
		return frame.UsageErrorf("--env: %w", err)
	}
	if f.SaveTo != "" {
		if info, err := os.Stat(f.SaveTo); err == nil && !info.IsDir() {
			return frame.UsageErrorf("--save-to %s: no directory", f.SaveTo)
		}
	}
	return nil
}

// Rules returns the policy rules that the flags add to the configuration for one run. Each rule names its flag as
// its origin, and the record shows this origin.
func (f Flags) Rules() (rules []policy.Rule, err error) {
	for _, of := range []struct {
		flag     string
		effect   policy.Effect
		commands []string
	}{{"--deny", policy.Deny, f.Deny}, {"--allow", policy.Allow, f.Allow}} {
		for _, command := range of.commands {
			rule := policy.Rule{Effect: of.effect, Command: command, Reason: of.flag + " of this run", Origin: of.flag}
			if err := rule.Check(); err != nil || strings.TrimSpace(command) == "" {
				return nil, frame.UsageErrorf("%s %q: %w", of.flag, command, cmp.Or(err, errors.New("it names no command")))
			}
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// RuleTexts returns each rule of Rules as one text, such as "--allow make test".
func (f Flags) RuleTexts() (texts []string) {
	rules, _ := f.Rules() // An earlier call of Rules has returned the error.
	for _, r := range rules {
		texts = append(texts, r.Origin+" "+r.Command)
	}
	return texts
}

// ConfigFlags returns the flags that replace settings of the configuration, by the names of the settings.
func (f Flags) ConfigFlags() map[string]string {
	flags := map[string]string{}
	if f.Permissions != "" {
		flags["permissions.mode"] = f.Permissions
	}
	return flags
}

// AllowNote returns the notice about --permissions allow. box is nil if the agent has no sandbox.
func AllowNote(box *sandbox.Spec) string {
	note := "--permissions allow: every ordinary command is allowed without asking"
	if box == nil {
		note += "; this is no sandbox"
	}
	return note
}

// NotSet names the variables of --env that the environment lacks. The agent does not get them. NotSet returns "" if
// there are no such variables.
func (f Flags) NotSet(environ []string) string {
	var names []string
	for _, name := range f.Env {
		if !process.IsSet(environ, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "--env: not set here, so the agent does not get it: " + strings.Join(names, ", ")
}

// Choice returns the agent that the flags choose.
func (f Flags) Choice() (c project.Choice, err error) {
	c = project.Choice{Provider: f.Provider, Command: f.Agent, Env: f.Env, Model: f.Model, Mode: f.Mode, Schema: f.Schema,
		RequireSandbox: f.RequireSandbox}
	if f.Cwd != "" {
		if c.Dir, err = filepath.Abs(f.Cwd); err != nil {
			return c, err
		}
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			return c, frame.UsageErrorf("--cwd %s: no such directory", f.Cwd)
		}
	}
	return c, f.addAgentOptions(&c)
}

// Input returns a text as an input for the kernel.
func (f Flags) Input(a *frame.App, text string) kernel.Input {
	return kernel.Input{ID: event.InputID(f.InputID), Text: text, Attachments: f.Attach, Source: "run",
		Sender: frame.UserName(a.Getenv)}
}

// Find finds the session that the flag -s or -c names. -s may also name a run. Without these flags Find returns a
// new session.
func (f Flags) Find(ctx context.Context, r *kernel.Runner) (s sessions.Session, err error) {
	if f.Session == "" && !f.Cont {
		return sessions.Session{}, nil
	}
	view, err := r.Sessions(ctx)
	if err != nil {
		return sessions.Session{}, frame.LogErrorBeforeSend(err)
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if f.Cont {
		s, err := view.Latest(ctx)
		if errors.Is(err, sessions.ErrNoSession) {
			err = frame.WithHint(fmt.Errorf("%w: nothing was run here yet", err),
				"leave out -c for a first session, or choose another log with --context")
		}
		return s, err
	}
	s, err = view.Find(ctx, f.Session)
	if errors.Is(err, sessions.ErrNoSession) {
		if run, rerr := report.FindRun(ctx, &r.Log().Reader, f.Session); rerr == nil {
			input, ok, rerr := r.Log().Last(ctx, event.Query{Run: run, Types: []event.Type{event.MessageReceived}})
			if rerr == nil && ok {
				return view.Find(ctx, string(input.Session))
			}
		}
	}
	return s, err
}

// ChooseAgent chooses the agent that answers in a session.
func (f Flags) ChooseAgent(ctx context.Context, p *project.Project, r *kernel.Runner, c project.Choice,
	s sessions.Session) (agents.Agent, error) {
	agent, err := p.Agent(c, s)
	var gone *project.GoneError
	var other *project.OtherAgentError
	switch {
	case errors.As(err, &gone):
		err = frame.ExitUsage.With(goneHint(ctx, r, f, s, err))
	case errors.As(err, &other):
		err = frame.WithHint(frame.ExitUsage.With(err), "leave out -s and -c for a new session")
	case errors.Is(err, project.ErrNoSandbox):
		err = frame.WithHint(frame.ExitUsage.With(err), "choose --sandbox protect, or set sandbox in the configuration")
	case err != nil:
		err = frame.ExitUsage.With(err)
	}
	return agent, err
}

// goneHint adds a hint to err: the command that continues the session. The configuration lacks the session's agent,
// because the flag --agent named its command. The record has the agent's command line, but only a person may start
// it again.
func goneHint(ctx context.Context, r *kernel.Runner, f Flags, s sessions.Session, err error) error {
	command, rerr := r.AgentCommand(ctx, s.ID)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case len(command) == 0:
		return frame.WithHint(err, "if it was begun with --agent, say --agent again")
	case filepath.Base(command[0]) != s.Provider:
		return frame.WithHint(err, "it was in the configuration: put it back there; its last command line was: %s",
			agents.CommandLine(command))
	}
	return frame.WithHint(err, "the session was begun with --agent; to continue it with the same agent: %s",
		agents.CommandLine(append(strings.Fields(f.Program), "-s", frame.SessionName(s, frame.ShortID(s.ID)), "--agent",
			agents.CommandLine(command))))
}

// CompleteFlags sets the completions for the flags of run that cmd has.
func CompleteFlags(a *frame.App, cmd *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"permissions":   fixed("ask", "reads", "deny", "allow"),
		"output-format": fixed("text", "json", "stream-json"),
		"provider":      a.CompleteProviders,
		"session":       a.CompleteSessions,
		"resume":        a.CompleteSessions,
	} {
		if cmd.Flags().Lookup(flag) != nil { // The chat has fewer flags.
			frame.CompleteFlag(cmd, flag, f)
		}
	}
}
