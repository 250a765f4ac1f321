package policy

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/policy/shell"
)

var place = shell.Place{Dir: "/w/proj", Home: "/home/me", Temp: []string{"/tmp"},
	Own: []string{"/w/proj/.perlica_config"}}

// readInput reads a tool call of an agent for which ofAgent has no table.
func readInput(kind, raw string) Request {
	return ReadToolCall(ToolCall{Provider: "x", Kind: kind, RawInput: json.RawMessage(raw)}, place).Request
}

func lines(r Request) []string {
	var out []string
	for _, c := range r.Commands {
		out = append(out, c.String())
	}
	return out
}

func unread(r Request) (names []string) {
	for _, f := range r.Fields {
		if f.Role == Unread {
			names = append(names, f.Name)
		}
	}
	return names
}

// TestCommands checks the commands that ReadToolCall finds in an input, with arguments, variables and standard input.
// The title of this agent's calls is never a command.
func TestCommands(t *testing.T) {
	tests := []struct {
		raw, title, kind string
		want             []string
		ok               bool
	}{
		{`{"command":"git status"}`, "", "execute", []string{"git status"}, true},
		{`{"command":"git status"}`, "", "other", []string{"git status"}, true},
		{`{"command":["bash","-lc","git status"]}`, "", "execute", []string{"git status"}, true},
		{`{"command":["git","a b"]}`, "", "execute", []string{"git 'a b'"}, true},
		{`{"cmd":"ls"}`, "", "execute", []string{"ls"}, true},
		{`{"commands":["ls","pwd"]}`, "", "execute", []string{"ls", "pwd"}, true},
		{`{"commands":[{"command":"ls"},["a","b"]]}`, "", "execute", []string{"a b", "ls"}, true},
		{`{"command":"ls","commands":["pwd"]}`, "", "execute", []string{"ls", "pwd"}, true},
		{`{"command":"ls","command":"pwd"}`, "", "execute", []string{"ls", "pwd"}, true},
		{`{"command":"ls"}`, "`git status`", "execute", []string{"ls"}, true},
		{`{"command":7}`, "`ls`", "execute", nil, false},
		{`{"command":""}`, "`ls`", "execute", nil, false},
		{`{"command":[]}`, "`ls`", "execute", nil, false},
		{`{"command":["ls",null]}`, "", "execute", []string{"ls"}, false},
		{`{"commands":[]}`, "", "execute", nil, false},
		{`{"command":null}`, "`ls`", "execute", nil, false},
		{``, "`git status`", "execute", nil, false},
		{`{}`, "Run `git status`", "execute", nil, false},
		{`null`, "Running: `go test ./...`", "execute", nil, false},
		{`[1]`, "git status", "execute", nil, false},
		{``, "List the files", "execute", nil, false},
		{``, "`git status` and more", "execute", nil, false},
		{``, "`a` then `b`", "execute", nil, false},
		{``, "`rm -rf some…`", "execute", nil, false},
		{``, "`rm -rf some...`", "execute", nil, false},
		{``, "ls [current working directory /x] (desc)", "execute", nil, false},
		{``, "", "execute", nil, false},
		{`{"path":"x"}`, "`ls`", "read", nil, true},
		{``, "", "", nil, true},

		{`{"command":"bash","args":["-c","rm -rf /"]}`, "", "execute", []string{"rm -rf /"}, true},
		{`{"program":"rm","arguments":["-rf","/"]}`, "", "other", []string{"rm -rf /"}, true},
		{`{"command":"rm","args":"-rf /"}`, "", "execute", []string{"rm -rf /"}, true},
		{`{"args":["-rf","/"],"command":"rm"}`, "", "execute", []string{"rm -rf /"}, true},
		{`{"command":"git -C x","args":["status"]}`, "", "execute", []string{"git -C x status"}, true},
		{`{"argv":["rm","-rf","/"]}`, "", "execute", []string{"rm -rf /"}, true},
		{`{"input":{"command":"sudo rm"}}`, "", "other", []string{"sudo rm"}, true},
		{`{"a":{"b":[{"Shell_Command":"ls"}]}}`, "", "other", []string{"ls"}, true},
		{`{"script":"rm -rf /"}`, "", "execute", []string{"rm -rf /"}, true},
		{`{"command":"bash","stdin":"rm -rf /"}`, "", "execute", []string{"bash <<'INPUT'\nrm -rf /\nINPUT"}, true},
		{`{"command":"make","env":{"PATH":"/x"}}`, "", "execute", []string{"export PATH=/x; make"}, true},
		{`{"command":"make","env":["A=b c"]}`, "", "execute", []string{"export A='b c'; make"}, true},
		{`{"args":["-rf","/"]}`, "", "execute", nil, false},
		{`"ls -la"`, "", "execute", []string{"ls -la"}, true},
	}
	for _, test := range tests {
		r := ReadToolCall(ToolCall{Provider: "x", Kind: test.kind, Title: test.title,
			RawInput: json.RawMessage(test.raw)}, place).Request
		ok := len(unread(r)) == 0 && (len(r.Commands) > 0 || !r.HasCommand && r.Kind != "execute")
		if got := lines(r); ok != test.ok || !slices.Equal(got, test.want) {
			t.Errorf("%s %q: %q %v, want %q", test.raw, test.title, got, ok, test.want)
		}
	}
}

