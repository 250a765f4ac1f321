package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
)

// app is one invocation: the standard streams and the environment, and what all commands
// share.
type app struct {
	stdin          *os.File
	stdout, stderr *os.File
	environ        []string
	getenv         func(string) string
	system         string // as runtime.GOOS has it

	contextFlag string // --context
	serviceFlag bool   // --service
}

func newApp() *app {
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), getenv: os.Getenv, system: runtime.GOOS}
}

// exitError ends the process with a code. Its error, if any, is printed first.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageErr marks an error as the fault of the command line.
func usageErr(format string, args ...any) error {
	return &exitError{code: 2, err: fmt.Errorf(format, args...)}
}

// hinted adds what to do to an error that says what is wrong.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

func withHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// main runs a command line and returns the exit code.
func (a *app) main(args []string) int {
	root := a.root(args)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		// What cobra itself finds wrong is the command line.
		exit = &exitError{code: codeOf(err), err: err}
	}
	if exit.err != nil {
		a.complain(err) // not exit.err: a hint may be wrapped around it
	}
	return exit.code
}

// codeOf is the exit code of an error for commands other than run.
func codeOf(err error) int {
	var problems config.Problems
	var workspace *config.WorkspaceError
	var context *config.ContextNameError
	if errors.As(err, &problems) || errors.As(err, &workspace) || errors.As(err, &context) {
		return 2
	}
	return 1
}

// complain prints an error and what to do about it.
func (a *app) complain(err error) {
	styles := term.NewStyles(a.getenv, term.IsTerminal(a.stderr))
	// A log that died says so once more when it is closed.
	for i, line := range slices.Compact(strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")) {
		if i == 0 {
			line = styles.Red("perlica:") + " " + term.Sanitize(line)
		} else {
			line = "  " + term.Sanitize(line)
		}
		fmt.Fprintln(a.stderr, line)
	}
	var h *hinted
	var agent *agents.Error
	hint := ""
	switch {
	case errors.As(err, &h):
		hint = h.hint
	case errors.As(err, &agent):
		hint = agent.Hint
	default:
		hint = hintOf(err)
	}
	if hint != "" {
		fmt.Fprintln(a.stderr, styles.Dim("hint: "+term.Sanitize(hint)))
	}
}

// hintOf knows what to do about the faults that any command can meet.
func hintOf(err error) string {
	var linked *eventlog.LinkedError
	var place *eventlog.PlaceError
	switch {
	case errors.As(err, &place):
		return "move it away, if it is not yours: it may have come with the project"
	case errors.Is(err, eventlog.ErrNoLocks):
		return "a log needs a disk with working locks; on a network disk its lock service may be down"
	case errors.Is(err, eventlog.ErrManyOpen), errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files (ulimit -n), or end what has so many open"
	case errors.As(err, &linked):
		return linked.Hint()
	case errors.Is(err, eventlog.ErrMoved):
		return "end what else works in its folder, then look at what is left of it: perlica log verify"
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, eventlog.ErrIO), errors.Is(err, syscall.ENOSPC):
		const again = "see that the disk has room and is well, then try again"
		if before := (*logError)(nil); errors.As(err, &before) {
			return again + "; nothing was sent"
		}
		return again
	case errors.Is(err, eventlog.ErrBusy):
		return "another program holds the log open for writing; 'perlica doctor' says more"
	case errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, eventlog.ErrForeign):
		return "move the file and the .anchor beside it away to start a new log, and keep them: 'perlica log verify FILE' says what is wrong with it, and a new log does not know which inputs were called"
	case errors.Is(err, eventlog.ErrPart):
		return "'perlica log tail' and 'perlica log show' read it; --context NAME chooses another log"
	case errors.Is(err, eventlog.ErrNewer):
		return "use the newer version of Perlica that wrote it, or --context NAME for another log"
	case errors.Is(err, eventlog.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		return "make the folder writable, or run in another one; 'perlica doctor' says more"
	case errors.Is(err, evidence.ErrKey):
		return "'perlica doctor' says what is wrong with the key and what to do"
	case errors.Is(err, sessions.ErrNoSession):
		return "see 'perlica session list --all'"
	case errors.Is(err, kernel.ErrPruning):
		return "nothing was sent; --wait waits until it is done"
	case errors.Is(err, filelock.ErrBusy):
		return "--wait waits until it is free; 'perlica watch' follows it"
	}
	return ""
}

// locate finds the project and loads the configuration. With an error it returns what could be
// found, for doctor and config.
func (a *app) locate(settings map[string]string) (*project.Project, error) {
	return a.locateAs(a.environ, settings)
}

// locateAs is locate as if the environment were environ.
func (a *app) locateAs(environ []string, settings map[string]string) (*project.Project, error) {
	if a.contextFlag != "" {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["context.default_id"] = a.contextFlag
	}
	dir, err := os.Getwd()
	if err != nil {
		return &project.Project{Config: &config.Config{}}, err
	}
	p, err := project.Find(dir, environ, settings)
	p.Environ = a.environ
	var bad *config.ContextNameError
	if a.contextFlag != "" && errors.As(config.CheckContextName(a.contextFlag), &bad) {
		return p, usageErr("--context %q: %s", bad.Name, bad.Reason)
	}
	return p, err
}

