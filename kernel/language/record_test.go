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

// latin matches English words, as opposed to the insertions of the test.
var latin = regexp.MustCompile(`[A-Za-z]{2,}`)

// own are the names that stay the same in every language.
var own = []string{"UTF", "Perlica", "shell", "git", "cd", "fork", "PATH", "token", "stop", "WebSocket", "ACP", "JSON", "RPC", "RFC", "ASCII", "MiB"}

// quoted matches texts that the reader types literally.
var quoted = regexp.MustCompile(`“[^”]*”`)

func english(text string) bool {
	text = quoted.ReplaceAllString(text, "")
	return slices.ContainsFunc(latin.FindAllString(text, -1), func(w string) bool { return !slices.Contains(own, w) })
}

// TestRecorded: each sentence of the record has a translation with the same insertions.
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
		if !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) && !slices.Contains([]string{"{kind} of %s", "{kind} of {thing}: %s", "{verb} {thing}: %s", "%s (%s), by %s"}, form) {
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

// values returns the possible values of an expression in a source file: a literal, or the values of an insertion by
// its name.
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

// sources calls f for each node of the files that match a pattern, except tests.
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

// graveCauses reads from the source the reasons to ask about a field of a tool call.
func graveCauses(t *testing.T) (list []string) {
	var v values = func(string) []string { return []string{"§"} }
	keep := func(e ast.Expr) {
		for _, text := range v.of(e) {
			if latin.MatchString(text) {
				list = append(list, text)
			}
		}
	}
	look := func(n ast.Node, _ string) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called(n) == "addGrave" && len(n.Args) == 3 {
				keep(n.Args[2])
			}
		case *ast.AssignStmt:
			if sel, ok := n.Lhs[0].(*ast.SelectorExpr); ok && sel.Sel.Name == "Odd" {
				keep(n.Rhs[0])
			}
		}
	}
	sources(t, "../../policy/*.go", look)
	sources(t, "../../policy/shell/patch.go", look)
	if len(list) < 7 {
		t.Errorf("only %d reasons for asking about a field were found", len(list))
	}
	return list
}

