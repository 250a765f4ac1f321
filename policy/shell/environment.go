package shell

import (
	"path"
	"slices"
	"strings"
)

// pathText stands for the PATH that the command starts with.
const pathText = "${_perlica_path}"

// xdgDirs are where programs keep their files, seen from the home directory, if the
// environment does not say otherwise.
var xdgDirs = map[string]string{
	"XDG_CONFIG_HOME": "/.config", "XDG_STATE_HOME": "/.local/state", "XDG_DATA_HOME": "/.local/share", "XDG_CACHE_HOME": "/.cache",
}

// programVars are variables whose value some program runs as a command.
var programVars = []string{
	"PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PAGER", "PAGER", "MANPAGER", "SYSTEMD_PAGER", "AWS_PAGER", "GH_PAGER", "BAT_PAGER", "DELTA_PAGER",
	"EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "KUBE_EDITOR", "SUDO_EDITOR", "FCEDIT", "HGEDITOR", "SVN_EDITOR",
	"GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "BROWSER", "LESSOPEN", "LESSCLOSE",
	"RSYNC_RSH", "CVS_RSH", "NPM_CONFIG_SCRIPT_SHELL", "RUSTC_WRAPPER", "RUSTC", "MANROFFOPT", "TAR_OPTIONS", "PYTHONBREAKPOINT",
}

// codeVars are variables that name code which some program loads.
var codeVars = []string{
	"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "BASH_ENV", "ZDOTDIR", "PYTHONSTARTUP", "PERL5OPT", "PERL5DB", "PERL5LIB",
	"RUBYOPT", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_PARAMETERS", "INPUTRC", "GCONV_PATH",
	"PYTHONWARNINGS", "GIT_CONFIG_COUNT", "BASH_LOADABLES_PATH", "NODE_REPL_EXTERNAL_MODULE", "VIMINIT", "EXINIT", "GVIMINIT", "MAKEFILES", "EMACSLOADPATH", "MANOPT",
}

// harmlessPrograms may stand in these variables.
var harmlessPrograms = []string{
	"", "cat", "less", "more", "most", "bat", "delta", "true", ":", "false", "echo", "vi", "vim", "nvim", "nano", "emacs", "emacsclient", "code", "hx", "helix",
	"micro", "kak", "ed", "ex", "subl", "zed", "idea", "firefox", "none", "w3m", "lynx", "diff-so-fancy",
	"/bin/true", "/usr/bin/true", "/bin/cat", "/usr/bin/less", "/bin/echo", "sccache", "ccache", "rustc", "ssh", "head", "tail", "open", "xdg-open",
	"/dev/null", "0", "1",
}

// environment judges what is put into a variable that programs run or load.
func (w *walker) environment(name string, value field, st *state) {
	shown := name + "=" + value.text
	switch {
	case name == "PATH":
		if !strings.Contains(value.text, pathText) {
			w.ask("a PATH that does not keep what was in it: PATH=%s", value.text)
		}
		w.searchPath(name, value, st)
	case name == "LD_LIBRARY_PATH":
		w.searchPath(name, value, st)
	case name == "PERLICA_TRUST_PROJECT":
		w.add(Refused, "grants something in Perlica's name: "+shown, "perlica")
	case name == "PERLICA_HOME" && !value.vague && strings.HasPrefix(value.text, "/"):
		w.place.Own = append(slices.Clip(w.place.Own), slashPath(value.text))
	case name == "SHELL":
		if value.vague || value.text != "" && !slices.Contains(shells, path.Base(value.text)) || strings.Contains(value.text, ".") {
			w.ask("names a program that others will run: %s", shown)
		}
	case slices.Contains(programVars, name):
		if !w.harmlessCommand(value, st) {
			w.ifRefused(value, st)
			w.ask("names a program that others will run: %s", shown)
		}
	case slices.Contains(codeVars, name), strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "BASH_FUNC_"):
		if value.text != "" && value.text != "/dev/null" && value.text != "ignore" {
			w.ask("names code that others will load: %s", shown)
		}
		if value.out != nil && name == "BASH_ENV" {
			w.script(value.out.text, st.child(nil), flow{})
		}
	case name == "ENV" && strings.ContainsAny(value.text, "/`$"), name == "PS4" && strings.ContainsAny(value.text, "`$"):
		w.ask("names code that a shell will run: %s", shown)
	case name == "NODE_OPTIONS" && requires(value.text), (name == "JAVA_TOOL_OPTIONS" || name == "_JAVA_OPTIONS" || name == "JDK_JAVA_OPTIONS") && strings.Contains(value.text, "agent"):
		w.ask("names code that others will load: %s", shown)
	}
}

// requires says whether node's options load code from a path.
func requires(text string) bool {
	for word := range strings.FieldsSeq(text) {
		switch head, _, _ := strings.Cut(word, "="); head {
		case "-r", "--require", "--import", "--loader", "--experimental-loader", "--inspect", "--inspect-brk":
			return true
		}
	}
	return false
}

// harmlessCommand says whether a command that others will run is one that only shows
// or edits what it is given, or that connects as it always does.
func (w *walker) harmlessCommand(f field, st *state) bool {
	words := strings.Fields(f.text)
	switch {
	case len(words) == 0:
		return true
	case f.vague && strings.HasPrefix(f.text, unknownText), strings.ContainsAny(f.text, ";|&`<>\n"), strings.Contains(f.text, "$("):
		return false
	}
	// A pager of a user's is known by its name; one below the tree may be anything.
	if !slices.Contains(harmlessPrograms, words[0]) && !(strings.HasPrefix(words[0], "/usr/bin/") && slices.Contains(harmlessPrograms, path.Base(words[0]))) {
		return false
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "+") || strings.HasPrefix(word, "-c") && words[0] != "ssh" || strings.Contains(word, "!") {
			return false
		}
		if lower := strings.ToLower(word); strings.Contains(lower, "proxycommand") || strings.Contains(lower, "localcommand") || strings.Contains(lower, "knownhostscommand") {
			return false
		}
	}
	return true
}

// systemPath are directories in which only the administrator of the system can put
// programs.
var systemPath = []string{"/bin", "/sbin", "/usr", "/snap", "/nix", "/opt/homebrew", "/System", "/Library", "/Applications"}

// searchPath judges where programs, or the code that they load, are looked for.
func (w *walker) searchPath(name string, value field, st *state) {
	for dir := range strings.SplitSeq(value.text, ":") {
		if dir == pathText || strings.Contains(dir, unknownText) || value.origin.is(network) {
			continue
		}
		for _, d := range st.dirs {
			target := resolve(d.path, w.home(dir))
			ok := within(w.place.Dir, target) || within(w.place.Home, target)
			for _, s := range systemPath {
				ok = ok || within(s, target)
			}
			if !ok {
				w.ask("a %s with a directory outside the working directory and the home: %s", name, dir)
			}
		}
	}
}
