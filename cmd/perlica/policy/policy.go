// Package policy has the commands that explain decisions of the policy and revoke standing approvals.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command policy with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("policy", "Explain decisions, and list remembered answers",
		`The policy answers an agent's questions if it can. It looks at the rules of the configuration
first, then at the answers that you told Perlica to remember, then at the mode of
--permissions. The policy is not a sandbox: it judges the agent's requests, not its actions.
See docs/permissions.md.`,
		a.policyCheckCommand(), a.policyTryCommand(), a.policySuggestCommand(),
		a.policyApprovalsCommand())
}

// checkFlags are the flags of policy check. They describe an imagined request of an agent.
type checkFlags struct {
	kind, provider, permissions string
	session, cwd                string
	paths                       []string
	json                        bool
}

func (a *app) policyCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check [--kind KIND] [--path PATH]… [-- COMMAND…]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Explain the decision about a request",
		Long: `Explain how the policy would decide about an agent's request to run a command or to touch a
path: the effect, the rule or mode that decides, the reason, and the tier (ordinary, always
asked or refused). Nothing is run, asked or recorded.

One argument is a text for a shell; several arguments are the words of one command. So
check 'a && b' is about two commands, and check -- a '&&' b is about one. A request with a
path and without a command needs --kind.

The effects are allow, deny and ask. Ask means no if nobody is there to ask. Before a person,
Perlica asks the policy programs of the configuration; this command starts none of them. If rules can
allow the request, the row "allow" shows such rules for 'perlica run'. The exit code is 0 for
every effect, and 2 for a request that makes no sense.`,
		Example: `  perlica policy check -- git push -f
  perlica policy check 'cd build && rm -rf *' --permissions allow
  perlica policy check --kind edit --path README.md --provider claude
  test "$(perlica policy check --json -- make deploy | jq -r .effect)" = deny`,
		ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.policyCheck(cmd.Context(), f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.kind, "kind", "", "the `kind` of the agent's tool: "+strings.Join(toolKinds, ", ")+
		" (default: execute for a command)")
	fl.StringArrayVar(&f.paths, "path", nil, "a `path` that the tool would touch; may be repeated")
	fl.StringVar(&f.provider, "provider", "",
		"the provider with this `name` asks (default: the provider that 'run' would use)")
	fl.StringVar(&f.permissions, "permissions", "",
		"the `mode`: ask, reads, deny or allow (default: the configuration's, otherwise ask)")
	fl.StringVarP(&f.session, "session", "s", "",
		"decide as in this `session`, with the answers that were remembered for it")
	fl.StringVar(&f.cwd, "cwd", "", "the agent's working `directory`")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	frame.CompleteFlag(cmd, "kind", cobra.FixedCompletions(toolKinds, cobra.ShellCompDirectiveNoFileComp))
	frame.CompleteFlag(cmd, "permissions", cobra.FixedCompletions([]string{"ask", "reads", "deny", "allow"},
		cobra.ShellCompDirectiveNoFileComp))
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	frame.CompleteFlag(cmd, "session", a.CompleteSessions)
	return cmd
}

// toolKinds are the kinds of tools in ACP.
var toolKinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode",
	"other"}

