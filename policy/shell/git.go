package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const gitValued = "Cc --git-dir --work-tree --namespace --exec-path --super-prefix --config-env"

// git judges a git command. Such a command may lose commits or changes, run other programs, or install code that runs
// later.
func (w *walker) git(fs []field, st *state) {
	global, rest := options(fs[1:], gitValued, true)
	outer := st
	st = st.clone()
	for _, o := range global {
		switch {
		case o.name == "-C" && o.value != nil:
			st.chdir(*o.value)
			st.pending = nil
		case (o.name == "-c" || o.name == "--config-env") && o.value != nil:
			key, value, _ := strings.Cut(o.value.text, "=")
			w.gitSetting(key, *part(*o.value, value), fs, st)
		case o.name == "--exec-path" && o.value != nil && o.value.text != "":
			w.askBecause(whyNamesGitCode, shown(fs))
		}
	}
	if len(rest) == 0 {
		return
	}
	if o, ok := findOption(global, "-C"); ok && o.value != nil && w.outside(*o.value, outer) &&
		!listed("gitReaders", rest[0].text) {
		w.askBecause(whyOutside, shown(fs))
	}
	for _, o := range global {
		if o.name != "-c" || o.value == nil {
			continue
		}
		key, text, _ := strings.Cut(o.value.text, "=")
		if words := w.gitAlias(key, text, st); len(words) > 0 && strings.EqualFold(key, "alias."+rest[0].text) {
			w.judgeWords(slices.Concat(fs[:len(fs)-len(rest)], words, rest[1:]), st, flow{})
		}
	}
	w.gitCommand(rest[0].text, rest[1:], fs, st)
}

// gitAlias returns the words of the git command in the value of an alias setting. It returns nil for other settings,
// and for an alias that begins with !, which is a shell command.
func (w *walker) gitAlias(key, text string, st *state) []field {
	if !strings.HasPrefix(strings.ToLower(key), "alias.") {
		return nil
	}
	list, _, err := parse(text)
	if err != nil || len(list) != 1 {
		return nil
	}
	if call, ok := list[0].Cmd.(*syntax.CallExpr); ok && plain(list[0]) && still(call) {
		return w.fields(call.Args, st)
	}
	return nil
}

var gitProgramKinds = []string{"pager.", "filter.", "difftool.", "mergetool.", "merge.", "diff.", "credential.", "gpg.",
	"browser.", "man.", "trailer.", "submodule.", "remote.", "guitool.", "hook."}

var gitProgramEnds = []string{".cmd", ".command", ".clean", ".smudge", ".process", ".driver", ".textconv", ".helper",
	".program", ".path", ".update", ".uploadpack", ".receivepack", ".vcs", ".pager"}

// gitSetting judges one setting of git, given for this command with -c or for later commands with git config.
func (w *walker) gitSetting(key string, value field, fs []field, st *state) {
	key = strings.ToLower(key)
	if command, ok := strings.CutPrefix(value.text, "!"); ok {
		w.walkNested(command, value, st.child(nil), flow{})
		if fs[1].text == "config" || !strings.HasPrefix(key, "alias.") {
			w.askBecause(whyNamesGitProgram, shown(fs))
		}
		return
	}
	runs := listed("gitPrograms", key) || strings.HasPrefix(key, "pager.") ||
		slices.ContainsFunc(gitProgramKinds, func(kind string) bool { return strings.HasPrefix(key, kind) }) &&
			slices.ContainsFunc(gitProgramEnds, func(end string) bool { return strings.HasSuffix(key, end) })
	quiet := []string{"true", "false", "", "cache", "store", "osxkeychain", "manager", "manager-core", "libsecret",
		"wincred", "cat", "0", "none"}
	if gitAddresses().MatchString(key) && value.text != "true" && value.text != "" {
		w.askBecause(whyGitAddress, shown(fs))
	}
	switch {
	case key == "core.hookspath" && value.text != "/dev/null" && value.text != "":
		w.askBecause(whyNamesGitCode, shown(fs))
	case slices.Contains([]string{"include.path", "protocol.ext.allow", "core.worktree", "init.templatedir"}, key),
		strings.HasPrefix(key, "includeif."):
		w.askBecause(whyNamesGitCode, shown(fs))
	case strings.HasPrefix(key, "alias.") && value.vague:
		w.askUnknown(whyUnknownAlias, shown(fs))
	case strings.HasPrefix(key, "alias."):
		if words := w.gitAlias(key, value.text, st); len(words) > 0 {
			w.judgeWords(append(fs[:1:1], words...), st, flow{})
		}
	case runs && !slices.Contains(quiet, value.text) && !harmlessCommand(value):
		w.ifRefused(value, st)
		w.askBecause(whyNamesGitProgram, shown(fs))
	}
}

