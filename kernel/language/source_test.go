package language_test

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/language"
)

// TestErrorsAreTranslated: each error that can reach a phone has a translation.
func TestErrorsAreTranslated(t *testing.T) {
	elsewhere := []string{ // of the bridge's own, and what becomes another error
		"that is not how it is used", "the bridge is closed", "that phone was paired by its name alone, which anyone can use",
		"the bridge died while it was being sent", "it was removed", "it is being opened",
	}
	known := language.Chinese.Sentences().Errors
	for _, pattern := range []string{
		"../command/*.go", "../sessions/*.go", "../report/find.go", "../session.go", "../pending.go", "../conversation.go", "../agent_session.go", "../turn.go", "../input.go",
		"../queue/*.go", "../../interaction/*.go", "../../interaction/form/*.go", "../../service/*.go",
	} {
		sources(t, pattern, func(n ast.Node, _ string) {
			c, ok := n.(*ast.CallExpr)
			if !ok || called(c) != "New" || len(c.Args) != 1 {
				return
			}
			lit, ok := c.Args[0].(*ast.BasicLit)
			if !ok {
				return
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || known[text] != "" || slices.Contains(elsewhere, text) {
				return
			}
			t.Errorf("%s: %q has no translation", pattern, text)
		})
	}
}

// TestWhatIsAskedIsTranslated: so has what the kernel itself says in a question, of a call whose outcome is not known, and
// of a tool that ran unasked.
func TestWhatIsAskedIsTranslated(t *testing.T) {
	say, n := language.Chinese.Sentences(), 0
	var v values = func(name string) []string {
		if name == "label" { // told as it is assigned
			return []string{"go on"}
		}
		return []string{"§"}
	}
	check := func(form string) {
		text := strings.NewReplacer("%s came", "2 lines came", "%d", "2").Replace(form)
		if text = strings.ReplaceAll(text, "it was of kind §", "it was of kind edit"); !latin.MatchString(text) || strings.HasPrefix(text, "§") {
			return
		}
		n++
		if said := say.Translate(text); said == text || english(strings.NewReplacer("2026-11-24T18:00:00Z", "", "2026-11-24", "").Replace(said)) {
			t.Errorf("%q has no translation: %q", text, said)
		}
	}
	format := func(e ast.Expr) string {
		if c, ok := e.(*ast.CallExpr); ok && called(c) == "Sprintf" {
			e = c.Args[0]
		}
		return v.of(e)[0]
	}
	sources(t, "../fill.go", func(node ast.Node, _ string) {
		if a, ok := node.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
			if sel, ok := a.Lhs[0].(*ast.SelectorExpr); ok && sel.Sel.Name == "Why" {
				check(format(a.Rhs[0]))
			}
			if name, ok := a.Lhs[0].(*ast.Ident); ok && name.Name == "label" {
				check(format(a.Rhs[0]))
			}
		}
	})
	for _, file := range []string{"../fill.go", "../../interaction/form/form.go", "../../interaction/option.go"} {
		sources(t, file, func(node ast.Node, within string) {
			if kv, ok := node.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Label" {
					check(format(kv.Value))
				}
				if within == "kindOfText" {
					check("type " + format(kv.Value))
				}
			}
			if r, ok := node.(*ast.ReturnStmt); ok && within == "kindOfText" {
				if text := format(r.Results[0]); text != "type §" {
					check(text)
				}
			}
		})
	}
	for file, f := range map[string]string{"../record.go": "Progress", "../tools.go": "unasked", "../../policy/toolcall/differ.go": "Differs"} {
		sources(t, file, func(node ast.Node, within string) {
			if r, ok := node.(*ast.ReturnStmt); ok && within == f && len(r.Results) == 1 {
				if text := format(r.Results[0]); f == "Differs" && latin.MatchString(text) {
					check("not what was allowed: " + text)
				} else if text != "not what was allowed: §" {
					check(text)
				}
			}
		})
	}
	if n < 25 {
		t.Errorf("only %d sentences were found", n)
	}
}
