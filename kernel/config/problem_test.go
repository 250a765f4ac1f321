package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/perlica/perlica/eventlog/message"
)

func TestProblems(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"unknown key", "[providers.x.acp]\nconnect_timout = '1s'",
			`F:2: providers.x.acp.connect_timout: unknown key; did you mean "connect_timeout"?`},
		{"unknown section", "[provider.x]\nenabled = true", `F:1: provider: unknown key; did you mean "providers"?`},
		{"misplaced", "default_provider = 'x'", `F:1: default_provider: unknown key; did you mean "model.default_provider"?`},
		{"nothing near", "zzzzzzzzzzzz = 1", `F:1: zzzzzzzzzzzz: unknown key`},
		{"id of a provider", "providers.'a b'.enabled = true",
			`F:1: providers.a b: a provider is named by at most 64 letters, digits, - and _, beginning with a letter or digit`},
		{"id with a dot", "providers.'a.b'.enabled = true", `F:1: providers.a.b: a provider is named by`},
		{"id that hides", "runtime.provider_context_windows.\"\\u001b\" = 1",
			`F:1: "runtime.provider_context_windows.\x1b": a provider is named by`},
		{"section that is none", "model = 1", `F:1: model: must be a table`},
		{"key that is a section", "[model.default_provider]", `F:1: model.default_provider: must be a string such as "x"`},
		{"string", "model.default_provider = 1", `F:1: model.default_provider: must be a string such as "x"`},
		{"provider", "model.default_provider = '-x'", `F:1: model.default_provider: a provider is named by`},
		{"bool", "log.stream_sync = 'yes'", `F:1: log.stream_sync: must be true or false`},
		{"integer", "runtime.logs.max_files = 1.5", `F:1: runtime.logs.max_files: must be a whole number`},
		{"range", "runtime.logs.max_files = 0", `F:1: runtime.logs.max_files: must be from 1 to 1000`},
		{"number", "runtime.context_budget_ratio = 'x'", `F:1: runtime.context_budget_ratio: must be a number`},
		{"ratio above one", "runtime.context_budget_ratio = 1.1",
			`F:1: runtime.context_budget_ratio: must be from 0.01 to 1`},
		{"ratio zero", "runtime.context_budget_ratio = 0", `F:1: runtime.context_budget_ratio: must be from 0.01 to 1`},
		{"not a number", "runtime.context_budget_ratio = nan", `F:1: runtime.context_budget_ratio: must be from 0.01 to 1`},
		{"duration as a number", "interaction.timeout = 30", `F:1: interaction.timeout: must be a duration such as "30s"`},
		{"duration without unit", "interaction.timeout = '30'", `F:1: interaction.timeout: must be a duration such as "30s"`},
		{"duration below zero", "interaction.timeout = '-1s'", `F:1: interaction.timeout: must be more than zero`},
		{"choice", "permissions.mode = 'read'",
			`F:1: permissions.mode: "read" is not one of ask, reads, deny, allow; did you mean "reads"?`},
		{"list", "providers.x.adapter.args = 'a'",
			`F:1: providers.x.adapter.args: must be a list of strings such as ["a", "b"]`},
		{"list of numbers", "providers.x.adapter.args = [1]", `F:1: providers.x.adapter.args: must be a list of strings`},
		{"NUL in a list", `providers.x.adapter.args = ["a\u0000"]`, `F:1: providers.x.adapter.args: holds a NUL character`},
		{"empty command", "providers.x.adapter.command = ' '", `F:1: providers.x.adapter.command: is empty`},
		{"variable with a value", "providers.x.adapter.env_allowlist = ['A=1']",
			`F:1: providers.x.adapter.env_allowlist: the name of an environment variable`},
		{"context", "context.default_id = 'a/b'", `F:1: context.default_id: the name of a context holds none of`},
		{"syntax", "a = 1\nb = = 2", `F:2:5: unexpected character U+003D '=' at start of value`},
		{"key twice", "[log]\nstream_sync = true\nstream_sync = true", `F:3:1: `},
		{"invalid UTF-8", "a = '\xff'", `F:1:`},
		{"policy as a table", "[policy.rule]\neffect = 'deny'",
			`F:1: policy.rule: must be a list of tables, written [[policy.rule]]`},
		{"policy as values", "policy.rule = [1]", `F:1: policy.rule[0]: must be a table`},
		{"rule without effect", "[[policy.rule]]\nkind = ['read']", `F:1: policy.rule[0]: effect is missing`},
		{"effect", "[[policy.rule]]\neffect = 'alow'",
			`F:2: policy.rule[0].effect: "alow" is not one of allow, ask, deny; did you mean "allow"?`},
		{"kind", "[[policy.rule]]\neffect = 'deny'\nkind = ['raed']",
			`F:3: policy.rule[0].kind: "raed" is not one of read, edit, delete, move, search, execute, think, fetch, switch_mode, other; did you mean "read"?`},
		{"kind as a string", "[[policy.rule]]\neffect = 'deny'\nkind = 'read'",
			`F:3: policy.rule[0].kind: must be a list of strings`},
		{"no kind", "[[policy.rule]]\neffect = 'allow'\nkind = []",
			`F:3: policy.rule[0].kind: is empty; leave it out to match everything`},
		{"path", "[[policy.rule]]\neffect = 'deny'\npath = 'insde'",
			`F:3: policy.rule[0].path: must be "inside", "outside" or a glob; did you mean "inside"?`},
		{"empty path", "[[policy.rule]]\neffect = 'deny'\npath = ''",
			`F:3: policy.rule[0].path: is empty; leave it out to match everything`},
		{"glob", "[[policy.rule]]\neffect = 'deny'\npath = '[a'", `F:3: policy.rule[0].path: is not a valid glob`},
		{"empty command pattern", "[[policy.rule]]\neffect = 'deny'\ncommand = ''", `F:3: policy.rule[0].command: is empty`},
		{"key of a rule", "[[policy.rule]]\neffect = 'deny'\n\ncomand = 'x'",
			`F:4: policy.rule[0].comand: unknown key; did you mean "command"?`},
		{"second rule", "[[policy.rule]]\neffect = 'deny'\n[[policy.rule]]\n\neffect = 1",
			`F:5: policy.rule[1].effect: must be a string`},
		{"server without name", "[[mcp.servers]]\ncommand = 'x'", `F:1: mcp.servers[0]: name is missing`},
		{"server without command", "[[mcp.servers]]\nname = 'x'",
			`F:1: mcp.servers[0]: a server of type stdio needs a command`},
		{"server without url", "[[mcp.servers]]\nname = 'x'\ntype = 'sse'",
			`F:1: mcp.servers[0]: a server of type sse needs a url`},
		{"server with both", "[[mcp.servers]]\nname = 'x'\ncommand = 'x'\nurl = 'http://x'",
			`F:1: mcp.servers[0]: a server of type stdio has no url`},
		{"server twice", "[[mcp.servers]]\nname = 'x'\ncommand = 'x'\n[[mcp.servers]]\nname = 'x'\ncommand = 'x'",
			`F:4: mcp.servers[1]: the name is taken by the table at line 1`},
		{"schedule twice", "[[schedule]]\nid = 'x'\nevery = '2h'\ntext = 'x'\n[[schedule]]\nid = 'x'\nevery = '2h'\ntext = 'x'",
			`F:5: schedule[1]: the id is taken by the table at line 1`},
		{"schedule without times", "[[schedule]]\nid = 'x'\ntext = 'x'", `F:1: schedule[0]: cron or every is missing`},
		{"schedule with both", "[[schedule]]\nid = 'x'\nevery = '2h'\ntext = 'x'\nflow = 'x'",
			`F:1: schedule[0]: has both text and flow`},
		{"key of a schedule", "[[schedule]]\nid = 'x'\ncorn = '0 8 * * *'",
			`F:3: schedule[0].corn: unknown key; did you mean "cron"?`},
		{"every of a schedule", "[[schedule]]\nid = 'x'\nevery = '25h'\ntext = 'x'",
			`F:1: schedule[0]: every is at least 1s and at most 24h`},
		{"inputs without a flow", "[[schedule]]\nid = 'x'\nevery = '1h'\ntext = 'x'\ninputs = { a = 'b' }",
			`F:1: schedule[0]: inputs are for a flow`},
		{"cron of a schedule", "[[schedule]]\nid = 'x'\ncron = '0 25 * * *'", `F:3: schedule[0].cron: is not five fields`},
		{"cron with seconds", "[[schedule]]\nid = 'x'\ncron = '0 0 8 * * *'", `F:3: schedule[0].cron: is not five fields`},
		{"cron with a year", "[[schedule]]\nid = 'x'\ncron = '0 8 1 1 * 2027'", `F:3: schedule[0].cron: is not five`},
		{"cron of seconds", "[[schedule]]\nid = 'x'\ncron = '@everysecond'", `F:3: schedule[0].cron: is not five fields`},
		{"id of a schedule", "[[schedule]]\nid = 'a/b'", `F:2: schedule[0].id: a name has at most 64`},
		{"timezone", "[[budget]]\nper = 'day'\ncalls = 1\ntimezone = 'Local'",
			`F:4: budget[0].timezone: is not a timezone`},
		{"budget without a limit", "[[budget]]\nper = 'day'", `F:1: budget[0]: calls, tokens or money is missing`},
		{"money", "[[budget]]\nper = 'day'\nmoney = '20 euro'", `F:3: budget[0].money: must be an amount and a currency`},
		{"money without a number", "[[budget]]\nper = 'day'\nmoney = 'NaN EUR'",
			`F:3: budget[0].money: must be an amount and a currency`},
		{"hook without a program", "[[hook]]\non = ['llm.responded']", `F:1: hook[0]: command is missing`},
		{"cause", "[[notify]]\nwhen = ['questions']\nto = 'desktop'",
			`F:2: notify[0].when: "questions" is not one of question, finished, failed, unknown, budget, schedule; did you`},
		{"target dekstop", "[[notify]]\nwhen = ['failed']\nto = 'dekstop'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target desktop:0", "[[notify]]\nwhen = ['failed']\nto = 'desktop:0'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target example.org", "[[notify]]\nwhen = ['failed']\nto = 'example.org'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target file:///etc/passwd", "[[notify]]\nwhen = ['failed']\nto = 'file:///etc/passwd'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target slack+https://x.example/", "[[notify]]\nwhen = ['failed']\nto = 'slack+https://x.example/'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target https:example.org", "[[notify]]\nwhen = ['failed']\nto = 'https:example.org'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target ", "[[notify]]\nwhen = ['failed']\nto = ''",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target push:phone", "[[notify]]\nwhen = ['failed']\nto = 'push:phone'",
			`F:3: notify[0].to: is not a target: use desktop, push, contact:NAME`},
		{"target contact: ", "[[notify]]\nwhen = ['failed']\nto = 'contact: '",
			`F:3: notify[0].to: names no contact`},
		{"target mailto:not an address", "[[notify]]\nwhen = ['failed']\nto = 'mailto:not an address'",
			`F:3: notify[0].to: is not a mail address`},
		{"target mailto:Ann <ann@example.org>", "[[notify]]\nwhen = ['failed']\nto = 'mailto:Ann <ann@example.org>'",
			`F:3: notify[0].to: is not a mail address`},
		{"target mailto:ann@example.org?cc=x", "[[notify]]\nwhen = ['failed']\nto = 'mailto:ann@example.org?cc=x'",
			`F:3: notify[0].to: is not a mail address`},
		{"target mailto:", "[[notify]]\nwhen = ['failed']\nto = 'mailto:'",
			`F:3: notify[0].to: is not a mail address`},
		{"target https:///path", "[[notify]]\nwhen = ['failed']\nto = 'https:///path'",
			`F:3: notify[0].to: names no host`},
		{"target https://:443/path", "[[notify]]\nwhen = ['failed']\nto = 'https://:443/path'",
			`F:3: notify[0].to: names no host`},
		{"target ntfy+https://", "[[notify]]\nwhen = ['failed']\nto = 'ntfy+https://'",
			`F:3: notify[0].to: names no host`},
		{"target http://example.org/x", "[[notify]]\nwhen = ['failed']\nto = 'http://example.org/x'",
			`F:3: notify[0].to: must begin with https`},
		{"target ntfy+http://example.org/t", "[[notify]]\nwhen = ['failed']\nto = 'ntfy+http://example.org/t'",
			`F:3: notify[0].to: must begin with https`},
		{"target http://127.0.0.1.example.org/", "[[notify]]\nwhen = ['failed']\nto = 'http://127.0.0.1.example.org/'",
			`F:3: notify[0].to: must begin with https`},
		{"target https://u:p@example.org/", "[[notify]]\nwhen = ['failed']\nto = 'https://u:p@example.org/'",
			`F:3: notify[0].to: has a user or a password in its address`},
		{"target https://example.org:99999/", "[[notify]]\nwhen = ['failed']\nto = 'https://example.org:99999/'",
			`F:3: notify[0].to: has a port that does not exist`},
		{"target https://example.org:0/", "[[notify]]\nwhen = ['failed']\nto = 'https://example.org:0/'",
			`F:3: notify[0].to: has a port that does not exist`},
		{"target https://ntfy.sh/", "[[notify]]\nwhen = ['failed']\nto = 'https://ntfy.sh/'",
			`F:3: notify[0].to: must end with a topic of ntfy`},
		{"target https://ntfy.sh/a.b", "[[notify]]\nwhen = ['failed']\nto = 'https://ntfy.sh/a.b'",
			`F:3: notify[0].to: must end with a topic of ntfy`},
		{"target ntfy+https://x.example/t?x=1", "[[notify]]\nwhen = ['failed']\nto = 'ntfy+https://x.example/t?x=1'",
			`F:3: notify[0].to: must end with a topic of ntfy`},
		{"url", "[[mcp.servers]]\nname = 'x'\nurl = 'file:///x'",
			`F:3: mcp.servers[0].url: must be an http or https address`},
		{"env", "[[mcp.servers]]\nname = 'x'\ncommand = 'x'\nenv = { 'A=B' = 'x' }",
			`F:4: mcp.servers[0].env: the name of an environment variable`},
		{"env value", "[[mcp.servers]]\nname = 'x'\ncommand = 'x'\n[mcp.servers.env]\nA = 1",
			`F:4: mcp.servers[0].env: must be a table of strings`},
		{"env NUL", "[[mcp.servers]]\nname = 'x'\ncommand = 'x'\n[mcp.servers.env]\nA = \"\\u0000\"",
			`F:4: mcp.servers[0].env: a value holds a NUL character`},
		{"header", "[[mcp.servers]]\nname = 'x'\nurl = 'http://x'\nheaders = { 'a b' = 'x' }",
			`F:4: mcp.servers[0].headers: the name of a header`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := readLayer("user file", "F", []byte(tt.file))
			if len(l.problems) != 1 || !strings.HasPrefix(l.problems[0].Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", l.problems, tt.want)
			}
			if len(l.elements) > 0 && !strings.Contains(tt.name, "second") && !strings.Contains(tt.name, "twice") {
				t.Error("a bad element is kept")
			}
		})
	}
}

