package shell

import (
	"path"
	"slices"
	"strings"
)

// ownVars are variables that judgeExported ignores, because judgeVariable has rules for them.
var ownVars = strings.Fields("PATH LD_LIBRARY_PATH PYTHONPATH NODE_PATH RUBYLIB PERLICA_HOME SHELL GIT_SSH_COMMAND")

// ownName matches names in lower case. Scripts use such names for their internal variables, and programs read no
// such variables.
var ownName = lazily(`^[a-z][a-z0-9]*$`)

// Each expression matches names of variables. For scratchVars, judgeExported accepts a path in a temporary
// directory. For installVars it accepts a path in the home, for routeVars a route of a server, and for publicVars
// any address. A variable of proxyVars names a proxy, and a variable of commandVars names a program.
var (
	scratchVars = lazily(`(?i)(^|_)(TE?MP|(GO)?TE?MP_?DIR|(GO|GOMOD)?CACHE(_?(DIR|HOME|PATH))?|GOPATH|GOBIN|` +
		`OUT(PUT)?(_?(DIR|FILE|PATH))?|LOGS?(_?(FILE|DIR|PATH))?|` +
		`RESULTS?(_?DIR)?|REPORTS?(_?DIR)?|COVERAGE_FILE|GOCOVERDIR|TARGET_DIR|BUILD_DIR|DATA(_?DIR)?|DB(_?(PATH|` +
		`FILE))?|` +
		`DATABASE(_?(PATH|FILE))?|` +
		`STATE_?DIR|` +
		`FIXTURES?(_?(DIR|FILE|PATH))?|INPUT(_?(DIR|FILE|PATH))?|PREFIX|DESTDIR|INDEX_FILE|WORK_?DIR|DEST|` +
		`PID_?FILE|BROWSERS_PATH)$`)
	installVars = lazily(`^(NVM_DIR|ANDROID_(HOME|SDK_ROOT|NDK_HOME)|PNPM_HOME|BUN_INSTALL|GOPATH|GOBIN|GOROOT|` +
		`GOCACHE|GOMODCACHE|JAVA_HOME|` +
		`KUBECONFIG|CARGO_HOME|` +
		`RUSTUP_HOME|PYENV_ROOT|RBENV_ROOT|VOLTA_HOME|DENO_DIR|NPM_CONFIG_PREFIX|SDKMAN_DIR|FLUTTER_ROOT|HF_HOME|` +
		`XDG_\w+|\w*CACHE(_DIR)?|GOOGLE_APPLICATION_CREDENTIALS)$`)
	routeVars   = lazily(`(?i)(URL|ROUTE|ENDPOINT|BASE|BASE_PATH|URI|PREFIX)$`)
	publicVars  = lazily(`^(VITE|NEXT_PUBLIC|REACT_APP|NUXT_PUBLIC|PUBLIC|EXPO_PUBLIC|GATSBY|VUE_APP)_`)
	proxyVars   = lazily(`(?i)^(https?|ftp|all|rsync|npm_config|npm_config_https|global_agent_https?)_proxy$`)
	commandVars = lazily(`(?i)_(SHELL|EXTERNAL_DIFF|HOOKS?|PRELOAD|PROFILER_PATH)$|^DYLD_`)
)

// usualPlaces matches the default download addresses of package managers.
var usualPlaces = lazily(`^(https://)?(proxy\.golang\.org|sum\.golang\.org|goproxy\.io|` +
	`registry\.npmjs\.org|registry\.yarnpkg\.com|` +
	`(test\.)?pypi\.org|files\.pythonhosted\.org|` +
	`rubygems\.org|index\.crates\.io|repo\.maven\.apache\.org)(/|$)`)

// unguarded matches assignments to variables that switch off the check of server certificates.
var unguarded = lazily(`^(NODE_TLS_REJECT_UNAUTHORIZED|PYTHONHTTPSVERIFY)=0|^GIT_SSL_NO_VERIFY=([^0f]|$)`)

// grants matches options, such as --yes, that confirm an action in place of a person, and options that name code.
var grants = lazily(`^--?(auto-approve|yes|force|assume-yes|specs?|fplugin|B|load|init|` +
	`eval|require|import|config|rcfile|init-file|preview|bind)(=|$)|^-XX:On|^-B[./]`)

