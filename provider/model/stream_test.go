package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perlica/perlica/provider/agentside"
)

var update = flag.Bool("update", false, "write what is generated")

// read holds the contents of a stream.
type read struct {
	Text    string
	Thought string   `json:",omitempty"`
	Tools   []string `json:",omitempty"`
	Usage   object   `json:",omitempty"`
	Stop    string   `json:",omitempty"`
	Warning string   `json:",omitempty"`
	Whole   bool
	Error   string   `json:",omitempty"`
	Files   []string `json:",omitempty"`
	use     usage
}

// readStream reads a stream of server-sent events.
func readStream(api API, body io.Reader) (out read) {
	from, events := mappings[api].answer(), newEventReader(body)
	for {
		e, err := events.nextEvent()
		if err != nil {
			reason, whole := from.ending()
			out.Stop, out.Warning, out.Whole = reason.acp, reason.warning, whole
			if !errors.Is(err, io.EOF) {
				out.Error = err.Error()
			}
			return out
		}
		pieces, err := from.readEvent(e)
		for _, p := range pieces {
			switch p.kind {
			case textPiece:
				out.Text += p.text
			case thoughtPiece:
				out.Thought += p.text
			case toolPiece:
				out.Tools = append(out.Tools, p.tool.id+" "+p.tool.name+" "+p.tool.arguments)
			case usagePiece:
				out.Usage, out.use = p.usage.result(), p.usage
			case filePiece:
				c := p.file.content()
				words := []string{fmt.Sprint(c["type"]), p.file.mime, p.file.data + p.file.uri}
				out.Files = append(out.Files, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
			}
		}
		if err != nil {
			out.Error = err.Error()
			return out
		}
	}
}

// recordedStream returns a recorded stream and its API.
func recordedStream(t *testing.T, path string) (API, []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var api API
	for _, a := range allAPIs() { // of two matching names the longer comes later
		if strings.HasPrefix(filepath.Base(path), string(a)) {
			api = a
		}
	}
	if filepath.Ext(path) == ".sse" {
		return api, append(bytes.TrimRight(b, "\n"), "\n\n"...)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			fmt.Fprintf(&out, "data: %s\n\n", line)
		}
	}
	return api, out.Bytes()
}

func recordedStreams(t *testing.T) []string {
	t.Helper()
	chunks, err := filepath.Glob("testdata/streams/*.chunks")
	sse, serr := filepath.Glob("testdata/streams/*.sse")
	if err = errors.Join(err, serr); err != nil || len(chunks) == 0 || len(sse) == 0 {
		t.Fatal(err, "no streams")
	}
	return append(chunks, sse...)
}

// TestStreams checks that a person has once checked the text, the usage and the stop reason of each recorded stream.
// They are the same for every division of the bytes and for every line ending.
func TestStreams(t *testing.T) {
	const golden = "testdata/streams/expected.json"
	want, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	b, err := os.ReadFile(golden)
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, path := range recordedStreams(t) {
		api, stream := recordedStream(t, path)
		plain := agentside.Encode(readStream(api, bytes.NewReader(stream)))
		got[filepath.Base(path)] = plain
		for name, r := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
			"CRLF":         bytes.NewReader(bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))),
			"CR":           iotest.OneByteReader(bytes.NewReader(bytes.ReplaceAll(stream, []byte("\n"), []byte("\r")))),
			"comments":     bytes.NewReader(bytes.ReplaceAll(stream, []byte("data:"), []byte(": a comment\nretry: 3\ndata:"))),
			"no last line": bytes.NewReader(append(bytes.TrimRight(stream, "\n"), '\n')),
			"a mark ahead": bytes.NewReader(append([]byte("\uFEFF"), stream...)),
		} {
			if again := agentside.Encode(readStream(api, r)); !bytes.Equal(again, plain) {
				t.Errorf("%s, %s: %s, plain %s", path, name, again, plain)
			}
		}
	}
	if *update {
		var b bytes.Buffer
		err := json.Indent(&b, agentside.Encode(got), "", " ")
		if err = errors.Join(err, os.WriteFile(golden, append(b.Bytes(), '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, g := range got {
		var compact bytes.Buffer
		if err := json.Compact(&compact, want[name]); err != nil || !bytes.Equal(compact.Bytes(), g) {
			t.Errorf("%s: %s, want %s", name, g, compact.Bytes())
		}
	}
}

// TestCutStreams checks that a stream that is cut before its end (at about 300 places) is not an answer. The exception
// is a stream in which the API has already marked the answer as complete.
func TestCutStreams(t *testing.T) {
	for _, path := range recordedStreams(t) {
		api, stream := recordedStream(t, path)
		whole := readStream(api, bytes.NewReader(stream))
		for i := 0; i < len(stream); i += 1 + len(stream)/300 {
			cut := readStream(api, bytes.NewReader(stream[:i]))
			if cut.Whole && (cut.Text != whole.Text || len(cut.Tools) != len(whole.Tools)) {
				t.Fatalf("%s, cut at %d: whole with the text %q of %q", path, i, cut.Text, whole.Text)
			}
			if !strings.HasPrefix(whole.Text, cut.Text) {
				t.Fatalf("%s, cut at %d: %q", path, i, cut.Text)
			}
		}
	}
}

func FuzzStreams(f *testing.F) {
	for i, api := range allAPIs() {
		f.Add(i, []byte("data: {\"choices\":[{\"delta\":{\"content\":[]}}]}\n\n"))
		f.Add(i, []byte("event: error\r\ndata: {\"error\":\"x\",\"type\":\""+string(api)+"\"}\r\r"))
	}
	f.Fuzz(func(t *testing.T, i int, stream []byte) {
		api := allAPIs()[(i%4+4)%4]
		a := readStream(api, bytes.NewReader(stream))
		b := readStream(api, iotest.OneByteReader(bytes.NewReader(stream)))
		if !bytes.Equal(agentside.Encode(a), agentside.Encode(b)) {
			t.Errorf("%s: %+v or %+v", api, a, b)
		}
		if a.Whole && a.Stop == "" {
			t.Errorf("%s: whole without a reason: %+v", api, a)
		}
	})
}
