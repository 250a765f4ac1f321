// Package frame gives every command its streams, project, log, shared flags, output and exit code. It decides whether
// an agent's process may use the command. It prints texts, tables and JSON. It turns every error into an exit code
// and a hint, and every signal into a stop of the turn.
//
// Package frame knows no single command and imports no front end. No other package writes an exit code as a number,
// except for the process of the built-in agent.
package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/kernel/config"
)

// App is one invocation of perlica. It holds the standard streams, the environment and the shared flags.
type App struct {
	Stdin          *os.File
	Stdout, Stderr *os.File
	Environ        []string
	Getenv         func(string) string
	Version        string
	System         string // a value of runtime.GOOS

	ContextFlag string   // the value of --context
	ProjectFlag string   // The value of --project. If it is empty, Perlica searches for the project.
	SandboxFlag string   // the value of --sandbox
	AgentArgs   []string // the agent's own arguments, which follow the arguments of the command
	UserFlag    bool     // --user: use the user's own log instead of a project's log

	warned *sync.Map // the paths that WarnExposed has printed
}

// NewApp returns the App for the current process.
func NewApp(version string) *App {
	return &App{Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Getenv: os.Getenv, System: runtime.GOOS, warned: &sync.Map{}}
}

// AddSandboxFlag adds the flag for the sandbox of agents to a command that starts them.
func (a *App) AddSandboxFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.SandboxFlag, "sandbox", "",
		"start agents in a sandbox of this `mode`: off, protect, project or offline; see 'perlica sandbox check'")
	_ = cmd.RegisterFlagCompletionFunc("sandbox", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return Completed([]string{"off", "protect", "project"}, nil)
	}) // Cobra has the flag, because it was just added.
}

// WithSandbox adds the value of --sandbox to the settings.
func (a *App) WithSandbox(settings map[string]string) map[string]string {
	if a.SandboxFlag == "" {
		return settings
	}
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["sandbox"] = a.SandboxFlag
	return settings
}

// CheckExclusive returns an error if the user gave two flags that exclude each other.
func CheckExclusive(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		for _, group := range fl.Annotations["cobra_annotation_mutually_exclusive"] {
			var given []string
			for _, name := range strings.Fields(group) {
				if cmd.Flags().Changed(name) {
					given = append(given, "--"+name)
				}
			}
			if len(given) > 1 {
				err = UsageErrorf("%s exclude each other", strings.Join(given, " and "))
			}
		}
	})
	return err
}

// WriteTo lets f write to the named file. The file appears under its name only after f has succeeded. If the name is
// "-", f writes to standard output. A pipe or device is written directly.
func (a *App) WriteTo(name string, f func(w io.Writer) error) (err error) {
	if name == "-" {
		return f(a.Stdout)
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		out, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f(out), out.Close())
	case isOfTheLog(name):
		return WithHint(UsageErrorf("%s lies where logs are kept", name), "choose another name for --output")
	case err == nil && preciousKind(name) != "":
		return WithHint(UsageErrorf("%s is %s, and would be replaced", name, preciousKind(name)),
			"choose another name for --output")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	scratch, err := disk.NewScratch(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = scratch.Close() }() // The file was moved to its place, or is incomplete and useless.
	out, err := os.OpenFile(scratch.Path("out"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f(out), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), name)
}

// isOfTheLog reports whether a file with this name would lie in the folder of a context, next to a log.
func isOfTheLog(name string) bool {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sep := string(filepath.Separator)
	return strings.Contains(dir+sep, sep+config.DirName+sep+"contexts"+sep)
}

// preciousKind returns the kind of a file that no export or proof may replace, or "" for another file. It looks at
// the file's first bytes, because a copy of a log can have any name.
func preciousKind(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // The file was only read, so a failed close loses no data.
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // A file with fewer bytes fills only a part of head.
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "a database"
	case bytes.HasPrefix(head, []byte("perlica checkpoint keys ")):
		return "a file of keys"
	case anchorBegins().Match(head):
		return "a log's anchor"
	}
	return ""
}

// anchorBegins matches the first line of an anchor, which is a file next to a log with the log's sizes and roots.
var anchorBegins = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+ [A-Za-z0-9+/]{43}= perlica/`)
})

// Group returns a command that only contains other commands. Without an argument it shows its help. An unknown
// argument gives an error with a suggestion.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Annotations: ReadOnly.Annotation(), Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := UsageErrorf("there is no command '%s %s'", cmd.CommandPath(), args[0])
			if near := NearestCommand(cmd, args[0]); near != "" {
				return WithHint(err, "did you mean '%s %s'?", cmd.CommandPath(), near)
			}
			return WithHint(err, "see '%s --help'", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// NearestCommand returns the name of the subcommand that is most similar to word, or "".
func NearestCommand(cmd *cobra.Command, word string) string {
	best, at := "", 3
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return c.Name()
		}
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			d := levenshtein.Distance(word, name, nil)
			if d == 2 && len(word) < 5 && (word == "" || word[0] != name[0]) {
				continue // If two letters of a short word are wrong, the suggestion would be a guess.
			}
			if d < at {
				best, at = name, d
			}
		}
	}
	return best
}

// Exactly works like cobra.ExactArgs and names the arguments in its error.
func Exactly(names ...string) cobra.PositionalArgs {
	return Between(len(names), names...)
}

// Between requires the first of the named arguments and allows all of them. The parameter "least" is the number of
// required arguments. Copies of Between at its many uses would make the program larger.
//
//go:noinline
func Between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return WithHint(UsageErrorf("'%s' needs %s", cmd.CommandPath(), strings.Join(names[len(args):least], " and ")), "%s",
				cmd.UseLine())
		case len(args) > len(names):
			return WithHint(UsageErrorf("'%s' takes no argument %q", cmd.CommandPath(), args[len(names)]), "%s", cmd.UseLine())
		}
		return nil
	}
}

// AtLeast requires the named arguments. The last argument may be repeated.
func AtLeast(names ...string) cobra.PositionalArgs {
	between := Between(len(names), names...)
	return func(cmd *cobra.Command, args []string) error { return between(cmd, args[:min(len(args), len(names))]) }
}

// CompleteFirst completes only the first argument of a command, with f.
func CompleteFirst(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// CompleteFlag sets the completion of a flag. The flag must exist.
func CompleteFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err))
	}
}

// NoFiles is the completion for a command without arguments. It offers no files.
var NoFiles = cobra.NoFileCompletions
