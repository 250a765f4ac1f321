package eventlog

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/export"
)

// endless is a reader of a line without an end. It counts the bytes that were read.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.n += int64(len(b))
	return len(b), nil
}

// TestALineWithoutEnd checks that the reader stops soon after the maximum length of a line.
func TestALineWithoutEnd(t *testing.T) {
	header, rest, _ := strings.Cut(smallExport(t), "\n")
	event, _, _ := strings.Cut(rest, `"payload_sha256"`)
	for name, begin := range map[string]string{
		"no export":                "",
		"no JSON":                  header + "\n",
		"a small payload":          header + "\n" + event + `"payload":"`,
		"a length behind its text": header + "\n" + `{"payload":"`,
	} {
		t.Run(name, func(t *testing.T) {
			more := new(endless)
			path := filepath.Join(t.TempDir(), "a.db")
			_, err := export.Import(t.Context(), io.MultiReader(strings.NewReader(begin), more), path, nil)
			var bad *export.ImportError
			if !errors.As(err, &bad) || bad.Line != strings.Count(begin, "\n")+1 ||
				!strings.Contains(err.Error(), "is the file an export?") {
				t.Errorf("%v", err)
			}
			if more.n > export.MaxBareLine+1<<20 {
				t.Errorf("%d bytes were read", more.n)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
				t.Error(left)
			}
		})
	}
}

// TestAPayloadThatIsLongAsText imports two very long lines. One has a payload with an escape for every byte. In the
// other one, the other fields are long, too.
func TestAPayloadThatIsLongAsText(t *testing.T) {
	leaveToOtherBuild(t)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("<"), export.MaxBareLine+1)
	for _, p := range [][]byte{long, []byte("short"), bytes.Repeat([]byte{0xff}, export.MaxBareLine+1)} {
		if _, err := l.Append(t.Context(), event.Event{Type: event.NotificationReceived, Class: event.Frame,
			Payload: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := exportOf(t, path, export.Options{})
	if first, _, _ := strings.Cut(text[strings.Index(text, "\n")+1:], "\n"); len(first) < 6*len(long) {
		t.Fatalf("the line has %d bytes only", len(first))
	}
	copied, _ := importOf(t, text)
	if again, _ := exportOf(t, copied, export.Options{}); again != text {
		t.Error("it did not come back")
	}
}
