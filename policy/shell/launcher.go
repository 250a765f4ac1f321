package shell

import (
	"slices"
	"strings"
	"sync"
)

// A wrapper is a command that runs another one, named by its operands.
type wrapper struct {
	valued     string // its options that take a value, as options reads them
	skip       int    // operands before the command
	privileged bool   // it changes who the command runs as, or what it may do
	assigns    bool   // NAME=value may stand before the command
	launcher   bool   // nothing but the command is known of it
	subs       string // the subcommands that run a command; empty: it always does
	texts      bool   // each operand is a text for a shell
}

// runs says whether these words run a command at all.
func (wr wrapper) runs(fs []field) bool {
	if wr.subs == "" {
		return true
	}
	_, operands := options(fs[1:], wr.valued, true)
	return len(operands) > 0 && slices.Contains(strings.Fields(wr.subs), operands[0].text)
}

const sudoValued = "ugphCcrtTUDR --user --group --prompt --host --close-from --role --type --other-user --chdir --chroot --command-timeout"

var wrappers = sync.OnceValue(func() map[string]wrapper {
	return map[string]wrapper{
		"sudo": {valued: sudoValued, privileged: true, assigns: true},
		"doas": {valued: "uC", privileged: true}, "dzdo": {valued: sudoValued, privileged: true, assigns: true},
		"pkexec": {valued: "--user", privileged: true}, "gosu": {skip: 1, privileged: true},
		"su-exec": {skip: 1, privileged: true}, "run0": {valued: "ugD --user --group --chdir", privileged: true},
		"runuser": {valued: "ugGcs --user --group --command --shell", privileged: true},
		"su":      {valued: "gGcsCw --group --command --shell --session-command", privileged: true},
		"sg":      {valued: "c --command", skip: 1, privileged: true},
		"chroot":  {valued: "--groups --userspec", skip: 1, privileged: true},
		"nsenter": {valued: "tSG --target --setuid --setgid", privileged: true},
		"unshare": {valued: "RwSG --root --wd --setuid --setgid --map-user --map-group", privileged: true},
		"setpriv": {valued: "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits", privileged: true},

		"env":   {valued: "uCS --unset --chdir --split-string", assigns: true},
		"nice":  {valued: "n --adjustment"},
		"nohup": {}, "setsid": {}, "command": {}, "builtin": {}, "noglob": {}, "nocorrect": {}, "-": {},
		"exec":    {valued: "a"},
		"busybox": {}, "toybox": {}, "chronic": {}, "unbuffer": {}, "fakeroot": {}, "catchsegv": {}, "ltrace": {valued: "eopsSuanlFA"},
		"timeout": {valued: "ks --kill-after --signal", skip: 1}, "gtimeout": {valued: "ks --kill-after --signal", skip: 1},
		"time": {valued: "fo --format --output"}, "gtime": {valued: "fo --format --output"},
		"stdbuf": {valued: "ioe --input --output --error"},
		"ionice": {valued: "cn --class --classdata"}, "chrt": {valued: "TPD", skip: 1}, "taskset": {skip: 1},
		"setarch": {skip: 1}, "strace": {valued: "abeIoOPsSuUX --output --trace --user"},
		"caffeinate": {valued: "tw"}, "xvfb-run": {valued: "enswfp"}, "dbus-run-session": {}, "systemd-run": {valued: "uptMHG --unit --property"},
		"watch": {valued: "nq --interval"}, "flock": {valued: "wEc --timeout --command", skip: 1},
		"script": {valued: "cEIOBTm --command", skip: 0}, "ssh": {valued: "BbcDEeFIiJLlmOopQRSWw", skip: 1},

		// Launchers of projects and their tools.
		"uv":  {subs: "run tool", valued: "p --python --with --from --project --directory --package --extra --group --with-requirements --env-file --index-url"},
		"uvx": {launcher: true, valued: "p --python --with --from"}, "pipx": {subs: "run", valued: "--spec --python --pip-args"},
		"poetry": {subs: "run", valued: "CP --directory --project"}, "pipenv": {subs: "run"}, "pdm": {subs: "run", valued: "p --project"},
		"hatch": {subs: "run", valued: "e --env"}, "rye": {subs: "run"}, "pixi": {subs: "run", valued: "e --environment --manifest-path"},
		"conda": {subs: "run", valued: "np --name --prefix --cwd"}, "mamba": {subs: "run", valued: "np --name --prefix --cwd"},
		"micromamba": {subs: "run", valued: "np --name --prefix --cwd"}, "bundle": {subs: "exec"}, "bundler": {subs: "exec"},
		"npx": {launcher: true, valued: "pc --package --call"}, "bunx": {launcher: true}, "pnpx": {launcher: true},
		"npm":  {subs: "exec x", valued: "pcwC --package --call --workspace --prefix"},
		"pnpm": {subs: "exec dlx", valued: "CF --dir --filter --package"}, "yarn": {subs: "exec dlx", valued: "p --package --cwd"}, "bun": {subs: "x"},
		"direnv": {subs: "exec", skip: 1}, "mise": {subs: "exec x run", valued: "c --command --cd"}, "asdf": {subs: "exec"}, "rtx": {subs: "exec x"},
		"rbenv": {subs: "exec"}, "pyenv": {subs: "exec"}, "nodenv": {subs: "exec"}, "goenv": {subs: "exec"}, "jenv": {subs: "exec"}, "volta": {subs: "run", valued: "--node --npm --yarn"},
		"fnm": {subs: "exec", valued: "--using"}, "rvm": {subs: "do", skip: 1}, "opam": {subs: "exec", valued: "--switch"}, "stack": {subs: "exec"}, "cabal": {subs: "exec"},
		"dotenv": {launcher: true, valued: "efp"}, "dotenvx": {subs: "run", valued: "f --env-file"}, "op": {subs: "run", valued: "--env-file"},
		"doppler": {subs: "run", valued: "pc --project --config --command"}, "infisical": {subs: "run", valued: "--env --path --command"},
		"aws-vault": {subs: "exec", skip: 1}, "chamber": {subs: "exec", skip: 1}, "envchain": {launcher: true, skip: 1}, "foreman": {subs: "run", valued: "ef"},
		"lerna": {subs: "exec"}, "rush": {launcher: true, texts: true}, "concurrently": {launcher: true, texts: true, valued: "nckplr --names --prefix --prefix-colors"},
		"nodemon": {launcher: true, valued: "wexid --watch --exec --ext --ignore --delay"}, "npm-run-all": {texts: true}, "cross-env": {assigns: true},
		"cross-env-shell": {assigns: true, texts: true}, "env-cmd": {launcher: true, valued: "fe"}, "wait-on": {launcher: true},

		// What measures, traces, confines or repeats a command.
		"hyperfine": {launcher: true, texts: true, valued: "wmMrpcSnDLPuCs --warmup --min-runs --max-runs --runs --prepare --cleanup --setup --shell --command-name --parameter-list --parameter-scan --export-json --export-markdown --export-csv --conclude"},
		"valgrind":  {}, "heaptrack": {valued: "o"}, "perf": {subs: "stat record trace", valued: "eogFrCptG --call-graph --event --output"}, "rr": {subs: "record"},
		"faketime": {valued: "f", skip: 1}, "torsocks": {}, "torify": {}, "proxychains": {valued: "f"}, "proxychains4": {valued: "f"}, "tsocks": {},
		"proot": {valued: "rbqwk"}, "fakechroot": {}, "firejail": {}, "sshpass": {valued: "pfdP"}, "numactl": {valued: "NmCpi"}, "cpulimit": {valued: "lpe --limit"},
		"prlimit": {valued: "p"}, "eatmydata": {}, "tini": {valued: "pe"}, "dumb-init": {}, "pssh": {launcher: true, texts: true, valued: "hHlpoetOx"}, "salt": {launcher: true, texts: true}, "retry": {valued: "tdm"}, "sem": {valued: "j"},
		"annotate-output": {}, "chpst": {valued: "uUbe/nm"}, "setuidgid": {skip: 1}, "daemonize": {valued: "ceopluE"}, "dbus-launch": {}, "systemd-inhibit": {valued: "--what --who --why --mode"},
		"systemd-cat": {valued: "tp"}, "entr": {texts: true}, "ansible": {launcher: true, texts: true, valued: "ameifulMtBPT"}, "watchexec": {valued: "ewfifdosE --exts --watch --filter --ignore --debounce"}, "reflex": {valued: "rgRGd"},
		"winpty": {}, "wsl": {valued: "dueo --distribution --user --exec --cd"}, "mosh": {skip: 1}, "adb": {subs: "shell", texts: true}, "cgexec": {valued: "g"}, "nvm": {subs: "exec", skip: 1},

		// Windows of terminals.
		"tmux":   {texts: true, launcher: true, subs: "new new-session neww new-window split-window splitw respawn-pane respawnp respawn-window send-keys send run-shell run if-shell display-popup popup pipe-pane", valued: "cLSfnstxyFeptlw"},
		"screen": {valued: "SscehpTtX", texts: true, launcher: true}, "byobu": {texts: true, launcher: true}, "dtach": {valued: "eErz", skip: 1}, "abduco": {valued: "e", skip: 1}, "zellij": {subs: "run"},
		"xterm": {valued: "eT"}, "gnome-terminal": {valued: "e --command --title --working-directory"}, "konsole": {valued: "e"}, "alacritty": {valued: "e --command"}, "kitty": {},
		"nix-shell": {launcher: true, texts: true, valued: "pAI --run --command --packages"}, "nix": {launcher: true, subs: "shell develop run", valued: "c --command"},
		"vagrant": {subs: "ssh", valued: "c --command", launcher: true}, "parallel-ssh": {valued: "hH", launcher: true, texts: true}, "pdsh": {valued: "wlg", texts: true, launcher: true},
	}
})

