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

// An ImportError says that an export cannot be imported because of what one of its lines
// says, or does not say.
type ImportError struct {
	Line int // counted from 1
	Err  error
}

func (e *ImportError) Error() string {
	return fmt.Sprintf("eventlog: import: line %d: %v", e.Line, e.Err)
}

func (e *ImportError) Unwrap() error { return e.Err }

// Reader reads an export and holds each line against the hashes in it. What it
// yields is as the log had it if it comes to the end: only then the root is known to be
// that of the header.
type Reader struct {
	in     *bufio.Reader
	n      int       // the number of the line in buf
	buf    []byte    // the line
	room   int64     // how long it may be, if it is so long that this is asked
	sum    hash.Hash // of the lines before it
	Header Header
	tree   tree.Range
	last   tree.Subtree // the line before, if it was one; else its hash is zero
	end    end
	masked int64
}

// NewReader reads the header.
func NewReader(in io.Reader) (*Reader, error) {
	x := &Reader{in: bufio.NewReaderSize(in, 1<<16), sum: sha256.New()}
	if err := x.readLine(); err != nil {
		return nil, err
	}
	h, err := parseHeader(x.buf)
	if err != nil {
		return nil, x.bad(err)
	}
	x.Header = h
	return x, nil
}

// bad says that it is the line's fault.
func (x *Reader) bad(err error) error { return &ImportError{x.n, err} }

func (x *Reader) badf(format string, args ...any) error {
	return x.bad(fmt.Errorf(format, args...))
}

// Next returns the next event or absence. Behind the last one, when all of it has been
// found to be right, the error is io.EOF.
func (x *Reader) Next() (*event.Event, *tree.Subtree, error) {
	if err := x.readLine(); err != nil {
		return nil, nil, err
	}
	switch firstMember(x.buf) {
	case "end":
		return nil, nil, x.finish()
	case "absent":
		a, err := x.absence()
		return nil, a, err
	}
	e, err := x.event()
	return e, nil, err
}