// TestScheduleCodes checks that each mistake in a schedule has a code, so that a phone shows it in its language.
func TestScheduleCodes(t *testing.T) {
	const times, text = "every = '2h'\n", "text = 'x'\n"
	for keys, want := range map[string]message.Code{
		times + text: "config.missing-key",
		"id = 'x'\n" + times + text + "[[schedule]]\nid = 'x'\n" + times + text: "config.taken",
		"id = 'a/b'": "config.name", "id = 1": "config.type-text", "idd = 'x'": "config.unknown-key",
		"id = 'x'\n" + text: "config.missing-one", "id = 'x'\ncron = '@daily'\n" + times + text: "config.both-keys",
		"cron = '0 25 * * *'": "config.cron", "cron = ''": "config.cron", "every = 'x'": "config.type-duration",
		"every = '-1h'": "config.not-positive", "id = 'x'\nevery = '25h'\n" + text: "config.every",
		"timezone = 'Mars'": "config.timezone", "text = ''": "config.empty", "flow = ''": "config.empty",
		"id = 'x'\n" + times + text + "inputs = { a = 'b' }": "config.inputs", "inputs = { a = 1 }": "config.type-text-map",
		"missed = 'later'": "config.choice", "provider = 'a b'": "config.provider", "id = 'x": "config.not-toml",
	} {
		l := readLayer("user file", "F", []byte("[[schedule]]\n"+keys))
		if len(l.problems) == 0 {
			t.Errorf("%q is accepted", keys)
			continue
		}
		if got := message.CodeOf(l.problems); got != want {
			t.Errorf("%q: %v has the code %q, want %q", keys, l.problems, got, want)
		}
		if !strings.Contains(message.Of(l.problems).Text, l.problems[0].Reason) {
			t.Errorf("%q: the sentence %q lacks the reason", keys, message.Of(l.problems))
		}
	}
}