// commandOptions are options whose value is a command, with any program.
var commandOptions = []string{
	"-c", "-e", "-x", "--exec", "--command", "--run", "--rsh", "--to-command", "--call", "--eval-command", "--cmd", "--shell-command", "--on-success", "--on-failure",
	"--pre", "--prepare", "--cleanup", "--setup", "--conclude", "--filter-command", "--use-compress-program", "--compress-program", "--checkpoint-action", "--info-script", "--exec-batch",
	"--sync-command", "--ssh-command", "--proxy-command", "--editor", "--pager", "--upload-pack", "--receive-pack", "--rsync-path", "--session-command", "--init-command", "--shell", "--exec-cmd", "--run-command", "--script-command", "--on-change", "--before", "--after",
}

// textPrograms take words and files as they are; none of their operands is a command.
var textPrograms = []string{
	"echo", "printf", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ls", "cat", "head", "tail", "wc", "sort", "cut", "tr", "diff", "cmp", "comm", "file",
	"stat", "du", "df", "basename", "dirname", "realpath", "readlink", "seq", "expr", "test", "[", "true", "false", ":", "which", "whereis", "type", "man", "info", "apropos",
	"whatis", "help", "tldr", "jq", "yq", "column", "paste", "join", "fold", "fmt", "rev", "tac", "nl", "od", "hexdump", "strings", "md5sum", "sha1sum", "sha256sum",
	"cksum", "base64", "date", "cal", "uname", "whoami", "id", "hostname", "pwd", "sleep", "wait", "jobs", "exit", "return", "break", "continue", "shift", "test", "local",
	"logger", "notify-send", "say", "wall", "figlet", "cowsay", "tree", "bat", "fzf", "ps", "pgrep", "top", "free", "uptime", "lsof", "ncal", "apt-cache", "dpkg-query", "look", "spell", "aspell",
	"codespell", "textlint", "markdownlint", "ispell", "wdiff", "colordiff", "delta", "tokei", "cloc", "scc", "ugrep", "git-grep", "dig", "nslookup", "host", "ping",
}

