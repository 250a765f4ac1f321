package page

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// These are the limits of the size of the sent page, in bytes: of the files that the first visit loads, with all
// languages and drawings, and of all files.
const (
	mostAtFirst = 150 << 10
	mostOfAll   = 200 << 10
)

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := fs.ReadFile(Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns all files of the page.
func names(t testing.TB) (list []string) {
	t.Helper()
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var (
	static = map[string]*regexp.Regexp{
		".js": regexp.MustCompile(`\bfrom '\./([^']+)'`), ".html": regexp.MustCompile(`(?:src|href)="([^"]+)"`),
	}
	dynamic = regexp.MustCompile(`import\('\./([^']+)'\)|part\('([^']+)'`)
)

// loads adds the file and the files that it loads to the set.
func loads(t testing.TB, name string, set map[string]bool) {
	t.Helper()
	if set[name] {
		return
	}
	set[name] = true
	if names := static[path.Ext(name)]; names != nil {
		for _, m := range names.FindAllStringSubmatch(read(t, name), -1) {
			loads(t, m[1], set)
		}
	}
}

// firstVisit returns the files that the first visit loads: the files that the page names, with all languages, and the
// service worker.
func firstVisit(t testing.TB) map[string]bool {
	t.Helper()
	set := map[string]bool{"sw.js": true, "en.json": true, "zh.json": true}
	loads(t, "index.html", set)
	return set
}

func TestSize(t *testing.T) {
	first := firstVisit(t)
	size, all := 0, 0
	for _, name := range names(t) {
		n := len(read(t, name))
		if all += n; first[name] {
			size += n
		}
	}
	t.Logf("%d bytes in %d files at the first visit, %d bytes in %d files in all", size, len(first), all, len(names(t)))
	if size >= mostAtFirst {
		t.Errorf("the first visit loads %d bytes, and may load less than %d", size, mostAtFirst)
	}
	if all >= mostOfAll {
		t.Errorf("the page has %d bytes, and may have less than %d", all, mostOfAll)
	}
}

// TestLater checks that a view loads each file that the first visit does not load. The first visit must not load
// such a view.
func TestLater(t *testing.T) {
	first := firstVisit(t)
	later := map[string]bool{}
	for _, m := range dynamic.FindAllStringSubmatch(read(t, "app.js"), -1) {
		if first[m[1]] {
			t.Errorf("the first visit loads %s, which a view loads later", m[1])
		}
		if m[2] != "" {
			for _, name := range []string{m[2] + ".css", m[2] + ".en.json", m[2] + ".zh.json"} {
				later[name] = read(t, name) != ""
			}
			continue
		}
		loads(t, m[1], later)
	}
	if len(later) == 0 {
		t.Error("no view is loaded later")
	}
	for _, name := range names(t) {
		if !first[name] && !later[name] {
			t.Errorf("nothing loads %s", name)
		}
	}
}

var (
	quoted = regexp.MustCompile("/[^/]*`[^/]*/|'(?:[^'\\\\]|\\\\.)*'")
	remark = regexp.MustCompile(`(?m)^\s*//`)
)

// TestComments checks that the modules are sent without comments and indents, and that no text
// looks like a comment.
func TestComments(t *testing.T) {
	f := files{fstest.MapFS{
		"x.js":   {Data: []byte("// one\nlet a = 'http://x'; // two\n\t// three\n\tconst b\t= [\n\t1,\n\t2]\nc()\n")},
		"x.css":  {Data: []byte("/* one\ntwo */\n\tb {\n\tc: d;\n}\ne {f: g}\n")},
		"x.json": {Data: []byte("{\n\"a\": \"b  c\"\n}\n")},
		"x.svg":  {Data: []byte("\t// one\n")},
	}}
	for name, want := range map[string]string{
		"x.js": "\nlet a = 'http://x';const b\t= [1,2]\nc()", "x.css": "\nb {c: d;}\ne {f: g}", "x.json": `{"a":"b  c"}`,
		"x.svg": "\t// one\n",
	} {
		if got, err := fs.ReadFile(f, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range names(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		if remark.MatchString(read(t, name)) {
			t.Errorf("%s has comments", name)
		}
		source, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(source), "\n") {
			if at := forms().comment.FindStringIndex(line); at != nil &&
				strings.Count(strings.ReplaceAll(line[:at[0]], `\'`, ""), "'")%2 != 0 {
				t.Errorf("%s:%d has a text that looks like a comment", name, i+1)
			}
		}
		// A text over several lines could have a line that looks like a comment.
		for i, line := range strings.Split(read(t, name), "\n") {
			if strings.Count(quoted.ReplaceAllString(line, ""), "`")%2 != 0 {
				t.Errorf("%s:%d begins a text that goes on in the next line", name, i+1)
			}
		}
	}
}

var (
	literal     = regexp.MustCompile(`'([a-z][a-z0-9._:-]*)'`)
	asked       = regexp.MustCompile(`\bt\('([^']+)'[,)]`)
	group       = regexp.MustCompile(`(?:name\('|t\(')([a-z]+)(?:'|\.' \+)`)
	placeholder = regexp.MustCompile(`\{\w+\}`)
)

// words returns the texts of a language, from the file of the first visit and from the files of the later views.
func words(t *testing.T, language string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, name := range names(t) {
		if name != language+".json" && !strings.HasSuffix(name, "."+language+".json") {
			continue
		}
		groups := map[string]any{}
		if err := json.Unmarshal([]byte(read(t, name)), &groups); err != nil {
			t.Fatal(err)
		}
		add := func(key string, text any) {
			if _, ok := m[key]; ok {
				t.Errorf("%s: %s has a text already", name, key)
			}
			m[key] = text.(string)
		}
		for group, texts := range groups {
			if text, ok := texts.(string); ok {
				add(group, text)
				continue
			}
			for key, text := range texts.(map[string]any) {
				add(strings.TrimSuffix(group+"."+key, "."), text)
			}
		}
	}
	return m
}

// TestWords checks that every text exists in every language with the same placeholders. The page
// must use every text and request no other.
func TestWords(t *testing.T) {
	en, zh := words(t, "en"), words(t, "zh")
	for key, text := range en {
		other, ok := zh[key]
		values, others := placeholder.FindAllString(text, -1), placeholder.FindAllString(other, -1)
		slices.Sort(values)
		slices.Sort(others)
		if !ok || other == "" || !strings.HasSuffix(key, ".one") && !slices.Equal(values, others) {
			t.Errorf("%s: %q in English, %q in Chinese", key, text, other)
		}
	}
	for key := range zh {
		if _, ok := en[key]; !ok {
			t.Errorf("%s: not in English", key)
		}
	}
	literals, groups := map[string]bool{}, map[string]bool{"numbers": true}
	for _, name := range names(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		source := read(t, name)
		for _, m := range literal.FindAllStringSubmatch(source, -1) {
			literals[m[1]] = true
		}
		for _, m := range group.FindAllStringSubmatch(source, -1) {
			groups[m[1]] = true
		}
		for _, m := range asked.FindAllStringSubmatch(source, -1) {
			if en[m[1]] == "" {
				t.Errorf("%s asks for %q", name, m[1])
			}
		}
	}
	for key := range en {
		first, _, _ := strings.Cut(key, ".")
		if !literals[strings.TrimSuffix(key, ".one")] && !groups[first] {
			t.Errorf("%s: no module asks for it", key)
		}
	}
}

// TestNoMarkup checks that no module can turn a text into markup, a script or a style, and that the
// page loads nothing from elsewhere.
func TestNoMarkup(t *testing.T) {
	bad := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|srcdoc|setHTML|javascript:|\bon\w+="|<script>|style="`)
	elsewhere := regexp.MustCompile(`(?:from|src=|href=|import\(|url\()\s*["']?(?:https?:)?//`)
	for _, name := range names(t) {
		source := read(t, name)
		if found := bad.FindString(source); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if found := elsewhere.FindString(source); found != "" {
			t.Errorf("%s loads %q", name, found)
		}
	}
}

// TestShell checks that the service worker caches exactly the files of the first visit.
func TestShell(t *testing.T) {
	source := read(t, "sw.js")
	list := source[strings.Index(source, "["):strings.Index(source, "]")]
	var kept []string
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(list, -1) {
		kept = append(kept, strings.Replace(m[1], "./", "index.html", 1))
	}
	first := firstVisit(t)
	for name := range first {
		if ext := path.Ext(name); name != "sw.js" && ext != ".png" && !slices.Contains(kept, name) {
			t.Errorf("the service worker does not keep %s", name)
		}
	}
	for _, name := range kept {
		if !first[name] {
			t.Errorf("the service worker keeps %s, which the first visit does not load", name)
		}
	}
}

// TestSourcesHaveWords checks that the page has a word for each front end that inputs and answers
// come from. A channel has its own name.
func TestSourcesHaveWords(t *testing.T) {
	zh, n := words(t, "zh"), 0
	said := regexp.MustCompile(
		`\b(?:Input|MessageQueued|Answer)\{[^{}]*\b(?:Source|Where): "(\w+)"|(?m)\bWhere = (?:.*, )?"(\w+)"$`)
	for _, dir := range []string{"../../../cmd/perlica", "../../../kernel", "../../../service"} {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			for _, m := range said.FindAllStringSubmatch(string(text), -1) {
				if n++; zh["source."+m[1]+m[2]] == "" {
					t.Errorf("%s: %q has no word", name, m[1]+m[2])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 9 {
		t.Errorf("only %d were found", n)
	}
}
