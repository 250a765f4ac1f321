package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// event is a server-sent event.
type event struct {
	name string // empty means "message"
	data []byte // valid until the next event is read
}

// maxEvent limits the data of one event, in bytes.
const maxEvent = 32 << 20

var errLongEvent = errors.New("an event of the stream is longer than 32 MiB")

// eventReader reads server-sent events by the WHATWG's HTML standard (section 9.2.6, "Interpreting an event
// stream"): lines end with CRLF, LF or CR, there are comments, and an event may have several data lines. The
// last event of the stream counts without its empty line if its last line is complete, because some servers
// leave the empty line out.
type eventReader struct {
	in     *bufio.Reader
	begun  bool // the first line was read
	skipLF bool // the line ended with CR, and a following LF belongs to the line
	line   []byte
	data   []byte
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(r, 16<<10)}
}

// nextEvent returns the next event with content. It skips the empty events and pings with which gateways keep a
// stream alive. The error is io.EOF at the end of the stream, otherwise the error of reading.
func (r *eventReader) nextEvent() (event, error) {
	for {
		e, err := r.nextData()
		if e.data = bytes.TrimSpace(e.data); err != nil || len(e.data) > 0 && !pings(e.name) {
			return e, err
		}
	}
}

// pings are the names of events without content.
var pings = oneOf("ping", "heartbeat", "keepalive", "keep-alive", "keep_alive")

// nextData returns the next event that has a data line.
func (r *eventReader) nextData() (event, error) {
	var e event
	r.data = r.data[:0]
	lines := 0
	for {
		line, err := r.readLine()
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || lines == 0):
			return event{}, err
		case err == nil && len(line) == 0 && lines == 0:
			e.name = ""
			continue
		case err != nil || len(line) == 0:
			e.data = r.data
			return e, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "data":
			if lines++; lines > 1 {
				r.data = append(r.data, '\n')
			}
			if r.data = append(r.data, value...); len(r.data) > maxEvent {
				return event{}, errLongEvent
			}
		}
	}
}

// readLine returns the next line without its end. The line is valid until the next call. If the stream ends within a
// line, readLine drops the line and returns io.EOF. The exception is a data line with a complete JSON value, because
// some servers leave out the last line end. readLine never waits for data after the end of a line.
func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		b, err := r.in.ReadByte()
		if data, ok := bytes.CutPrefix(r.line, []byte("data:")); ok && errors.Is(err, io.EOF) && json.Valid(data) {
			return r.line, nil
		}
		if err != nil {
			return nil, err
		}
		if r.skipLF && b == '\n' {
			r.skipLF = false
			continue
		}
		if r.skipLF = b == '\r'; b == '\n' || b == '\r' {
			break
		}
		if r.line = append(r.line, b); len(r.line) > maxEvent {
			return nil, errLongEvent
		}
	}
	if !r.begun {
		r.begun = true
		return bytes.TrimPrefix(r.line, []byte("\uFEFF")), nil
	}
	return r.line, nil
}
