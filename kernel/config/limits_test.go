package config

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostileFiles returns files of about size bytes that cost a TOML parser much time or memory.
func hostileFiles(size int) map[string]string {
	fill := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			if strings.Contains(format, "%") {
				fmt.Fprintf(&b, format, i)
			} else {
				b.WriteString(format)
			}
		}
		return b.String()[:size]
	}
	return map[string]string{
		"one nested name":      fill("a.") + "b = 1",
		"a nested header":      "[" + fill("a.") + "b]",
		"quoted nested names":  fill(`"a".`) + "b = 1",
		"names in a table":     "x = {" + fill("a.") + "b = 1}",
		"nested arrays":        "x = " + fill("["),
		"nested inline tables": "x = " + fill("{a="),
		"many keys":            fill("k%d = 1\n"),
		"many tables":          fill("[t%d]\n"),
		"many nested tables":   fill("[a.b.c.d.e.f.g.h.i.j.k.l.m.n.t%d]\n"),
		"many array tables":    fill("[[policy.rule]]\n"),
		"many nested arrays":   fill("[[a]]\n[[a.b]]\n[[a.b.c]]\n"),
		"a long list":          "x = [" + fill("1,") + "1]",
		"a long list of lists": "x = [" + fill("[1],") + "1]",
		"an inline table":      "x = {" + fill("k%d=1,") + "z=1}",
		"comments":             fill("#\n"),
		"a long string":        "x = '" + fill("x") + "'",
		"a string of escapes":  `x = "` + fill(`\\`) + `"`,
		"unknown providers":    fill("providers.p%d.adapter.command = 'x'\n"),
		"rules":                fill("[[policy.rule]]\neffect='allow'\n"),
		"servers":              fill("[[mcp.servers]]\nname='n%d'\nurl='http://x'\n"),
	}
}

// allowed returns the largest version of this hostile file that is within the limits.
func allowed(name string) []byte {
	for size := maxProjectSize - 100; ; size = size * 9 / 10 {
		if text := []byte(hostileFiles(size)[name]); exceeds("F", text) == nil {
			return text
		}
	}
}

// TestHostileFilesStayCheap checks that loading the worst files within the limits allocates at most 20 MB each.
// BenchmarkHostileFiles measures the time.
func TestHostileFilesStayCheap(t *testing.T) {
	for name, text := range hostileFiles(maxProjectSize - 100) {
		for _, text := range [][]byte{[]byte(text), allowed(name)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			readLayer("project file", "F", text)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 20e6 {
				t.Errorf("%s (%d bytes): %d bytes allocated", name, len(text), n)
			}
		}
	}
}

func BenchmarkHostileFiles(b *testing.B) {
	for name := range hostileFiles(0) {
		text := allowed(name)
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				readLayer("project file", "F", text)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	deep := strings.Repeat("a.", maxDepth) + "b"
	for text, want := range map[string]string{
		"\n" + deep + " = 1": "F:2: nests deeper than 16 levels",
		"[" + deep + "]":     "F:1: nests deeper than 16 levels",
		strings.ReplaceAll(deep, "a", `'a'`) + " = 1":    "F:1: nests deeper than 16 levels",
		"x = " + strings.Repeat("[", maxDepth+1):         "F:1: nests deeper than 16 levels",
		"s = '''\n'''\n" + "x = {" + deep + " = 1}":      "F:3: nests deeper than 16 levels",
		strings.Repeat("a = 1\n", maxValues+1):           "F:2001: holds more than 2000 keys and values",
		"x = [" + strings.Repeat("1,", maxValues) + "1]": "F:1: holds more than 2000 keys and values",
	} {
		_, problem := parseDocument("F", []byte(text))
		if problem == nil || problem.Error() != want {
			t.Errorf("%.60q: %v, want %s", text, problem, want)
		}
	}
	for _, text := range []string{
		"x = '" + strings.Repeat("a.", 100) + "' # " + strings.Repeat("a.[{", 9000),
		`x = "\"` + strings.Repeat("[", 100) + `"`,
		"x = \"\"\"\n" + strings.Repeat("a.b = [\n", maxValues+1) + "\"\"\"",
		"x = '''" + strings.Repeat("'\"[.", 100) + "'''",
	} {
		if _, problem := parseDocument("F", []byte(text)); problem != nil {
			t.Errorf("%.60q: got %v; want problem == nil", text, problem)
		}
	}
}

func TestMistakesAreCounted(t *testing.T) {
	l := readLayer("user file", "F", []byte(strings.Repeat("[x]\n", 1)+hostileFiles(2000)["many keys"]))
	if n := len(l.problems); n != 1 {
		t.Errorf("an unknown table: %d problems", n)
	}
	text := ""
	for i := range 300 {
		text += fmt.Sprintf("k%d = 1\n", i)
	}
	l = readLayer("user file", "F", []byte(text))
	if n := len(l.problems); n != maxProblems+1 || l.problems[n-1].Error() != "F:1: 290 more mistakes" {
		t.Errorf("%d problems, the last is %v", n, l.problems[n-1])
	}
}
