package predictable

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/perlica/perlica/provider/agentside"
)

// lineWriter is the output of the connection. It makes the faults that a script orders, such as other line endings, and
// can join several lines into one Write. Its methods are safe for concurrent use.
type lineWriter struct {
	mu     sync.Mutex
	out    io.Writer
	eol    string // the line ending
	buf    []byte // the held lines
	held   int    // number of calls of holdLines that wait for their releaseLines
	closed bool   // set by @close: later output is dropped and the script continues
}

// keepBuffer is the maximum size of lineWriter.buf, in bytes.
const keepBuffer = 64 << 10

// Write writes a line that ends in a line feed, with the line ending eol in place of the line feed.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(line)
	if w.eol != "\n" {
		line = append(line[:n-1:n-1], w.eol...)
	}
	if len(w.buf)+len(line) > keepBuffer {
		if err := w.flushLines(); err != nil {
			return 0, err
		}
	}
	if w.held > 0 && len(line) <= keepBuffer {
		w.buf = append(w.buf, line...)
		return n, nil
	}
	return n, w.writeBytes(line)
}

// writeRaw writes b without a line ending.
func (w *lineWriter) writeRaw(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.flushLines(); err != nil {
		return err
	}
	return w.writeBytes(b)
}

// holdLines delays the following lines until releaseLines, which writes them with one Write. The caller must not wait
// for the client in between.
func (w *lineWriter) holdLines() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held++
}

// releaseLines writes the held lines.
func (w *lineWriter) releaseLines() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held--
	if w.held > 0 {
		return nil
	}
	return w.flushLines()
}

// flushLines writes the held lines. The caller must have locked mu.
func (w *lineWriter) flushLines() error {
	err := w.writeBytes(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *lineWriter) writeBytes(b []byte) error {
	if w.closed || len(b) == 0 {
		return nil
	}
	if _, err := w.out.Write(b); err != nil {
		return errGone
	}
	return nil
}

func (w *lineWriter) ending() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eol
}

func (w *lineWriter) setEnding(eol string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.eol = eol
}

func (w *lineWriter) closeOutput() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.flushLines() // no one could read the error
	w.closed = true
	if c, ok := w.out.(io.Closer); ok {
		// An error is not reported, because the client sees whether its input has ended.
		_ = c.Close()
	}
}

// object builds a JSON object with its fields in the given order.
type object struct{ b []byte }

// addRaw appends a field with a JSON value. An empty value leaves out the field.
func (o *object) addRaw(key, value string) *object {
	if value == "" {
		return o
	}
	o.b = append(o.b, ',')
	o.b = agentside.AppendString(o.b, key)
	o.b = append(o.b, ':')
	o.b = append(o.b, value...)
	return o
}

// addString appends a field with a string value.
func (o *object) addString(key, value string) *object { return o.addRaw(key, quote(value)) }

// addOptional appends a field with a string value. It appends no field if the value is empty.
func (o *object) addOptional(key, value string) *object {
	if value == "" {
		return o
	}
	return o.addString(key, value)
}

// endObject returns the complete JSON object. The caller must not use o afterwards.
func (o *object) endObject() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	o.b[0] = '{'
	return append(o.b, '}')
}

// quote returns s as a JSON string.
func quote(s string) string { return string(agentside.AppendString(make([]byte, 0, len(s)+2), s)) }

// setPath returns the JSON object raw with another value at path. A nil value removes the field. setPath creates
// missing objects on the path. Numbers keep all their digits.
func setPath(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
			return nil, errors.New("no object at " + path[0])
		}
	}
	switch {
	case len(path) > 1:
		inner, err := setPath(fields[path[0]], path[1:], value)
		if err != nil {
			return nil, err
		}
		fields[path[0]] = inner
	case value == nil:
		delete(fields, path[0])
	default:
		fields[path[0]] = value
	}
	return json.Marshal(fields)
}
