package language_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/language"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// messages holds the messages of the sources with their translations, by the place where a person meets them.
type messages map[string]map[string]string

func (m messages) add(place, english, chinese string) {
	if m[place] == nil {
		m[place] = map[string]string{}
	}
	m[place][english] = chinese
}

// TestMessages checks that each message that a person can meet on a phone or a page has a translation.
// testdata/messages.txt lists the messages, so that a change of words shows in its diff. There § stands for an
// insertion.
func TestMessages(t *testing.T) {
	m, ran := messages{}, 0
	for _, d := range message.Declared() {
		m.add("sentences by their codes", string(d.Code)+"\n\t"+d.Text, language.Chinese.Sentences().Messages[d.Code])
	}
	collectors := map[string]func(*testing.T){
		"faults": m.faults, "events": m.events,
	}
	for name, collect := range collectors {
		t.Run(name, func(t *testing.T) {
			ran++
			collect(t)
		})
	}
	if ran < len(collectors) { // -run names one of them
		return
	}
	var list strings.Builder
	for _, place := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&list, "# %s\n", place)
		for _, text := range slices.Sorted(maps.Keys(m[place])) {
			fmt.Fprintf(&list, "%s\n\t%s\n", text, m[place][text])
		}
	}
	const file = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != list.String() {
		t.Errorf("%s differs from the messages in the sources (%v): run go test ./kernel/language -update", file, err)
	}
}

// faults collects the faults in HTTP answers, the findings about a log, the reasons for a missing answer, and the
// warnings of a turn.
func (m messages) faults(t *testing.T) {
	say := language.Chinese.Sentences()
	named := map[string][]string{ // insertions in the source
		"where": {"checkpoint 2 of the file"}, "why": {"although the lines before and after it are"}, "and": {""},
		"often": {"once"},
		"what":  {"a signature"}, "fault": {"the table § is missing"},
	}
	var v values = func(name string) []string {
		if list := named[name]; list != nil {
			return list
		}
		return []string{"§"}
	}
	// filled returns a format with its insertions. Each number is 2.
	filled := func(args []ast.Expr) string {
		text := v.of(args[0])[0]
		for _, verb := range regexp.MustCompile(`%\.?\d*[a-z]`).FindAllString(text, -1) {
			in := "§"
			if args = args[1:]; len(args) > 0 {
				if c, ok := args[0].(*ast.CallExpr); ok && called(c) == "spanOf" {
					in = "event 2 is"
				} else if ok && called(c) == "numbered" {
					in = "event 2 " + v.of(c.Args[2])[0]
				} else if ok && called(c) == "below" {
					in = "events 1 to 2"
				} else {
					in = v.of(args[0])[0]
				}
			}
			switch verb[len(verb)-1] {
			case 'd':
				in = "2"
			case 'q':
				in = strconv.Quote(in)
			}
			text = strings.Replace(text, verb, in, 1)
		}
		return text
	}
	for _, of := range []struct {
		files  string
		called []string // functions with the sentence as an argument
		arg    int
		least  int
	}{
		{"../../provider/error.go", []string{"New"}, 0, 7},
	} {
		n := 0
		sources(t, of.files, func(node ast.Node, _ string) {
			c, ok := node.(*ast.CallExpr)
			if !ok || !slices.Contains(of.called, called(c)) || len(c.Args) <= of.arg {
				return
			}
			args := c.Args[of.arg:]
			if inner, ok := args[0].(*ast.CallExpr); ok && called(inner) == "Sprintf" {
				args = inner.Args
			}
			text := filled(args)
			if !latin.MatchString(text) || strings.HasPrefix(text, "§") && !strings.Contains(text, " ") {
				return
			}
			n++
			said := say.Translate(text)
			if m.add(path.Join("kernel/language", of.files), text, said); said == text {
				t.Errorf("%s: %q has no translation", of.files, text)
			}
		})
		if n < of.least {
			t.Errorf("%s: only %d sentences were found", of.files, n)
		}
	}
	n := 0
	for _, files := range []string{"../../provider/*.go", "../outcome.go", "../recover.go"} {
		sources(t, files, func(node ast.Node, _ string) {
			list := map[string]ast.Expr{}
			switch node := node.(type) {
			case *ast.KeyValueExpr:
				if key, ok := node.Key.(*ast.Ident); ok {
					list[key.Name] = node.Value
				}
			case *ast.AssignStmt:
				for i, left := range node.Lhs {
					if sel, ok := left.(*ast.SelectorExpr); ok && len(node.Rhs) == len(node.Lhs) && node.Tok == token.ASSIGN {
						list[sel.Sel.Name] = node.Rhs[i]
					}
				}
			case *ast.CompositeLit:
				if id, ok := node.Type.(*ast.Ident); ok && id.Name == "cause" && len(node.Elts) == 2 {
					list["Message"] = node.Elts[1]
				}
			}
			e := list["Message"]
			if e == nil {
				return
			}
			args := []ast.Expr{e}
			if c, ok := e.(*ast.CallExpr); ok && called(c) == "Sprintf" {
				args = c.Args
			}
			text := filled(args)
			if !latin.MatchString(text) || strings.HasPrefix(text, "§") {
				return
			}
			n++
			said := say.Translate(text)
			if m.add("reasons for a missing answer", text, said); said == text {
				t.Errorf("%s: %q has no translation", files, text)
			}
		})
	}
	if n < 12 {
		t.Errorf("only %d reasons of failures were found", n)
	}
}

// TestAccepted checks that the first known language of the header counts, otherwise English.
func TestAccepted(t *testing.T) {
	for header, want := range map[string]language.Language{
		"": "en", "*": "en", "fr": "en", "zh": "zh", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "en-GB,en;q=0.9,zh;q=0.8": "en",
		"fr, zh;q=0.5":             "zh",
		"en;q=0.2, ZH-Hant; q=0.7": "zh", "zh;q=0": "en", "zh;q=x": "en", "zhx": "en",
	} {
		if got := language.Accepted(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
