package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// An ImportError says that a line of an export is wrong or missing.
type ImportError struct {
	Line int // counted from 1
	Err  error
}

func (e *ImportError) Error() string {
	return fmt.Sprintf("eventlog: import: line %d: %v", e.Line, e.Err)
}

func (e *ImportError) Unwrap() error { return e.Err }

// Reader reads an export and compares each line with the hashes in the line. The caller may trust the events only
// after Next has returned io.EOF. By then Reader has compared all of them with the root in the header.
type Reader struct {
	in *bufio.Reader
	// n is the number of the line in buf, counted from 1.
	n   int
	buf []byte
	// room is the maximum length of the line in bytes. It is zero until the line is longer than MaxBareLine.
	room int64
	// sum is the hash of the lines before the line in buf.
	sum    hash.Hash
	Header Header
	tree   tree.Range
	// last is the subtree on the previous line. If the previous line was an event, the subtree's hash is zero.
	last   tree.Subtree
	end    end
	masked int64
}

// NewReader returns a Reader. It reads the header.
func NewReader(in io.Reader) (*Reader, error) {
	x := &Reader{in: bufio.NewReaderSize(in, 1<<16), sum: sha256.New()}
	if err := x.readLine(); err != nil {
		return nil, err
	}
	h, err := parseHeader(x.buf)
	if err != nil {
		return nil, x.lineError(err)
	}
	x.Header = h
	return x, nil
}

// lineError returns an ImportError for the current line.
func (x *Reader) lineError(err error) error { return &ImportError{x.n, err} }

func (x *Reader) lineErrorf(format string, args ...any) error {
	return x.lineError(fmt.Errorf(format, args...))
}

// Next returns the next event or absent subtree. After the last one, Next checks the export as a whole and returns
// io.EOF.
func (x *Reader) Next() (*event.Event, *tree.Subtree, error) {
	if err := x.readLine(); err != nil {
		return nil, nil, err
	}
	switch firstMember(x.buf) {
	case "end":
		return nil, nil, x.checkEnd()
	case "absent":
		a, err := x.parseAbsentLine()
		return nil, a, err
	}
	e, err := x.parseEvent()
	return e, nil, err
}

func (x *Reader) parseEvent() (*event.Event, error) {
	e := new(event.Event)
	if err := e.UnmarshalJSON(x.buf); err != nil {
		return nil, x.lineError(err)
	}
	switch {
	case int64(e.Seq) != x.tree.Size+1:
		return nil, x.lineErrorf("event %d stands where event %d should", e.Seq, x.tree.Size+1)
	case x.tree.Size >= x.Header.Size:
		return nil, x.lineErrorf("the log has no more than %d events", x.Header.Size)
	case e.Withheld == event.Missing:
		return nil, x.lineErrorf("event %d: its payload is missing, and nothing says why", e.Seq)
	case e.Withheld == "" && !e.PayloadMatches():
		return nil, x.lineErrorf("event %d: the payload was edited", e.Seq)
	case e.Leaf() != e.LeafHash:
		return nil, x.lineErrorf("event %d: the header was edited", e.Seq)
	case e.Seq == 1 && store.OriginOf(e.ID) != x.Header.Origin:
		return nil, x.lineErrorf("event 1 is not the first of %q", x.Header.Origin)
	}
	x.tree.Add(e.LeafHash)
	x.last = tree.Subtree{}
	x.end.Events++
	if e.Withheld != "" {
		x.end.Withheld++
	}
	if e.Withheld == event.Masked {
		x.masked++
	}
	return e, nil
}

func (x *Reader) parseAbsentLine() (*tree.Subtree, error) {
	a, err := parseAbsence(x.buf)
	if err != nil {
		return nil, x.lineError(err)
	}
	from, to := a.Span()
	lastFrom, lastTo := x.last.Span()
	switch {
	case from != x.tree.Size:
		return nil, x.lineErrorf("what stands for event %d stands where event %d should", a.Seq, x.tree.Size+1)
	case to > x.Header.Size:
		return nil, x.lineErrorf("the log has no more than %d events", x.Header.Size)
	case from&(1<<a.Level-1) != 0:
		return nil, x.lineErrorf("no subtree of %d events begins with event %d", int64(1)<<a.Level, a.Seq)
	case x.last.Hash != tlog.Hash{} && lastTo == from && x.last.Level == a.Level && lastFrom&(2<<a.Level-1) == 0:
		return nil, x.lineErrorf("one hash would do for this line and the one before it")
	}
	x.tree.AddSubtree(a.Level, a.Hash)
	x.last = a
	x.end.Absent++
	return &a, nil
}

