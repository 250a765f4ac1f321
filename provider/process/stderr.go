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

// stderrTail reads an agent's stderr to its end, hands on each line and keeps the
// last 4 KiB. It has a pipe and a goroutine of its own, so that a grandchild that
// holds stderr open holds up nothing else.
type stderrTail struct {
	r      *os.File
	line   func([]byte)
	redact func([]byte) []byte // of a line, before anything keeps it; nil: nothing is masked
	done   chan struct{}       // closed when read has returned

	mu   sync.Mutex
	tail []byte // guarded by mu
	cut  bool   // guarded by mu: bytes before tail were dropped
}

func (s *stderrTail) read() {
	defer close(s.done)
	br := bufio.NewReaderSize(s.r, lineSize)
	var rest []byte // of a long line: a word that is not cut in two
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
			s.keep(append(text[:len(text):len(text)], end...))
			if s.line != nil {
				s.line(text)
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// atBlank cuts a part of a long line behind its last blank, if that leaves at least half.
func atBlank(b []byte) (part, rest []byte) {
	if i := bytes.LastIndexAny(b, " \t"); i >= len(b)/2 {
		return b[:i+1], bytes.Clone(b[i+1:])
	}
	return b, nil
}

func (s *stderrTail) keep(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = append(s.tail, b...)
	if over := len(s.tail) - tailSize; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
		s.cut = true
	}
}

// drainSlices are the parts of a wait for what ought to be there already. Of a moment in which this
// process stands still only one passes: the reader gets its turn in the others.
const drainSlices = 10

// drain waits until everything was read, at most d.
func (s *stderrTail) drain(d time.Duration) {
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

// restLimit is more than any pipe holds.
const restLimit = 1 << 20

// Output is the agent's standard output. It ends when no process holds it open any more, or
// when the agent has left and what it wrote has been read: a child that it left behind
// may hold it open for ever.
type Output struct {
	f      *os.File
	exited <-chan struct{}
	left   bool // the agent has left
	rest   int  // bytes read since then
}

// EndWithAgent lets Read know that the agent has left. It waits for that, or for ended.
func (o *Output) EndWithAgent(ended <-chan struct{}) {
	select {
	case <-o.exited:
		_ = o.f.SetReadDeadline(time.Now()) // Windows has none: there the job ends the children, too
	case <-ended:
	}
}

// Read reads until the agent has left and what it wrote is read; then it ends.
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
	for range drainSlices { // a deadline that is over before reading begins hides what is there
		_ = o.f.SetReadDeadline(time.Now().Add(drainWait / drainSlices))
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			o.rest += n
			return n, err
		}
	}
	return 0, io.EOF
}

// Close closes it. It is called once, by the reader.
func (o *Output) Close() error { return o.f.Close() }
