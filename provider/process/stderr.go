package process

import (
	"bufio"
	"bytes"
	"errors"
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

func newStderrTail(r *os.File, line func([]byte), redact func([]byte) []byte) *stderrTail {
	return &stderrTail{r: r, line: line, redact: redact, done: make(chan struct{})}
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
			s.take(chunk)
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

// take masks a line, keeps it and hands it on.
func (s *stderrTail) take(chunk []byte) {
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
