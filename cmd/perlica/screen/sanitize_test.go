package screen_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/screen"
)

var sanitizeTests = []struct{ in, want string }{
	{"", ""},
	{"hello\tworld\nnext", "hello\tworld\nnext"},
	{"list[int] [/INST] [31mred", "list[int] [/INST] [31mred"},
	{"\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
	{"\x1b]0;title\a", "␛]0;title␇"},
	{"\x1b]52;c;aGk=\x1b\\", "␛]52;c;aGk=␛\\"},
	{"a\rb", "a␍b"},
	{"a\r\nb", "a\r\nb"},
	{"a\r\r\nb", "a␍\r\nb"},
	{"end\r", "end␍"},
	{"\x00\b\v\f\x7f", "␀␈␋␌␡"},
	{"c1 \u009b31m \u0085 \u0080", `c1 \u009b31m \u0085 \u0080`},
	{"raw \x9b31m", `raw \x9b31m`},
	{"bidi \u202aa\u202eb\u2066c\u2069", `bidi \u202aa\u202eb\u2066c\u2069`},
	{"bad \xff\xfe\xc3(", `bad \xff\xfe\xc3(`},
	{"cut \xe4\xb8", `cut \xe4\xb8`},
	{"real \ufffd", "real \ufffd"},
	{"中文 e\u0301 👩\u200d💻 🇪🇺 עברית ﷽", "中文 e\u0301 👩\u200d💻 🇪🇺 עברית ﷽"},
}

func TestSanitize(t *testing.T) {
	for _, tt := range sanitizeTests {
		if got := screen.Sanitize(tt.in); got != tt.want {
			t.Errorf("Sanitize(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got := screen.Sanitize(tt.want); got != tt.want {
			t.Errorf("Sanitize(%q) = %q, not the same", tt.want, got)
		}
	}
}

// TestWriterIsIndifferentToCuts cuts a text at each place and into single bytes. The output must always be the same.
func TestWriterIsIndifferentToCuts(t *testing.T) {
	for _, tt := range sanitizeTests {
		want := tt.want
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		for cut := range len(tt.in) + 1 {
			if got := written(t, tt.in[:cut], tt.in[cut:]); got != want {
				t.Errorf("%q cut at %d: %q, want %q", tt.in, cut, got, want)
			}
		}
		if got := written(t, strings.Split(tt.in, "")...); utf8.ValidString(tt.in) && got != want {
			t.Errorf("%q rune by rune: %q, want %q", tt.in, got, want)
		}
	}
}

func written(t *testing.T, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := screen.NewSafeWriter(&b)
	for _, p := range parts {
		if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatalf("Write(%q) = %d, %v", p, n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriterEndsWithOneNewline(t *testing.T) {
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{"", ""}, ""},
		{[]string{"a"}, "a\n"},
		{[]string{"a\n"}, "a\n"},
		{[]string{"a", "\n"}, "a\n"},
		{[]string{"a\n\n"}, "a\n\n"},
		{[]string{"a\r", "\n"}, "a\r\n"},
		{[]string{"中"[:2]}, `\xe4\xb8` + "\n"},
	} {
		if got := written(t, tt.parts...); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.parts, got, tt.want)
		}
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterReportsErrors(t *testing.T) {
	w := screen.NewSafeWriter(brokenPipe{})
	if _, err := w.Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Errorf("Write: %v", err)
	}
	if _, err := w.Write([]byte("\r")); err != nil {
		t.Errorf("Write of what waits: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close: %v", err)
	}
}

func FuzzWriter(f *testing.F) {
	for _, tt := range sanitizeTests {
		f.Add(tt.in, 1)
		f.Add(tt.in, 3)
	}
	f.Fuzz(func(t *testing.T, s string, size int) {
		size = max(1, size%7)
		var parts []string
		for rest := s; rest != ""; {
			n := min(size, len(rest))
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		got := written(t, parts...)
		want := screen.Sanitize(s)
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got != want {
			t.Fatalf("%q in parts of %d: %q, want %q", s, size, got, want)
		}
		for i, r := range got {
			if r == '\r' && strings.HasPrefix(got[i:], "\r\n") {
				continue
			}
			if !screen.Harmless(r) || !utf8.ValidString(got) {
				t.Fatalf("%q lets %q through: %q", s, r, got)
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	p := []byte(strings.Repeat("an ordinary line of text from an agent\n", 5))
	w := screen.NewSafeWriter(discard{})
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		w.Write(p)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
