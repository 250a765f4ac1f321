package language_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/perlica/perlica/kernel/language"
)

// latin matches words of Latin letters.
var latin = regexp.MustCompile(`[A-Za-z]{2,}`)

// own lists the names that are the same in every language.
var own = []string{"UTF", "Perlica", "shell", "git", "cd", "fork", "PATH", "token", "stop", "WebSocket", "ACP", "JSON",
	"RPC", "RFC", "ASCII", "MiB"}

// quoted matches texts that the reader must type exactly.
var quoted = regexp.MustCompile(`“[^”]*”`)

func english(text string) bool {
	text = quoted.ReplaceAllString(text, "")
	return slices.ContainsFunc(latin.FindAllString(text, -1), func(w string) bool { return !slices.Contains(own, w) })
}

// TestRecorded checks that each sentence of the record has a translation with the same placeholders.
func TestRecorded(t *testing.T) {
	places := regexp.MustCompile(`%(\[\d+\])?[sdvq]|\{[a-z]+\}`)
	r := language.Chinese.Sentences().Recorded
	all := maps.Clone(r.Sentences)
	maps.Copy(all, r.Forms)
	for _, words := range r.Words {
		maps.Copy(all, words)
	}
	for form, said := range all {
		if len(places.FindAllString(form, -1)) != len(places.FindAllString(said, -1)) || strings.Contains(said, "{") {
			t.Errorf("%q inserts other things than %q", said, form)
		}
		if form == "send" { // a command
			continue
		}
		if !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) &&
			!slices.Contains([]string{"{kind} of %s", "{kind} of {thing}: %s", "{verb} {thing}: %s", "%s (%s), by %s"}, form) {
			t.Errorf("%q is not Chinese: %q", form, said)
		}
		if english(places.ReplaceAllString(strings.ReplaceAll(said, "2026-11-24T18:00:00Z", ""), "")) {
			t.Errorf("%q is English: %q", form, said)
		}
	}
	if language.English.Sentences().Translate("removes a device: x") != "removes a device: x" {
		t.Error("the record is not English")
	}
}

// values is a function that returns the possible values of a named variable. Its method of returns the possible texts
// of an expression in a source file.
type values func(name string) []string

func (v values) of(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return []string{s}
		}
	case *ast.BinaryExpr:
		var list []string
		for _, x := range v.of(e.X) {
			for _, y := range v.of(e.Y) {
				list = append(list, x+y)
			}
		}
		return list
	case *ast.Ident:
		return v(e.Name)
	case *ast.SelectorExpr:
		return v(e.Sel.Name)
	case *ast.CallExpr:
		if name := called(e); name == "tidy" || name == "string" {
			return v.of(e.Args[0])
		}
	}
	return []string{"§"}
}

// called returns the name of the function that an expression calls.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// sources calls the function f for each syntax node of the matching files, except tests. The second argument of f is
// the name of the enclosing function.
func sources(t *testing.T, pattern string, f func(ast.Node, string)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		within := ""
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.FuncDecl); ok {
				within = d.Name.Name
			}
			if n != nil {
				f(n, within)
			}
			return true
		})
	}
}

// events collects the format strings of the texts that /log shows.
func (m messages) events(t *testing.T) {
	say, forms := language.Chinese.Sentences(), map[string]bool{}
	var v values = func(string) []string { return []string{"§"} }
	sources(t, "../report/*.go", func(n ast.Node, within string) {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		switch name := called(c); {
		case name == "fill" && within != "number", name == "Form" && within != "fill":
			e := c.Args[0]
			if name == "fill" {
				e = c.Args[1]
			}
			if or, ok := e.(*ast.CallExpr); ok && called(or) == "Or" {
				e = or.Args[len(or.Args)-1]
			}
			forms[v.of(e)[0]] = true
		case name == "translated", name == "titled":
			forms[v.of(c.Args[0])[0]] = true
		case name == "number" && len(c.Args) == 3:
			what := v.of(c.Args[2])[0]
			forms["%d "+what], forms["%d "+what+"s"] = true, true
		}
	})
	n := 0
	for form := range forms {
		if !latin.MatchString(strings.NewReplacer("%s", "", "%d", "").Replace(form)) {
			continue
		}
		n++
		if m.add("lines of /log", form, say.Form(form)); say.Form(form) == form {
			t.Errorf("%q has no translation", form)
		}
	}
	if n < 60 {
		t.Errorf("only %d forms were found", n)
	}
}

// TestForm checks the translation of one format string of /log.
func TestForm(t *testing.T) {
	if got := fmt.Sprintf(language.Chinese.Sentences().Form("%d turns"), 2); got != "2 轮" {
		t.Errorf("%q", got)
	}
}
