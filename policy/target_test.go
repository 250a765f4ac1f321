package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/policy/shell"
)

// TestTargets checks that the mode allow does not allow a change without a target or through a link to another place.
// It does not allow changes of files that run later, such as .bashrc and Git hooks, or of Perlica's own files.
func TestTargets(t *testing.T) {
	place, in := project(t)
	place.Own = []string{in("home/proj/.perlica_config"), in("home/.local/perlica")}
	inHome := place
	inHome.Dir = place.Home
	for _, test := range []struct {
		kind, path string
		place      shell.Place
		want       Effect
		tier       shell.Tier
	}{
		{"edit", "home/proj/a.go", place, Allow, shell.Ordinary},
		{"edit", "home/proj/new/file", place, Allow, shell.Ordinary},
		{"delete", "home/proj/a.go", place, Allow, shell.Ordinary},
		{"edit", "tmp/x", place, Allow, shell.Ordinary},
		{"edit", "", place, Ask, shell.AlwaysAsked},
		{"delete", "", place, Ask, shell.AlwaysAsked},
		{"move", "", place, Ask, shell.AlwaysAsked},
		{"edit", "home/.bashrc", place, Ask, shell.AlwaysAsked},
		{"edit", "home/.bashrc", inHome, Ask, shell.AlwaysAsked},
		{"edit", "home/.config/x/y", inHome, Ask, shell.AlwaysAsked},
		{"edit", "home/notes", inHome, Allow, shell.Ordinary},
		{"edit", "home/proj/.env", place, Allow, shell.Ordinary},
		{"edit", "home/proj/.git/hooks/pre-commit", place, Ask, shell.AlwaysAsked},
		{"edit", "home/proj/.git/config", place, Ask, shell.AlwaysAsked},
		{"edit", "home/proj/sub/.git/config", place, Ask, shell.AlwaysAsked},
		{"edit", "home/proj/.gitignore", place, Allow, shell.Ordinary},
		{"edit", "home/proj/.perlica_config/config.toml", place, Deny, shell.Refused},
		{"other", "home/proj/.perlica_config/config.toml", place, Deny, shell.Refused},
		{"delete", "home/.local/perlica/keys/x", place, Deny, shell.Refused},
		{"delete", "home/.local", place, Deny, shell.Refused},
		{"read", "home/proj/.perlica_config/config.toml", place, Allow, shell.Ordinary},
		{"edit", "home/proj/out/x", place, Ask, shell.AlwaysAsked},
		// The name out is a link. Some programs drop "out/..", and others follow the link.
		{"edit", "home/proj/out/../a.go", place, Ask, shell.AlwaysAsked},
		{"edit", "home/proj/src/../a.go", place, Allow, shell.Ordinary},
		{"other", "home/other/x", place, Ask, shell.AlwaysAsked},
		{"", "home/other/x", place, Ask, shell.AlwaysAsked},
		{"delete", "home/proj", place, Deny, shell.Refused},
	} {
		r := Request{Kind: test.kind, Place: test.place, Options: options3}
		if test.path != "" {
			r.Paths = []string{filepath.Dir(in("x")) + "/" + test.path}
		}
		d := policyOf(t, nil, Rule{Effect: Allow}).Decide(r, ModeAllow)
		if d.Effect != test.want || d.Tier != test.tier || (d.Word == "") != (d.Tier != shell.Refused) {
			t.Errorf("%s of %s in %s: %+v", test.kind, test.path, test.place.Dir, d)
		}
	}
	r := Request{Kind: "edit", Place: place, Paths: []string{place.Dir}, Removes: []string{place.Dir},
		Options: options3}
	if d := policyOf(t, nil).Decide(r, ModeAllow); d.Tier != shell.Refused {
		t.Errorf("a patch that removes the working directory: %+v", d)
	}
}

// TestUnread checks that an unreadable request is allowed only by a rule that names exactly its command or file. A deny
// rule that may match the request denies it.
func TestUnread(t *testing.T) {
	place, in := project(t)
	odd := []Field{{"invented", "git push --force", Unread, nil}}
	command := Request{Kind: "execute", Commands: []shell.Command{{Text: "make"}}, HasCommand: true, Fields: odd,
		Guesses: []shell.Command{{Text: odd[0].Value}}}
	file := Request{Kind: "edit", Paths: []string{in("home/proj/a.go")}, Fields: odd}
	hidden := Request{Kind: "execute", Title: "rm -rf /", Guesses: []shell.Command{{Text: "git status"}}}
	lost := Request{Kind: "edit"}
	for i, test := range []struct {
		r    Request
		rule Rule
		want Effect
	}{
		{command, Rule{Effect: Allow}, Ask},
		{command, allow("..."), Ask},
		{command, allow("make ..."), Ask},
		{command, allow("make"), Allow},
		{command, deny("git push ..."), Deny},
		{command, deny("git pull"), Ask},
		{file, Rule{Effect: Allow, Path: "inside"}, Ask},
		{file, Rule{Effect: Allow, Path: "**"}, Ask},
		{file, Rule{Effect: Allow, Path: "a.go"}, Allow},
		{hidden, allow("..."), Ask},
		{hidden, allow("git status"), Ask},
		{hidden, deny("git status"), Deny},
		{hidden, deny("anything else"), Deny},
		{hidden, Rule{Effect: Deny, Command: "x", Provider: "other"}, Ask},
		{lost, Rule{Effect: Deny, Path: "outside"}, Deny},
		{lost, Rule{Effect: Allow, Path: "inside"}, Ask},
		{lost, Rule{Effect: Allow, Kind: []string{"edit"}}, Ask},
	} {
		test.r.Place, test.r.Options = place, options3
		d := policyOf(t, nil, test.rule).Decide(test.r, ModeAllow)
		if d.Effect != test.want || d.Why == "" {
			t.Errorf("%d: %+v: %+v, want %s", i, test.rule, d, test.want)
		}
		if len(test.r.Offers()) > 0 {
			t.Errorf("%d: it is offered to remember what cannot be read", i)
		}
	}
	root := Request{Kind: "execute", Guesses: []shell.Command{{Text: "rm -rf /"}}, Place: place, Options: options3}
	if d := policyOf(t, nil).Decide(root, ModeAllow); d.Word != "root" {
		t.Errorf("a title that may remove the root: %+v", d)
	}
}

