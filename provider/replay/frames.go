package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/export"
)

// Frame is one line of a record, with its sender and time.
type Frame struct {
	Seq    int64 // the number of the event in the log, or of the line in the file
	Millis int64 // milliseconds since the first frame
	Client bool  // true if the client sent the line, false if the agent did
	Line   []byte

	conn string // the name of the connection, because ids are unique only within one connection
}

// A file of frames has the format in docs/replay.md.

// formatVersion is the version of the format of a file of frames.
const formatVersion = 1

type frameLine struct {
	Millis int64   `json:"ms"`
	From   string  `json:"from"`
	Line   *string `json:"line,omitempty"`
	Base64 []byte  `json:"line_base64,omitempty"` // the line in place of Line, if the line is not UTF-8
}

// Write writes a file of frames to w and returns the number of frames.
func Write(w io.Writer, frames iter.Seq2[Frame, error]) (n int, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(out, "{\"perlica_frames\":%d}\n", formatVersion) // Flush returns the error of all writes
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for f, err := range frames {
		if err != nil {
			return n, err
		}
		l := frameLine{Millis: f.Millis, From: "agent"}
		if f.Client {
			l.From = "client"
		}
		if utf8.Valid(f.Line) {
			s := string(f.Line)
			l.Line = &s
		} else {
			l.Base64 = f.Line
		}
		if err := enc.Encode(l); err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}

// ErrNoRecord means that a file is neither an export of the log nor a file of frames.
var ErrNoRecord = errors.New("it is no record: neither an export of the log nor a file of frames")

// Read yields the frames in an export of the log or in a file of frames. The first bytes determine the kind of file.
// For any other file, Read yields an error and reads no further.
func Read(r io.Reader) iter.Seq2[Frame, error] {
	in := bufio.NewReaderSize(r, 1<<16)
	switch head, err := in.Peek(len(`{"perlica_log_export"`)); {
	case len(head) == 0 && errors.Is(err, io.EOF):
		return failed(errors.New("the file is empty"))
	case len(head) > 0 && bytes.HasPrefix([]byte(`{"perlica_log_export"`), head):
		return fromEvents(exported(in))
	case bytes.HasPrefix(head, []byte(`{"perlica_frames"`)):
		return frames(in)
	case err == nil || errors.Is(err, io.EOF):
		return failed(ErrNoRecord)
	default:
		return failed(err)
	}
}

func failed(err error) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) { yield(Frame{}, fmt.Errorf("replay: %w", err)) }
}

// exported yields the events in an export of the log.
func exported(in io.Reader) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		x, err := export.NewReader(in)
		for err == nil {
			var e *event.Event
			if e, _, err = x.Next(); err == nil && e != nil && !yield(*e, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(event.Event{}, err)
		}
	}
}

// frames yields the frames in a file of frames.
func frames(in *bufio.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for n := int64(1); ; n++ {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return
			}
			f := Frame{Seq: n}
			switch {
			case errors.Is(err, io.EOF):
				err = errors.New("the file was cut: the line has no end")
			case err == nil && n == 1:
				err = checkVersion(line)
			case err == nil:
				err = f.decodeLine(line)
			}
			if err != nil {
				yield(f, fmt.Errorf("replay: line %d: %w", n, err))
				return
			}
			if n > 1 && !yield(f, nil) {
				return
			}
		}
	}
}

func checkVersion(line []byte) error {
	var head struct {
		Version int `json:"perlica_frames"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	if head.Version != formatVersion {
		return fmt.Errorf("format %d of a file of frames is not known, only %d", head.Version, formatVersion)
	}
	return nil
}

func (f *Frame) decodeLine(line []byte) error {
	var l frameLine
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return err
	}
	if l.From != "client" && l.From != "agent" {
		return fmt.Errorf(`"from" is %q, not "client" or "agent"`, l.From)
	}
	f.Millis, f.Client, f.Line = l.Millis, l.From == "client", l.Base64
	if l.Line != nil {
		f.Line = []byte(*l.Line)
	}
	return nil
}
