package policy

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// Scope says for which sessions a standing approval holds.
type Scope string

const (
	ScopeSession Scope = "session" // one session of Perlica
	ScopeContext Scope = "context" // all sessions of the project
)

// Approval is a standing yes or no that a person gave. The log has it as the payload of an event approval.remembered.
// An approval never changes.
type Approval struct {
	ID       string `json:"id"`
	Effect   Effect `json:"effect"` // allow or deny
	Scope    Scope  `json:"scope"`
	Session  string `json:"session,omitempty"`  // id of the session; set with ScopeSession
	Provider string `json:"provider,omitempty"` // id of the provider; empty means any

	// At most one of Command, Pattern and Path is set. Command is one command with all its words. Pattern is a pattern
	// of commands, as in the field Command of a Rule. Path is one file.
	Command string `json:"command,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Path    string `json:"path,omitempty"`

	Kind string `json:"kind,omitempty"` // ACP tool kind; empty means any kind
	Dir  string `json:"dir,omitempty"`  // starting directory of the command; empty means any directory

	// Agent is the agent's program and its arguments; empty means any agent. LeadsTo is the target of Path, after
	// all symbolic links, at the time of the answer. Empty means that Path was no link.
	Agent   string `json:"agent,omitempty"`
	LeadsTo string `json:"leads_to,omitempty"`
	// Settings are the other fields of the request that can change the action, such as env.PATH=/bin, one a line. A yes
	// covers only requests with the same settings.
	Settings string `json:"settings,omitempty"`

	Expires time.Time `json:"expires,omitzero"` // zero means never
	By      string    `json:"by"`               // name of the person
	Made    time.Time `json:"made"`
}

// Revocation withdraws an approval. It is the payload of an event approval.revoked.
type Revocation struct {
	ID string    `json:"id"` // id of the approval
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Subject describes the subject of the approval for a person.
func (a Approval) Subject() *message.Text {
	what := shell.KindText(a.Kind)
	switch {
	case a.Command != "":
		what = exactly.With(visible(a.Command))
	case a.Pattern != "":
		what = commandsLike.With(visible(a.Pattern))
	case a.Path != "" && a.Kind != "":
		what = kindOf.With(what, visible(a.Path))
	case a.Path != "":
		what = anyOf.With(visible(a.Path))
	}
	if a.Settings != "" {
		what = withSettings.With(what, visible(strings.ReplaceAll(a.Settings, "\n", ", ")))
	}
	if a.Scope == ScopeSession {
		return forSession.With(what)
	}
	return inProject.With(what)
}

func (a Approval) String() string { return a.Subject().Text }

// Offer returns the label of the option with which a person gives the approval.
func (a Approval) Offer() *message.Text { return rememberYes.With(a.Subject()) }

// Covers reports whether the approval decides the request at the time now. A yes never covers a refused command, or a
// command with an unknown effect.
func (a Approval) Covers(r Request, now time.Time) bool { return a.covers(r, now, assess(r)) }

func (a Approval) covers(r Request, now time.Time, as assessment) bool {
	switch {
	case a.Effect != Allow && a.Effect != Deny:
		return false
	case a.Effect == Allow && (as.verdict.Tier == shell.Refused || as.verdict.Unknown):
		return false
	case a.Scope == ScopeSession && (a.Session == "" || a.Session != r.Session):
		return false
	case a.Scope != ScopeSession && a.Scope != ScopeContext:
		return false
	case !a.Expires.IsZero() && !now.Before(a.Expires):
		return false
	case a.Provider != "" && a.Provider != r.Provider, a.Kind != "" && a.Kind != r.Kind:
		return false
	case a.Agent != "" && a.Agent != r.Agent:
		return false
	case a.Effect == Allow && a.Settings != r.settings():
		return false
	case a.Dir != "" && !slices.Equal(startDirs(r), []string{filepath.Clean(a.Dir)}):
		return false
	}
	return a.matchesSubject(r, as)
}

// matchesSubject reports whether the request matches the subject of the approval.
func (a Approval) matchesSubject(r Request, as assessment) bool {
	switch {
	case a.Command != "":
		return a.sameCommand(r)
	case a.Pattern != "":
		return a.likePattern(r, as)
	case a.Path != "":
		return !as.commands && a.samePaths(r)
	}
	// A yes must name a command, a pattern or a path. A no may name a kind of tool alone.
	return a.Effect == Deny && a.Kind != ""
}

// samePaths reports whether the request names the file of the approval. A yes covers only a request that names this
// file alone, by the same path, while the path still leads to the same target. A no covers every path to the file.
func (a Approval) samePaths(r Request) bool {
	leads := a.LeadsTo
	if leads == "" {
		leads = filepath.Clean(a.Path)
	}
	same := func(p string) bool {
		real, ok := realPath(p)
		if a.Effect == Deny {
			return filepath.Clean(p) == filepath.Clean(a.Path) || ok && real == leads
		}
		return ok && real == leads && filepath.Clean(p) == filepath.Clean(a.Path)
	}
	if a.Effect == Deny {
		return slices.ContainsFunc(r.Paths, same)
	}
	return len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, func(p string) bool { return !same(p) })
}

func (a Approval) sameCommand(r Request) bool {
	want, ok := shell.Command{Text: a.Command}.Canonical()
	if !ok {
		return false
	}
	same := func(c shell.Command) bool {
		got, ok := c.Canonical()
		return ok && got == want
	}
	if a.Effect == Deny {
		return slices.ContainsFunc(r.Commands, same)
	}
	return len(r.Commands) == 1 && same(r.Commands[0])
}

func (a Approval) likePattern(r Request, as assessment) bool {
	p, err := shell.ParsePattern(a.Pattern)
	if err != nil {
		return false
	}
	if a.Effect == Deny {
		return as.mentions(p, r.Place) == shell.Yes
	}
	if len(r.Commands) == 0 || (as.verdict.Tier == shell.AlwaysAsked && !p.Names()) {
		return false
	}
	return covering([]compiled{{pattern: p}}, r) != nil
}

// startDirs returns the directories in which the commands of a request start. Equal directories in a row appear
// only once.
func startDirs(r Request) []string {
	var dirs []string
	for _, c := range r.Commands {
		dirs = append(dirs, filepath.Clean(c.StartDir(r.Place)))
	}
	return slices.Compact(dirs)
}

// Offers returns the approvals that a person may give together with the agent's allow_once option. It returns nil
// for a refused or unreadable request. It also returns nil for a request that depends on an unknown value or has no
// allow_once option. The caller sets ID, By and Made. The caller sets Expires if the approval is to end.
func (r Request) Offers() []Approval {
	a, ok := approvalFor(r)
	if !ok {
		return nil
	}
	var out []Approval
	for _, scope := range []Scope{ScopeSession, ScopeContext} {
		b := a
		b.Scope = scope
		if scope == ScopeSession {
			if r.Session == "" {
				continue
			}
			b.Session = r.Session
		}
		out = append(out, b)
	}
	return out
}

// approvalFor returns the approval that covers this request and as few others as possible. It returns false if no
// approval can cover the request.
func approvalFor(r Request) (Approval, bool) {
	as := assess(r)
	once := slices.ContainsFunc(r.Options, func(o Option) bool { return o.Kind == "allow_once" })
	if !once || as.verdict.Tier == shell.Refused || as.verdict.Unknown {
		return Approval{}, false
	}
	a := Approval{Effect: Allow, Provider: r.Provider, Agent: r.Agent, Settings: r.settings()}
	if as.commands {
		if len(r.Commands) != 1 {
			return Approval{}, false
		}
		a.Command, a.Dir = r.Commands[0].String(), startDirs(r)[0]
		_, ok := shell.Command{Text: a.Command}.Canonical()
		return a, ok
	}
	if len(r.Paths) != 1 || !slices.Contains([]string{"read", "search", "edit", "delete"}, r.Kind) {
		return Approval{}, false
	}
	a.Kind, a.Path = r.Kind, filepath.Clean(r.Paths[0])
	var ok bool
	a.LeadsTo, ok = realPath(a.Path)
	return a, ok
}

// visible returns the whole text on one line. Line ends and control characters become visible signs, so that they
// cannot change the terminal.
func visible(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		if b.Len() > 0 {
			b.WriteString("⏎ ")
		}
		b.WriteString(shell.Printable(line))
	}
	return b.String()
}
