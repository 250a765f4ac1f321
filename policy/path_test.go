package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/policy/shell"
)

// project returns a working directory with links that lead out of it and into it. The function in the second result
// adds the root to a path.
func project(t *testing.T) (shell.Place, func(string) string) {
	t.Helper()
	root := t.TempDir()
	for _, d := range []string{"home/proj/src", "home/other", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"home/proj/out": "../other", "home/proj/dangling": "../other/new", "home/other/in": "../proj/src",
		"home/proj/loop": "loop", "alias": "home/proj",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "home/proj/a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := shell.Place{Dir: filepath.Join(root, "home/proj"), Home: filepath.Join(root, "home"),
		Temp: []string{filepath.Join(root, "tmp")}}
	return p, func(s string) string { return filepath.Join(root, s) }
}

// TestReads checks that the mode reads allows only a read or a search of files inside the working directory, after all
// links.
func TestReads(t *testing.T) {
	place, in := project(t)
	aliased := place
	aliased.Dir = in("alias")
	tests := []struct {
		kind    string
		place   shell.Place
		command string
		paths   []string
		want    Effect
	}{
		{"read", place, "", []string{in("home/proj/a.go")}, Allow},
		{"read", place, "", []string{in("home/proj")}, Allow},
		{"search", place, "", []string{in("home/proj/a.go"), in("home/proj/src")}, Allow},
		{"read", place, "", []string{in("home/proj/not/yet")}, Allow},
		{"read", place, "", []string{in("home/other/in/x")}, Allow},
		{"read", aliased, "", []string{in("home/proj/a.go")}, Allow},
		{"read", place, "", []string{in("alias/a.go")}, Allow},
		{"read", place, "", nil, Ask},
		{"read", place, "", []string{"a.go"}, Ask},
		{"read", place, "", []string{in("home/proj/a.go"), in("home/other/x")}, Ask},
		{"read", place, "", []string{in("home/proj") + "/../other/x"}, Ask},
		{"read", place, "", []string{in("home/projx")}, Ask},
		{"read", place, "", []string{in("home/proj/out/x")}, Ask},
		{"read", place, "", []string{in("home/proj/dangling")}, Ask},
		{"read", place, "", []string{in("home/proj/loop")}, Ask},
		{"read", place, "", []string{in("tmp/x")}, Ask},
		{"read", place, "cat a.go", []string{in("home/proj/a.go")}, Ask},
		{"edit", place, "", []string{in("home/proj/a.go")}, Ask},
		{"fetch", place, "", []string{in("home/proj/a.go")}, Ask},
		{"", place, "", []string{in("home/proj/a.go")}, Ask},
		{"read", shell.Place{}, "", []string{in("home/proj/a.go")}, Ask},
	}
	for _, test := range tests {
		r := Request{Kind: test.kind, Place: test.place, Paths: test.paths, Options: options3}
		if test.command != "" {
			r.Commands, r.HasCommand = []shell.Command{{Text: test.command}}, true
		}
		if d := policyOf(t, nil).Decide(r, ModeReads); d.Effect != test.want {
			t.Errorf("%s %v %q: %+v, want %s", test.kind, test.paths, test.command, d, test.want)
		}
	}
}

