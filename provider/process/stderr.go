package process

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	tailSize = 4 << 10
	lineSize = 8 << 10
)

// stderrTail reads an agent's stderr to its end, passes each line on and keeps the last 4 KiB. It has its own
// pipe and its own goroutine, so that a grandchild that holds stderr open delays nothing else.
type stderrTail struct {
	r      *os.File
	line   func([]byte)
	redact func([]byte) []byte // masks a line before it is kept; nil masks nothing
	done   chan struct{}       // closed when readLines has returned

	mu   sync.Mutex
	tail []byte // guarded by mu
	cut  bool   // guarded by mu; bytes before tail were dropped
}

func (s *stderrTail) readLines() {
	defer close(s.done)
	br := bufio.NewReaderSize(s.r, lineSize)
	var rest []byte // the rest of a long line, so that no word is cut
	for {
		chunk, err := br.ReadSlice('\n')
		chunk = append(rest, chunk...)
		rest = nil
		if errors.Is(err, bufio.ErrBufferFull) {
			chunk, rest = atBlank(chunk)
		}
		if len(chunk) > 0 {
			text := bytes.TrimRight(chunk, "\r\n")
			end := chunk[len(text):]
			if s.redact != nil {
				text = s.redact(text)
			}
			s.keepTail(append(text[:len(text):len(text)], end...))
			if s.line != nil {
				s.line(text)
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// atBlank cuts a part of a long line after its last blank, if at least half of the part remains.
func atBlank(b []byte) (part, rest []byte) {
	if i := bytes.LastIndexAny(b, " \t"); i >= len(b)/2 {
		return b[:i+1], bytes.Clone(b[i+1:])
	}
	return b, nil
}

func (s *stderrTail) keepTail(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = append(s.tail, b...)
	if over := len(s.tail) - tailSize; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
		s.cut = true
	}
}

// drainSlices is the number of parts into which a short wait for available data is divided. If the machine pauses this
// process, one part of the wait ends during the pause. The reader still has the other parts to read the data.
const drainSlices = 10

// drainPipe waits at most d until everything was read.
func (s *stderrTail) drainPipe(d time.Duration) {
	t := time.NewTicker(d / drainSlices)
	defer t.Stop()
	for range drainSlices {
		select {
		case <-s.done:
			return
		case <-t.C:
		}
	}
}

func (s *stderrTail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.tail
	for s.cut && len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// restLimit is larger than any pipe, in bytes.
const restLimit = 1 << 20

// Output is the agent's standard output. It ends when no process holds it open, or when the agent has ended
// and its output has been read. Without the second condition a remaining child could hold it open for ever.
type Output struct {
	f      *os.File
	exited <-chan struct{}
	left   bool // the agent has ended
	rest   int  // bytes read since then
}

// EndWithAgent waits until the agent has ended, and then lets Read return. It returns early when the channel "ended" is
// closed.
func (o *Output) EndWithAgent(ended <-chan struct{}) {
	select {
	case <-o.exited:
		_ = o.f.SetReadDeadline(time.Now()) // this fails on Windows, but there the job ends the children, too
	case <-ended:
	}
}

// Read returns the output, and io.EOF after the agent has ended and its output was read.
func (o *Output) Read(b []byte) (int, error) {
	if !o.left {
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.left = true
	}
	if o.rest >= restLimit {
		return 0, io.EOF
	}
	for range drainSlices { // each try has a later deadline, because a Read after its deadline returns no data
		_ = o.f.SetReadDeadline(time.Now().Add(drainWait / drainSlices))
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			o.rest += n
			return n, err
		}
	}
	return 0, io.EOF
}

// Close closes the output. The reader calls it once.
func (o *Output) Close() error { return o.f.Close() }
