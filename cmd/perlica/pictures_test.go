//go:build linux

package main

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

var pictures = flag.String("pictures", "", "write the pictures of docs/tutorial.md into this folder")

// TestPictures draws the terminal at each step of docs/tutorial.md. If PERLICA_REAL_AGENT is set, Claude Code
// answers, as for TestRealAgents. Otherwise the built-in agent answers.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no folder for pictures: see make pictures")
	}
	folder, err := filepath.Abs(*pictures)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	provider, input := "predictable", `@ask edit "Write greeting.txt" path=greeting.txt new=Hello`
	if real := os.Getenv("PERLICA_REAL_AGENT"); real != "" {
		provider, input = "claude", "WRITE greeting.txt Hello"
		argv := append(strings.Fields(real), "exec", provider, w.project)
		w.config(fmt.Sprintf("[providers.claude]\nadapter.command = %q\nadapter.args = [\"%s\"]\n", argv[0],
			strings.Join(argv[1:], `", "`)))
	}
	var step picture
	typed := func(args ...string) *terminal {
		step = append(step, "$ perlica "+shown(args)+"\r\n")
		return w.terminalOf(columns, 50, nil, args...)
	}

	s := typed("run", "--provider", provider, "--input-id", "greeting-1", input)
	s.ask("asks: ")
	step.draw(t, w, filepath.Join(folder, "question.svg"), s.text())
	question := regexp.MustCompile(`pending show (\w+)`).FindStringSubmatch(sgr.ReplaceAllString(s.text(), ""))[1]
	s.press("y")
	s.exits(0)
	step.draw(t, w, filepath.Join(folder, "answer.svg"), s.text())

	step = nil
	s = typed("log", "prove", question, "-o", "question.proof")
	s.exits(0)
	step = append(step, s.text())
	s = typed("log", "verify", "--proof", "question.proof")
	s.exits(0)
	step.draw(t, w, filepath.Join(folder, "proof.svg"), strings.Join(strings.SplitAfterN(s.text(), "\n", 6)[:5], "")+"…")
	step = nil
	s = typed("log", "show", "greeting-1")
	s.exits(0)
	step.draw(t, w, filepath.Join(folder, "record.svg"), s.text())
	w.audit()
}

// shown returns arguments as a person would type them in a shell.
func shown(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, " ") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// picture is the output of a terminal so far.
type picture []string

// columns is the width of the terminal in the pictures.
const columns = 110

// draw writes a picture to a file. It shows the output so far and the present output.
func (p picture) draw(t *testing.T, w *world, file, present string) {
	t.Helper()
	screen := screentest.New(columns, 1000)
	text := strings.ReplaceAll(strings.Join(p, "")+present, w.project, "/home/ana/shop")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"%s asks (run)", "(%s, terminal)", "%s answers from", ", by %s"} {
		text = strings.ReplaceAll(text, fmt.Sprintf(words, me.Username), fmt.Sprintf(words, "ana"))
	}
	_, _ = screen.Write([]byte(text)) // Write of this screen never fails.
	rows := screen.Cells()
	for len(rows) > 0 && len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	const wide, high, margin = 8.43, 19, 16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d"
  font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">
<rect width="100%%" height="100%%" rx="8" fill="#1b1d23"/>
`, wide*columns+2*margin, high*len(rows)+2*margin)
	for i, row := range rows {
		for from := 0; from < len(row); {
			to, words := from, ""
			for ; to < len(row) && row[to].Look == row[from].Look; to++ {
				words += row[to].Text
			}
			if strings.TrimSpace(words) != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" xml:space="preserve"%s>%s</text>`+"\n",
					margin+wide*float64(from), margin+high*i+14, style(row[from].Look), html.EscapeString(words))
			}
			from = to
		}
	}
	b.WriteString("</svg>\n")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// style returns the attributes of SVG for a look.
func style(l screentest.Look) string {
	fill := map[int]string{31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 36: "#76e3ea"}[l.Color]
	attributes := fmt.Sprintf(` fill="%s"`, cmp.Or(fill, "#e6e6e6"))
	if l.Bold {
		attributes += ` font-weight="bold"`
	}
	if l.Italic {
		attributes += ` font-style="italic"`
	}
	if l.Dim {
		attributes += ` opacity="0.65"`
	}
	return attributes
}
