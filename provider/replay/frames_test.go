package replay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// TestFramesAreByteExact checks that Read yields the lines that Write got, byte for byte, also with bytes that are not
// UTF-8.
func TestFramesAreByteExact(t *testing.T) {
	start := time.Unix(1, 0)
	events := func(yield func(event.Event, error) bool) {
		for i, e := range []event.Event{
			{Type: event.Requested, Payload: []byte(`{}`)},
			{Type: event.RequestSent, Payload: []byte(`{"id": 1,  "method":"<&>","n":9007199254740993}`)},
			{Type: event.LineMalformed, Payload: []byte("garbage")},
			{Type: event.NotificationReceived, Payload: []byte("{\"method\":\"caf\xe9\"}")},
		} {
			if e.Time = start.Add(time.Duration(i) * time.Second); !yield(e, nil) {
				return
			}
		}
	}
	var file bytes.Buffer
	if n, err := Write(&file, fromEvents(events)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	const want = `{"perlica_frames":1}
{"ms":0,"from":"client","line":"{\"id\": 1,  \"method\":\"<&>\",\"n\":9007199254740993}"}
{"ms":2000,"from":"agent","line_base64":"eyJtZXRob2QiOiJjYWbpIn0="}
`
	if file.String() != want {
		t.Errorf("written is\n%s", file.String())
	}
	var again bytes.Buffer
	if n, err := Write(&again, Read(&file)); n != 2 || err != nil || again.String() != want {
		t.Errorf("read is %d %v\n%s", n, err, again.String())
	}
}

// TestNoRecord checks the error of Read for each file in a table of damaged or foreign files.
func TestNoRecord(t *testing.T) {
	const head = "{\"perlica_frames\":1}\n"
	for text, want := range map[string]string{
		"":                                      "the file is empty",
		"hello":                                 ErrNoRecord.Error(),
		strings.Repeat("\x00", 100):             ErrNoRecord.Error(),
		`{"perlica_`:                            "the file was cut",
		`{"perlica_log_export":1}` + "\n":       "line 1",
		`{"perlica_frames":1}`:                  "line 1: the file was cut: the line has no end",
		`{"perlica_frames":2}` + "\n":           "format 2 of a file of frames is not known, only 1",
		`{"perlica_frames":x}` + "\n":           "line 1: invalid character",
		head + "{}\n":                           `line 2: "from" is "", not "client" or "agent"`,
		head + "\n":                             "line 2: EOF",
		head + `{"ms":0,"form":"agent"}` + "\n": `line 2: json: unknown field "form"`,
		head + `{"from":"agent"}` + "\n":        "line 2: it is no JSON-RPC message",
		head + `{"from":"agent","line":"[]"}` + "\n":                          "line 2: it is no JSON-RPC message",
		head + `{"from":"agent","line":"{\"id\":1}{"}` + "\n":                 "line 2: it is no JSON-RPC message",
		head + `{"from":"agent","line":"{\n\"id\":1}"}` + "\n":                "line 2: it is no JSON-RPC message",
		head + `{"from":"agent","line":"{\"method\":1}"}` + "\n":              "line 2: it is no JSON-RPC message",
		head + `{"from":"agent","line":"{\"method\":\"x\"}"}` + "\n" + `{"fr`: "line 3: the file was cut",
	} {
		if _, err := New(Read(strings.NewReader(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	fault := errors.New("disk")
	if _, err := New(Read(badReader{fault})); !errors.Is(err, fault) {
		t.Error(err)
	}
	events := func(yield func(event.Event, error) bool) {
		_ = yield(event.Event{Type: event.Requested, Withheld: event.Pruned}, nil) &&
			yield(event.Event{Seq: 7, Type: event.NotificationReceived, Withheld: event.Pruned}, nil) &&
			yield(event.Event{}, fault)
	}
	var gone *GoneError
	if _, err := New(fromEvents(events)); !errors.As(err, &gone) || gone.Seq != 7 || gone.Why != event.Pruned {
		t.Error(err)
	}
}

type badReader struct{ error }

func (r badReader) Read([]byte) (int, error) { return 0, r.error }

// TestTurns checks the turns that Turns finds in the record of a real session.
func TestTurns(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "claude.frames"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := New(Read(f))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		text, end string
		questions int
		cancelled bool
	}{
		{"Say hello to Perlica", "end_turn", 0, false},
		{"WRITE out.txt hello", "end_turn", 1, false},
		{"WRITE no.txt hello", "end_turn", 1, false},
		{"SLOW 60", "cancelled", 0, true},
	}
	turns := r.Turns()
	if len(turns) != len(want) || len(r.Exchanges) != 8 || r.Lines != 61 || r.Millis < 10_000 {
		t.Fatalf("%d turns, %d exchanges, %d lines, %d ms", len(turns), len(r.Exchanges), r.Lines, r.Millis)
	}
	for i, x := range turns {
		if w := want[i]; x.Text != w.text || x.End() != w.end || x.Questions != w.questions || x.Cancelled != w.cancelled ||
			x.Lines == 0 || x.Millis == 0 {
			t.Errorf("turn %d is %q: %s, %d questions, cancelled %v", i, x.Text, x.End(), x.Questions, x.Cancelled)
		}
	}
	for line, end := range map[string]string{
		`< {"id":4,"error":{"code":-32000,"message":"log in"}}`: "error -32000",
		`< {"id":"4","result":{"stopReason":"end_turn"}}`:       "end_turn",
		`< {"id":"04","result":{"stopReason":"end_turn"}}`:      "no end",
		`< {"id":5,"result":{}}`:                                "no end",
	} {
		r, err := New(record(dies + line))
		if err != nil || r.Turns()[0].End() != end {
			t.Errorf("%s: %q, %v", line, r.Turns()[0].End(), err)
		}
	}
}

// FuzzRead checks that a replay of any file with any input ends without a panic.
func FuzzRead(f *testing.F) {
	for _, text := range []string{begin + asks + slow + dies, begin + begin,
		`< {"method":"$/cancel_request","params":{"requestId":1}}`} {
		var file bytes.Buffer
		if _, err := Write(&file, record(text)); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes(), true)
	}
	f.Fuzz(func(t *testing.T, file []byte, loose bool) {
		r, err := New(Read(bytes.NewReader(file)))
		if err != nil {
			return
		}
		var client bytes.Buffer
		for frame := range Read(bytes.NewReader(file)) {
			if frame.Client {
				client.Write(append(frame.Line, '\n'))
			}
		}
		for _, x := range r.Turns() {
			x.End()
		}
		if err := Serve(t.Context(), &client, io.Discard, r, Options{InOrder: loose, AnyAnswer: loose}); err != nil {
			t.Error(err)
		}
	})
}