// gitAddresses matches the names of settings that change the machine that git contacts, or the check of its
// certificate.
var gitAddresses = lazily(`^(url\..*|https?\.(.*\.)?(proxy|sslverify|sslcainfo|extraheader)|` +
	`remote\..*\.(url|pushurl|proxy)|remote\.pushdefault|branch\..*\.(remote|pushremote))$`)

// gitLosses returns the words with which a subcommand of git, such as reset --hard, loses uncommitted work. A
// subcommand with an empty row always loses uncommitted work.
var gitLosses = table("gitLosses", strings.Fields)

// gitTexts returns the options of a subcommand of git that take a script for a shell.
var gitTexts = table("gitTexts", strings.Fields)

func (w *walker) gitCommand(sub string, args, fs []field, st *state) {
	if !listed("gitCommands", sub) && !listed("gitReaders", sub) {
		w.askBecause(whyGitSubcommand, sub, shown(fs))
	}
	w.gitLoss(sub, args, fs)
	w.gitScripts(sub, args, st)
	switch sub {
	case "push":
		w.judgePush(args, fs)
	case "clean":
		opts, _ := options(args, "e --exclude", false)
		if hasOption(opts, "-f", "--force") && !hasOption(opts, "-n", "--dry-run") {
			w.askBecause(whyRemovesUncommitted, shown(fs))
		}
	case "checkout", "restore":
		w.gitPaths(sub, args, fs, st)
	case "rm":
		opts, operands := options(args, "", false)
		if hasOption(opts, "--cached", "-n", "--dry-run") {
			return
		}
		if hasOption(opts, "-f", "--force") {
			w.askBecause(whyMayRemoveUncommitted, shown(fs))
		}
		for _, f := range operands {
			w.judgeDestroy(f, st, hasOption(opts, "-r") && w.place.owns(f.text, f.glob), verbRemoves, fs)
		}
	case "clone", "init", "worktree", "mv", "format-patch", "archive", "bundle":
		w.gitWrites(sub, args, fs, st)
	case "config":
		w.gitConfig(args, fs, st)
	case "submodule", "bisect":
		if len(args) > 1 && (args[0].text == "foreach" || args[0].text == "run") {
			_, command := options(args[1:], "", true)
			if args[0].text == "run" {
				w.judgeWords(command, st.clone(), flow{})
			} else {
				text := joined(command)
				w.walkNested(text.text, text, st.child(nil), flow{})
			}
		}
	}
	w.gitSecrets(sub, args, fs, st)
	output := []string{"--output"}
	if sub == "checkout-index" {
		output = append(output, "--prefix")
	}
	for _, f := range valuesOf(args, output) {
		w.judgeWrite(f, st, deedWrites.With(f.src))
	}
	if slices.ContainsFunc(args, func(f field) bool { return strings.HasPrefix(f.text, "ext::") }) {
		w.askBecause(whyOtherSide, shown(fs))
	}
}