// reasons collects the reasons of the policy to ask a person, or to refuse.
func (m messages) reasons(t *testing.T) {
	const shell, policy = "../../policy/shell/*.go", "../../policy/*.go"
	named := map[string][]string{"kind": {"edit", "change"}, "e": {"deny", "ask", "allow"}, "Kind": {"edit"}, "Why": {"removes a device: §"}, "unread": {"a command that cannot be read"}}
	named["Cause"] = graveCauses(t)
	named["Odd"] = []string{"the patch makes a link or a special file, mode §", "the patch hides a name of a file in escapes"}
	var v values = func(name string) []string {
		if list := named[name]; list != nil {
			return list
		}
		return []string{"§"}
	}
	// First come the words that are inserted.
	deeds, does := map[string]bool{}, []string{}
	sources(t, shell, func(n ast.Node, within string) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called(n) == "judgeDestroy" {
				named["verb"] = append(named["verb"], v.of(n.Args[3])...)
			}
			if name := called(n); name == "judgeWrite" || name == "judgeWrites" {
				if deed, _, _ := strings.Cut(v.of(n.Args[2])[0], "§"); strings.TrimSpace(deed) != "" {
					deeds[strings.TrimSpace(deed)] = true
				}
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				return
			}
			if text := v.of(n.Results[0])[0]; within == "guarded" && strings.Contains(text, "directory") {
				named["what"] = append(named["what"], text)
			} else if within == "awkEscape" && (strings.HasPrefix(text, "runs") || strings.HasPrefix(text, "writes")) {
				does = append(does, text)
			}
		}
	})
	named["verb"] = slices.DeleteFunc(named["verb"], func(s string) bool { return s == "§" })
	if len(named["verb"]) < 5 || len(named["what"]) < 5 || len(does) < 2 || len(deeds) < 6 {
		t.Fatalf("read off: %q %q %v", named, does, deeds)
	}
	for _, w := range named["what"] {
		named["what"] = append(named["what"], "everything in "+w)
	}
	reasons := map[string]bool{}
	note := func(list []string) {
		for _, reason := range list {
			reasons[reason] = true
		}
	}
	filled := func(format ast.Expr, args []ast.Expr, within string) (list []string) {
		list = v.of(format)
		for _, arg := range args {
			inserted := v.of(arg)
			if within == "awk" && len(inserted) > 1 {
				inserted = does
			}
			var next []string
			for _, text := range list {
				at := regexp.MustCompile(`%[sv]`).FindStringIndex(text)
				for _, in := range inserted {
					if at != nil {
						next = append(next, text[:at[0]]+in+text[at[1]:])
					}
				}
			}
			list = next
		}
		return list
	}
	look := func(n ast.Node, within string) {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch called(n) {
			case "askBecause", "askUnknown":
				if !slices.Contains([]string{"askBecause", "askUnknown"}, within) {
					note(filled(n.Args[0], n.Args[1:], within))
				}
			case "addFinding":
				if within != "askBecause" {
					note(v.of(n.Args[1]))
				}
			case "Unclear":
				note(v.of(n.Args[0]))
			case "asked":
				for _, why := range v.of(n.Args[0]) {
					note([]string{why + ": edit of §"})
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Why" {
				note(v.of(n.Value))
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				name, _ := left.(*ast.Ident)
				if sel, ok := left.(*ast.SelectorExpr); ok {
					name = sel.Sel
				}
				if name == nil || !strings.EqualFold(name.Name, "why") || i >= len(n.Rhs) {
					continue
				}
				for _, text := range v.of(n.Rhs[i]) {
					if n.Tok == token.ADD_ASSIGN && within == "judgeRequest" {
						text = "removes a device: §" + text
					}
					if n.Tok == token.ADD_ASSIGN && within == "modeVerdict" {
						text = "the agent would change its mode" + text
					}
					if n.Tok != token.ADD_ASSIGN || within == "judgeRequest" || within == "modeVerdict" {
						note([]string{text})
					}
				}
			}
		case *ast.ReturnStmt:
			if within == "unread" && len(n.Results) == 1 {
				note(v.of(n.Results[0]))
			}
		}
	}
	sources(t, shell, look)
	sources(t, policy, look)
	note([]string{"a rule says deny (§)", "no one is asked in this mode", "no one is asked in this mode; removes a device: §", "the standing approvals cannot be read", "outside the working directory: edits §"})
	say := language.Chinese.Sentences()
	n := 0
	for reason := range reasons {
		if !latin.MatchString(reason) || strings.HasPrefix(reason, "§") {
			continue
		}
		n++
		said := say.Translate(reason)
		if m.add("reasons of the policy", reason, said); said == reason || english(strings.ReplaceAll(said, "PATH=", "")) || strings.Count(said, "§") != strings.Count(reason, "§") {
			t.Errorf("%q has no translation: %q", reason, said)
		}
	}
	for deed := range deeds {
		text := "outside the working directory: " + deed + " §"
		said := say.Translate(text)
		if m.add("reasons of the policy", text, said); english(said) {
			t.Errorf("%q has no translation: %q", deed, said)
		}
	}
	if n < 120 {
		t.Errorf("only %d reasons were found", n)
	}
}

// events collects the texts of the lines of /log.
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

// TestTranslate: sentences with insertions are translated, and other people's words stay unchanged.
func TestTranslate(t *testing.T) {
	say := language.Chinese.Sentences()
	for text, want := range map[string]string{
		"removes everything in the home directory: rm -rf ~/*":                         "删除用户主目录里的全部内容：rm -rf ~/*",
		"outside the working directory: edits /x: y":                                   "在工作目录以外：编辑 /x: y",
		"outside the working directory: tee /x":                                        "在工作目录以外：tee /x",
		"a shell may read it so: removes the root directory: rm -rf /":                 "shell 可能会这样理解：删除根目录：rm -rf /",
		"the prompt was being sent or had been; 3 lines came back":                     "正在发给智能体或已经发出；收到了 3 行",
		"code that writes, deletes, starts a process or opens a connection (open): py": "代码会写入、删除、启动进程或建立连接（open）：py",
		"blocked by the boss":             "blocked by the boss",
		"exactly `make`, in this project": "正好是 `make`，在本项目内",
		"":                                "",
	} {
		if got := say.Translate(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := fmt.Sprintf(say.Form("%d turns"), 2); got != "2 轮" {
		t.Errorf("%q", got)
	}
}
