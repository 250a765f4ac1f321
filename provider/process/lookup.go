package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider/descent"
)

// These errors are the reasons why an agent could not be started.
var (
	errCommandNotFound = message.New("process.not-found", "command not found")
	errNotOnPath       = message.New("process.not-on-path", "no such command on PATH")
	errNotExecutable   = message.New("process.not-executable", "not executable")
	errNoDirectory     = message.New("process.no-directory", "no such working directory")
)

// These are the sentences of a launchError.
var (
	notStarted        = message.New("process.not-started", "provider: start %s: %s")
	notStartedBecause = message.New("process.not-started-because", "provider: start %s: %s: %s")
)

// launchError explains why an agent could not be started. It wraps the reason and the system's error.
type launchError struct {
	Command string // the first word of the command, as it was given
	Reason  error  // errCommandNotFound, errNotExecutable or errNoDirectory; nil if Err is the reason
	Path    string // the PATH that was searched, if any
	Dir     string // the requested working directory
	Err     error  // the system's error, if any
}

func (e *launchError) Error() string { return e.Tell().Text }

// Tell returns the sentence of the error.
func (e *launchError) Tell() *message.Text {
	switch {
	case e.Reason == errNoDirectory:
		return notStartedBecause.With(e.Command, e.Reason, e.Dir)
	case e.Reason == errCommandNotFound && e.Path != "":
		return notStarted.With(e.Command, errNotOnPath)
	case e.Reason != nil && e.Err != nil:
		return notStartedBecause.With(e.Command, e.Reason, e.Err)
	case e.Reason != nil:
		return notStarted.With(e.Command, e.Reason)
	}
	return notStarted.With(e.Command, e.Err)
}

func (e *launchError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Reason, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// resolve finds the program to start. It looks up a word without a slash on Perlica's own PATH, which is also
// the agent's. Like os/exec, it refuses a program that it finds through a relative entry of PATH. Like a
// shell, it resolves a relative path with a slash from the directory where Perlica was started, and not from
// the agent's working directory.
func resolve(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &launchError{Reason: errCommandNotFound, Err: errors.New("the command is empty")}
	}
	e := &launchError{Command: spec.Argv[0], Dir: spec.Dir}
	if spec.Dir != "" {
		if st, err := os.Stat(spec.Dir); err != nil || !st.IsDir() {
			e.Reason, e.Err = errNoDirectory, err
			return "", e
		}
	}
	path, err := exec.LookPath(e.Command)
	switch {
	case err == nil:
		if path, err = filepath.Abs(path); err == nil {
			return path, nil
		}
		e.Err = err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		e.Reason, e.Err = errNotExecutable, unwrapExec(err)
	case errors.Is(err, exec.ErrDot):
		e.Reason, e.Err = errCommandNotFound, errors.New("it lies in the current directory only; write ./"+e.Command+
			" if that is meant")
	case strings.ContainsRune(e.Command, '/') || strings.ContainsRune(e.Command, filepath.Separator):
		e.Reason, e.Err = errCommandNotFound, unwrapExec(err)
	default:
		e.Reason, e.Path = errCommandNotFound, os.Getenv("PATH")
		if found := lieOnPath(e.Command); found != "" {
			e.Reason, e.Path, e.Err = errNotExecutable, "", fmt.Errorf("%s lacks the permission to be executed", found)
		}
	}
	return "", e
}

// startError adds a reason to the system's error from starting path.
func startError(spec Spec, path string, err error) error {
	e := &launchError{Command: spec.Argv[0], Dir: spec.Dir, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist): // resolve has just found path itself
		e.Reason = errNotExecutable
		e.Err = fmt.Errorf("%s or the interpreter that its first line names is missing: %w", path, unwrapExec(err))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		e.Reason, e.Err = errNotExecutable, unwrapExec(err)
	}
	return e
}

// unwrapExec removes the wrappers of os and os/exec, which repeat the command.
func unwrapExec(err error) error {
	var xe *exec.Error
	if errors.As(err, &xe) {
		err = xe.Err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err
}

// lieOnPath returns the first regular file with this name on PATH.
func lieOnPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// errEnvName means that an entry of an environment list is not a name.
var errEnvName = errors.New("an environment list holds names such as OPENAI_API_KEY, or OPENAI_* for all that begin so; no values")

// passedEnv are the variables that every agent gets. A program needs them to find itself, its files, its
// language and the network. A trailing star matches any ending. On Windows the case of letters does not
// matter.
var passedEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TZ",
	"LANG", "LANGUAGE", "LC_*", "XDG_*", "SSH_AUTH_SOCK",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
}

// passedEnvWindows are the additional variables that a program needs on Windows.
var passedEnvWindows = []string{
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "OS",
	"USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "PUBLIC",
	"APPDATA", "LOCALAPPDATA", "ProgramData", "ALLUSERSPROFILE",
	"ProgramFiles", "ProgramFiles(x86)", "ProgramW6432",
	"CommonProgramFiles", "CommonProgramFiles(x86)", "CommonProgramW6432",
	"COMPUTERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PSModulePath",
}

// Environ returns the variables of parent, each NAME=value, that an agent gets: the common variables, and the variables
// that the parameter extra lists. The variables have the order of the parameter parent, and a repeated name has its
// last value. Variables of Perlica (PERLICA_*) are passed only if extra has their full name. The variables of package
// descent are never passed. The error wraps errEnvName and does not repeat a value, because the value may be a secret.
func Environ(parent, extra []string) ([]string, error) {
	return environ(parent, extra, runtime.GOOS == "windows")
}

// IsSet reports whether a name, in the form that Environ accepts, matches a variable of parent.
func IsSet(parent []string, name string) bool {
	fold := folded(runtime.GOOS == "windows")
	for _, kv := range parent {
		if variable, _, ok := strings.Cut(kv, "="); ok && anyPasses([]string{name}, fold(variable), fold) {
			return true
		}
	}
	return false
}

// folded returns a function that makes variable names comparable.
func folded(windows bool) func(string) string {
	if windows {
		return strings.ToUpper
	}
	return func(s string) string { return s }
}

func environ(parent, extra []string, windows bool) ([]string, error) {
	for _, name := range extra {
		if err := checkEnvName(name); err != nil {
			return nil, err
		}
	}
	pass := append([]string(nil), passedEnv...)
	if windows {
		pass = append(pass, passedEnvWindows...)
	}
	fold := folded(windows)
	var out []string
	at := map[string]int{}
	for _, kv := range parent {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue // Windows keeps the current directory of each drive in variables without a name
		}
		name = fold(name)
		if !anyPasses(pass, name, fold) && !anyPasses(extra, name, fold) || name == agentMark ||
			name == descent.LimitVariable || name == descent.PersonVariable {
			continue
		}
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out, nil
}

func anyPasses(patterns []string, name string, fold func(string) string) bool {
	for _, p := range patterns {
		p = fold(p)
		if p == name {
			return true
		}
		prefix, star := strings.CutSuffix(p, "*")
		if star && strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "PERLICA_") {
			return true
		}
	}
	return false
}

// checkEnvName accepts a name with at most one star, which must be at its end.
func checkEnvName(name string) error {
	if before, _, ok := strings.Cut(name, "="); ok {
		return fmt.Errorf("provider: %s=…: %w", before, errEnvName)
	}
	if name == "" || strings.ContainsAny(name, " \t\r\n\x00") || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
		return fmt.Errorf("provider: %q: %w", name, errEnvName)
	}
	return nil
}