// gitSecrets records that a commit may contain private data, and asks about a push of such a commit. It also asks about
// a new address of a remote.
func (w *walker) gitSecrets(sub string, args, fs []field, st *state) {
	for _, f := range args {
		w.committed = w.committed || f.origin.is(private)
	}
	if (!listed("gitReaders", sub) || among(args, "-F", "--file")) && w.secrets(fs, st) {
		w.askBecause(whyCopiesPrivate, shown(fs))
	}
	if sub == "remote" && len(args) > 1 {
		_, names := options(args[1:], "tm", false)
		switch {
		case args[0].text == "set-url":
			w.askBecause(whyGitAddress, shown(fs))
		case args[0].text == "add" && len(names) > 0:
			w.remotes = append(w.remotes, names[0].text)
		}
	}
	if sub != "push" {
		return
	}
	if _, to := options(args, "o --push-option --receive-pack --exec", false); len(to) > 0 {
		if slices.Contains(w.remotes, to[0].text) || isURL(to[0].text) || isRemote(to[0].text) {
			w.askBecause(whyUnnamedAddress, shown(fs))
		}
	}
	for file, o := range w.files {
		w.committed = w.committed || o.is(private) && within(w.place.Dir, file)
	}
	if w.committed {
		w.askBecause(whySendsPrivate, shown(fs))
	}
}

func (w *walker) gitLoss(sub string, args, fs []field) {
	words, found := gitLosses(sub)
	if !found {
		return
	}
	opts := optionsOf(args, "")
	lost := len(words) == 0 || sub == "branch" && hasOption(opts, "-d", "--delete") && hasOption(opts, "-f", "--force")
	for i, f := range args {
		lost = lost || slices.Contains(words, f.text) && (i == 0 || strings.HasPrefix(f.text, "-"))
		if len(f.text) > 2 && f.text[0] == '-' && f.text[1] != '-' {
			letter := func(word string) bool { return len(word) == 2 && strings.Contains(f.text[1:], word[1:]) }
			lost = lost || slices.ContainsFunc(words, letter)
		}
	}
	if verb := map[string]string{"worktree": "remove", "submodule": "deinit"}[sub]; verb != "" {
		lost = lost && len(args) > 0 && args[0].text == verb
	}
	if lost && !hasOption(opts, "--dry-run") {
		w.askBecause(whyLosesChanges, shown(fs))
	}
}

func (w *walker) gitScripts(sub string, args []field, st *state) {
	names, _ := gitTexts(sub)
	texts := valuesOf(args, names)
	for _, f := range args {
		if sub == "grep" && strings.HasPrefix(f.text, "-O") && len(f.text) > 2 && f.text[2] != '=' {
			texts = append(texts, *part(f, f.text[2:]))
		}
	}
	for _, f := range texts {
		w.walkNested(f.text, f, st.child(nil), flow{})
	}
}

// gitPaths asks about a checkout or restore that overwrites changed files with committed content.
func (w *walker) gitPaths(sub string, args, fs []field, st *state) {
	opts, operands := options(args, "bBs --branch --source --orphan --conflict --pathspec-from-file", false)
	dashes := slices.IndexFunc(args, func(f field) bool { return f.text == "--" })
	paths := operands
	if sub == "restore" {
		if (hasOption(opts, "-S", "--staged") && !hasOption(opts, "-W", "--worktree")) ||
			hasOption(opts, "-p", "--patch") {
			return
		}
	} else {
		switch {
		case hasOption(opts, "-p", "--patch"):
			return
		case hasOption(opts, "-f", "--force"):
			w.askBecause(whyLosesChanges, shown(fs))
			return
		case dashes >= 0:
			paths = args[dashes+1:]
		case hasOption(opts, "-b", "-B", "-t", "--track", "--orphan", "--detach", "-d"):
			return
		case len(operands) > 1:
			paths = operands[1:]
		case len(operands) == 1 && !looksLikePath(operands[0]):
			return
		}
	}
	if len(paths) == 0 {
		return
	}
	w.askBecause(whyLosesChanges, shown(fs))
	for _, f := range paths {
		if w.place.owns(f.text, f.glob) {
			w.judgeWrite(f, st, shown(fs))
		}
	}
}

