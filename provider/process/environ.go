package process

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/perlica/perlica/provider/descent"
)

// ErrEnvName refuses an entry of an environment list that is not a name.
var ErrEnvName = errors.New("an environment list holds names such as OPENAI_API_KEY, or OPENAI_* for all that begin so; no values")

// passedEnv are the variables that every agent gets: what a program needs to find
// itself, its files, its language and the network. A trailing star stands for any
// ending. On Windows case does not matter.
var passedEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TZ",
	"LANG", "LANGUAGE", "LC_*", "XDG_*", "SSH_AUTH_SOCK",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
}

// passedEnvWindows is what a program needs beyond that on Windows.
var passedEnvWindows = []string{
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "OS",
	"USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "PUBLIC",
	"APPDATA", "LOCALAPPDATA", "ProgramData", "ALLUSERSPROFILE",
	"ProgramFiles", "ProgramFiles(x86)", "ProgramW6432",
	"CommonProgramFiles", "CommonProgramFiles(x86)", "CommonProgramW6432",
	"COMPUTERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PSModulePath",
}

// Environ returns the variables of parent, each NAME=value, that an agent gets:
// the common ones and those that extra names, in parent's order, the last of each
// name. Variables of Perlica's own (PERLICA_*) are passed only by their full name,
// and those by which an agent's descendants are known never. The error wraps ErrEnvName; it does not repeat what
// may be a secret.
func Environ(parent, extra []string) ([]string, error) {
	return environ(parent, extra, runtime.GOOS == "windows")
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
	fold := func(s string) string {
		if windows {
			return strings.ToUpper(s)
		}
		return s
	}
	var out []string
	at := map[string]int{}
	for _, kv := range parent {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue // Windows keeps a directory for each drive in variables without a name
		}
		name = fold(name)
		if !anyPasses(pass, name, fold) && !anyPasses(extra, name, fold) || name == agentMark || name == descent.LimitVariable {
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

// checkEnvName accepts a name with at most one star, at its end.
func checkEnvName(name string) error {
	if before, _, ok := strings.Cut(name, "="); ok {
		return fmt.Errorf("provider: %s=…: %w", before, ErrEnvName)
	}
	if name == "" || strings.ContainsAny(name, " \t\r\n\x00") || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
		return fmt.Errorf("provider: %q: %w", name, ErrEnvName)
	}
	return nil
}
