package frame

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/descent"
)

// An Access says whether a process that descends from an agent may use a command. The function that makes a command
// sets its Access. An agent may not use a command that has none.
type Access string

const (
	accessKey = "access"

	// ReadOnly is the Access of a command that changes nothing that a person decides. An agent may use it.
	ReadOnly Access = "read-only"
	// PersonOnly is the Access of a command that decides something in a person's place: it answers, grants, trusts,
	// revokes, resolves or prunes, changes a key or a setting, or makes an input at another front end. An agent may
	// not use it.
	PersonOnly Access = "person-only"
	// AnswersQuestion is the Access of a command that answers a question. An agent's attempt is refused later, and the
	// question's record names the agent.
	AnswersQuestion Access = "answers-question"
	// StartsRun is the Access of a command that makes a run. A run that an agent starts is never looser than the
	// agent's own.
	StartsRun Access = "starts-run"
)

// Annotation returns the annotations of a command with this Access.
func (s Access) Annotation() map[string]string { return map[string]string{accessKey: string(s)} }

// AccessOf returns the Access of a command. Cobra's own completion command changes nothing.
func AccessOf(cmd *cobra.Command) Access {
	if cmd.Parent() == cmd.Root() && cmd.Name() == cobra.ShellCompRequestCmd {
		return ReadOnly
	}
	return Access(cmd.Annotations[accessKey])
}

// byAgentError refuses a command to a process of an agent.
type byAgentError struct {
	what  string
	agent descent.Agent
}

func (e *byAgentError) Error() string {
	return fmt.Sprintf("%s is refused: this process descends from %s, and only a person does that", e.what, e.agent)
}

// Gate refuses a command that is on the person's side to a process of an agent.
func (a *App) Gate(cmd *cobra.Command) error {
	switch AccessOf(cmd) {
	case ReadOnly, StartsRun, AnswersQuestion:
		return nil
	}
	return a.PersonOnly("'" + cmd.CommandPath() + "'")
}

// elsewhere is the hint of a refusal: the places where a person is known.
const elsewhere = "do it in a terminal of your own: one that no agent started, outside of namespaces, or in a login such as ssh"

// PersonOnly refuses what to a process that descends from an agent, unless all that it could touch
// was made after that agent was started. It refuses what to a process whose ancestors cannot be read.
func (a *App) PersonOnly(what string) error {
	agent, ok, err := a.agentAbove()
	switch {
	case err != nil:
		return WithHint(ExitUsage.With(fmt.Errorf("%s is refused: %w", what, err)), elsewhere)
	case ok:
		return WithHint(ExitUsage.With(&byAgentError{what, agent}), "do it in a terminal of your own, which no agent has started")
	}
	return needsTerminal(what)
}

// agentAbove returns the agent from which this process descends, if something that it may not
// touch existed when that agent was started. It fails where the system should tell and does not.
func (a *App) agentAbove() (agent descent.Agent, ok bool, err error) {
	line, err := descent.Self()
	if err != nil && a.System != "linux" {
		err = nil // what is known is what the process says of itself
	}
	agent, ok = line.Youngest()
	switch {
	case !ok:
		return agent, false, err
	case err != nil: // an older agent may be in the gap
		return agent, true, nil
	}
	return agent, a.existedBefore(agent.Top.Started), nil
}

// startSlack is how much earlier than it was the start of a process may be said to be: its number
// of ticks is rounded down.
const startSlack = 20 * time.Millisecond

// existedBefore reports whether something of the user's state or of the project's record is as old
// as that. What cannot be seen is.
func (a *App) existedBefore(start time.Time) bool {
	here := *a
	here.UserFlag = false // with --user, too, it is here that a command may write
	p, err := here.Locate(nil)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) || start.IsZero() {
		return true
	}
	start = start.Add(startSlack)
	for _, dir := range []string{p.Workspace.Dir(), p.Dirs.State, p.Dirs.Config} {
		if !allBornAfter(dir, start) && !(ownHomeIsNew(a.Getenv("PERLICA_HOME")) && dir != p.Workspace.Dir()) {
			return true
		}
	}
	return false
}

// ownHomeIsNew reports whether the user's folders have a place of their own that is not there yet.
func ownHomeIsNew(home string) bool {
	_, err := os.Lstat(home)
	return home != "" && errors.Is(err, fs.ErrNotExist)
}

// allBornAfter reports whether a folder and all that is in it, or, where it is not there yet, the
// folder in which it would be made, was made after a time. A link leads elsewhere, so it is not.
func allBornAfter(dir string, start time.Time) bool {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) { // else it is a link that leads nowhere
			return bornAfter(nearest(filepath.Dir(dir)), start)
		}
	}
	if err != nil {
		return false
	}
	all := true
	err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a file of a process that works there
			return nil
		}
		if all = err == nil && d.Type()&fs.ModeSymlink == 0 && bornAfter(path, start); !all {
			return fs.SkipAll
		}
		return nil
	})
	return all && err == nil
}

