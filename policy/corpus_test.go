package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/policy/shell"
)

// line is one command in the corpus, with the tier that shell.Judge should give it.
type line struct {
	command string
	tier    shell.Tier
	beyond  bool // the command writes or destroys outside the working directory and the temporary directories
}

// corpus reads testdata/corpus.txt. That file describes its format.
func corpus(t testing.TB) []line {
	text, err := os.ReadFile(filepath.Join("testdata", "corpus.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	for i, row := range strings.Split(string(text), "\n") {
		if more, ok := strings.CutPrefix(row, "\t\t"); ok && len(lines) > 0 {
			lines[len(lines)-1].command += "\n" + more
			continue
		}
		if row == "" || strings.HasPrefix(row, "#") {
			continue
		}
		fields := strings.SplitN(row, "\t", 3)
		if len(fields) != 3 || !shell.Tier(fields[0]).Above(shell.Ordinary) &&
			shell.Tier(fields[0]) != shell.Ordinary ||
			fields[1] != "inside" && fields[1] != "beyond" || fields[2] == "" {
			t.Fatalf("testdata/corpus.txt, row %d: want tier, place and command: %q", i+1, row)
		}
		lines = append(lines, line{command: fields[2], tier: shell.Tier(fields[0]), beyond: fields[1] == "beyond"})
	}
	return lines
}

// TestCorpus checks that the mode allow asks about at most 1 % of the everyday commands in the corpus. It also checks
// that no command of the corpus gets a milder tier than expected.
func TestCorpus(t *testing.T) {
	p := policyOf(t, nil)
	count := map[shell.Tier]int{}
	inside, asked := 0, 0
	seen := map[string]bool{}
	for _, l := range corpus(t) {
		if seen[l.command] {
			t.Errorf("twice in the corpus: %s", l.command)
		}
		seen[l.command] = true
		count[l.tier]++
		v := shell.Judge(shell.Command{Text: l.command}, at).Verdict
		allowed := p.Decide(execute(l.command), ModeAllow).Effect == Allow
		switch {
		case l.tier != shell.Ordinary:
			if l.tier.Above(v.Tier) || allowed {
				t.Errorf("too mild: %s, should be %s: %s", v.Tier, l.tier, l.command)
			}
		case v.Tier == shell.Refused:
			t.Errorf("an everyday command is refused (%s): %s", v.Why, l.command)
		case l.beyond:
		default:
			inside++
			if !allowed {
				asked++
				t.Logf("asked needlessly (%s): %s", v.Why, l.command)
			}
		}
	}
	t.Logf("%d of %d everyday commands are asked about", asked, inside)
	if asked*100 > inside {
		t.Errorf("%d of %d everyday commands are asked about, more than 1 %%", asked, inside)
	}
	if len(seen) < 1000 || inside < 850 || count[shell.AlwaysAsked] < 100 || count[shell.Refused] < 40 {
		t.Errorf("the corpus has become small: %v, %d ordinary ones inside", count, inside)
	}
}
