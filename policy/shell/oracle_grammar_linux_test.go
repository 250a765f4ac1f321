package shell

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// grammar generates random commands that destroy or write something, in spellings that hide the effect. Each seed and
// number determines one command.
type grammar struct {
	*rand.Rand
	rows  map[string][]string // rows of testdata/oracle.txt, by section
	setup []string            // assignments for the words generated so far
	names int                 // number of variables so far
}

// sections reads testdata/oracle.txt.
func sections(t *testing.T) map[string][]string {
	text, err := os.ReadFile(filepath.Join("testdata", "oracle.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows, section := map[string][]string{}, ""
	for row := range strings.Lines(string(text)) {
		row = strings.TrimSuffix(row, "\n")
		if name, ok := strings.CutPrefix(row, "== "); ok {
			section = name
		} else if row != "" && section != "" {
			rows[section] = append(rows[section], row)
		}
	}
	return rows
}

// command returns the command with the number n for a seed.
func command(rows map[string][]string, seed, n uint64) string {
	g := &grammar{Rand: rand.New(rand.NewPCG(seed, n)), rows: rows}
	script := g.dangerous()
	if len(g.setup) > 0 {
		script = strings.Join(g.setup, g.pickOne("; ", "\n")) + g.pickOne("; ", "\n", " && ") + script
	}
	for range g.IntN(3) {
		script = g.wrapScript(script)
	}
	return script
}

func (g *grammar) pickOne(of ...string) string { return of[g.IntN(len(of))] }

func (g *grammar) variable() string {
	g.names++
	return fmt.Sprintf("%s%d", g.pickOne("X", "dir", "_v", "A"), g.names)
}

// single writes any text in '…' for bash. The functions double and ansi write it in "…" and in $'…'.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func double(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
}

func ansi(s string, g *grammar) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case g.IntN(3) == 0:
			fmt.Fprintf(&b, g.pickOne(`\x%02x`, `\%03o`, `\u%04x`), c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

func (g *grammar) quoteText(s string) string {
	switch g.IntN(4) {
	case 0:
		return ansi(s, g)
	case 1:
		return double(s)
	default:
		return single(s)
	}
}

// word returns a random spelling of s as one word of a command. s has no special characters.
func (g *grammar) word(s string) string {
	i := g.IntN(len(s) + 1)
	a, b := s[:i], s[i:]
	switch g.IntN(16) {
	case 0:
		return g.quoteText(s)
	case 1:
		return a + g.quoteText(b)
	case 2:
		return g.quoteText(a) + b
	case 3:
		return a + g.pickOne("''", `""`, "${NOPE}", "$NOPE", "$()", "``", `"$@"`) + b
	case 4:
		return `\` + s
	case 5:
		return "$(" + g.pickOne("echo", "printf %s") + " " + g.quoteText(s) + ")"
	case 6:
		x := g.variable()
		g.setup = append(g.setup, x+"="+g.quoteText(s))
		return g.pickOne("$"+x, "${"+x+"}", `"$`+x+`"`, "${"+x+":-y}", "${"+x+"%zz}", "${"+x+"/zz/y}", "${"+x+
			"@Q}", "${NOPE:-$"+x+"}", "${"+x+"[0]}")
	case 7:
		x := g.variable()
		g.setup = append(g.setup, g.pickOne("declare ", "export ", "readonly ", "typeset ")+x+"="+g.quoteText(a), x+
			"+="+g.quoteText(b))
		return "$" + x
	case 8:
		x, y := g.variable(), g.variable()
		g.setup = append(g.setup, x+"="+g.quoteText(s), y+"="+x)
		return "${!" + y + "}"
	case 9:
		x := g.variable()
		g.setup = append(g.setup, g.assigned(x, s))
		return `"$` + x + `"`
	case 10:
		x := g.variable()
		g.setup = append(g.setup, x+"="+g.quoteText("z"+s+"z"))
		return fmt.Sprintf(g.pickOne("${%[1]s:1:%[2]d}", "${%[1]s:1:-1}", "${%[1]s//z/}"), x, len(s))
	case 11:
		return "{" + s + ",}"
	default:
		return s
	}
}

// assigned returns a random command that sets the variable x to s.
func (g *grammar) assigned(x, s string) string {
	return fmt.Sprintf(g.pickOne("read -r %s <<< %s", "printf -v %s %%s %s", "mapfile -t %s <<< %s",
		"for %s in %s; do :; done",
		"%s=(%s)", "local %s=%s 2>/dev/null || read -r "+x+" <<< "+
			single(s), "IFS= read -r %s < <(echo %s)", "eval %s=%s", "let z=1 %s=0; "+x+"=%s"), x, single(s))
}

// one returns a random row of a section in testdata/oracle.txt. The parameter "fill" has pairs of a placeholder and its
// text.
func (g *grammar) one(section string, fill ...string) string {
	rows := g.rows[section]
	return strings.NewReplacer(append(fill, "⏎", "\n")...).Replace(rows[g.IntN(len(rows))])
}

// place returns a random spelling of a directory or a file outside the working directory.
func (g *grammar) place(section string) string {
	if g.IntN(3) == 0 {
		return g.word(g.one(section))
	}
	return g.one(section + " in the words of a shell")
}

// dangerous returns a random command that removes or overwrites something outside the working directory.
func (g *grammar) dangerous() string {
	dir, file := g.place("dirs"), g.place("files")
	switch g.IntN(9) {
	case 0, 1, 2:
		return g.launchCommand(g.removeCommand(dir))
	case 3:
		return g.one("after cd", "«cd»", g.one("cd"), "«what»", g.one("what after cd"))
	case 4:
		return g.one("remove what is named elsewhere", "«rm»", g.one("rm"), "«dir»", dir)
	case 5:
		return g.one("redirect", "«file»", file)
	default:
		return g.launchCommand(g.one("write", "«file»", file))
	}
}

func (g *grammar) removeCommand(dir string) string {
	switch g.IntN(12) {
	case 0:
		return g.word("find") + " " + dir + " " + g.one("find")
	case 1:
		return g.word("mv") + " " + dir + " /tmp/" + g.pickOne("", "gone")
	case 2:
		return g.word("chmod") + " -R " + g.pickOne("000", "a-w", "-w", "u=") + " " + dir
	default:
		return g.word("rm") + " " + g.one("rm options") + " " + dir
	}
}

// launchCommand returns a simple command as it is, or in a random program that runs it, such as env.
func (g *grammar) launchCommand(simple string) string {
	if g.IntN(3) == 0 {
		return simple
	}
	return g.one("launch", "«simple»", simple)
}

// wrapScript puts a script into a random construct that runs it, such as a loop or sh -c.
func (g *grammar) wrapScript(script string) string {
	return g.one(g.pickOne("compound", "run"), "«script»", script, "«quoted»", g.quoteText(script),
		"«base64»", base64.StdEncoding.EncodeToString([]byte(script)))
}