// outputOptions are options whose value is a file to write, with any program.
var outputOptions = []string{"-o", "--output", "--out", "--outfile", "--out-file", "--output-file", "--output-dir", "--outdir", "--out-dir", "--dest", "--destination", "--install-dir", "--prefix", "--target-dir", "--log-file", "--logfile"}

// outputs judges where an unknown program would write, if the value of its option is a path.
func (w *walker) outputs(fs []field, st *state) {
	for _, f := range valuesOf(fs[1:min(len(fs), 4*maxSuffixes)], outputOptions) {
		if strings.Contains(f.text, "/") && !strings.Contains(f.text, "://") && !f.vague {
			w.write(f, st, "writes to "+f.text)
		}
	}
}

// maxSuffixes bounds how many words of an unknown program are read as the start of a
// command.
const maxSuffixes = 64

// suffixesOf reads every end of the words of an unknown program as a command, and the
// values of options that take one as a script: no list of launchers has an end. Only
// what would be refused alone counts, because most words are no commands.
func (w *walker) suffixesOf(fs []field, st *state, in flow) {
	if w.suffixes || len(fs) == 1 {
		return
	}
	w.refusedOnly++
	w.suffixes = true
	for i := 1; i < len(fs) && i <= maxSuffixes && w.steps <= maxSteps; i++ {
		if w.verdict.Tier == Refused {
			break
		}
		if startsCommand(fs[i]) {
			w.argv(fs[i:], st.clone(), in)
			w.clientWithin(fs[i:], st, in)
		}
	}
	w.suffixes = false
	w.optionScripts(fs, st)
	w.suffixes = false
	w.refusedOnly--
	if w.steps > maxSteps {
		w.unknown("too long to be judged")
	}
}

