package predictable

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// message is the envelope of a line: a request, a notification or a response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// These JSON-RPC and ACP error codes are the ones that the agent sends without a script.
const (
	codeParse         = -32700
	codeInvalid       = -32600
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
	codeAuthRequired  = -32000
	codeNotFound      = -32002
)

// lineWriter writes whole lines, each with one Write unless they are held. Several goroutines may call its
// methods. A peer that does not read blocks all of them.
type lineWriter struct {
	mu     sync.Mutex
	out    io.Writer
	eol    string // the line ending
	buf    []byte // lines to be written
	held   int    // number of calls of holdLines without releaseLines
	closed bool   // set by @close: later output is dropped and the script continues
}

// keepBuffer limits the buffer of the writer, in bytes.
const keepBuffer = 64 << 10

// writeLine writes b and the current line ending.
func (w *lineWriter) writeLine(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf)+len(b) > keepBuffer {
		if err := w.flushLines(); err != nil {
			return err
		}
	}
	if len(b) > keepBuffer {
		if err := w.writeBytes(b); err != nil {
			return err
		}
		return w.writeBytes([]byte(w.eol))
	}
	w.buf = append(append(w.buf, b...), w.eol...)
	if w.held > 0 {
		return nil
	}
	return w.flushLines()
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

// holdLines delays lines until releaseLines, which writes them with one Write. The caller must not wait before then.
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

// flushLines writes the buffer. The caller holds mu.
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
	_ = w.flushLines() // the error has no reader
	w.closed = true
	if c, ok := w.out.(io.Closer); ok {
		// The client will notice whether closing succeeded.
		_ = c.Close()
	}
}

// readLine returns the next line without its ending, however long it is. The slice is valid until the next
// call.
func readLine(r *bufio.Reader, long *[]byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		*long = append((*long)[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.ReadSlice('\n')
			*long = append(*long, line...)
		}
		line = *long
		if cap(*long) > 1<<20 {
			*long = nil // do not keep the memory of a huge line
		}
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// object builds a JSON object with its fields in the given order.
type object struct{ b []byte }

// addRaw appends a field with a JSON value. An empty value leaves out the field.
func (o *object) addRaw(key, value string) *object {
	if value == "" {
		return o
	}
	o.b = append(o.b, ',')
	o.b = appendString(o.b, key)
	o.b = append(o.b, ':')
	o.b = append(o.b, value...)
	return o
}

// addString appends a field with a string value.
func (o *object) addString(key, value string) *object { return o.addRaw(key, quote(value)) }

// addOptional is str, but leaves out the field if the value is empty.
func (o *object) addOptional(key, value string) *object {
	if value == "" {
		return o
	}
	return o.addString(key, value)
}

// endObject returns the object. The builder must not be used afterwards.
func (o *object) endObject() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	o.b[0] = '{'
	return append(o.b, '}')
}

// quote returns s as a JSON string.
func quote(s string) string { return string(appendString(make([]byte, 0, len(s)+2), s)) }

// appendString appends s as a JSON string. Unlike encoding/json it escapes only the bytes that JSON requires,
// and keeps invalid UTF-8. A script can therefore send broken bytes.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// setPath returns the object in raw with the value at path replaced, or removed if value is nil. It creates
// missing objects on the path. Numbers keep their digits.
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
