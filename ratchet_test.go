package perlica_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxComplexity is the largest cyclomatic complexity of a function, with && and || counted. maxColumns is the
// largest width of a line. testdata/ratchet.txt lists the exceptions with their numbers and reasons: functions above
// the limit, and folders with wider lines. This list must only become shorter. Files, lines of a file and exported
// names have no limit. Authors divided code to satisfy such limits, and the parts were harder to read.
const (
	maxComplexity = 20
	maxColumns    = 120
)

// ratchet is the content of testdata/ratchet.txt: the exceptions by limit and name, with their numbers.
type ratchet map[string]map[string]int

func readRatchet(t *testing.T) ratchet {
	t.Helper()
	f, err := os.Open("testdata/ratchet.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := ratchet{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if sc.Text() == "" || strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		w := strings.Fields(sc.Text())
		if len(w) < 4 {
			t.Fatalf("testdata/ratchet.txt: %q is not a limit, a name, a figure and a reason", sc.Text())
		}
		n, err := strconv.Atoi(w[2])
		if err != nil {
			t.Fatalf("testdata/ratchet.txt: %q: %v", sc.Text(), err)
		}
		if r[w[0]] == nil {
			r[w[0]] = map[string]int{}
		}
		r[w[0]][w[1]] = n
	}
	return r
}

// hold compares numbers with the limit and its exceptions.
func (r ratchet) hold(t *testing.T, limit string, most int, counted map[string]int) {
	t.Helper()
	for name, n := range counted {
		may, listed := r[limit][name]
		switch {
		case n <= most && listed:
			t.Errorf("%s %s: %d are within the limit of %d: take the line out of testdata/ratchet.txt", limit, name, n, most)
		case listed && n < may:
			t.Errorf("%s %s: only %d: write this figure into testdata/ratchet.txt", limit, name, n)
		case n > max(most, may):
			t.Errorf("%s %s: %d are more than %d", limit, name, n, max(most, may))
		}
	}
	for name := range r[limit] {
		if _, ok := counted[name]; !ok {
			t.Errorf("%s %s is gone: take the line out of testdata/ratchet.txt", limit, name)
		}
	}
}

// TestRatchet compares the complexity of each function with the limit, and the number of wide lines in each room.
func TestRatchet(t *testing.T) {
	complexities, wide := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if generated.Match(s.text) {
			continue
		}
		room, _, _ := strings.Cut(s.dir, "/")
		if s.test {
			room = "tests"
		}
		for line := range strings.Lines(string(s.text)) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > maxColumns {
				wide[room]++
			}
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test {
				complexities[s.name+":"+symbol(f)] = complexity(f)
			}
		}
	}
	r := readRatchet(t)
	r.hold(t, "complexity", maxComplexity, complexities)
	for room, n := range wide {
		if most := r["wide"][room]; n > most {
			t.Errorf("%s has %d lines over %d columns, want at most %d", room, n, maxColumns, most)
		}
	}
}

// symbol returns a function's name. For a method, the name of its type stands before it.
func symbol(f *ast.FuncDecl) string {
	if recv := receiver(f); recv != "" {
		return recv + "." + f.Name.Name
	}
	return f.Name.Name
}

// complexity returns the cyclomatic complexity of a function: the number of its branches plus one. A case with one
// statement is like a row of a table and does not count.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil && len(node.Body) > 1 {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// TestCommentsNameTheirSymbol refuses a doc comment that begins with the name of another symbol in the package. The
// comment of an exported symbol must begin with this symbol.
func TestCommentsNameTheirSymbol(t *testing.T) {
	declared := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if declared[s.dir] == nil {
			declared[s.dir] = map[string]bool{}
		}
		for _, d := range s.ast.Decls {
			for _, n := range symbols(d) {
				declared[s.dir][n.name] = true
			}
		}
	}
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			for _, n := range symbols(d) {
				first := firstWord(n.doc)
				switch {
				case first == n.name || n.doc == "" && (s.test || !ast.IsExported(n.name)) || n.grouped:
				case n.doc == "":
					t.Errorf("%s: %s has no comment", s.name, n.name)
				case declared[s.dir][first] && strings.ToLower(first) != first:
					t.Errorf("%s: the comment on %s is on %s", s.name, n.name, first)
				case ast.IsExported(n.name) && !s.test:
					t.Errorf("%s: the comment on %s begins with %q", s.name, n.name, first)
				}
			}
		}
	}
}

// declaration is a symbol and its comment.
type declaration struct {
	name, doc string
	grouped   bool // one of several symbols that may share a comment
}

