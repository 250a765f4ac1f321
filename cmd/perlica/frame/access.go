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

// An Access says whether a process that descends from an agent may use a command. The constructor of a command sets
// the command's Access. An agent may not use a command without an Access.
type Access string

const (
	accessKey = "access"

	// ReadOnly is the Access of a command that makes no change for which a person's decision is needed. An agent may
	// use it.
	ReadOnly Access = "read-only"
	// PersonOnly is the Access of a command that only a person may use. Such a command answers, grants, trusts,
	// revokes, resolves or prunes, changes a key or a setting, or makes an input at another front end.
	PersonOnly Access = "person-only"
	// AnswersQuestion is the Access of a command that answers a question. Gate lets an agent start the command. The
	// answer is refused later, and the question's record names the agent.
	AnswersQuestion Access = "answers-question"
	// StartsRun is the Access of a command that makes a run. If an agent starts a run, the new run's permissions are
	// at least as strict as the agent's.
	StartsRun Access = "starts-run"
)

// Annotation returns the annotations of a command with this Access. Copies of Annotation at its many uses would make
// the program larger.
//
//go:noinline
func (s Access) Annotation() map[string]string { return map[string]string{accessKey: string(s)} }

// AccessOf returns the Access of a command. Cobra itself makes the command for completions, which has no Access and
// counts as ReadOnly.
func AccessOf(cmd *cobra.Command) Access {
	if cmd.Parent() == cmd.Root() && cmd.Name() == cobra.ShellCompRequestCmd {
		return ReadOnly
	}
	return Access(cmd.Annotations[accessKey])
}

// byAgentError is the error of an action that a process of an agent may not do.
type byAgentError struct {
	what  string
	agent descent.Agent
}

func (e *byAgentError) Error() string {
	return fmt.Sprintf("%s is refused: this process descends from %s, and only a person does that", e.what, e.agent)
}

// Gate returns an error if a process of an agent runs a PersonOnly command.
func (a *App) Gate(cmd *cobra.Command) error {
	switch AccessOf(cmd) {
	case ReadOnly, StartsRun, AnswersQuestion:
		return nil
	}
	return a.PersonOnly("'" + cmd.CommandPath() + "'")
}

// personHint tells a refused user in which terminals Perlica recognises a person.
const personHint = "do it in a terminal of your own: one that no agent started, outside of namespaces, or in a login such as ssh"

// PersonOnly returns an error if this process descends from an agent, or if its ancestors cannot be read. One case is
// an exception: an action that can only change things made after the agent's start. The argument "what" is the name of
// the action in the error.
func (a *App) PersonOnly(what string) error {
	agent, ok, err := a.agentOfProcess()
	switch {
	case err != nil:
		return WithHint(ExitUsage.With(fmt.Errorf("%s is refused: %w", what, err)), personHint)
	case ok:
		return WithHint(ExitUsage.With(&byAgentError{what, agent}),
			"do it in a terminal of your own, which no agent has started")
	}
	line, _ := descent.Self() // agentOfProcess has reported an error of Self.
	return needsTerminal(what, line)
}

// agentOfProcess returns the agent from which this process descends. ok is false if there is no such agent, or if
// everything that the agent may not touch was made after the agent had started. On Linux it returns an error if the
// ancestors cannot be read.
func (a *App) agentOfProcess() (agent descent.Agent, ok bool, err error) {
	line, err := descent.Self()
	if err != nil && a.System != "linux" {
		err = nil // Other systems never show the variables of the ancestors, so this is no error there.
	}
	agent, ok = line.Youngest()
	switch {
	case !ok:
		return agent, false, err
	case err != nil: // An older agent may be among the unreadable ancestors, so the start times decide nothing.
		return agent, true, nil
	}
	return agent, a.existedBefore(agent.Top.Started), nil
}

// startSlack is the largest error of a process's start time. The system rounds this time down to a tick of its clock.
const startSlack = 20 * time.Millisecond

// existedBefore reports whether a part of the user's state or of the project's record existed at the time start. If
// it cannot tell, it returns true.
func (a *App) existedBefore(start time.Time) bool {
	here := *a
	// The flag --user is ignored here, because the command may also write to the project of this directory.
	here.UserFlag = false
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

// ownHomeIsNew reports whether PERLICA_HOME names a folder that does not exist yet.
func ownHomeIsNew(home string) bool {
	_, err := os.Lstat(home)
	return home != "" && errors.Is(err, fs.ErrNotExist)
}

// allBornAfter reports whether a folder and everything in it was made after the time start. If the folder does not
// exist, allBornAfter looks at its nearest existing parent. For a symbolic link it returns false, because the link
// leads to another place.
func allBornAfter(dir string, start time.Time) bool {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		// Lstat finds a link that leads nowhere. Such a path is not missing.
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return bornAfter(nearestExisting(filepath.Dir(dir)), start)
		}
	}
	if err != nil {
		return false
	}
	all := true
	err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // Another process has just removed the file.
			return nil
		}
		if all = err == nil && d.Type()&fs.ModeSymlink == 0 && bornAfter(path, start); !all {
			return fs.SkipAll
		}
		return nil
	})
	return all && err == nil
}

