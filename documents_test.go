package perlica_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These expressions match names in the documents.
var (
	backticked = regexp.MustCompile("`([^`\n]+)`")
	fileName   = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	goTest     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*\b`)
	word       = regexp.MustCompile(`\S*[\pL\pN]\S*`) // a word, but not the bars of a table
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestArchitectureNamesWhatExists checks that each file, folder and test in ARCHITECTURE.md exists, and each test in
// docs/security-web.md. It also limits the number of words in ARCHITECTURE.md.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				tests[f.Name.Name] = true
			}
		}
	}
	threats, err := os.ReadFile("docs/security-web.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range goTest.FindAllString(string(text)+string(threats), -1) {
		if !tests[name] {
			t.Errorf("ARCHITECTURE.md or docs/security-web.md names the test %s, which does not exist", name)
		}
	}
	for _, m := range backticked.FindAllStringSubmatch(string(text), -1) {
		name := strings.TrimSuffix(m[1], "/")
		if isOurs(name) && !exists(name) {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
		}
	}
	if n := len(word.FindAll(text, -1)); n > 4000 {
		t.Errorf("ARCHITECTURE.md has %d words, want at most 4000", n)
	}
}

// TestCodeMap compares the code map of ARCHITECTURE.md with the first sentence of each package comment. The map has
// no lines for packages that serve tests, and for families of commands, because the names of families say enough.
func TestCodeMap(t *testing.T) {
	lines := map[string]string{}
	for _, s := range sources(t) {
		if s.test || s.ast.Doc == nil || strings.HasSuffix(s.dir, "test") || slices.Contains(families, s.dir) {
			continue
		}
		sentence := new(doc.Package).Synopsis(s.ast.Doc.Text())
		for _, start := range []string{"Package " + path.Base(s.dir) + " ", "Command " + path.Base(s.dir) + " ",
			path.Base(s.dir) + " "} {
			sentence = strings.TrimPrefix(sentence, start)
		}
		lines[s.dir] = fmt.Sprintf("- `%s` %s\n", s.dir, sentence)
	}
	var list strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		list.WriteString(lines[dir])
	}
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin of the map: go test . -update -->\n", "<!-- end of the map -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("ARCHITECTURE.md has no marks around its code map")
	}
	if old == list.String() {
		return
	}
	if !*update {
		t.Fatal("the code map of ARCHITECTURE.md differs from the package comments: run go test . -update")
	}
	if err := os.WriteFile("ARCHITECTURE.md", []byte(before+begin+list.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// isOurs reports whether a word in backticks is the name of a file or folder of the tree. Its first part is a folder of
// the tree, or it has the ending of a source file or a document.
func isOurs(name string) bool {
	if !fileName.MatchString(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".perlica") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".md", ".sql", ".txtar":
		return true
	}
	first, _, nested := strings.Cut(name, "/")
	if !nested {
		return false // A single word may be a command, an event type or a method.
	}
	info, err := os.Stat(first)
	return err == nil && info.IsDir()
}

func exists(name string) bool {
	_, err := os.Stat(filepath.FromSlash(name))
	return err == nil
}

// pages returns the paths of the documents in the tree.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	for _, must := range []string{"README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"} {
		if !slices.Contains(list, must) {
			t.Errorf("there is no %s", must)
		}
	}
	return list
}

// TestLinks checks that the documents' links within the tree lead to existing files and headings.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			if file == "" {
				target = page
			}
			if !exists(target) {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if heading != "" && !slices.Contains(anchors(t, target), heading) {
				t.Errorf("%s links to %s, but there is no such heading", page, m[1])
			}
		}
	}
}

// anchors returns the headings of a page as links spell them.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	code := false
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
				return r
			}
			return -1
		}, title))
	}
	return list
}

// TestIndex checks that docs/README.md has a link to every page. The numbers of the decisions must have no gap.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range pages(t) {
		page = filepath.ToSlash(page)
		rel, ok := strings.CutPrefix(page, "docs/")
		if !ok || rel == "README.md" {
			continue
		}
		if !strings.Contains(string(index), "]("+rel+")") {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
		if base, ok := strings.CutPrefix(rel, "decisions/"); ok {
			if n++; !strings.HasPrefix(base, fmt.Sprintf("%04d-", n)) {
				t.Errorf("%s: decision number %d is missing", page, n)
			}
		}
	}
}
