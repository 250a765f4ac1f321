package perlica_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These expressions match the names in a comment: in backticks, in brackets, after "see", and with a capital letter
// inside the word. Quotations are no names.
var (
	quotedName = regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_.]*)(?:\\(\\))?`")
	linkedName = regexp.MustCompile(`(?:^|[^\[\w"'])\[\*?([A-Za-z_]\w*(?:\.\w+)*)\](?:$|[^\]\w(:])`)
	seenName   = regexp.MustCompile(`\b[Ss]ee (?:also )?([A-Za-z_][\w./-]*\w)`)
	innerName  = regexp.MustCompile(`\b((?:[a-z]\w*\.)?(?:[a-z]{3,}|[A-Z][a-z]+)[A-Z]\w*)\b`)
	quotation  = regexp.MustCompile(`"[^"]*"`)
	sourceWord = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// foreignNames are names of other programs, standards and companies that comments mention and no code does.
var foreignNames = []string{
	"CommonMark", "DeepSeek", "JavaScript", "MaxMind", "McCabe", "MongoDB", "MySQL", "OpenRouter", "OpenTelemetry",
	"PushSubscription", "SubjectPublicKeyInfo", "WebCrypto",
}

// TestCommentsNameWhatExists looks up each name in a comment. A name with a capital letter must occur in the code of
// the tree, and a file must lie in the tree. Other words after "see" and in backticks are no names of Go.
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

// namesIn returns the names in a comment.
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

// documentEnds are the ends of the names of files that are not Go files and that a comment may name.
var documentEnds = []string{".md", ".txt", ".sql"}

// fileExists reports whether a name is a Go file of the tree, or a document that lies at this path or in dir.
func fileExists(name, dir string, files map[string]bool) bool {
	if !slices.Contains(documentEnds, path.Ext(name)) {
		return files[path.Base(name)]
	}
	return exists(name) || exists(path.Join(dir, name))
}

// wordsExist reports whether each part of a name that has a capital letter occurs in the code. A part in small letters
// may be a word of English. The name of a missing file does not exist.
func wordsExist(name string, words map[string]bool) bool {
	if end := path.Ext(name); end == ".go" || slices.Contains(documentEnds, end) {
		return false
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' })
	return !slices.ContainsFunc(parts, func(part string) bool { return strings.ToLower(part) != part && !words[part] })
}