// checkEnd checks the last line, the root and the checkpoint.
func (x *Reader) checkEnd() error {
	if err := x.checkEndLine(); err != nil {
		return err
	}
	if x.tree.Root() != x.Header.Root {
		return x.lineErrorf("the events lead to the root %s, the header names %s", x.tree.Root(), x.Header.Root)
	}
	return io.EOF
}

// checkEndLine compares the last line with the earlier lines and checks that no line follows it.
func (x *Reader) checkEndLine() error {
	end, err := parseEnd(x.buf)
	if err != nil {
		return x.lineError(err)
	}
	x.end.Sum = end.Sum
	switch {
	case end != x.end:
		return x.lineErrorf("lines are missing or too many: it counts %s, and there are %s", end, x.end)
	case end.Sum != [sha256.Size]byte(x.sum.Sum(nil)):
		return x.lineErrorf("the lines before it are not those that were exported: their SHA-256 differs")
	case x.tree.Size != x.Header.Size:
		return x.lineErrorf("the log has %d events, and this is the end after %d", x.Header.Size, x.tree.Size)
	}
	if _, err := x.in.ReadByte(); err == nil {
		x.n++
		return x.lineErrorf("something follows the end")
	} else if err != io.EOF {
		return fmt.Errorf("eventlog: import: %w", err)
	}
	return nil
}

func (e end) String() string {
	return fmt.Sprintf("%d events, %d of them without payload, and %d hashes", e.Events, e.Withheld, e.Absent)
}

const (
	// MaxBareLine is longer than any line without its payload, in bytes. A signed note has at most 1 MB.
	MaxBareLine = 4 << 20
	// maxLine is longer than any line, in bytes. The default limit for an agent's line is 64 MiB, and an escaped byte
	// takes up to six bytes.
	maxLine = 6<<26 + MaxBareLine
)

// room returns the maximum length of a line. The parameter "begin" is the beginning of the line, with MaxBareLine
// bytes. Only a payload can make a line longer, and payload_len comes before the payload. A byte of the payload takes
// at most six bytes ("\\u003c").
func room(begin []byte) int64 {
	d := json.NewDecoder(bytes.NewReader(begin))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return MaxBareLine
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var length int64
		var other json.RawMessage
		if name != "payload_len" {
			err = d.Decode(&other)
		} else if err = d.Decode(&length); err == nil && length > 0 {
			return MaxBareLine + 6*min(length, maxLine)
		}
		if err != nil { // The value continues after the end of begin.
			break
		}
	}
	return MaxBareLine
}

// checkLength returns an error if buf is longer than its line may be. The line may continue after buf. Without this
// limit a file without newlines would fill the memory.
func (x *Reader) checkLength() error {
	n := int64(len(x.buf))
	if n <= MaxBareLine {
		return nil
	}
	if x.room == 0 {
		x.room = room(x.buf[:MaxBareLine])
		// Allocate the whole length at once. A buffer that grows in steps is copied many times and needs more memory.
		// Unused pages take no memory.
		x.buf = append(make([]byte, 0, min(x.room, maxLine)+1<<17), x.buf...)
	}
	switch {
	case n > maxLine:
		return x.lineErrorf("it has more than %d MiB, and no line of an export has: a payload as large cannot be imported",
			maxLine>>20)
	case n > x.room:
		return x.lineErrorf("it is longer than the %d bytes that an event like this can take: is the file an export?", x.room)
	}
	return nil
}

// readLine reads the next line into buf, without its newline.
func (x *Reader) readLine() error {
	if x.n > 0 {
		_, _ = x.sum.Write(append(x.buf, '\n')) // never fails
	}
	x.n++
	x.buf, x.room = x.buf[:0], 0
	if cap(x.buf) > MaxBareLine {
		x.buf = nil // Do not keep a large buffer after one long line.
	}
	for {
		piece, err := x.in.ReadSlice('\n')
		x.buf = append(x.buf, piece...)
		if err := x.checkLength(); err != nil {
			return err
		}
		switch {
		case err == nil:
			x.buf = x.buf[:len(x.buf)-1]
			return nil
		case err == io.EOF && len(x.buf) == 0 && x.n == 1:
			return x.lineError(errors.New("the file is empty"))
		case err == io.EOF:
			return x.lineError(errors.New("the file was cut: its last line is missing"))
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("eventlog: import: %w", err)
		}
	}
}

// firstMember returns the name of the first member of a JSON object, or "". It does not validate
// the text.
func firstMember(b []byte) string {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte("{"))
	if !ok {
		return ""
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte(`"`))
	name, _, ok2 := bytes.Cut(rest, []byte(`"`))
	if !ok || !ok2 {
		return ""
	}
	return string(name)
}
