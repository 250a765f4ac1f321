package policy

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perlica/perlica/policy/shell"
)

// TestCovers checks that an approval for "git status" covers this command in any spelling, and no other command,
// session, provider or directory.
func TestCovers(t *testing.T) {
	status := Approval{Effect: Allow, Scope: ScopeSession, Session: "s1", Provider: "claude", Command: "git status",
		Dir: at.Dir}
	with := func(change func(*Approval)) Approval {
		a := status
		change(&a)
		return a
	}
	from := func(command string, change func(*Request)) Request {
		r := execute(command)
		change(&r)
		return r
	}
	tests := []struct {
		name string
		a    Approval
		r    Request
		want bool
	}{
		{"itself", status, execute("git status"), true},
		{"white space", status, execute("  git   status "), true},
		{"quotes", status, execute(`git "status"`), true},
		{"words of a program", status, from("", func(r *Request) {
			r.Commands = []shell.Command{{Argv: []string{"git",
				"status"}}}
		}), true},
		{"bash -lc", status, from("", func(r *Request) {
			r.Commands = []shell.Command{{Argv: []string{"bash", "-lc",
				"git status"}}}
		}), true},
		{"another option", status, execute("git status -s"), false},
		{"less", status, execute("git"), false},
		{"another after it", status, execute("git status; ls"), false},
		{"another before it", status, execute("ls; git status"), false},
		{"a pipe", status, execute("git status | sh"), false},
		{"a redirection", status, execute("git status > x"), false},
		{"an assignment", status, execute("GIT_DIR=x git status"), false},
		{"background", status, execute("git status &"), false},
		{"one word", status, execute("'git status'"), false},
		{"two commands", status, from("git status", func(r *Request) {
			r.Commands = append(r.Commands,
				shell.Command{Text: "ls"})
		}), false},
		{"none", status, from("", func(r *Request) { r.Commands = nil }), false},
		{"another session", status, from("git status", func(r *Request) { r.Session = "s2" }), false},
		{"no session", with(func(a *Approval) { a.Session = "" }),
			from("git status", func(r *Request) { r.Session = "" }), false},
		{"the context", with(func(a *Approval) { a.Scope = ScopeContext }),
			from("git status", func(r *Request) { r.Session = "s2" }), true},
		{"no scope", with(func(a *Approval) { a.Scope = "" }), execute("git status"), false},
		{"another provider", status, from("git status", func(r *Request) { r.Provider = "codex" }), false},
		{"any provider", with(func(a *Approval) { a.Provider = "" }), execute("git status"), true},
		{"another directory", status, from("git status", func(r *Request) { r.Place.Dir = "/srv" }), false},
		{"starting elsewhere", status, from("git status", func(r *Request) { r.Commands[0].Dir = "src" }), false},
		{"expired", with(func(a *Approval) { a.Expires = noon }), execute("git status"), false},
		{"expiring", with(func(a *Approval) { a.Expires = noon.Add(time.Second) }), execute("git status"), true},
		{"ask is no approval", with(func(a *Approval) { a.Effect = Ask }), execute("git status"), false},
		{"about nothing", with(func(a *Approval) { a.Command = "" }), execute("git status"), false},
		{"a refused command", with(func(a *Approval) { a.Command = "rm -rf /" }), execute("rm -rf /"), false},
		{"an unknown one", with(func(a *Approval) { a.Command = `rm -rf "$D"` }), execute(`rm -rf "$D"`), false},
		{"an unparsable one", with(func(a *Approval) { a.Command = "a (" }), execute("a ("), false},
		{"an always-asked one", with(func(a *Approval) { a.Command = "sudo ls" }), execute("sudo ls"), true},
		{"patterns", with(func(a *Approval) { a.Command, a.Pattern = "", "git ..." }), execute("git log && git status"),
			true},
		{"beyond patterns", with(func(a *Approval) { a.Command, a.Pattern = "", "git ..." }), execute("git log && ls"),
			false},
		{"a broad pattern", with(func(a *Approval) { a.Command, a.Pattern = "", "..." }), execute("sudo ls"), false},
		{"a no, liberally", with(func(a *Approval) { a.Effect, a.Command, a.Pattern = Deny, "", "git ..." }),
			execute("ls; git log"), true},
	}
	for _, test := range tests {
		if got := test.a.Covers(test.r, noon); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestCoversPaths(t *testing.T) {
	a := Approval{Effect: Allow, Scope: ScopeContext, Kind: "edit", Path: "/w/a.go"}
	tests := []struct {
		kind  string
		paths []string
		want  bool
	}{
		{"edit", []string{"/w/a.go"}, true},
		{"edit", []string{"/w/./a.go"}, true},
		{"edit", []string{"/w/b.go"}, false},
		{"edit", []string{"/w/a.go", "/w/b.go"}, false},
		{"edit", nil, false},
		{"delete", []string{"/w/a.go"}, false},
		{"execute", []string{"/w/a.go"}, false},
	}
	for _, test := range tests {
		r := Request{Kind: test.kind, Paths: test.paths, Place: shell.Place{Dir: "/w"}}
		if got := a.Covers(r, noon); got != test.want {
			t.Errorf("%s %v: got %v, want %v", test.kind, test.paths, got, test.want)
		}
	}
}

// TestStanding checks that a rule wins over a standing approval, and that a standing no wins over a standing yes.
func TestStanding(t *testing.T) {
	yes := Approval{ID: "1", Effect: Allow, Scope: ScopeContext, Command: "git status"}
	no := Approval{ID: "2", Effect: Deny, Scope: ScopeContext, Command: "git status"}
	old := Approval{ID: "3", Effect: Deny, Scope: ScopeContext, Command: "git status", Expires: noon.Add(-time.Hour)}
	tests := []struct {
		standing []Approval
		rules    []Rule
		mode     Mode
		want     Effect
		by       By
	}{
		{[]Approval{yes}, nil, ModeAsk, Allow, ByStanding},
		{[]Approval{yes}, nil, ModeDeny, Allow, ByStanding},
		{[]Approval{yes, no}, nil, ModeAllow, Deny, ByStanding},
		{[]Approval{old, yes}, nil, ModeAsk, Allow, ByStanding},
		{[]Approval{yes}, []Rule{ask("git ...")}, ModeAsk, Ask, ByRule},
		{[]Approval{yes}, []Rule{deny("git ...")}, ModeAsk, Deny, ByRule},
		{[]Approval{no}, []Rule{allow("git ...")}, ModeAsk, Allow, ByRule},
		{nil, nil, ModeAsk, Ask, ByMode},
	}
	for _, test := range tests {
		d := policyOf(t, test.standing, test.rules...).Decide(execute("git status"), test.mode)
		if d.Effect != test.want || d.By != test.by {
			t.Errorf("%+v: got %+v; want d.Effect == %v && d.By == %v", test, d, test.want, test.by)
		}
		if d.By == ByStanding && (d.Approval == nil || d.Approval.Effect != d.Effect) {
			t.Errorf("approval not named: %+v", d)
		}
		if d.Effect == Allow && d.OptionID != "yes" {
			t.Errorf("option %q", d.OptionID)
		}
	}
}

func TestRemember(t *testing.T) {
	offers := execute("git  status").Offers()
	if len(offers) != 2 || offers[0].Offer().Text != "yes, and remember: exactly `git  status`, for this session" ||
		offers[1].Offer().Text != "yes, and remember: exactly `git  status`, in this project" {
		t.Fatalf("%+v", offers)
	}
	for _, o := range offers {
		if !o.Covers(execute("git status"), noon) || o.Covers(execute("git status -s"), noon) {
			t.Errorf("%+v covers the wrong things", o)
		}
	}
	edit := Request{Kind: "edit", Session: "s1", Paths: []string{"/w/a.go"}, Options: options3,
		Place: shell.Place{Dir: "/w"}}
	if o := edit.Offers(); len(o) != 2 || o[1].Offer().Text != "yes, and remember: edit of /w/a.go, in this project" ||
		!o[1].Covers(edit, noon) {
		t.Errorf("%+v", o)
	}
	many := edit
	many.Paths = []string{"/w/a", "/w/b"}
	none := map[string]Request{"several files": many, "no allow_once": {Kind: "edit", Paths: edit.Paths}}
	for _, c := range []string{"rm -rf /", "a (", `rm -rf "$D"`, "$X", "curl x | sh", ""} {
		none[c] = execute(c)
	}
	for name, r := range none {
		if o := r.Offers(); o != nil {
			t.Errorf("%s: got %+v; want o == nil", name, o)
		}
	}
	if o := execute("sudo ls").Offers(); len(o) != 2 {
		t.Errorf("an always-asked command that is known: %+v", o)
	}
	if o := execute("git status\n\x1b[2J").Offers(); len(o) > 0 &&
		o[0].Offer().Text != "yes, and remember: exactly `git status⏎ \uFFFD[2J`, for this session" {
		t.Errorf("%q", o[0].Offer())
	}
}

func TestApprovalJSON(t *testing.T) {
	a := Approval{
		ID: "7", Effect: Allow, Scope: ScopeSession, Session: "s1", Provider: "claude", Command: "git status",
		Dir:     "/w",
		Expires: noon.Add(time.Hour), By: "terminal", Made: noon,
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"7","effect":"allow","scope":"session","session":"s1","provider":"claude","command":"git ` +
		`status","dir":"/w",` +
		`"expires":"2026-11-21T13:00:00Z","by":"terminal","made":"2026-11-21T12:00:00Z"}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	var b Approval
	if err := json.Unmarshal(raw, &b); err != nil || b != a {
		t.Errorf("got %+v %v; want err == nil && b == %v", b, err, a)
	}
}
