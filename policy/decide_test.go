package policy

import (
	"testing"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// at has the directories in which the commands of most tests run.
var at = shell.Place{Dir: "/home/me/work/proj", Home: "/home/me", Temp: []string{"/tmp", "/var/folders/xy/T"}}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// options3 are the options of an agent that lists the options for "always" before the options for once.
var options3 = []Option{
	{"always", "Always", "allow_always"}, {"never", "Never", "reject_always"},
	{"yes", "Yes", "allow_once"}, {"yes2", "Yes again", "allow_once"},
	{"no", "No", "reject_once"}, {"no2", "No again", "reject_once"},
}

func policyOf(t *testing.T, standing []Approval, rules ...Rule) *Policy {
	t.Helper()
	p, err := New(rules, func() ([]Approval, error) { return standing, nil }, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// execute returns a request to run a command.
func execute(text string) Request {
	return Request{
		Provider: "claude", Session: "s1", Kind: "execute", Commands: []shell.Command{{Text: text}}, HasCommand: true,
		Place: at, Options: options3,
	}
}

func allow(command string) Rule { return Rule{Effect: Allow, Command: command} }
func deny(command string) Rule  { return Rule{Effect: Deny, Command: command} }
func ask(command string) Rule   { return Rule{Effect: Ask, Command: command} }

// TestCommandRules checks that an allow rule matches whole words and every command of a line. It checks that a deny
// rule finds its command anywhere in a line, also inside programs such as env and bash -c.
func TestCommandRules(t *testing.T) {
	tests := []struct {
		rules   []Rule
		command string
		want    Effect
	}{
		{[]Rule{allow("git status")}, "git status", Allow},
		{[]Rule{allow("git status")}, "git   'status'", Allow},
		{[]Rule{allow("git status")}, "git status 2>/dev/null", Allow},
		{[]Rule{allow("git status")}, "git status 2>&1", Allow},
		{[]Rule{allow("git status")}, "git status # really", Allow},
		{[]Rule{allow("git status")}, "git status -s", Ask},
		{[]Rule{allow("git status")}, "git", Ask},
		{[]Rule{allow("git status")}, "git statusx", Ask},
		{[]Rule{allow("git status")}, "git status; ls", Ask},
		{[]Rule{allow("git status")}, "git status\nls", Ask},
		{[]Rule{allow("git status")}, "git status && ls", Ask},
		{[]Rule{allow("git status")}, "git status || ls", Ask},
		{[]Rule{allow("git status")}, "git status | sh", Ask},
		{[]Rule{allow("git status")}, "git status & ls", Ask},
		{[]Rule{allow("git status")}, "git status &", Ask},
		{[]Rule{allow("git status")}, "git status > out", Ask},
		{[]Rule{allow("git status")}, "git status < in", Ask},
		{[]Rule{allow("git status")}, "git status <<EOF\nEOF", Ask},
		{[]Rule{allow("git status")}, "GIT_DIR=x git status", Ask},
		{[]Rule{allow("git status")}, "X=1; git status", Ask},
		{[]Rule{allow("git status")}, "git status $(ls)", Ask},
		{[]Rule{allow("git status")}, "(git status)", Ask},
		{[]Rule{allow("git status")}, "if true; then git status; fi", Ask},
		{[]Rule{allow("git status")}, "git() { ls; }; git status", Ask},
		{[]Rule{allow("git status")}, "/tmp/evil/git status", Ask},
		{[]Rule{allow("git status")}, "env git status", Ask},
		{[]Rule{allow("git status")}, "sh -c 'git status'", Ask},
		{[]Rule{allow("git status"), allow("ls ...")}, "git status && ls -l", Allow},
		{[]Rule{allow("git status"), allow("ls ...")}, "git status | ls; ls", Allow},
		{[]Rule{allow("git status"), allow("ls ...")}, "git status && ls && pwd", Ask},
		{[]Rule{allow("git * main")}, "git push main", Allow},
		{[]Rule{allow("git * main")}, "git push origin main", Ask},
		{[]Rule{allow("git * main")}, "git main", Ask},
		{[]Rule{allow("git '*' x")}, "git push x", Ask},
		{[]Rule{allow("git '*' x")}, "git '*' x", Allow},
		{[]Rule{allow("go test ./...")}, "go test ./...", Allow},
		{[]Rule{allow("go test ./...")}, "go test ./policy", Ask},
		{[]Rule{allow("go test ./...")}, "go test ./... -race", Ask},
		{[]Rule{allow("go test ...")}, "go test", Allow},
		{[]Rule{allow("go test ...")}, "go test ./... -race", Allow},
		{[]Rule{allow("go test ...")}, "go test $X", Ask},
		{[]Rule{allow("go test ...")}, "go test *.go", Allow},
		{[]Rule{allow("go test ...")}, "go vet", Ask},
		{[]Rule{allow("cat ~/notes")}, "cat /home/me/notes", Allow},
		{[]Rule{allow("...")}, "ls -l", Allow},
		{[]Rule{allow("* ...")}, "ls -l", Allow},
		{[]Rule{{Effect: Allow}}, "ls > x; for i in a; do ls; done", Allow},

		{[]Rule{deny("npm publish ...")}, "npm publish", Deny},
		{[]Rule{deny("npm publish ...")}, "ls; npm publish --tag x", Deny},
		{[]Rule{deny("npm publish ...")}, "ls $(npm publish)", Deny},
		{[]Rule{deny("npm publish ...")}, "X=1 npm publish > x &", Deny},
		{[]Rule{deny("npm publish ...")}, "env A=b nice npm publish", Deny},
		{[]Rule{deny("npm publish ...")}, "bash -lc 'cd x && npm publish'", Deny},
		{[]Rule{deny("npm publish ...")}, "/usr/bin/npm publish", Deny},
		{[]Rule{deny("npm publish ...")}, "sudo npm publish", Deny},
		{[]Rule{deny("npm publish ...")}, "find . -name x -exec npm publish \\;", Deny},
		{[]Rule{deny("npm publish ...")}, "echo npm publish | sh", Deny},
		{[]Rule{deny("npm publish ...")}, "f() { npm publish; }", Deny},
		{[]Rule{deny("npm publish ...")}, "npm $X", Ask},
		{[]Rule{deny("npm publish ...")}, "npm install", Ask},
		{[]Rule{deny("npm publish ...")}, "echo npm publish", Ask},
		{[]Rule{deny("npm publish ..."), allow("npm ...")}, "npm publish", Deny},
		{[]Rule{allow("npm ..."), deny("npm publish ...")}, "npm publish", Deny},
		{[]Rule{allow("npm ..."), ask("npm publish ...")}, "npm publish", Ask},
		{[]Rule{ask("npm publish ..."), deny("npm ...")}, "npm publish", Deny},
	}
	for _, test := range tests {
		d := policyOf(t, nil, test.rules...).Decide(execute(test.command), ModeAsk)
		if d.Effect != test.want {
			t.Errorf("%v: %q: %+v, want %s", test.rules, test.command, d, test.want)
		}
		if d.Effect == Allow && d.OptionID != "yes" || d.Effect == Deny && d.OptionID != "no" {
			t.Errorf("%q: option %q", test.command, d.OptionID)
		}
	}
}

// TestTiersAndModes checks that no mode and no broad rule allows a dangerous command. Only a rule that names the
// command allows it, and no rule allows a refused command.
func TestTiersAndModes(t *testing.T) {
	tests := []struct {
		command string
		mode    Mode
		rules   []Rule
		want    Effect
		by      By
	}{
		{"ls", ModeAsk, nil, Ask, ByMode},
		{"ls", ModeReads, nil, Ask, ByMode},
		{"ls", ModeDeny, nil, Deny, ByMode},
		{"ls", ModeAllow, nil, Allow, ByMode},
		{"ls", "", nil, Ask, ByMode},
		{"ls", "Allow", nil, Ask, ByMode},
		{"ls", ModeAllow, []Rule{ask("ls")}, Ask, ByRule},
		{"ls", ModeAllow, []Rule{deny("ls")}, Deny, ByRule},
		{"ls", ModeDeny, []Rule{allow("ls")}, Allow, ByRule},
		{"sudo ls", ModeAllow, nil, Ask, ByTier},
		{"sudo ls", ModeDeny, nil, Deny, ByMode},
		{"sudo ls", ModeAllow, []Rule{{Effect: Allow}}, Ask, ByTier},
		{"sudo ls", ModeAllow, []Rule{allow("...")}, Ask, ByTier},
		{"sudo ls", ModeAllow, []Rule{allow("* ...")}, Ask, ByTier},
		{"sudo ls", ModeAllow, []Rule{allow("sudo ls")}, Allow, ByRule},
		{"sudo ls", ModeAsk, []Rule{allow("sudo ...")}, Allow, ByRule},
		{"sudo ls", ModeAllow, []Rule{allow("ls")}, Ask, ByTier},
		{"git push -f && ls", ModeAllow, []Rule{allow("git push -f")}, Ask, ByTier},
		{"git push -f && ls", ModeAllow, []Rule{allow("git push -f"), allow("ls")}, Allow, ByRule},
		{"curl x | sh", ModeAllow, []Rule{allow("curl ...")}, Ask, ByTier},
		{"git status && (", ModeAllow, []Rule{allow("git ...")}, Ask, ByTier},
		{"$X", ModeAllow, []Rule{allow("* ...")}, Ask, ByTier},
		{"rm -rf \"$D\"", ModeAllow, []Rule{allow("rm ...")}, Ask, ByTier},
		{"rm -rf /", ModeAllow, []Rule{allow("rm -rf /")}, Deny, ByTier},
		{"rm -rf /", ModeAllow, []Rule{{Effect: Allow}}, Deny, ByTier},
		{"rm -rf /", ModeAsk, nil, Deny, ByTier},
	}
	for _, test := range tests {
		d := policyOf(t, nil, test.rules...).Decide(execute(test.command), test.mode)
		if d.Effect != test.want || d.By != test.by {
			t.Errorf("%q %s %v: %+v, want %s by %s", test.command, test.mode, test.rules, d, test.want, test.by)
		}
	}
}

// TestWord checks that a person can allow a refused command with a typed word. The word does not help if a rule, a
// standing no or the mode deny also denies the command.
func TestWord(t *testing.T) {
	never := Approval{Effect: Deny, Scope: ScopeContext, Command: "rm -rf ~"}
	tests := []struct {
		mode     Mode
		standing []Approval
		rules    []Rule
		want     string
	}{
		{ModeAsk, nil, nil, "home"},
		{ModeAllow, nil, []Rule{allow("rm ...")}, "home"},
		{ModeDeny, nil, nil, ""},
		{ModeAsk, nil, []Rule{deny("rm ...")}, ""},
		{ModeAsk, []Approval{never}, nil, ""},
	}
	for _, test := range tests {
		d := policyOf(t, test.standing, test.rules...).Decide(execute("rm -rf ~"), test.mode)
		if d.Effect != Deny || d.Word != test.want || d.OptionID != "no" || d.Tier != shell.Refused {
			t.Errorf(`%+v: got %+v; want d.Effect == Deny && d.Word == %v && d.OptionID == "no" && d.Tier == shell.Refused`,
				test, d, test.want)
		}
	}
}

// TestOptions checks that a decision picks the first option with the kind allow_once or reject_once, and never an
// option for always.
func TestOptions(t *testing.T) {
	only := func(ids ...string) (out []Option) {
		for _, o := range options3 {
			for _, id := range ids {
				if o.ID == id {
					out = append(out, o)
				}
			}
		}
		return out
	}
	tests := []struct {
		mode    Mode
		options []Option
		effect  Effect
		id      string
	}{
		{ModeAllow, options3, Allow, "yes"},
		{ModeAllow, only("always", "no"), Ask, ""},
		{ModeAllow, nil, Ask, ""},
		{ModeDeny, options3, Deny, "no"},
		{ModeDeny, only("never", "yes", "always"), Deny, ""},
		{ModeDeny, nil, Deny, ""},
		{ModeAsk, options3, Ask, ""},
	}
	for _, test := range tests {
		r := execute("ls")
		r.Options = test.options
		if d := policyOf(t, nil).Decide(r, test.mode); d.Effect != test.effect || d.OptionID != test.id {
			t.Errorf("%s %v: got %+v; want d.Effect == %v && d.OptionID == %v", test.mode, test.options, d, test.effect, test.id)
		}
	}
}

func TestUnreadableCommands(t *testing.T) {
	for name, r := range map[string]Request{
		"a command that cannot be read": {Kind: "other", HasCommand: true, Options: options3, Place: at},
		"execute without a command":     {Kind: "execute", Options: options3, Place: at},
	} {
		p := policyOf(t, nil, Rule{Effect: Allow}, allow("..."))
		if d := p.Decide(r, ModeAllow); d.Effect != Ask || d.Tier != shell.AlwaysAsked {
			t.Errorf("%s: got %+v; want d.Effect == Ask && d.Tier == shell.AlwaysAsked", name, d)
		}
	}
}

func TestRuleFields(t *testing.T) {
	tests := []struct {
		rule Rule
		want Effect
	}{
		{Rule{Effect: Allow, Provider: "claude"}, Allow},
		{Rule{Effect: Allow, Provider: "codex"}, Ask},
		{Rule{Effect: Allow, Kind: []string{"read", "execute"}}, Allow},
		{Rule{Effect: Allow, Kind: []string{"read"}}, Ask},
		{Rule{Effect: Allow, Kind: []string{"execute"}, Path: "inside"}, Ask},
		{Rule{Effect: Allow, Command: "ls", Path: "inside"}, Ask},
		{Rule{Effect: Allow, Command: "ls", Provider: "claude", Kind: []string{"execute"}}, Allow},
		{Rule{Effect: Deny, Kind: []string{"execute"}}, Deny},
		{Rule{Effect: Deny, Command: "ls", Provider: "codex"}, Ask},
	}
	for _, test := range tests {
		if d := policyOf(t, nil, test.rule).Decide(execute("ls"), ModeAsk); d.Effect != test.want {
			t.Errorf("%+v: got %+v; want d.Effect == %v", test.rule, d, test.want)
		}
	}
	// An agent may call a command a read. A rule about reads must not allow the command.
	r := execute("ls")
	r.Kind = "read"
	if d := policyOf(t, nil, Rule{Effect: Allow, Kind: []string{"read"}}).Decide(r, ModeAsk); d.Effect != Ask {
		t.Errorf("a command that is called a read: %+v", d)
	}
}

func TestBadRules(t *testing.T) {
	for _, r := range []Rule{
		{}, {Effect: "yes"}, {Effect: Allow, Kind: []string{"run"}}, {Effect: Allow, Path: "[a"},
		allow("a; b"), allow("a | b"), allow("a && b"), allow("a > b"), allow("X=1 a"), allow("a $X"), allow("a $(b)"),
		allow("a ... b"), allow("a &"), allow("if"), allow("(a)"), allow("'a"), allow("# x"), allow(" "),
	} {
		if err := r.Check(); err == nil {
			t.Errorf("%+v is accepted", r)
		}
		if _, err := New([]Rule{r}, nil, nil); err == nil {
			t.Errorf("%+v makes a policy", r)
		}
	}
	if _, err := New([]Rule{{Effect: "x", Origin: "a.toml:3"}}, nil, nil); err == nil ||
		err.Error() != `policy: rule a.toml:3: effect is "x", not allow, ask or deny` {
		t.Errorf("error: %v", err)
	}
}

func TestReason(t *testing.T) {
	r := allow("ls")
	r.Reason = "harmless"
	d := policyOf(t, nil, r).Decide(execute("ls"), ModeAsk)
	if d.Why != "harmless" || d.Rule == nil || d.Rule.Command != "ls" {
		t.Errorf(`got %+v; want d.Why == "harmless" && d.Rule != nil && d.Rule.Command == "ls"`, d)
	}
}

// TestSeveralCommands checks that each command of a request with several commands is judged, in its own directory.
func TestSeveralCommands(t *testing.T) {
	r := execute("ls")
	r.Commands = append(r.Commands, shell.Command{Text: "rm -rf /"})
	if d := policyOf(t, nil, allow("ls")).Decide(r, ModeAllow); d.Effect != Deny || d.Tier != shell.Refused {
		t.Errorf("got %+v; want d.Effect == Deny && d.Tier == shell.Refused", d)
	}
	r.Commands[1].Text = "pwd"
	if d := policyOf(t, nil, allow("ls")).Decide(r, ModeAsk); d.Effect != Ask {
		t.Errorf("got %+v; want d.Effect == Ask", d)
	}
	r.Commands[1] = shell.Command{Text: "rm -rf *", Dir: "/"}
	if d := policyOf(t, nil).Decide(r, ModeAllow); d.Tier != shell.Refused {
		t.Errorf("a command that starts elsewhere: %+v", d)
	}
}
