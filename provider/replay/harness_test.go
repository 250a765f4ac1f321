package replay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
)

// session is a running replay and the client that talks to it.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	gone chan error
}

// serve starts a replay of a record.
func serve(t *testing.T, frames iter.Seq2[Frame, error], opt Options) *session {
	t.Helper()
	r, err := New(frames)
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, in: inW, out: bufio.NewReader(outR), gone: make(chan error, 1)}
	go func() {
		s.gone <- Serve(context.Background(), inR, outW, r, opt)
		outW.Close()
	}()
	return s
}

// sendLine sends one line of the client to the replay.
func (s *session) sendLine(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
}

// line returns the next line that the replay writes.
func (s *session) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// expectLines fails the test unless the replay writes exactly these lines next. An … in a line matches any text.
func (s *session) expectLines(lines ...string) {
	s.t.Helper()
	for _, want := range lines {
		head, tail, cut := strings.Cut(want, "…")
		got := s.line()
		if cut && strings.HasPrefix(got, head) && strings.HasSuffix(got, tail) || got == want {
			continue
		}
		s.t.Fatalf("the replay says\n%s, want\n%s", got, want)
	}
}

// endClient closes the client's side and checks that the replay then writes nothing further and ends.
func (s *session) endClient() {
	s.t.Helper()
	s.in.Close()
	if rest, err := io.ReadAll(s.out); err != nil || len(rest) > 0 {
		s.t.Errorf("the replay goes on: %s (%v)", rest, err)
	}
	if err := <-s.gone; err != nil {
		s.t.Error(err)
	}
}

// record yields the frames in a text. A row "> LINE" is a line of the client, and a row "< LINE" a line of the agent.
func record(text string) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		n := int64(0)
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			if line == "" {
				continue
			}
			n++
			if !yield(Frame{Seq: n, Millis: n * 10, Client: line[0] == '>', Line: []byte(line[2:])}, nil) {
				return
			}
		}
	}
}