// TestWhereCommandsStart checks that ReadToolCall finds the starting directory of a command under each of its names.
// Two different directories make the call unreadable.
func TestWhereCommandsStart(t *testing.T) {
	for _, raw := range []string{
		`{"command":"ls","cwd":"/x"}`, `{"workdir":"/x","command":"ls"}`, `{"command":"ls","chdir":"/x"}`,
		`{"command":"ls","working_directory":"file:///x"}`, `{"options":{"cwd":"/x"},"command":"ls"}`,
		`{"cwd":"/x","input":{"command":"ls"}}`, `{"cwd":"/x","steps":[{"command":"ls"}]}`,
	} {
		r := readInput("execute", raw)
		if len(r.Commands) != 1 || r.Commands[0].Dir != "/x" || !slices.Contains(r.Paths, "/x") || len(unread(r)) > 0 {
			t.Errorf("%s: %+v", raw, r)
		}
	}
	if r := readInput("execute", `{"command":"ls","cwd":"/x","workdir":"/y"}`); len(unread(r)) == 0 {
		t.Errorf("got %+v; want len(unread(r)) != 0", r)
	}
	if r := readInput("execute", `{"command":"ls","cwd":"~"}`); r.Commands[0].Dir != "/home/me" {
		t.Errorf(`got %+v; want r.Commands[0].Dir == "/home/me"`, r)
	}
}

// TestPaths checks that ReadToolCall adds the path of every field that names a file, also for paths outside the working
// directory.
func TestPaths(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"path":"a.go"}`:                             {"/w/proj/a.go"},
		`{"filePath":"/etc/passwd"}`:                  {"/etc/passwd"},
		`{"FILE_PATH":"../x"}`:                        {"/w/x"},
		`{"file-path":"~/.bashrc"}`:                   {"/home/me/.bashrc"},
		`{"paths":["a","/b"]}`:                        {"/w/proj/a", "/b"},
		`{"files":[{"path":"a"},{"file_path":"/b"}]}`: {"/w/proj/a", "/b"},
		`{"source":"a","destination":"/etc/x"}`:       {"/w/proj/a", "/etc/x"},
		`{"from":"a","to":"b"}`:                       {"/w/proj/a", "/w/proj/b"},
		`{"url":"file:///etc/passwd"}`:                {"/etc/passwd"},
		`{"uri":"file:/etc/passwd"}`:                  {"/etc/passwd"},
		`{"path":"file://localhost/etc/pass%77d"}`:    {"/etc/passwd"},
		`{"anything":"/etc/passwd"}`:                  {"/etc/passwd"},
		`{"anything":"file:///etc/passwd"}`:           {"/etc/passwd"},
		`{"changes":{"/etc/x":{"type":"add"}}}`:       {"/etc/x"},
		`{"patch":"*** Begin Patch\n*** Delete File: /etc/passwd\n*** End Patch"}`:                                {"/etc/passwd"},
		`{"input":"*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n@@\n-x\n+y"}`:                          {"/w/proj/a", "/w/b"},
		`"*** Begin Patch\n*** Add File: /etc/cron.d/x\n+y\n*** End Patch"`:                                       {"/etc/cron.d/x"},
		`{"diff":"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- /no\n+++ /neither\n y\n--- /dev/null\n+++ b/../../n\n"}`: {"/w/proj/x", "/n"},
		`{"diff":"diff --git a/w/proj/n b/w/proj/n\n--- a/dev/null\n+++ b/w/proj/n\n@@ -1,0 +1,1 ` +
			`@@\n+x","fileName":"/w/proj/n"}`: {"/w/proj/n"},
		// No other field shows that the path in the patch is absolute.
		`{"diff":"--- a/w/proj/n\n+++ b/w/proj/n\n@@ -1 +1 @@\n-x\n+y"}`:                       {"/w/proj/w/proj/n"},
		`{"diff":"--- a/../../etc/x\n+++ b/../../etc/x\n@@ -1 +1 @@\n-x\n+y","path":"/etc/x"}`: {"/etc/x", "/etc/x"},
		`{"diff":"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-x\n+y","path":"/.env"}`: {"/.env",
			"/w/proj/.env"},
		`{"diff":"--- i/.env\n+++ w/.env\n@@ -1 +1 @@\n-x\n+y"}`: {"/w/proj/.env",
			"/w/proj/i/.env", "/w/proj/w/.env"},
		`{"diff":"diff --git a/x b/../y\nrename from x\nrename to ../y"}`: {"/w/proj/x", "/w/y"},
	} {
		if r := readInput("edit", raw); !slices.Equal(cleaned(r.Paths), want) {
			t.Errorf("%s: %q, want %q", raw, r.Paths, want)
		}
	}
	for raw, want := range map[string][]string{
		`{"pattern":"../../**"}`:              {"/"},
		`{"pattern":"/etc/*","path":"."}`:     {"/etc", "/w/proj"},
		`{"glob":"~/.ssh/*","path":"."}`:      {"/home/me/.ssh", "/w/proj"},
		`{"path":"/"}`:                        {"/"},
		`{"pattern":"src/**/*.go","path":""}`: nil,
		`{"pattern":"x/*/../../../y"}`:        {"/"},
	} {
		got := cleaned(readInput("search", raw).Paths)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func cleaned(paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, filepath.Clean(p))
	}
	return out
}