// TestSwitchMode checks that only a person can allow a mode in which the agent asks for fewer permissions.
func TestSwitchMode(t *testing.T) {
	for mode, want := range map[string]Effect{
		"": Ask, "bypassPermissions": Ask, "yolo": Ask, "acceptEdits": Ask, "auto": Ask, "agent-full-access": Ask,
		"whatever": Ask,
		"default":  Allow, "plan": Allow, "read-only": Allow, "ask": Allow,
	} {
		r := Request{Kind: "switch_mode", Mode: mode, Place: at, Options: options3}
		if d := policyOf(t, nil, Rule{Effect: Allow}).Decide(r, ModeAllow); d.Effect != want {
			t.Errorf("%q: got %+v; want d.Effect == %v", mode, d, want)
		}
	}
}

// TestWhatIsRemembered checks that a remembered yes does not cover a request with other fields or from another agent.
// It does not cover the same path either if the path is now a link to another file.
func TestWhatIsRemembered(t *testing.T) {
	place, in := project(t)
	command := func(change func(*Request)) Request {
		r := Request{Provider: "p", Agent: "p --acp", Session: "s", Kind: "execute",
			Commands: []shell.Command{{Text: "make"}}, HasCommand: true,
			Fields: []Field{{"jobs", "4", Plain, nil}, {"timeout", "9", Inert, nil}}, Place: place, Options: options3}
		change(&r)
		return r
	}
	offers := command(func(*Request) {}).Offers()
	if len(offers) != 2 {
		t.Fatalf("got %+v; want len(offers) == 2", offers)
	}
	a := offers[1]
	for name, test := range map[string]struct {
		change func(*Request)
		covers bool
	}{
		"the same":        {func(*Request) {}, true},
		"another timeout": {func(r *Request) { r.Fields[1].Value = "10" }, true},
		"no timeout":      {func(r *Request) { r.Fields = r.Fields[:1] }, true},
		"another field":   {func(r *Request) { r.Fields[0].Value = "5" }, false},
		"one field more": {func(r *Request) { r.Fields = append(r.Fields, Field{"keep", "true", Plain, nil}) },
			false},
		"one field less": {func(r *Request) { r.Fields = r.Fields[1:] }, false},
		"an unread field": {func(r *Request) { r.Fields = append(r.Fields, Field{"then", "x y", Unread, nil}) },
			false},
		"arguments": {func(r *Request) { r.Commands = []shell.Command{{Argv: []string{"make", "-rf"}}} },
			false},
		"a variable":          {func(r *Request) { r.Commands[0].Env = []string{"A=b"} }, false},
		"an input":            {func(r *Request) { r.Commands[0].Stdin = "x" }, false},
		"a file":              {func(r *Request) { r.Paths = []string{in("home/proj/a.go")} }, false},
		"where it starts":     {func(r *Request) { r.Paths = []string{place.Dir} }, true},
		"another directory":   {func(r *Request) { r.Commands[0].Dir = "src" }, false},
		"other arguments":     {func(r *Request) { r.Agent = "p --acp --yolo" }, false},
		"an agent of its own": {func(r *Request) { r.Agent = "./p --acp" }, false},
	} {
		if got := a.Covers(command(test.change), noon); got != test.covers {
			t.Errorf("%s: got %v, want %v", name, got, test.covers)
		}
	}
	old := Approval{Effect: Allow, Scope: ScopeContext, Provider: "p", Command: "make"}
	if old.Covers(command(func(*Request) {}), noon) ||
		!old.Covers(command(func(r *Request) { r.Fields = r.Fields[1:] }), noon) {
		t.Error("an approval of before covers a request without further fields, and no other")
	}

	file := Request{Provider: "p", Session: "s", Kind: "edit", Paths: []string{in("home/proj/a.go")}, Place: place,
		Options: options3}
	a = file.Offers()[1]
	if !a.Covers(file, noon) {
		t.Errorf("got %+v; want a.Covers(file, noon)", a)
	}
	if err := os.Rename(in("home/proj/a.go"), in("home/proj/b.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b.go", in("home/proj/a.go")); err != nil {
		t.Fatal(err)
	}
	if a.Covers(file, noon) {
		t.Error("a later link is covered")
	}
}