// TestTargets checks the accepted targets of notifications.
func TestTargets(t *testing.T) {
	for _, to := range []string{"desktop", "contact:alice", "contact:telegram:17", "mailto:ann@example.org",
		"https://example.org/x?y=z", "https://[2001:db8::1]:8443/", "http://localhost:8080/x", "http://[::1]/",
		"https://ntfy.sh/my-topic", "ntfy+https://x.example/deep/Topic_1", "ntfy+http://127.0.0.1:1/t"} {
		if mistake := checkTarget(to); mistake != nil {
			t.Errorf("%s: %s", to, mistake)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	p := newPlace(t)
	p.user("log.stream_sync = 1\r\nzzz = 1\r\n")
	p.project("\xef\xbb\xbf[model]\ndefault_provider = 1\n[context]\ndefault_id = 'mine'\nid = 1\n")
	p.env = []string{"PERLICA_LOG_STREAM_SYNC=x"}
	c, err := p.loadConfig(nil)
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 5 {
		t.Fatalf("got %v", err)
	}
	want := "USER:1: log.stream_sync: must be true or false\nUSER:2: zzz: unknown key\n" +
		"PROJECT:2: model.default_provider: must be a string such as \"x\"\n" +
		"PROJECT:5: context.id: unknown key; did you mean \"context.default_id\"?\n" +
		"environment PERLICA_LOG_STREAM_SYNC: must be true or false"
	if got := p.text(err.Error()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if c.ContextID != "mine" {
		t.Error("the valid part of a file with a problem is lost")
	}
}

func TestSyntaxErrorKeepsItsCause(t *testing.T) {
	p := newPlace(t)
	p.user("a = ")
	_, err := p.loadConfig(nil)
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		t.Errorf("got %#v; want errors.As(err, &de)", err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	tooLarge := func(path string) error {
		return os.WriteFile(path, []byte(strings.Repeat("#", maxFileSize+1)), 0o600)
	}
	for _, test := range []struct {
		make          func(string) error
		user, project string
	}{
		{tooLarge, "larger than 1024 KiB", "larger than 64 KiB"},
		{func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file", "not a regular file"},
	} {
		p := newPlace(t)
		for _, path := range []string{p.dirs.ConfigFile(), p.ws.ConfigFile()} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), test.make(path)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.loadConfig(nil)
		want := "USER: cannot be read: " + test.user + "\nPROJECT: cannot be read: " + test.project
		if err == nil || p.text(err.Error()) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFileOfExactlyTheLimit(t *testing.T) {
	p := newPlace(t)
	p.user(strings.Repeat("#", maxFileSize))
	p.mustLoad()
}

func TestProjectFileThatLeadsOutOfTheProject(t *testing.T) {
	p := newPlace(t)
	p.writeFile(filepath.Join(p.dirs.Home, "secret"), "x")
	if err := os.Symlink("../../secret", p.ws.ConfigFile()); err != nil {
		t.Skip(err)
	}
	_, err := p.loadConfig(nil)
	if err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v", err)
	}
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		t.Errorf("got %#v; want errors.As(err, &pe)", err)
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"plain text": "plain text", "\x1b[2J": `"\x1b[2J"`, "a\u202eb": `"a\u202eb"`, "\xff": `"\xff"`, "": "",
		strings.Repeat("ü", 400): strings.Repeat("ü", 200) + "...",
	} {
		if got := printable(s); got != want {
			t.Errorf("printable(%q) = %q", s, got)
		}
	}
}