// TestRoles checks values of a field that no table knows. A number or a plain word leaves the request readable. Any
// other value makes it unreadable.
func TestRoles(t *testing.T) {
	for value, ok := range map[string]bool{
		`7`: true, `true`: true, `"fast"`: true, `"HEAD"`: true, `null`: true, `""`: true, `[1,"a"]`: true,
		`{"deep":[{"x":1}]}`: true,
		`"rm"`:               false, `"bash"`: false, `"two words"`: false, `"a/b"`: false, `"a.txt"`: false, `"~"`: false,
		`"$X"`:      false,
		`"--force"`: false, `["a","b c"]`: false, `{"x":"y z"}`: false, `"a;b"`: false,
		`"` + strings.Repeat("x", 100) + `"`: false, `"a\u200bb"`: false,
	} {
		r := readInput("execute", `{"command":"ls","invented":`+value+`}`)
		if got := len(unread(r)) == 0; got != ok || len(r.Commands) != 1 {
			t.Errorf("%s: got %+v; want got == %v && len(r.Commands) == 1", value, r.Fields, ok)
		}
		if value != `null` && len(r.Fields) == 0 {
			t.Errorf("%s is not shown", value)
		}
	}
	r := readInput("execute", `{"command":"ls","description":"rm -rf / please","timeout":"9 s","Tool_Call_Id":"a b"}`)
	for _, f := range r.Fields {
		if f.Role != Inert {
			t.Errorf("got %+v; want f.Role == Inert", f)
		}
	}
	if len(r.Fields) != 3 {
		t.Errorf("got %+v; want len(r.Fields) == 3", r.Fields)
	}
	deep := strings.Repeat(`{"a":`, 40) + `"rm -rf /"` + strings.Repeat(`}`, 40)
	if r := readInput("other", deep); len(unread(r)) == 0 {
		t.Error("what is too deep to be read is passed over")
	}
	wide := `{"a":[` + strings.Repeat("1,", 3000) + `"rm -rf /"]}`
	if r := readInput("other", wide); len(unread(r)) == 0 {
		t.Error("what is too much to be read is passed over")
	}
}

// TestTitles checks that ReadToolCall takes a title as the command only for some agents. For other agents the title is
// only a guess.
func TestTitles(t *testing.T) {
	for _, test := range []struct{ title, text, want, dir string }{
		{"ls -la", "", "ls -la", ""},
		{"ls -la", "[in sub] (List)", "ls -la", "/w/proj/sub"},
		{"ls -la", "[current working directory /w/proj] (List) [background]", "ls -la", "/w/proj"},
		{"ls -la [in sub] (List)", "", "ls -la", "/w/proj/sub"},
		{"ls -la [current working directory /w/proj] (List) [background]", "", "ls -la", "/w/proj"},
		{"rm -rf a [in / ]", "[in sub]", "rm -rf a [in / ]", "/w/proj/sub"},
		{"rm -rf a [in / ] [in sub]", "", "", ""},
		{"rm -rf a [in x] && rm b", "", "", ""},
		{"ls…", "", "", ""},
	} {
		c := ToolCall{Provider: "gemini", Kind: "execute", Title: test.title}
		if test.text != "" {
			c.Text = []string{test.text}
		}
		r := ReadToolCall(c, place).Request
		got, dir := "", ""
		if len(r.Commands) == 1 {
			got, dir = r.Commands[0].String(), r.Commands[0].Dir
		}
		if got != test.want || dir != test.dir {
			t.Errorf("%q %q: got %q in %q; want got == %v && dir == %v", test.title, test.text, got, dir, test.want, test.dir)
		}
		c.Provider = "x"
		if r := ReadToolCall(c, place).Request; len(r.Commands) > 0 || len(r.Guesses) == 0 {
			t.Errorf("%q is trusted: %+v", test.title, r)
		}
	}
}
