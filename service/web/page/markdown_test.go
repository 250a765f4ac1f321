package page

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// node runs a script of testdata with the page's modules and returns its output.
func node(t testing.TB, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED: the page's Markdown: node is not installed")
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package.json", []byte(`{"type":"module"}`))
	for _, name := range names(t) {
		if path.Ext(name) == ".js" {
			write(name, []byte(read(t, name)))
		}
	}
	scripts, err := filepath.Glob("testdata/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Base(name), text)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestMarkdown compares the elements of Markdown texts with the expected ones. Each text is parsed
// as a whole and in pieces.
func TestMarkdown(t *testing.T) {
	if out := node(t, "forms.mjs"); out != "" {
		t.Error(out)
	}
}

// TestMarkdownIsLinear counts the steps for generated texts. Each character takes the same number
// of steps in a short text and in a long one.
func TestMarkdownIsLinear(t *testing.T) {
	out := node(t, "linear.mjs")
	if strings.Contains(out, "FAULT") || !strings.Contains(out, "shapes") {
		t.Error(out)
	}
	t.Log(out)
}

// BenchmarkMarkdown reports the time for 200,000 characters of each generated shape.
func BenchmarkMarkdown(b *testing.B) {
	for b.Loop() {
		b.Log(node(b, "linear.mjs", "time"))
	}
}

var (
	literalPattern = regexp.MustCompile(
		`(?m)(?:^|[(,=:\[!&|?{};\s])/((?:[^/*\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])*)/[gimsuy]*[,).;\]]`)
	oneCharacter  = regexp.MustCompile(`\\p\{[^}]*\}|\\.|\[(?:[^\]\\]|\\.)*\]`)
	unbounded     = regexp.MustCompile(`[*+]|\{\d+,\}`)
	groupRepeated = regexp.MustCompile(`\)(?:[*+]|\{)`)
	innerGroup    = regexp.MustCompile(`\([^()]*\)`)
)

// backtracks returns the reason why a pattern may take more steps than the length of its text.
// Empty means that it cannot.
func backtracks(pattern string) string {
	plain := oneCharacter.ReplaceAllString(pattern, "c")
	if groupRepeated.MatchString(plain) {
		return "it repeats a group"
	}
	for piece := range strings.SplitSeq(plain, "|") {
		if len(unbounded.FindAllString(piece, -1)) > 1 {
			return "it repeats twice without a limit"
		}
	}
	for innerGroup.MatchString(plain) {
		plain = innerGroup.ReplaceAllString(plain, "g")
	}
	for piece := range strings.SplitSeq(plain, "|") {
		if at := unbounded.FindStringIndex(piece); at != nil && at[0] == 1 && at[1] < len(piece) {
			return "it begins at each place with a repetition"
		}
	}
	return ""
}

// TestPatterns checks that no pattern of the page takes more steps than a multiple of its text's
// length.
func TestPatterns(t *testing.T) {
	for pattern, bad := range map[string]bool{
		`^a+$`: false, `(a+)+`: true, `(?:a|b)*c`: true, `a*a*`: true, `^\s*\|?.*\|.*$`: true, `=+$`: true, `[*+]{3}`: false,
		` {2,}\n`: true, "^ {0,3}(`{3,}|~{3,})": false, `(a){2,}`: true, `^a|b+c`: true,
	} {
		if got := backtracks(pattern); (got != "") != bad {
			t.Errorf("%s: %q", pattern, got)
		}
	}
	n := 0
	for _, name := range names(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		source := read(t, name)
		for _, m := range literalPattern.FindAllStringSubmatch(source, -1) {
			n++
			if why := backtracks(m[1]); why != "" {
				t.Errorf("%s: /%s/: %s", name, m[1], why)
			}
		}
		if strings.Contains(source, "RegExp(") {
			t.Errorf("%s makes a pattern of a text", name)
		}
	}
	if n < 30 {
		t.Errorf("only %d patterns were found", n)
	}
}
