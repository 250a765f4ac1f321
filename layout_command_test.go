package perlica_test

// commandMayImport is mayImport for the folders of the command: what all share first, then a folder
// for each family of commands. No family imports another.
var commandMayImport = map[string][]string{
	"cmd/perlica/exitcode":  {"eventlog", "eventlog/evidence", "kernel", "kernel/config", "kernel/streamjson", "provider"},
	"cmd/perlica/printing":  {"cmd/perlica/term", "eventlog/event", "interaction", "interaction/card", "kernel", "provider", "provider/registry"},
	"cmd/perlica/signals":   {"kernel", "kernel/streamjson"},
	"cmd/perlica/cli":       {"cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "interaction", "kernel", "kernel/config", "kernel/logtrust", "kernel/project", "policy", "provider/descent", "provider/registry"},
	"cmd/perlica/selection": {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "eventlog", "eventlog/event", "kernel/project", "kernel/report"},
	"cmd/perlica/export":    {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/selection", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "eventlog/event", "eventlog/redact", "kernel/fact", "kernel/project", "kernel/report"},
	"cmd/perlica/dialog":    {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/markdown", "cmd/perlica/printing", "cmd/perlica/signals", "cmd/perlica/term", "eventlog/event", "interaction", "interaction/card", "kernel", "kernel/fact", "kernel/project", "kernel/streamjson", "policy", "provider", "provider/process"},
	"cmd/perlica/run":       {"cmd/perlica/cli", "cmd/perlica/dialog", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/signals", "eventlog", "kernel", "kernel/project", "policy", "provider"},
	"cmd/perlica/chat":      {"cmd/perlica/cli", "cmd/perlica/dialog", "cmd/perlica/editor", "cmd/perlica/exitcode", "cmd/perlica/export", "cmd/perlica/markdown", "cmd/perlica/printing", "cmd/perlica/selection", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "eventlog/event", "interaction/card", "kernel", "kernel/command", "kernel/project", "kernel/streamjson", "policy"},
	"cmd/perlica/watch":     {"cmd/perlica/cli", "cmd/perlica/dialog", "cmd/perlica/printing", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "interaction", "kernel", "kernel/project"},
	"cmd/perlica/log":       {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/export", "cmd/perlica/printing", "cmd/perlica/selection", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "eventlog/event", "eventlog/evidence", "eventlog/witness", "interaction/card", "kernel", "kernel/config", "kernel/fact", "kernel/logtrust", "kernel/project", "kernel/report"},
	"cmd/perlica/pending":   {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/term", "eventlog", "interaction", "interaction/card", "kernel", "kernel/project", "kernel/report"},
	"cmd/perlica/service":   {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/signals", "cmd/perlica/term", "eventlog", "eventlog/event", "kernel", "kernel/command", "kernel/config", "kernel/project", "service", "service/channel", "service/imessage", "service/local", "service/telegram", "service/webhook"},
	"cmd/perlica/session":   {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/export", "cmd/perlica/printing", "cmd/perlica/term", "eventlog", "eventlog/event", "kernel", "kernel/fact", "kernel/project", "kernel/report"},
	"cmd/perlica/policy":    {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/term", "eventlog", "kernel", "kernel/project", "kernel/report", "policy", "policy/shell", "policy/standing"},
	"cmd/perlica/provider":  {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/signals", "cmd/perlica/term", "eventlog/redact", "kernel", "kernel/config", "kernel/project", "provider", "provider/process"},
	"cmd/perlica/config":    {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/term", "kernel/config", "kernel/project"},
	"cmd/perlica/doctor":    {"cmd/perlica/cli", "cmd/perlica/exitcode", "cmd/perlica/printing", "cmd/perlica/term", "kernel/checkup", "kernel/project", "kernel/report", "kernel/streamjson", "service"},
	"cmd/perlica":           {"cmd/perlica/builtin", "cmd/perlica/chat", "cmd/perlica/cli", "cmd/perlica/config", "cmd/perlica/dialog", "cmd/perlica/doctor", "cmd/perlica/exitcode", "cmd/perlica/log", "cmd/perlica/pending", "cmd/perlica/policy", "cmd/perlica/provider", "cmd/perlica/run", "cmd/perlica/service", "cmd/perlica/session", "cmd/perlica/term", "cmd/perlica/watch", "kernel/project", "provider/predictable", "service"},
}