// locateToRead is locate for commands that only read the record: a mistake in a file is
// said, and does not keep the record from being read. One that leaves open which context is
// meant does.
func (a *app) locateToRead() (*project.Project, error) {
	p, err := a.locate(nil)
	var problems config.Problems
	if !errors.As(err, &problems) {
		return p, err
	}
	for _, problem := range problems {
		if problem.Line == 0 || problem.Key == "" || problem.Key == "context.default_id" {
			return p, err
		}
	}
	fmt.Fprintf(a.stderr, "perlica: warning: the configuration has mistakes, see 'perlica config check': %s\n", term.Sanitize(problems[0].Error()))
	return p, nil
}

// open opens the context's log for work. The returned function closes what was opened.
func (a *app) open(ctx context.Context, p *project.Project) (*kernel.Runner, func() error, error) {
	r, done, err := p.Open(ctx, version)
	var unknown *logtrust.UnknownError
	if errors.As(err, &unknown) {
		if err = a.askToTrust(ctx, p, unknown, err); err == nil {
			r, done, err = p.Open(ctx, version)
		}
	}
	if err != nil {
		return nil, nil, &logError{err}
	}
	return r, done, nil
}

// logError marks an error of the event log before anything was sent.
type logError struct{ error }

func (e *logError) Unwrap() error { return e.error }

// reader opens the context's log read-only. There is none before the first run.
func (a *app) reader(ctx context.Context, p *project.Project) (*eventlog.Reader, config.ContextPaths, error) {
	r, paths, err := p.OpenReader(ctx)
	if errors.As(err, &project.NoLogError{}) {
		err = withHint(err, "the first 'perlica run' makes it")
	}
	return r, paths, mayNotRead(err, paths.EventLog)
}

// mayNotRead says of an error that the system does not let this user read the log: nobody wanted
// to write.
func mayNotRead(err error, path string) error {
	if !errors.Is(err, eventlog.ErrReadOnly) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return withHint(fmt.Errorf("the event log cannot be opened for reading: %s", path),
		"whose it is can read it; in a folder that you may not write, you can while no process has it open")
}

// orNone makes an empty answer of it that there is no log yet: for commands that list what there
// is now, of which there is none. It is said, because --context may name another than was meant.
func (a *app) orNone(err error) error {
	var none project.NoLogError
	if !errors.As(err, &none) {
		return err
	}
	a.note(none.Error())
	return nil
}

// root is the tree of commands, as far as args need it.
func (a *app) root(args []string) *cobra.Command {
	var chat chatFlags
	root := &cobra.Command{
		Use: "perlica", Annotations: runs.on(),
		Short: "Talk to a coding agent, one call an input, on the record",
		Long: `Perlica stands between you and a coding agent that speaks the Agent Client
Protocol. One input makes at most one call; nothing is executed here, nothing is
retried, and every step is on an append-only log.`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// cobra would look after this, with an error that is not known as one of usage.
			if err := checkExclusive(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return &exitError{2, err}
			}
			return a.gate(cmd)
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.serviceFlag:
				if err := a.personOnly("the bridge"); err != nil {
					return err
				}
				return a.serve(cmd.Context())
			case a.piped(): // the chat needs a terminal; what is piped in is one input
				return a.run(cmd, runFlags{format: "text"}, nil)
			case term.IsTerminal(a.stdin) && term.IsTerminal(a.stderr):
				if err := a.personOnly("the chat"); err != nil {
					return err
				}
				return a.chat(cmd, chat)
			}
			return cmd.Help()
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(&exitError{2, err}, "see '%s --help'", cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.contextFlag, "context", "", "use another set of databases, by its `name`")
	root.Flags().BoolVar(&a.serviceFlag, "service", false, "run the messaging bridge in the foreground: the same as 'perlica service'")
	commands := map[string]func() *cobra.Command{
		"agent": a.agentCommand, "chat": a.chatCommand, "config": a.configCommand, "doctor": a.doctorCommand, "init": a.initCommand,
		"log": a.logCommand, "pending": a.pendingCommand, "phone": a.phoneCommand, "policy": a.policyCommand, "provider": a.providerCommand,
		"run": a.runCommand, "service": a.serviceCommand, "session": a.sessionCommand, "version": a.versionCommand, "watch": a.watchCommand,
	}
	if len(args) > 0 && commands[args[0]] != nil { // the others would be built for nothing
		root.AddCommand(commands[args[0]]())
		return root
	}
	a.addChatFlags(root, &chat)
	for _, command := range commands {
		root.AddCommand(command()) // it sorts them
	}
	return root
}

// write is for what a command prints: an error of standard output ends it.
func (a *app) write(f func(w io.Writer) error) error {
	if err := f(a.stdout); err != nil && !isClosedPipe(err) {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