func (a *app) policyCheck(ctx context.Context, f checkFlags, args []string) error {
	flags := map[string]string{}
	if f.permissions != "" {
		flags["permissions.mode"] = f.permissions
	}
	if err := f.validate(args); err != nil {
		return err
	}
	p, err := a.Locate(flags)
	if err != nil {
		return err
	}
	for _, w := range p.Config.Withheld {
		a.Note("not trusted yet, left aside: " + w + " (perlica config trust)")
	}
	req, err := a.checkRequest(ctx, p, f, args)
	if err != nil {
		return err
	}
	mode := cmp.Or(policy.Mode(p.Config.Permissions), policy.ModeAsk)
	given, _, err := a.readApprovals(ctx, p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	judge, err := policy.New(p.Config.Rules, func() ([]policy.Approval, error) { return given, nil }, time.Now)
	if err != nil {
		return err
	}
	c := newChecked(req, mode, judge.Decide(req, mode))
	if c.Effect == policy.Ask {
		for _, one := range p.Judges() {
			c.Programs = append(c.Programs, one.Name())
		}
	}
	return a.Show(f.json, c, c.writeText)
}

// validate returns an error if the flags do not describe a possible request.
func (f checkFlags) validate(args []string) error {
	known := f.kind == "" || slices.Contains(toolKinds, f.kind)
	switch policy.Mode(f.permissions) {
	case "", policy.ModeAsk, policy.ModeReads, policy.ModeDeny, policy.ModeAllow:
	default:
		return frame.UsageErrorf("--permissions is ask, reads, deny or allow, not %q", f.permissions)
	}
	switch {
	case !known:
		return frame.UsageErrorf("there is no kind %q; the kinds are %s", f.kind, strings.Join(toolKinds, ", "))
	case len(args) == 0 && len(f.paths) == 0 && f.kind == "":
		return frame.WithHint(frame.UsageErrorf("there is nothing to check"),
			"perlica policy check -- git push -f, or --kind edit --path FILE")
	case len(args) == 0 && f.kind == "":
		return frame.WithHint(frame.UsageErrorf("a path without a command needs --kind"),
			"--kind read, edit, delete, move or search")
	case len(args) == 1 && strings.TrimSpace(args[0]) == "":
		return frame.UsageErrorf("the command is empty")
	}
	return nil
}

// checkRequest returns the request that the flags and arguments describe.
func (a *app) checkRequest(ctx context.Context, p *project.Project, f checkFlags, args []string) (policy.Request,
	error) {
	dir := p.Dir
	if f.cwd != "" {
		abs, err := filepath.Abs(f.cwd)
		if err != nil {
			return policy.Request{}, err
		}
		dir = abs
	}
	req := policy.Request{
		Provider: f.provider, Kind: f.kind,
		Place: shell.Place{Dir: dir, Home: p.Dirs.Home, Temp: project.TempDirs(), Own: p.OwnFolders()},
		// Every real agent offers at least these two options. If an option to allow once were missing, the policy
		// would ask about everything.
		Options: []policy.Option{{ID: "allow_once", Kind: "allow_once"}, {ID: "reject_once", Kind: "reject_once"}},
	}
	switch len(args) {
	case 0:
	case 1:
		req.Commands = []shell.Command{{Text: args[0]}}
	default:
		req.Commands = []shell.Command{{Argv: args}}
	}
	req.HasCommand = len(req.Commands) > 0
	req.Kind = cmp.Or(req.Kind, "execute")
	for _, path := range f.paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		req.Paths = append(req.Paths, path)
	}
	if f.session != "" {
		err := a.ViewingSessions(ctx, func(view *sessions.View, _ *store.Reader) error {
			s, err := view.Find(ctx, f.session)
			req.Session = string(s.ID)
			req.Provider = cmp.Or(req.Provider, s.Provider)
			return err
		})
		if err != nil {
			return req, err
		}
	}
	if req.Provider == "" {
		agent, err := p.Resolver().Default()
		if err != nil {
			a.Note("no agent is chosen here, so rules and approvals for one agent were not asked (choose one with " +
				"--provider NAME)")
		}
		req.Provider = agent.ID
	}
	// A standing approval belongs to a program and its arguments, so the request needs the agent's command.
	if agent, err := p.Resolver().Named(req.Provider); err == nil {
		req.Agent, _ = shell.Words(agent.Command)
	}
	return req, nil
}

