package perlica_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These expressions match names in a comment. A name stands in backticks, in brackets or after "see", or has a
// capital letter inside the word. Quotations contain no names.
var (
	quotedName = regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_.]*)(?:\\(\\))?`")
	linkedName = regexp.MustCompile(`(?:^|[^\[\w"'])\[\*?([A-Za-z_]\w*(?:\.\w+)*)\](?:$|[^\]\w(:])`)
	seenName   = regexp.MustCompile(`\b[Ss]ee (?:also )?([A-Za-z_][\w./-]*\w)`)
	innerName  = regexp.MustCompile(`\b((?:[a-z]\w*\.)?(?:[a-z]{3,}|[A-Z][a-z]+)[A-Z]\w*)\b`)
	quotation  = regexp.MustCompile(`"[^"]*"`)
	sourceWord = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// foreignNames are names of other programs, standards and companies that occur in comments and not in code.
var foreignNames = []string{
	"CommonMark", "DeepSeek", "JavaScript", "MaxMind", "McCabe", "MongoDB", "MySQL", "OpenRouter", "OpenTelemetry",
	"PushSubscription", "SubjectPublicKeyInfo", "WebCrypto",
}

// TestCommentsNameWhatExists checks that each name in a comment exists. A name with a capital letter must occur in
// the code of the tree. A file must exist in the tree. Other words after "see" and in backticks are not checked.
func TestCommentsNameWhatExists(t *testing.T) {
	words, files := map[string]bool{}, map[string]bool{}
	for _, name := range foreignNames {
		words[name] = true
	}
	for _, s := range sources(t) {
		files[path.Base(s.name)] = true
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				words[n.Name] = true
			case *ast.BasicLit:
				for _, word := range sourceWord.FindAllString(n.Value, -1) {
					words[word] = true
				}
			}
			return true
		})
	}
	for _, s := range sources(t) {
		imports := s.imports(t)
		for _, group := range s.ast.Comments {
			for _, comment := range group.List {
				for _, name := range namesIn(comment.Text) {
					qualifier, _, _ := strings.Cut(name, ".")
					foreign := imports[qualifier] != "" && !strings.HasPrefix(imports[qualifier], module)
					if foreign || fileExists(name, s.dir, files) || wordsExist(name, words) {
						continue
					}
					t.Errorf("%s: the comment names %s, which does not exist", s.fset.Position(comment.Pos()), name)
				}
			}
		}
	}
}

// namesIn returns the names that occur in a comment.
func namesIn(text string) (names []string) {
	if strings.HasPrefix(text, "//go:") {
		return nil
	}
	text = quotation.ReplaceAllString(text, `""`)
	for _, expr := range []*regexp.Regexp{quotedName, linkedName, seenName, innerName} {
		for _, m := range expr.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// documentEnds are the endings of file names that a comment may contain, in addition to Go files.
var documentEnds = []string{".md", ".txt", ".sql"}

// fileExists reports whether a name belongs to a Go file of the tree. A document must exist at this path from the
// root, or from dir.
func fileExists(name, dir string, files map[string]bool) bool {
	if !slices.Contains(documentEnds, path.Ext(name)) {
		return files[path.Base(name)]
	}
	return exists(name) || exists(path.Join(dir, name))
}

// wordsExist reports whether each part of a name with a capital letter occurs in the code. A part in small letters
// may be a word of English and is not checked. The name of a missing file does not count as existing.
func wordsExist(name string, words map[string]bool) bool {
	if end := path.Ext(name); end == ".go" || slices.Contains(documentEnds, end) {
		return false
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' })
	return !slices.ContainsFunc(parts, func(part string) bool { return strings.ToLower(part) != part && !words[part] })
}
