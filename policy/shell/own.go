package shell

import (
	"path"
	"slices"
	"strings"
)

// ownCommands are the commands of Perlica that no agent may run. They answer, grant, trust, revoke, resolve, prune,
// change a key or a setting, or make an input at another front end. The words of an entry follow each other. Later
// words do not matter.
var ownCommands = []string{
	"pending allow", "pending deny", "pending choose", "phone", "web", "chat", "acp", "send", "cancel",
	"config trust", "config edit", "config set", "policy approvals revoke", "policy approvals add", "init",
	"log resolve", "log prune", "log open", "log import", "log key rotate", "log key import", "log checkpoint",
	"log trust",
	"provider default", "provider install", "provider login", "provider logout", "session use", "session rename",
	"session delete", "session rm", "session new",
	"service run", "service start", "service stop", "service pair", "service unpair", "service rights",
	"service enable", "service disable", "service channel enable",
	"service channel disable", "service channel use", "service send", "service contacts add",
	"team init", "team join", "team confirm", "team leave", "team work", "team submit", "team cancel", "team resolve",
	"team adopt", "team keep", "team pending choose", "sandbox shell", "sandbox enter",
}

// ownReaders are the commands of Perlica that only show something, and the commands that make an input in a new
// session.
var ownReaders = []string{
	"run", "exec", "watch", "doctor", "version", "completion", "help", "agent", "pending list", "pending ls",
	"pending show", "pending", "config show", "config path", "config check", "config",
	"policy check", "policy approvals list", "policy approvals ls", "policy approvals", "policy", "log list",
	"log ls", "log tail", "log show", "log runs", "log search", "log verify", "log export", "log prove", "log stats",
	"log key show", "log key", "log", "provider list", "provider ls", "provider show", "provider test", "provider",
	"session list", "session ls", "session current", "session show", "session export", "session",
	"service status", "service contacts", "service projects", "web devices", "service logs", "service channel list",
	"service channel ls", "service channel test", "service channel", "__complete", "__completeNoDesc",
	"team", "team status", "team members", "team inputs", "team pending", "team pending list", "team pending ls",
	"team workers", "team fetch", "sandbox", "sandbox check", "sandbox try",
}

// ownValued are the options of all of Perlica's commands that take a value.
const ownValued = "sf --session --provider --agent --env --context --input-id --file --attach --save-to --cwd " +
	"--model --mode --permissions --sandbox --allow --deny --append-system --add-dir --mcp-config --resume --schema " +
	"--wait-permissions --output-format --timeout --session-strategy --format --config"

// ownCommand reports whether no agent may run a command of Perlica, given by the words after its name. An unknown
// command is forbidden, too. See ownCommands for the reasons.
func ownCommand(args []field) bool {
	opts, operands := options(args, ownValued, false)
	service := hasOption(opts, "--service")
	switch {
	// after "acp" the option may belong to the agent
	case !service && hasOption(opts, "--help", "-h", "--version") && (len(operands) == 0 || operands[0].text != "acp"):
		return false
	case service, len(operands) == 0: // the chat
		return true
	}
	if first := operands[0].text; first == "run" || first == "exec" {
		// An input in an existing session belongs to another front end. A rule that allows is a grant, and an MCP
		// server is a program. Files that --save-to writes are written in Perlica's name. A sandbox could be looser.
		return hasOption(opts, "-s", "--session", "--resume", "-c", "--continue", "--allow", "--mcp-config",
			"--save-to", "--sandbox")
	}
	words := ""
	for _, f := range operands[:min(4, len(operands))] {
		words += f.text + " "
	}
	longest := func(list []string) (n int) {
		for _, c := range list {
			if strings.HasPrefix(words, c+" ") {
				n = max(n, len(c))
			}
		}
		return n
	}
	return longest(ownReaders) <= longest(ownCommands)
}

// ownCall refuses a command of Perlica that an agent may not run.
func (w *walker) ownCall(fs []field) {
	if ownCommand(fs[1:]) {
		w.addFinding(Refused, whyAnswers.With(shown(fs)), "perlica")
	}
}

// owns reports whether a path or pattern leads to Perlica's own files: below any .perlica_config, or below the user's
// folders.
func (p Place) owns(target string, glob bool) bool {
	for element := range strings.SplitSeq(target, "/") {
		switch {
		case sameName(foldName(element), ".perlica_config", false):
			return true
		case glob && strings.HasPrefix(element, ".p") && same(element, ".perlica_config", true):
			return true
		}
	}
	for _, dir := range p.ownDirs("/.config/perlica", "/.local/state/perlica", "/.local/share/perlica",
		"/Library/Application Support/perlica") {
		if within(strings.ToLower(dir), strings.ToLower(target)) {
			return true
		}
		if glob && path.Dir(target) == path.Dir(dir) && !sweeping(path.Base(target)) && same(target, dir, true) {
			return true
		}
	}
	return false
}

// ownDirs returns the user's folders, and their default places in the home.
func (p Place) ownDirs(inHome ...string) []string {
	dirs := slices.Clone(p.Own)
	for _, dir := range inHome {
		if p.Home != "" {
			dirs = append(dirs, p.Home+dir)
		}
	}
	return dirs
}

// holdsOwn reports whether Perlica's folders of the user lie below a directory.
func (p Place) holdsOwn(target string) bool {
	return slices.ContainsFunc(p.ownDirs("/.config/perlica", "/.local/state/perlica"),
		func(dir string) bool { return within(target, dir) })
}

// ownFile refuses a command that writes or removes Perlica's own files. It reports whether it refused.
func (w *walker) ownFile(target string, glob bool, action any) bool {
	if !w.place.owns(target, glob) {
		return false
	}
	w.addFinding(Refused, whyTouchesOwn.With(action), "perlica")
	return true
}