// nearest is the first folder at or above path that is there.
func nearest(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func bornAfter(path string, start time.Time) bool {
	at, ok := descent.Born(path)
	return ok && at.After(start)
}

// Origin says which process gives an answer.
func (a *App) Origin() *interaction.Origin {
	line, _ := descent.Self() // what is known counts
	o := &interaction.Origin{User: UserName(func(string) string { return "" }), Terminal: descent.Terminal()}
	for i, p := range line.Processes {
		q := interaction.Process{PID: p.PID, Name: p.Name}
		if i == 0 {
			o.Process = q
		} else {
			o.Ancestors = append(o.Ancestors, q)
		}
	}
	if agent, ok, err := a.agentAbove(); err != nil {
		o.Agent = "a process that cannot be seen: " + strings.TrimPrefix(err.Error(), "descent: ")
	} else if ok {
		o.Agent = agent.String()
	}
	return o
}

// Attended reports whether the terminal of this process may be a person's: an agent can make one.
func (a *App) Attended() bool {
	_, agent, err := a.agentAbove()
	return err == nil && !agent
}

// ProgramEnv is the environment of a program that the person starts from here, such as an editor.
func (a *App) ProgramEnv() []string {
	return append(slices.Clone(a.Environ), descent.PersonVariable+"=yes")
}

// needsTerminal refuses what a person does where only a terminal that controls this process speaks for
// a person, and there is no such terminal.
func needsTerminal(what string) error {
	if line, _ := descent.Self(); !line.Hidden { // an error was seen by agentAbove
		return nil
	}
	return terminalOr(WithHint(ExitUsage.With(fmt.Errorf(
		"%s takes a terminal here: this process is in a namespace of its own, and an agent may have made it", what)), elsewhere))
}

// terminalOr returns refusal where no terminal controls this process.
func terminalOr(refusal error) error {
	tty, err := screen.OpenTTY()
	if err != nil {
		return refusal
	}
	return tty.Close()
}

// MayAnswer refuses an answer of a process that cannot be told from an agent's by the process that asked.
func (a *App) MayAnswer(r *kernel.Runner, q interaction.Question) error {
	line, err := descent.Self()
	if err != nil || len(line.Agents) > 0 {
		return nil // its origin does not count
	}
	pid, err := r.Questions().Asker(q.Writer)
	if err != nil && line.Partial {
		return WithHint(ExitUsage.With(err), "answer where the process that asked can be seen, outside of this container")
	}
	if err == nil && pid != 0 {
		if err := mayAnswer(line, pid, ShortID(q.ID)); err != nil {
			return err
		}
	}
	return needsTerminal("an answer")
}

// mayAnswer compares this process with the one that asked.
func mayAnswer(line descent.Line, asked int, question string) error {
	var apart *descent.ApartError
	if !errors.As(line.Apart(asked), &apart) {
		return nil
	}
	refusal := WithHint(ExitUsage.With(apart),
		"answer in the terminal in which process %d runs, on the phone or on the page; for a container: docker exec -it CONTAINER perlica pending allow %s",
		asked, question)
	if apart.Terminal {
		return terminalOr(refusal)
	}
	return refusal
}

// Limited makes the configuration of a run that an agent starts no looser than that agent's, and
// says so.
func (a *App) Limited(f map[string]string) (p *project.Project, warning string, err error) {
	line, lineErr := descent.Self()
	hidden := a.System == "linux" && (lineErr != nil || needsTerminal("") != nil)
	if len(line.Agents) == 0 && !hidden {
		p, err = a.Locate(f)
		return p, "", err
	}
	if p, err = a.WithoutTrust(f); err != nil {
		return p, "", err
	}
	limit, own := line.Limit(), p.Config.Permissions
	if hidden {
		limit = string(policy.ModeDeny)
	}
	own = cmp.Or(own, string(policy.ModeAsk)) // at most: who answers is found later
	if descent.Stricter(own, limit) != own {
		p.Config.Permissions = limit
		return p, fmt.Sprintf("this run is started by %s: its permissions are %q, as that agent's are, not %q", agentsOf(line), limit, own), nil
	}
	return p, fmt.Sprintf("this run is started by %s: its permissions are no looser than that agent's", agentsOf(line)), nil
}

func agentsOf(line descent.Line) string {
	if agent, ok := line.Youngest(); ok {
		return agent.String()
	}
	return "a process that cannot be seen"
}