// ofInterfaces are methods that need no comment, because the documentation of an interface has their promise.
var ofInterfaces = []string{"Error", "Unwrap", "Is", "String", "MarshalJSON", "UnmarshalJSON"}

func symbols(d ast.Decl) (list []declaration) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && d.Doc == nil && (!ast.IsExported(receiver(d)) || slices.Contains(ofInterfaces, d.Name.Name)) {
			return nil
		}
		list = append(list, declaration{name: d.Name.Name, doc: d.Doc.Text()})
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				doc := spec.Doc.Text()
				if doc == "" {
					doc = d.Doc.Text()
				}
				list = append(list, declaration{name: spec.Name.Name, doc: doc, grouped: d.Lparen.IsValid()})
			case *ast.ValueSpec:
				grouped := d.Lparen.IsValid() || len(spec.Names) > 1
				list = append(list, declaration{name: spec.Names[0].Name, doc: d.Doc.Text(), grouped: grouped})
			}
		}
	}
	return list
}

// article matches an article before a symbol in a comment.
var article = regexp.MustCompile(`^(?:A|An|The) `)

func firstWord(doc string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(article.ReplaceAllString(doc, "")), " ")
	return strings.Trim(strings.TrimSuffix(strings.Split(word+"\n", "\n")[0], "'s"), ",.:;()")
}

// TestDependencies compares the dependencies in ARCHITECTURE.md with the direct requirements in go.mod.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var direct []string
	for l := range strings.SplitSeq(string(mod), "\n") {
		l = strings.TrimPrefix(strings.TrimSpace(l), "require ")
		if w := strings.Fields(l); len(w) == 2 && strings.HasPrefix(w[1], "v") && strings.Contains(w[0], ".") {
			direct = append(direct, strings.TrimPrefix(w[0], "github.com/"))
		}
	}
	if len(direct) < 10 {
		t.Fatalf("only %v are required", direct)
	}
	_, table, _ := strings.Cut(string(text), "\n## 13 Dependencies\n")
	var said []string
	for l := range strings.SplitSeq(table, "\n") {
		if row := strings.Split(l, "|"); len(row) > 3 {
			for _, m := range backticked.FindAllStringSubmatch(row[1], -1) {
				said = append(said, m[1])
			}
		}
	}
	slices.Sort(direct)
	slices.Sort(said)
	if !slices.Equal(direct, said) {
		t.Errorf("go.mod requires\n%s\nand ARCHITECTURE.md says\n%s", strings.Join(direct, "\n"), strings.Join(said, "\n"))
	}
}

// dialect matches words that are no terms of the field. The glossary in CONTRIBUTING.md has the terms.
var dialect = regexp.MustCompile(
	`^(heed|mend|bury|buried|hush|debt|letGo|told|noted|fed$|whoever|nobody|meanwhile)|` +
		`(Heed|Mend|Bury|Buried|Hush|Debt|LetGo|Told|Noted|Fed$|Whoever|Nobody|Meanwhile)`)

// TestNamesAreTheFields refuses names in the code that contain words of dialect.
func TestNamesAreTheFields(t *testing.T) {
	for _, s := range sources(t) {
		check := func(id *ast.Ident) {
			if dialect.MatchString(id.Name) {
				t.Errorf("%s: the name %s", s.fset.Position(id.Pos()), id.Name)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				check(n.Name)
			case *ast.TypeSpec:
				check(n.Name)
			case *ast.Field:
				for _, name := range n.Names {
					check(name)
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					check(name)
				}
			}
			return true
		})
	}
}

// dialectInText matches those words of dialect that have no other meaning in a comment, a message or a page.
var dialectInText = regexp.MustCompile(`(?i)\b(heed|mend)(s|ed|ing)?\b|\b(bury|buried|letGo|whoever|meanwhile)\b`)

// TestTextIsPlain refuses words that dialectInText matches, in Go files, scripts and pages.
func TestTextIsPlain(t *testing.T) {
	looked := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || name == "dist" || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if name == "ratchet_test.go" || !slices.Contains([]string{".go", ".md", ".txtar"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(name)
		looked++
		for n, line := range bytes.Split(text, []byte("\n")) {
			if word := dialectInText.Find(line); word != nil {
				t.Errorf("%s:%d: %q", name, n+1, word)
			}
		}
		return err
	})
	if err != nil || looked < 500 {
		t.Fatalf("%d files were read: %v", looked, err)
	}
}