func (x *Reader) event() (*event.Event, error) {
	e := new(event.Event)
	if err := e.UnmarshalJSON(x.buf); err != nil {
		return nil, x.bad(err)
	}
	switch {
	case int64(e.Seq) != x.tree.Size+1:
		return nil, x.badf("event %d stands where event %d should", e.Seq, x.tree.Size+1)
	case x.tree.Size >= x.Header.Size:
		return nil, x.badf("the log has no more than %d events", x.Header.Size)
	case e.Withheld == event.Missing:
		return nil, x.badf("event %d: its payload is missing, and nothing says why", e.Seq)
	case e.Withheld == "" && !e.PayloadMatches():
		return nil, x.badf("event %d: the payload was edited", e.Seq)
	case e.Leaf() != e.LeafHash:
		return nil, x.badf("event %d: the header was edited", e.Seq)
	case e.Seq == 1 && store.OriginOf(e.ID) != x.Header.Origin:
		return nil, x.badf("event 1 is not the first of %q", x.Header.Origin)
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

func (x *Reader) absence() (*tree.Subtree, error) {
	a, err := parseAbsence(x.buf)
	if err != nil {
		return nil, x.bad(err)
	}
	from, to := a.Span()
	lastFrom, lastTo := x.last.Span()
	switch {
	case from != x.tree.Size:
		return nil, x.badf("what stands for event %d stands where event %d should", a.Seq, x.tree.Size+1)
	case to > x.Header.Size:
		return nil, x.badf("the log has no more than %d events", x.Header.Size)
	case from&(1<<a.Level-1) != 0:
		return nil, x.badf("no subtree of %d events begins with event %d", int64(1)<<a.Level, a.Seq)
	case x.last.Hash != tlog.Hash{} && lastTo == from && x.last.Level == a.Level && lastFrom&(2<<a.Level-1) == 0:
		return nil, x.badf("one hash would do for this line and the one before it")
	}
	x.tree.AddSubtree(a.Level, a.Hash)
	x.last = a
	x.end.Absent++
	return &a, nil
}

// finish checks what only the end can tell.
func (x *Reader) finish() error {
	if err := x.ended(); err != nil {
		return err
	}
	if x.tree.Root() != x.Header.Root {
		return x.badf("the events lead to the root %s, the header names %s", x.tree.Root(), x.Header.Root)
	}
	return io.EOF
}

// ended compares the last line with the lines before it, and sees that there is none behind it.
func (x *Reader) ended() error {
	end, err := parseEnd(x.buf)
	if err != nil {
		return x.bad(err)
	}
	x.end.Sum = end.Sum
	switch {
	case end != x.end:
		return x.badf("lines are missing or too many: it counts %s, and there are %s", end, x.end)
	case end.Sum != [sha256.Size]byte(x.sum.Sum(nil)):
		return x.badf("the lines before it are not those that were exported: their SHA-256 is another one")
	case x.tree.Size != x.Header.Size:
		return x.badf("the log has %d events, and this is the end after %d", x.Header.Size, x.tree.Size)
	}
	if _, err := x.in.ReadByte(); err == nil {
		x.n++
		return x.badf("something stands behind the end")
	} else if err != io.EOF {
		return fmt.Errorf("eventlog: import: %w", err)
	}
	return nil
}

func (e end) String() string {
	return fmt.Sprintf("%d events, %d of them without payload, and %d hashes", e.Events, e.Withheld, e.Absent)
}

const (
	// MaxBareLine is more than any line takes but for a payload: a signed note has 1 MB at most.
	MaxBareLine = 4 << 20
	// maxLine is more than any line takes: an agent's line of 64 MiB, which is the most
	// that is kept unless the configuration says otherwise, with each byte escaped.
	maxLine = 6<<26 + MaxBareLine
)

// room is how long a line may get that begins with these maxBareLine bytes. What is longer
// holds a payload, and says before it how long that is; a byte of it takes six ("\u003c") at
// most.
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
		if err != nil { // it goes on behind the beginning
			break
		}
	}
	return MaxBareLine
}

// fits returns an error if buf is longer than its line may be, of which it is the beginning.
// Nothing is read that is not taken in: a file without lines would fill the memory.
func (x *Reader) fits() error {
	n := int64(len(x.buf))
	if n <= MaxBareLine {
		return nil
	}
	if x.room == 0 {
		x.room = room(x.buf[:MaxBareLine])
		// All at once: what grows is copied, and its copies wait for the collector. What is not
		// written to takes no memory.
		x.buf = append(make([]byte, 0, min(x.room, maxLine)+1<<17), x.buf...)
	}
	switch {
	case n > maxLine:
		return x.badf("it has more than %d MiB, and no line of an export has: a payload as large cannot be imported", maxLine>>20)
	case n > x.room:
		return x.badf("it is longer than the %d bytes that an event like this can take: is the file an export?", x.room)
	}
	return nil
}

// readLine reads the next line into buf, without its end.
func (x *Reader) readLine() error {
	if x.n > 0 {
		_, _ = x.sum.Write(append(x.buf, '\n')) // it never fails
	}
	x.n++
	x.buf, x.room = x.buf[:0], 0
	if cap(x.buf) > MaxBareLine {
		x.buf = nil // one line as long is no reason to keep as much for all
	}
	for {
		piece, err := x.in.ReadSlice('\n')
		x.buf = append(x.buf, piece...)
		if err := x.fits(); err != nil {
			return err
		}
		switch {
		case err == nil:
			x.buf = x.buf[:len(x.buf)-1]
			return nil
		case err == io.EOF && len(x.buf) == 0 && x.n == 1:
			return x.bad(errors.New("the file is empty"))
		case err == io.EOF:
			return x.bad(errors.New("the file was cut: its last line is missing"))
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("eventlog: import: %w", err)
		}
	}
}

// firstMember returns the name of the first member of a JSON object, as far as it can be
// told at a glance.
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