// clientWithin judges a database's client that another program runs, for example in a
// container: what it removes is lost there, too.
func (w *walker) clientWithin(fs []field, st *state, in flow) {
	name := commandName(fs[0])
	if _, ok := clients()[name]; !ok && name != "dropdb" {
		return
	}
	only := w.refusedOnly
	w.refusedOnly = only - 1
	w.database(name, fs, st, in)
	w.loss(name, fs)
	w.refusedOnly = only
}

// ifRefused judges a text that something else may hand to a shell: only what would be
// refused alone counts.
func (w *walker) ifRefused(f field, st *state) {
	if f.vague {
		return
	}
	w.refusedOnly++
	w.nested(f.text, f, st.child(nil), flow{})
	w.refusedOnly--
}

// startsCommand says whether a word could name a program.
func startsCommand(f field) bool {
	return f.text != "" && f.text[0] != '-' && !f.vague && !strings.ContainsAny(f.text, " \t\n;|&<>()")
}

// takesCommand says whether the value of an option is a command, as its name says.
func takesCommand(option string) bool {
	if slices.Contains(commandOptions, option) {
		return true
	}
	words := strings.Split(strings.TrimLeft(option, "-"), "-")
	return strings.HasPrefix(option, "--") && slices.ContainsFunc(words, func(word string) bool { return slices.Contains(commandWords, word) })
}

// commandWords are parts of the names of such options.
var commandWords = []string{"cmd", "command", "exec", "hook", "script", "run", "shell", "eval", "on", "pre", "post", "before", "after"}

// optionScripts judges the values of options that take a command.
func (w *walker) optionScripts(fs []field, st *state) {
	for i, f := range fs {
		if i == 0 || i > 4*maxSuffixes || w.steps > maxSteps {
			continue
		}
		name, value, has := strings.Cut(f.text, "=")
		switch {
		case !takesCommand(name):
		case has:
			w.nested(strings.TrimPrefix(value, "exec="), *part(f, value), st.child(nil), flow{})
		case i+1 < len(fs):
			w.nested(fs[i+1].text, fs[i+1], st.child(nil), flow{})
		}
	}
}

// launch judges what a launcher runs: the command after its subcommands, or the texts
// that it hands to a shell.
func (w *walker) launch(wr wrapper, fs []field, st *state, in flow) flow {
	w.suffixesOf(fs, st, in)
	inner := st.clone()
	_, operands := options(fs[1:], wr.valued, true)
	subs := strings.Fields(wr.subs)
	for len(operands) > 0 && slices.Contains(subs, operands[0].text) {
		_, operands = options(operands[1:], wr.valued, true)
	}
	if wr.assigns {
		operands = w.leadingAssigns(operands, inner)
	}
	operands = operands[min(wr.skip, len(operands)):]
	w.optionScripts(fs[:len(fs)-len(operands)], inner)
	if wr.texts {
		for i, f := range fs[1:] {
			if i < maxSuffixes && strings.ContainsAny(f.text, " \t\n") {
				w.nested(unquoteANSI(f.text), f, inner.child(nil), flow{})
			}
		}
	} else if len(operands) > 0 && strings.ContainsAny(operands[0].text, " \t\n") {
		return w.nested(operands[0].text, operands[0], inner.child(nil), in)
	}
	if len(operands) > 0 && (!wr.texts || startsCommand(operands[0])) {
		return w.argv(operands, inner, in)
	}
	return flow{piped: in.piped, origin: in.origin}
}