// nearestExisting returns path, or its nearest parent that exists.
func nearestExisting(path string) string {
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

// Origin describes the process that gives an answer.
func (a *App) Origin() *interaction.Origin {
	line, _ := descent.Self() // After an error, the ancestors that were found still count.
	o := &interaction.Origin{User: UserName(func(string) string { return "" }), Terminal: descent.Terminal()}
	for i, p := range line.Processes {
		q := interaction.Process{PID: p.PID, Name: p.Name}
		if i == 0 {
			o.Process = q
		} else {
			o.Ancestors = append(o.Ancestors, q)
		}
	}
	if agent, ok, err := a.agentOfProcess(); err != nil {
		o.Agent = "a process that cannot be seen: " + strings.TrimPrefix(err.Error(), "descent: ")
	} else if ok {
		o.Agent = agent.String()
	}
	return o
}

// Attended reports whether a person may sit at the terminal of this process. An agent can make a terminal of its
// own, so a process of an agent never counts.
func (a *App) Attended() bool {
	_, agent, err := a.agentOfProcess()
	return err == nil && !agent
}

// ProgramEnv returns the environment for a program that the person starts from here, such as an editor.
func (a *App) ProgramEnv() []string {
	return append(slices.Clone(a.Environ), descent.PersonVariable+"=yes")
}

// needsTerminal refuses an action if this process runs in another namespace and no terminal controls it. In such
// a namespace only a controlling terminal shows that a person acts. The argument line is the result of descent.Self.
func needsTerminal(what string, line descent.Line) error {
	if !line.Hidden {
		return nil
	}
	return requireTerminal(WithHint(ExitUsage.With(fmt.Errorf(
		"%s needs a terminal here: this process is in a namespace of its own, and an agent may have made it", what)),
		personHint))
}

// CheckDetached returns an error if a process without a terminal would count as an agent's here. The process would then
// run with other permissions than this one.
func (a *App) CheckDetached() error {
	line, err := descent.Self()
	if a.System != "linux" || err != nil || !line.Hidden {
		return nil
	}
	return WithHint(ExitUsage.With(errors.New("--detach does not work in a namespace of its own, such as a container: "+
		"a process without a terminal counts as an agent's there")), "without --detach, this terminal drives the flow run")
}

// requireTerminal returns the parameter refusal if this process has no controlling terminal.
func requireTerminal(refusal error) error {
	tty, err := screen.OpenTTY()
	if err != nil {
		return refusal
	}
	return tty.Close()
}

// MayAnswer returns an error if the asking process cannot verify that this process does not belong to an agent. For
// example, one of the two processes may run in a container.
func (a *App) MayAnswer(r *kernel.Runner, q interaction.Question) error {
	line, err := descent.Self()
	if err != nil || len(line.Agents) > 0 {
		return nil // A later step refuses the answer of a process that may belong to an agent.
	}
	pid, err := r.Questions().Asker(q.Writer)
	if err != nil && line.Partial {
		return WithHint(ExitUsage.With(err), "answer where the process that asked can be seen, outside of this container")
	}
	if err == nil && pid != 0 {
		if err := checkSeparation(line, pid, ShortID(q.ID)); err != nil {
			return err
		}
	}
	return needsTerminal("an answer", line)
}

// checkSeparation refuses an answer if this process is in another namespace than the asking process.
func checkSeparation(line descent.Line, asked int, question string) error {
	var apart *descent.ApartError
	if !errors.As(line.Apart(asked), &apart) {
		return nil
	}
	refusal := WithHint(ExitUsage.With(apart),
		"answer in the terminal in which process %d runs, on the phone or on the page; for a container: docker exec -it "+
			"CONTAINER perlica pending allow %s",
		asked, question)
	if apart.Terminal {
		return requireTerminal(refusal)
	}
	return refusal
}

// LocateLimited finds the project for a run. If an agent starts the run, the run's permissions become at least as
// strict as the agent's, and the returned warning says so.
func (a *App) LocateLimited(f map[string]string) (p *project.Project, warning string, err error) {
	line, lineErr := descent.Self()
	hidden := a.System == "linux" && (lineErr != nil || needsTerminal("", line) != nil)
	if len(line.Agents) == 0 && !hidden {
		p, err = a.Locate(f)
		return p, "", err
	}
	if p, err = a.LocateWithoutTrust(f); err != nil {
		return p, "", err
	}
	limit, own := line.Limit(), p.Config.Permissions
	if hidden {
		limit = string(policy.ModeDeny)
	}
	// Without a setting the mode is ask. A later step finds out whether a person can answer.
	own = cmp.Or(own, string(policy.ModeAsk))
	if descent.Stricter(own, limit) != own {
		p.Config.Permissions = limit
		return p, fmt.Sprintf("this run is started by %s: its permissions are %q, as that agent's are, not %q",
			agentsOf(line), limit, own), nil
	}
	return p, fmt.Sprintf("this run is started by %s: its permissions are no looser than that agent's", agentsOf(line)),
		nil
}

func agentsOf(line descent.Line) string {
	if agent, ok := line.Youngest(); ok {
		return agent.String()
	}
	return "a process that cannot be seen"
}
