package provider

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines reads all lines and returns the final error.
func readLines(r io.Reader, limit int) (frames []Frame, err error) {
	l := newLineReader(r, limit)
	for {
		f, err := l.nextLine()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for name, tt := range map[string]struct {
		in    string
		lines []string
	}{
		"nothing":             {"", nil},
		"one line":            {"a\n", []string{"a"}},
		"no line feed at end": {"a\nb", []string{"a", "b"}},
		"blank lines":         {"\n\n a\n\n", []string{"", "", " a", ""}},
		"carriage return":     {"a\r\n\rb\r", []string{"a\r", "\rb\r"}},
		"invalid UTF-8, NUL":  {"caf\xe9\x00\n\xff\n", []string{"caf\xe9\x00", "\xff"}},
		"longer than buffer":  {long + "\nb\n", []string{long, "b"}},
		"long, no line feed":  {"a\n" + long, []string{"a", long}},
	} {
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)),
			iotest.DataErrReader(strings.NewReader(tt.in))} {
			frames, err := readLines(r, 1<<20)
			if err != io.EOF {
				t.Errorf("%s: got %v; want err == io.EOF", name, err)
			}
			if len(frames) != len(tt.lines) {
				t.Fatalf("%s: %d lines, want %d", name, len(frames), len(tt.lines))
			}
			for i, f := range frames {
				if string(f.Line) != tt.lines[i] || f.Length != int64(len(tt.lines[i])) || f.Kind != "" {
					t.Errorf("%s: line %d: %.40q of %d, %s", name, i, f.Line, f.Length, f.Kind)
				}
			}
		}
	}
}

func TestLineReaderLimit(t *testing.T) {
	for _, limit := range []int{1, 10, 4096, 100 << 10} {
		for _, n := range []int{limit - 1, limit, limit + 1, limit + 64<<10, 3*limit + 200<<10} {
			for _, end := range []string{"\n", ""} {
				line := bytes.Repeat([]byte{'a', 'b', '\r'}, n/3+1)[:n]
				in := "before\n" + string(line) + end
				if limit < 6 {
					in = in[7:]
				}
				if end != "" {
					in += "z\n"
				}
				frames, err := readLines(strings.NewReader(in), limit)
				if err != io.EOF {
					t.Fatalf("got %v; want err == io.EOF", err)
				}
				i := strings.Count(in[:len(in)-len(line)], "before")
				if n == 0 && end == "" {
					continue
				}
				f := frames[i]
				if f.Length != int64(n) {
					t.Fatalf("limit %d: length %d, want %d", limit, f.Length, n)
				}
				if n <= limit {
					if f.Kind != "" || !bytes.Equal(f.Line, line) || f.SHA256 != nil {
						t.Errorf("limit %d, length %d: %s", limit, n, f.Kind)
					}
				} else {
					sum := sha256.Sum256(line)
					if f.Kind != Oversized || !bytes.Equal(f.Line, line[:min(n, keptOfOversized)]) || !bytes.Equal(f.SHA256, sum[:]) {
						t.Errorf("limit %d, length %d: %s, %d kept", limit, n, f.Kind, len(f.Line))
					}
				}
				if end != "" && string(frames[len(frames)-1].Line) != "z" {
					t.Errorf("limit %d, length %d: the line after it is %q", limit, n, frames[len(frames)-1].Line)
				}
			}
		}
	}
}

// TestLineReaderError checks that a failing read keeps the earlier data.
func TestLineReaderError(t *testing.T) {
	broken := errors.New("broken")
	for _, limit := range []int{1 << 20, 10} {
		in := strings.Repeat("y", 150<<10)
		frames, err := readLines(io.MultiReader(strings.NewReader("a\n"+in), iotest.ErrReader(broken)), limit)
		if !errors.Is(err, broken) || len(frames) != 2 || frames[1].Length != int64(len(in)) {
			t.Errorf("limit %d: %d lines, %v", limit, len(frames), err)
		}
	}
}

// FuzzLineReader checks that the lines equal the results of bytes.Split, for any division of the input. A line must not
// change when later lines are read.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\xff"), 3, 2)
	f.Add([]byte(strings.Repeat("abc\n", 100)+strings.Repeat("x", 300)), 64, 7)
	f.Fuzz(func(t *testing.T, in []byte, limit, chunk int) {
		limit = 1 + max(limit, 0)%(200<<10)
		frames, err := readLines(&chunks{in, 1 + max(chunk, 0)%(100<<10)}, limit)
		if err != io.EOF {
			t.Fatalf("got %v; want err == io.EOF", err)
		}
		want := bytes.Split(in, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		if len(frames) != len(want) {
			t.Fatalf("%d lines, want %d", len(frames), len(want))
		}
		for i, f := range frames {
			sum := sha256.Sum256(want[i])
			switch {
			case f.Length != int64(len(want[i])):
				t.Fatalf("line %d: length %d, want %d", i, f.Length, len(want[i]))
			case len(want[i]) <= limit && (f.Kind != "" || !bytes.Equal(f.Line, want[i])):
				t.Fatalf("line %d: %s %q, want %q", i, f.Kind, f.Line, want[i])
			case len(want[i]) > limit && (f.Kind != Oversized || !bytes.Equal(f.SHA256, sum[:]) ||
				!bytes.Equal(f.Line, want[i][:min(len(want[i]), keptOfOversized)])):
				t.Fatalf("line %d: %s, %d kept", i, f.Kind, len(f.Line))
			}
		}
	})
}

// chunks is a reader that returns at most size bytes at a time.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
