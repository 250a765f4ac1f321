package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/policy/shell"
)

// entries reads the command lines of a file in testdata. A row that begins with two tabs continues the command of the
// row before.
func entries(t testing.TB, name string) []string {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for row := range strings.SplitSeq(string(text), "\n") {
		if more, ok := strings.CutPrefix(row, "\t\t"); ok && len(list) > 0 {
			list[len(list)-1] += "\n" + more
		} else if row != "" && !strings.HasPrefix(row, "#") {
			list = append(list, row)
		}
	}
	return list
}

// TestEveryday checks that the mode allow asks about at most 3 % of the everyday commands.
func TestEveryday(t *testing.T) {
	lines, asked := entries(t, "everyday.txt"), 0
	for _, command := range lines {
		if v := shell.Judge(shell.Command{Text: command}, at).Verdict; v.Tier != shell.Ordinary {
			asked++
			t.Logf("%s (%s): %s", v.Tier, v.Why, command)
		}
	}
	t.Logf("%d of %d everyday commands are asked about", asked, len(lines))
	if asked*100 > 3*len(lines) || len(lines) < 500 {
		t.Errorf("%d of %d everyday commands are asked about, want at most 3 %% of 500 or more", asked, len(lines))
	}
}

// TestHostile checks disguised commands. No command that must be refused may get the tier Ordinary. At most 1 % of
// the commands that need a question may get it.
func TestHostile(t *testing.T) {
	count, ordinary := map[string]int{}, map[string]int{}
	for _, entry := range entries(t, "hostile.txt") {
		kind, command, ok := strings.Cut(entry, "\t")
		if !ok || kind != "refused" && kind != "asked" {
			t.Fatalf("testdata/hostile.txt: want a kind and a command: %q", entry)
		}
		count[kind]++
		if v := shell.Judge(shell.Command{Text: command}, at).Verdict; v.Tier == shell.Ordinary {
			ordinary[kind]++
			t.Logf("%s, but ordinary: %s", kind, command)
		}
	}
	t.Logf("ordinary are %d of %d refused commands and %d of %d asked ones",
		ordinary["refused"], count["refused"], ordinary["asked"], count["asked"])
	if count["refused"] < 150 || count["asked"] < 300 {
		t.Errorf("the list has become small: %v", count)
	}
	if ordinary["refused"] > 0 || ordinary["asked"]*100 > count["asked"] {
		t.Errorf("%d of %d refused commands and %d of %d asked ones are ordinary, want none and at most 1 %%",
			ordinary["refused"], count["refused"], ordinary["asked"], count["asked"])
	}
}
