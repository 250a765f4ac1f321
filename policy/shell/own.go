package shell

import (
	"path"
	"slices"
	"strings"
)

// ownCommands are the commands of Perlica that no agent may run. They answer a question, grant or revoke rights, remove
// records, change a key or a setting, or submit an input at another front end. An entry has the first words of a
// command. Later words do not matter.
var ownCommands = []string{
	"pending allow", "pending deny", "pending choose", "phone", "web", "chat", "acp", "send", "cancel", "demo",
	"config trust", "config edit", "config set", "policy approvals revoke", "policy approvals add", "init",
	"log resolve", "log prune", "log open", "log import", "log key rotate", "log key import", "log checkpoint",
	"log trust",
	"provider default", "provider install", "provider login", "provider logout", "session use", "session rename",
	"session delete", "session rm", "session new",
	"service run", "service start", "service stop", "service pair", "service unpair", "service rights",
	"service enable", "service disable", "service channel enable",
	"service channel disable", "service channel use", "service send", "service contacts add",
	"team init", "team join", "team confirm", "team leave", "team work", "team submit", "team cancel", "team resolve",
	"flow cancel", "flow retry", "team adopt", "team keep", "team pending choose", "sandbox shell", "sandbox enter",
	"notify test", "hook test",
	"schedule due", "schedule run", "schedule run-now", "schedule pause", "schedule resume", "schedule install",
}

// ownReaders are the commands of Perlica that an agent may run. They only show something, or submit an input in a new
// session.
var ownReaders = []string{
	"blame", "changes",
	"run", "exec", "watch", "doctor", "report", "version", "completion", "help", "agent", "budget", "pending list",
	"pending ls", "pending show", "pending", "config show", "config path", "config check", "config",
	"policy check", "policy try", "policy suggest", "policy approvals list", "policy approvals ls", "policy approvals",
	"policy", "log list",
	"log ls", "log tail", "log show", "log runs", "log search", "log verify", "log export", "log prove", "log stats",
	"log key show", "log key", "log", "provider list", "provider ls", "provider show", "provider test", "provider",
	"session list", "session ls", "session current", "session show", "session export", "session",
	"service status", "service contacts", "service projects", "web devices", "service logs", "service channel list",
	"service channel ls", "service channel test", "service check", "service channel", "__complete", "__completeNoDesc",
	"hook", "hook list", "hook ls", "hook deliver",
	"flow", "flow run", "flow check", "flow show", "flow list", "flow ls",
	"team", "team status", "team members", "team inputs", "team pending", "team pending list", "team pending ls",
	"team workers", "team fetch", "sandbox", "sandbox check", "sandbox try",
	"notify", "notify list", "notify ls",
	"schedule", "schedule list", "schedule ls", "schedule next",
}

// ownValued are the options of Perlica's commands that take a value, in the notation of the function options.
const ownValued = "sf --session --provider --agent --env --context --input-id --file --attach --save-to --cwd " +
	"--model --mode --permissions --sandbox --allow --deny --append-system --add-dir --mcp-config --resume --schema " +
	"--wait-permissions --output-format --timeout --session-strategy --format --config"

// ownCommand reports whether a command of Perlica is forbidden for agents. args are the words after the name perlica.
// An unknown command is forbidden, too.
func ownCommand(args []field) bool {
	opts, operands := options(args, ownValued, false)
	service := hasOption(opts, "--service")
	switch {
	// After "acp", an option such as --help may belong to the agent that this command starts.
	case !service && hasOption(opts, "--help", "-h", "--version") && (len(operands) == 0 || operands[0].text != "acp"):
		return false
	case service, len(operands) == 0: // without a command, perlica opens the chat
		return true
	}
	if first := operands[0].text; first == "run" || first == "exec" {
		// An agent must not write into an existing session, because this session belongs to another front end. The
		// option --allow grants rights, an MCP server is a program, and --save-to writes files as Perlica. The
		// option --sandbox could choose a weaker sandbox.
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

// ownCall refuses a command of Perlica that is forbidden for agents.
func (w *walker) ownCall(fs []field) {
	if ownCommand(fs[1:]) {
		w.addFinding(Refused, whyAnswers.With(shown(fs)), "perlica")
	}
}

// owns reports whether a path or pattern leads to Perlica's own files. These are the files in any folder
// .perlica_config and in Perlica's folders in the user's home.
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

// ownDirs returns Perlica's folders of this user: the folders in Own, and the folders inHome below the home directory.
func (p Place) ownDirs(inHome ...string) []string {
	dirs := slices.Clone(p.Own)
	for _, dir := range inHome {
		if p.Home != "" {
			dirs = append(dirs, p.Home+dir)
		}
	}
	return dirs
}

// holdsOwn reports whether the directory target contains one of Perlica's folders of this user.
func (p Place) holdsOwn(target string) bool {
	return slices.ContainsFunc(p.ownDirs("/.config/perlica", "/.local/state/perlica"),
		func(dir string) bool { return within(target, dir) })
}

// ownFile refuses an action on the target if the target is one of Perlica's own files. It reports whether it refused.
func (w *walker) ownFile(target string, glob bool, action any) bool {
	if !w.place.owns(target, glob) {
		return false
	}
	w.addFinding(Refused, whyTouchesOwn.With(action), "perlica")
	return true
}