// judgeExported asks about the value of an exported variable, which programs can read. It asks if a program may take
// code or settings from the place that the value names, or may send or write data there.
func (w *walker) judgeExported(name string, value field, st *state) {
	same := value.text == "" || name == "HOME" && value.text == w.place.Home
	if same || slices.Contains(ownVars, name) || ownName().MatchString(name) {
		return
	}
	said := name + "=" + value.text
	w.judgeHiddenIn(value, said, st)
	// One case is enough, because the verdict keeps only the first reason of a tier.
	switch {
	case commandVars().MatchString(name) && !harmlessCommand(value) && !slices.Contains([]string{"0", "1"}, value.text):
		w.askBecause(whyNamesProgram, said)
	case hostVars().MatchString(name) && farHost().MatchString(value.text) && !local(value):
		w.askBecause(whyAddress, name, said)
	case unguarded().MatchString(said):
		w.askBecause(whyNoCheck, said)
	case proxyVars().MatchString(name) && !local(value):
		w.askBecause(whyProxy, said)
	case strings.Contains(value.text, "$("), strings.Contains(value.text, "`"), strings.HasPrefix(value.text, "+!"):
		w.askBecause(whyValueCommand, name, said)
	}
	options, separators := strings.HasPrefix(value.text, "-"), ",|;"
	if options {
		separators = " ,"
	}
	isSeparator := func(r rune) bool { return strings.ContainsRune(separators, r) }
	for _, piece := range strings.FieldsFunc(value.text, isSeparator) {
		if options && grants().MatchString(piece) {
			w.askBecause(whyOption, said)
		}
		if isURL(piece) && !strings.HasPrefix(piece, "file:") {
			w.exportedAddress(name, *part(value, piece), said)
			continue
		}
		if options {
			piece = optionHead().ReplaceAllString(piece, "")
		}
		for file := range strings.SplitSeq(strings.TrimPrefix(piece, "file://"), ":") {
			w.exportedPath(name, *part(value, strings.TrimLeft(file, "@")), said, st)
		}
	}
}

// exportedAddress asks about an address in a variable's value, unless the address is usual for package managers or is
// on this machine.
func (w *walker) exportedAddress(name string, f field, said string) {
	usual := usualPlaces().MatchString(f.text) || publicVars().MatchString(name)
	if !usual && !local(f) && !localUser().MatchString(f.text) {
		w.askBecause(whyAddress, name, said)
	}
}

// localUser matches addresses of this machine, of a container's host, and of a service such as db:5432. optionHead
// matches the part of an option before its value, such as --dir= or -I.
var (
	localUser = lazily(`^[a-z][a-z0-9+.-]*://([^@/]*@)?(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|` +
		`host\.docker\.internal|[a-z0-9_-]+:[0-9]+)?([:/?]|$)`)
	optionHead = lazily(`^-(-?[A-Za-z0-9_-]+=|[A-Za-z])`)
)

// exportedPath asks about a path in a variable's value that leads out of the working directory, unless such paths are
// usual for the variable.
func (w *walker) exportedPath(name string, f field, said string, st *state) {
	text := w.home(f.text)
	if strings.HasPrefix(text, unknownText) || strings.ContainsAny(text, " \n") ||
		!path.IsAbs(text) && !strings.HasPrefix(text, "~") && !strings.HasPrefix(text, "..") {
		return
	}
	if path.IsAbs(text) && routeVars().MatchString(name) && !w.rooted(text) {
		return
	}
	for _, target := range w.targets(*part(f, text), st) {
		temporary := w.place.writable(target, false) || slices.Contains(w.place.Temp, target)
		installed := slices.ContainsFunc(systemPath, func(dir string) bool { return within(dir, target) })
		switch {
		case within(w.place.Dir, target), device(target) == sinkDevice, installed:
		case temporary && scratchVars().MatchString(name):
		case !temporary && within(w.place.Home, target) && installVars().MatchString(name):
		default:
			w.askBecause(whyLeadsOut, name, said)
		}
	}
}

// rooted reports whether an absolute path looks like a file of this machine, and not like a route of a server.
func (w *walker) rooted(text string) bool {
	return text == "/" || systemRoots().MatchString(text) || w.place.Home != "" && within(w.place.Home, text)
}

// systemRoots matches paths below the usual directories of a machine.
var systemRoots = lazily(`^/(etc|home|root|var|usr|opt|srv|mnt|media|Users|proc|sys|dev|boot|lib|bin|tmp|private|` +
	`Volumes)(/|$)`)