// looksLikePath reports whether an operand of git checkout looks like a file and not like a branch.
func looksLikePath(f field) bool {
	t := f.text
	return t == "." || t == ".." || f.glob || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") ||
		strings.HasPrefix(t, "/") || strings.HasSuffix(t, "/") || strings.HasPrefix(t, ":")
}

func (w *walker) gitWrites(sub string, args, fs []field, st *state) {
	switch sub {
	case "clone":
		opts, operands := options(args, "boucj --branch --origin --upload-pack --config --jobs --depth --reference "+
			"--template --separate-git-dir --filter", false)
		if len(operands) > 1 {
			w.judgeWrite(operands[1], st, shown(fs))
		}
		for _, setting := range values(opts, "-c", "--config") {
			key, value, _ := strings.Cut(setting.text, "=")
			w.gitSetting(key, *part(setting, value), fs, st)
		}
		w.gitTemplate(opts, fs)
	case "init":
		opts, operands := options(args, "b --initial-branch --template --separate-git-dir", false)
		w.gitTemplate(opts, fs)
		w.judgeWrites(operands, st, deedCreates)
	case "worktree":
		if _, operands := options(args, "bB --reason", false); len(operands) > 1 && operands[0].text == "add" {
			w.judgeWrite(operands[1], st, shown(fs))
		}
	case "mv":
		_, operands := options(args, "", false)
		w.judgeWrites(operands, st, deedMoves)
	case "format-patch", "archive", "bundle":
		opts, operands := options(args, "o --output-directory --output", false)
		if o, ok := findOption(opts, "-o", "--output-directory", "--output"); ok && o.value != nil {
			w.judgeWrite(*o.value, st, deedWrites.With(o.value.src))
		}
		if sub == "bundle" && len(operands) > 1 && operands[0].text == "create" {
			w.judgeWrite(operands[1], st, deedWrites.With(operands[1].src))
		}
	}
}

// gitTemplate asks about the option --template, because the template may install hooks in the new repository.
func (w *walker) gitTemplate(opts []option, fs []field) {
	if slices.ContainsFunc(values(opts, "--template"), func(f field) bool { return f.text != "" }) {
		w.askBecause(whyNamesGitCode, shown(fs))
	}
}

func (w *walker) gitConfig(args, fs []field, st *state) {
	opts, operands := options(args, "f --file --type --default", false)
	if len(operands) > 0 && slices.Contains([]string{"set", "unset", "edit", "rename-section", "remove-section"},
		operands[0].text) {
		operands = operands[1:]
	}
	changes := len(operands) > 1 || hasOption(opts, "--unset", "--unset-all", "--edit", "-e", "--add", "--replace-all",
		"--remove-section", "--rename-section")
	if hasOption(opts, "--get", "--get-all", "--get-regexp", "--list", "-l") ||
		!changes && !hasOption(opts, "--file", "-f") {
		return
	}
	if hasOption(opts, "--global", "--system") && changes {
		w.askBecause(whyOutside, shown(fs))
	}
	if o, ok := findOption(opts, "-f", "--file"); ok && o.value != nil && changes {
		w.judgeWrite(*o.value, st, shown(fs))
	}
	if len(operands) > 1 {
		w.gitSetting(operands[0].text, operands[1], fs, st)
	}
}

// judgePush asks about a push that can remove commits or branches from the other repository.
func (w *walker) judgePush(args, fs []field) {
	opts, operands := options(args, "o --push-option --repo --receive-pack --exec", false)
	forced := hasOption(opts, "-f", "-d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
	for i, f := range operands {
		forced = forced || strings.HasPrefix(f.text, "+") ||
			(i > 0 && strings.HasPrefix(f.text, ":") && len(f.text) > 1)
	}
	if forced && !hasOption(opts, "-n", "--dry-run") {
		w.askBecause(whyLossyPush, shown(fs))
	}
}
