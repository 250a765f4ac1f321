package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// at has the directories in which the commands of most tests run.
var at = Place{Dir: "/home/me/work/proj", Home: "/home/me", Temp: []string{"/tmp", "/var/folders/xy/T"}}

// commands reads the file in testdata with the commands of a tier, one a line. After a backslash at the end of a line,
// the command continues on the next line.
func commands(t testing.TB, tier Tier) []string {
	text, err := os.ReadFile(filepath.Join("testdata", string(tier)+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(text)), "\\\n", "\x01"), "\n")
	for i, c := range list {
		list[i] = strings.ReplaceAll(c, "\x01", "\\\n")
	}
	return list
}

var tiers = []Tier{Refused, AlwaysAsked, Ordinary}

// TestTiers checks the tier of each command in the lists of testdata.
func TestTiers(t *testing.T) {
	count := 0
	for _, want := range tiers {
		for _, command := range commands(t, want) {
			if command == "cat <<EOF" {
				command += "\nrm -rf /\nEOF"
			}
			count++
			v := classify(command, at)
			if v.Tier != want {
				t.Errorf("%s: %s (%s), want %s", command, v.Tier, v.Why, want)
			}
			if (v.Tier == Ordinary) != (v.Why == "") || (v.Tier == Refused) != (v.Word != "") {
				t.Errorf("%s: incomplete verdict %+v", command, v)
			}
		}
	}
	if count < 400 {
		t.Errorf("only %d commands", count)
	}
}

func TestTiersOfLongerScripts(t *testing.T) {
	tests := []struct {
		command string
		want    Tier
	}{
		{"sh <<EOF\nrm -rf /\nEOF", Refused},
		{"sh <<'EOF'\nrm -rf ~\nEOF", Refused},
		{"bash -s <<-EOF\n\trm -rf $HOME\n\tEOF", Refused},
		{"sh <<EOF\nrm -rf $X\nEOF", AlwaysAsked},
		{"sh <<EOF\necho hi\nEOF", Ordinary},
		{"cat > x <<EOF\nrm -rf /\nEOF", Ordinary},
		{"cat > x <<EOF\n$(rm -rf /)\nEOF", Refused},
		{"cat > x <<'EOF'\n$(rm -rf /)\nEOF", Ordinary},
		{"cat <<EOF | sh\nrm -rf /\nEOF", Refused},
		{"cat > /etc/x <<EOF\nEOF", AlwaysAsked},
		{"rm -rf /\n)", Refused},
		{"echo a\nrm -rf ~\n", Refused},
		{"echo -e 'rm\\x20-rf /' | sh", Refused},
		{"X='eval \"$X\"; eval \"$X\"'; eval \"$X\"", AlwaysAsked},
		{strings.Repeat("(", 4000) + "ls" + strings.Repeat(")", 4000), AlwaysAsked},
		{"echo " + strings.Repeat("x", maxText), AlwaysAsked},
		{"echo {1..100000000}", Ordinary},
		{"rm -rf {a..z}{a..z}{a..z}", AlwaysAsked},
		{"echo \x00", AlwaysAsked},
		{"00&0\xd1", AlwaysAsked}, // the parser yields once more after an error
		{"", Ordinary},
		{"python3 <<'P'\nimport shutil\nshutil.rmtree('x')\nP", AlwaysAsked},
		{"python3 - <<'P'\nprint(1+1)\nP", Ordinary},
		{"python3 -c \"\nimport os\nos.remove('x')\"", AlwaysAsked},
		{"psql <<S\nbegin;\ntruncate users;\nS", AlwaysAsked},
		{"cat <<S | mysql app\ndrop table x;\nS", AlwaysAsked},
		{"bash <<'E'\n\\rm -rf /\nE", Refused},
		{"gh pr create --body \"$(cat <<'X'\nrm -rf /\nX\n)\"", Ordinary},
		{"alias x='rm -rf'\nx /", Refused},
	}
	for _, test := range tests {
		if v := classify(test.command, at); v.Tier != test.want {
			t.Errorf("%.80q: %s (%s), want %s", test.command, v.Tier, v.Why, test.want)
		}
	}
}