// readApprovals returns the standing approvals that count, and all approvals. The error is fs.ErrNotExist if there
// is no log yet.
func (a *app) readApprovals(ctx context.Context, p *project.Project) (count, all []policy.Approval, err error) {
	log, paths, err := a.Reader(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	defer frame.CloseShown(log, &err)
	view, remove, err := project.OpenView(paths.Approvals, func(path string) (*approvals.Standing, error) {
		return approvals.OpenStanding(ctx, log, path, p.Dirs.ViewKey())
	})
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	defer func() { err = errors.Join(err, view.Close()) }()
	if all, err = view.List(ctx); err != nil {
		return nil, nil, err
	}
	count, err = p.Vouchers().Filter(ctx, all)
	return count, all, err
}

// checkedRequest is a decision as the command policy check prints it.
type checkedRequest struct {
	Effect   policy.Effect    `json:"effect"`
	By       policy.By        `json:"by"`
	Why      string           `json:"why"`
	Tier     shell.Tier       `json:"tier"`
	Rule     *policy.Rule     `json:"rule,omitempty"`
	Approval *policy.Approval `json:"approval,omitempty"`
	Allow    []string         `json:"allow,omitempty"` // commands for rules that would allow the request
	// Programs are the policy programs that would be asked before a person. MayAllow means that their yes would count.
	Programs []string `json:"programs,omitempty"`
	MayAllow bool     `json:"program_may_allow,omitempty"`
	// the word that a person must type before the request is allowed once
	Word     string      `json:"word,omitempty"`
	Mode     policy.Mode `json:"mode"`
	Provider string      `json:"provider"`
	Kind     string      `json:"kind"`
	Commands []string    `json:"commands"`
	Paths    []string    `json:"paths"`
}

func newChecked(r policy.Request, m policy.Mode, d policy.Decision) checkedRequest {
	c := checkedRequest{
		Effect: d.Effect, By: d.By, Why: d.Why, Tier: d.Tier, Rule: d.Rule, Approval: d.Approval, Allow: d.Allow,
		Word: d.Word, MayAllow: d.ProgramMayAllow,
		Mode: m, Provider: r.Provider, Kind: r.Kind, Commands: []string{}, Paths: append([]string{}, r.Paths...),
	}
	for _, cmd := range r.Commands {
		c.Commands = append(c.Commands, cmd.String())
	}
	return c
}

// decidedBy names the rule or the mode that made the decision.
func (c checkedRequest) decidedBy() string {
	switch {
	case c.Rule != nil && c.Rule.Origin != "":
		return "the rule at " + c.Rule.Origin
	case c.Rule != nil:
		return "a rule"
	case c.Approval != nil:
		return fmt.Sprintf("the standing approval %s, said %s on %s", frame.ShortID(c.Approval.ID), c.Approval.By,
			c.Approval.Made.Local().Format(time.DateOnly))
	case c.By == policy.ByTier:
		return "the tier of the request"
	}
	return "the mode " + string(c.Mode)
}

// programs says which policy programs would be asked before a person.
func (c checkedRequest) programs() string {
	switch list := strings.Join(c.Programs, ", "); {
	case list == "":
		return ""
	case c.MayAllow:
		return list + " would be asked first"
	default:
		return list + " would be asked first, and could only deny"
	}
}

func (c checkedRequest) writeText(w io.Writer, s screen.Styles) error {
	style := map[policy.Effect]func(string) string{policy.Allow: s.Green, policy.Ask: s.Yellow,
		policy.Deny: s.Red}[c.Effect]
	if _, err := fmt.Fprintln(w, style(string(c.Effect))); err != nil {
		return err
	}
	word := c.Word
	if word != "" {
		word += " (a person may say yes this once by typing it)"
	}
	return frame.WriteFields(w, s, "  ", 8, [][2]string{
		{"by", c.decidedBy()},
		{"why", c.Why},
		{"programs", c.programs()},
		{"tier", string(c.Tier)},
		{"mode", string(c.Mode)},
		{"provider", c.Provider},
		{"kind", c.Kind},
		{"command", strings.Join(c.Commands, "; ")},
		{"path", strings.Join(c.Paths, ", ")},
		{"allow", frame.AllowFlags(c.Allow)},
		{"word", word},
	})
}