// TestPathRules checks which paths a rule with a path matches. An allow rule compares the target of a link, and it must
// match every path of a request with at least one path.
func TestPathRules(t *testing.T) {
	place, in := project(t)
	tests := []struct {
		effect Effect
		path   string
		paths  []string
		match  bool
	}{
		{Allow, "inside", []string{in("home/proj/a.go")}, true},
		{Allow, "inside", []string{in("home/proj/a.go"), in("home/other/x")}, false},
		{Allow, "inside", []string{in("home/proj/out/x")}, false},
		{Allow, "inside", nil, false},
		{Allow, "outside", []string{in("home/other/x")}, true},
		{Allow, "outside", []string{in("home/proj/a.go")}, false},
		{Allow, "outside", []string{in("home/proj/loop")}, false},
		{Allow, "src/**", []string{in("home/proj/src/a/b.go")}, true},
		{Allow, "src/**", []string{in("home/other/in/b.go")}, true},
		{Allow, "src/**", []string{in("home/proj/a.go")}, false},
		{Allow, "*.go", []string{in("home/proj/a.go")}, true},
		{Allow, "*.go", []string{in("home/proj/src/a.go")}, false},
		{Allow, "**/*.go", []string{in("home/proj/src/a.go")}, true},
		{Allow, "**", []string{in("home/proj/out/a.go")}, false},
		{Allow, "out/**", []string{in("home/other/a.go")}, true},
		{Allow, "~/other/*", []string{in("home/other/a")}, true},
		{Allow, "~/other/*", []string{in("home/proj/a")}, false},
		{Allow, "~/**", []string{in("home/other/a/b")}, true},
		{Allow, "a.go", []string{in("home/proj/a.go")}, true},
		{Allow, in("home/other/*"), []string{in("home/proj/out/q")}, true},
		{Allow, in("home/other/*"), []string{in("home/other/../proj/q")}, false},
		{Deny, "**/.env", []string{in("home/proj/src/.env")}, true},
		{Deny, "**/.env", []string{in("home/proj/a.go"), in("home/proj/.env")}, true},
		{Deny, "out/**", []string{in("home/proj/out/x")}, true},
		{Deny, "outside", []string{in("home/proj/a.go"), in("home/other/x")}, true},
		{Deny, "outside", []string{in("home/proj/out/x")}, true},
		{Deny, "outside", []string{in("home/proj/loop")}, true},
		{Deny, "outside", nil, false},
		{Deny, "inside", []string{in("home/proj/out/x")}, true},
		{Ask, "~/.ssh/**", []string{in("home/.ssh/id")}, true},
	}
	for _, test := range tests {
		mode := ModeAsk
		if test.effect == Ask {
			mode = ModeAllow
		}
		r := Request{Kind: "read", Place: place, Paths: test.paths, Options: options3}
		d := policyOf(t, nil, Rule{Effect: test.effect, Path: test.path}).Decide(r, mode)
		if (d.By == ByRule) != test.match || (test.match && d.Effect != test.effect) {
			t.Errorf("%s %s %v: %+v, want match %v", test.effect, test.path, test.paths, d, test.match)
		}
	}
}

// TestPathTiers checks that the mode allow changes files only in the working directory and the temporary directories.
func TestPathTiers(t *testing.T) {
	place, in := project(t)
	edits := Rule{Effect: Allow, Kind: []string{"edit"}}
	named := Rule{Effect: Allow, Kind: []string{"edit"}, Path: "outside"}
	tests := []struct {
		kind  string
		path  string
		rules []Rule
		want  Effect
	}{
		{"edit", in("home/proj/a.go"), nil, Allow},
		{"edit", in("tmp/x"), nil, Allow},
		{"edit", in("home/other/x"), nil, Ask},
		{"edit", in("home/proj/out/x"), nil, Ask},
		{"edit", in("home/proj/dangling"), nil, Ask},
		{"edit", in("home/proj/loop"), nil, Ask},
		{"edit", in("home/other/x"), []Rule{edits}, Ask},
		{"edit", in("home/other/x"), []Rule{named}, Allow},
		{"delete", in("home/proj/a.go"), nil, Allow},
		{"delete", in("home/proj"), nil, Deny},
		{"delete", in("home"), []Rule{{Effect: Allow}}, Deny},
		{"delete", "/", nil, Deny},
		{"move", in("alias"), nil, Deny},
		{"read", in("home/other/x"), nil, Allow},
	}
	for _, test := range tests {
		r := Request{Kind: test.kind, Place: place, Paths: []string{test.path}, Options: options3}
		if d := policyOf(t, nil, test.rules...).Decide(r, ModeAllow); d.Effect != test.want {
			t.Errorf("%s %s %v: %+v, want %s", test.kind, test.path, test.rules, d, test.want)
		}
	}
}