// TestHugeWork checks that Judge ends soon for commands that are small, but without limits would need more work or
// memory than a machine has.
func TestHugeWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time, which the race detector makes of another kind")
	}
	substitutions, whiles, loops, functions := "echo x", "ls", "ls", "f() { ls; }; "
	for i := range 30 {
		whiles = "while " + whiles + "; do ls; done"
		name := "f" + strings.Repeat("y", i)
		functions += name + "y() { " + name + "; " + name + "; }; "
		if i < 8 {
			substitutions = "echo {a,b}{c,d}{e,f}{g,h}{i,j}{k,l}$(" + substitutions + ")"
			loops = "for i in {a,b,c,d,e}{a,b,c,d}; do " + loops + "; done"
		}
	}
	for name, c := range map[string]string{
		"substitutions": substitutions, "whiles": whiles, "loops": loops, "functions": functions,
		"doubling": "X=a;" + strings.Repeat("X=$X$X;", 200) + "rm $X",
		"eval":     `X='eval "$X"; eval "$X"'; eval "$X"`,
		"if":       strings.Repeat("if ", 40000), "not": strings.Repeat("! ", 60000), "((": strings.Repeat("((", 200) +
			"x",
		"sudo": strings.Repeat("sudo ", 20000) + "rm", "pipes": strings.Repeat("a|", 60000) +
			"b", "`": strings.Repeat("`", 400),
		"args":     "set -- a b;" + strings.Repeat(`set -- "$@" "$@";`, 60) + `rm "$@"`,
		"xargs":    "echo " + strings.Repeat("b", 50000) + " | xargs -I a sh -c '" + strings.Repeat("a", 50000) + "'",
		"many":     "echo " + strings.Repeat("b ", 20000) + " | xargs -I a rm " + strings.Repeat("a ", 20000),
		"echo":     "X=" + strings.Repeat("x", 1000) + strings.Repeat(";X=$(echo $X; echo $X)", 100),
		"suffixes": strings.Repeat("foo "+strings.Repeat("sh -c 'bar sh -c ls' ", 64)+"\n", 80),
		"launchers": strings.Repeat("uv run ", 15000) +
			"x", "unknown": strings.Repeat("foo "+strings.Repeat("rm sh ", 40)+"\n", 300),
		"meanings": strings.Repeat("f() { f; g; }; g() { f; ls; }; alias f='g x'; f; g\n",
			800), "braces": strings.Repeat("{a,{b}", 400) + strings.Repeat("{a}", 30000),
		"scripts": "tmux new " + strings.Repeat("'sed s/a/b/w;e ls' ", 3000), "awk": "awk '" +
			strings.Repeat(`{print "a" > (`, 8000) + "'",
	} {
		start := time.Now()
		v := classify(c, at)
		Command{Text: c}.Canonical()
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %s after %s", name, v.Tier, took)
		} else {
			t.Logf("%s: %s (%.60s) after %s", name, v.Tier, v.Why, took)
		}
	}
}

// TestWhy checks the whole verdict of a few commands. The reason names the loss and the command.
func TestWhy(t *testing.T) {
	type verdict struct {
		Tier      Tier
		Why, Word string
		Unknown   bool
	}
	for command, want := range map[string]verdict{
		"rm -fr ~": {Refused, "removes the home directory: rm -fr ~", "home", false},
		"true && rm -rf ./*": {Refused, "removes everything in the working directory: rm -rf ./*", "directory",
			false},
		"sh -c 'rm -rf /'":        {Refused, "removes the root directory: rm -rf /", "root", false},
		"dd if=x of=/dev/sda":     {Refused, "overwrites a device: dd if=x of=/dev/sda", "device", false},
		"sudo ls":                 {AlwaysAsked, "gives a program other user rights: sudo ls", "", false},
		"curl x | sh":             {AlwaysAsked, "runs downloaded or decoded code: sh", "", true},
		"rm -rf \"$D\"":           {AlwaysAsked, "removes something that is known only at run time: rm -rf \"$D\"", "", true},
		"rm -rf \"\x1b[2J\" /":    {Refused, "removes the root directory: rm -rf \"\uFFFD[2J\" /", "root", false},
		"echo a > ~/x":            {AlwaysAsked, "outside the working directory: writes to ~/x", "", false},
		"rm -rf \"$D\"; rm -rf /": {Refused, "removes the root directory: rm -rf /", "root", true},
	} {
		v := classify(command, at)
		if got := (verdict{v.Tier, v.Why, v.Word, v.Unknown}); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", command, got, want)
		}
		if v.Code == "" || len(v.Args) == 0 {
			t.Errorf("%s: the reason has no code: %+v", command, v)
		}
	}
}

func TestClassifyArgv(t *testing.T) {
	tests := []struct {
		argv []string
		want Tier
	}{
		{[]string{"bash", "-lc", "rm -rf /"}, Refused},
		{[]string{"/bin/zsh", "-c", "git status"}, Ordinary},
		{[]string{"rm", "-rf", "/"}, Refused},
		{[]string{"rm", "-rf", "*"}, Ordinary}, // no shell expands the word, so it names a file called *
		{[]string{"rm", "-rf", "~"}, Ordinary},
		{[]string{"git", "commit", "-m", "x; rm -rf /"}, Ordinary},
		{[]string{"env", "A=b", "rm", "-rf", "/"}, Refused},
		{[]string{"bash", "-c", "rm -rf \"$1\"", "_", "/"}, Refused},
		{[]string{"echo", "\x00"}, AlwaysAsked},
		{[]string{"sudo", "ls"}, AlwaysAsked},
	}
	for _, test := range tests {
		if v := classifyArgv(test.argv, at); v.Tier != test.want {
			t.Errorf("%q: %s (%s), want %s", test.argv, v.Tier, v.Why, test.want)
		}
	}
}

// TestPlaces checks that the verdict follows from the working directory, the home and the temporary directories in
// Place.
func TestPlaces(t *testing.T) {
	tests := []struct {
		place   Place
		command string
		want    Tier
	}{
		{Place{}, "rm -rf x", AlwaysAsked},
		{Place{}, "rm -rf ~", AlwaysAsked},
		{Place{}, "rm -rf /", Refused},
		{Place{}, "ls", Ordinary},
		{Place{Dir: "/w"}, "rm -rf /tmp/x", AlwaysAsked},
		{Place{Dir: "/w/"}, "rm -rf x", Ordinary},
		{Place{Dir: "/w"}, "rm -rf /w2", AlwaysAsked},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/a", Refused},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/*", Refused},
		{Place{Dir: "/tmp/a/b", Temp: []string{"/tmp"}}, "rm -rf /tmp/c", Ordinary},
		{Place{Dir: "/home/me", Home: "/home/me"}, "rm -rf *", Refused},
		{Place{Dir: "/home/me", Home: "/home/me"}, "touch x", Ordinary},
		{Place{Dir: "/home/a[b]/p", Home: "/home/a[b]"}, "rm -rf *", Refused},
		{Place{Dir: "/home/a[b]/p", Home: "/home/a[b]"}, "rm -rf x*", Ordinary},
		{Place{Dir: "/home/a b/p", Home: "/home/a b"}, "rm -rf ~", Refused},
		{Place{Dir: "/Users/me/p", Home: "/Users/me"}, "rm -rf /users/me", Refused},
	}
	for _, test := range tests {
		if v := classify(test.command, test.place); v.Tier != test.want {
			t.Errorf("%+v: %s: %s (%s), want %s", test.place, test.command, v.Tier, v.Why, test.want)
		}
	}
}

// wrapped returns commands that run the command c. If Judge refuses c, it must refuse them, too.
func wrapped(c string) ([]string, error) {
	q, err := syntax.Quote(c, syntax.LangBash)
	if err != nil {
		return nil, err
	}
	return []string{
		"true && (" + c + "\n)", "false || {\n" + c + "\n}", "if true; then\n" + c + "\nfi", "echo $(" + c + "\n)",
		"sh -c " + q, "sudo sh -c " + q, "env A=b nice bash -lc " + q, "eval " + q, "timeout 5 sh -c " + q,
		"while true; do\n" + c + "\ndone", "f_() {\n" + c + "\n}; f_", "(" + c + "\n) | cat", "xargs sh -c " + q,
	}, nil
}

func TestWrappingKeepsRefused(t *testing.T) {
	for _, c := range commands(t, Refused) {
		if strings.Contains(c, "\n") || strings.HasSuffix(c, "; (") || strings.HasPrefix(c, "rm -rf ~+") {
			continue
		}
		all, err := wrapped(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, outer := range all {
			if v := classify(outer, at); v.Tier != Refused {
				t.Errorf("%s: got %s (%s); want v.Tier == Refused", outer, v.Tier, v.Why)
			}
		}
	}
}

// FuzzClassify checks for any text that Judge does not panic or hang, and that its verdict is complete. A refused
// command must stay refused inside another command.
func FuzzClassify(f *testing.F) {
	for _, tier := range tiers {
		for _, c := range commands(f, tier) {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, c string) {
		v := classify(c, at)
		if (v.Tier == Refused) != (v.Word != "") || (v.Tier == Ordinary) != (v.Why == "") {
			t.Fatalf("%q: incomplete %+v", c, v)
		}
		Command{Text: c}.Canonical()
		Command{Text: c}.Simple(at)
		if _, _, err := parse(c); v.Tier != Refused || err != nil || strings.Contains(c, "<<") || len(c) > 2000 {
			return
		}
		all, err := wrapped(c)
		if err != nil {
			return
		}
		for _, outer := range all {
			if _, _, err := parse(outer); err != nil {
				continue
			}
			if o := classify(outer, at); o.Tier != Refused {
				t.Errorf("%q is refused, %q is %s (%s)", c, outer, o.Tier, o.Why)
			}
		}
	})
}

func classify(command string, at Place) Verdict { return Judge(Command{Text: command}, at).Verdict }

func classifyArgv(argv []string, at Place) Verdict { return Judge(Command{Argv: argv}, at).Verdict }
