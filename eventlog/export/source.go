package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/verify"
)

// Source makes an export a source for verify.Check. It reads the export once, in constant memory. Package verify does
// the checks. Source itself compares only the last line with the other lines.
type Source struct {
	x *Reader
	// over means that all lines were read.
	over bool
	// cut is the reason why the last line could not be read, or nil.
	cut error
	// large limits the memory. Next puts a value into it for a stretch with a very long line, so only one such
	// stretch is in memory.
	large chan struct{}

	events, withheld, absent, leaves atomic.Int64
}

// IsExport reports whether a file with this beginning is an export, possibly a damaged one.
func IsExport(begin string) bool {
	return strings.HasPrefix(begin, "{") && strings.Contains(begin, `"perlica_log_export"`)
}

// NewSource returns a Source and reads the header.
func NewSource(in io.Reader) (*Source, error) {
	x, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	return &Source{x: x, large: make(chan struct{}, 1)}, nil
}

// Header returns the first line.
func (s *Source) Header() Header { return s.x.Header }

// Head returns the checkpoint of the header. An export has no stored hashes, no list of open runs, no anchor and no
// tables. Lacks therefore names the kinds of damage to them.
func (s *Source) Head(context.Context) (verify.Head, error) {
	return verify.Head{
		Checkpoint: s.x.Header.Checkpoint, Where: header,
		Lacks: []verify.Damage{verify.Tree, verify.Anchor, verify.Schema},
	}, nil
}

// A stretch is a group of lines that one goroutine parses. It ends at the first of these limits.
const (
	stretchLines = 1024
	stretchBytes = 1 << 18
)

// Next reads a stretch of lines and returns a function that parses them. Another goroutine may call that function.
func (s *Source) Next(ctx context.Context) (func(*verify.Block) error, error) {
	first, text, ends := s.x.n+1, []byte(nil), []int(nil)
	for !s.over && len(text) < stretchBytes && len(ends) < stretchLines {
		err := s.x.readLine()
		if s.over = err != nil || firstMember(s.x.buf) == "end"; s.over {
			if _, bad := errors.AsType[*ImportError](err); err != nil && !bad {
				return nil, err
			}
			s.cut = err
			break
		}
		text = append(text, s.x.buf...)
		ends = append(ends, len(text))
	}
	if len(ends) == 0 {
		return nil, io.EOF
	}
	done := func() {}
	if len(text) > stretchBytes+MaxBareLine {
		select {
		case s.large <- struct{}{}:
			done = func() { <-s.large }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func(b *verify.Block) error {
		defer done()
		from := 0
		for i, to := range ends {
			s.addLine(b, first+i, text[from:to])
			from = to
		}
		return nil
	}, nil
}

// addLine parses a line and adds its event or subtree to the block.
func (s *Source) addLine(b *verify.Block, n int, line []byte) {
	if firstMember(line) == "absent" {
		a, err := parseAbsence(line)
		if err != nil {
			b.Unreadable(fmt.Errorf("line %d: %w", n, err))
			return
		}
		s.absent.Add(1)
		s.leaves.Add(1 << a.Level)
		b.Absent(a)
		return
	}
	var e event.Event
	if err := e.UnmarshalJSON(line); err != nil {
		b.Unreadable(fmt.Errorf("line %d: %w", n, err))
		return
	}
	s.events.Add(1)
	s.leaves.Add(1)
	if e.Withheld != "" {
		s.withheld.Add(1)
	}
	b.Event(&e)
}

// header describes the checkpoint of the header in findings.
var header = message.New("export.header", "the header of the export")

// End compares the last line with the earlier lines.
func (s *Source) End(context.Context) error {
	kind, err := verify.Truncated, s.cut
	if err == nil {
		x := s.x
		x.end.Events, x.end.Withheld, x.end.Absent, x.tree.Size = s.events.Load(), s.withheld.Load(), s.absent.Load(),
			s.leaves.Load()
		kind, err = verify.Edited, x.checkEndLine()
	}
	if bad, ok := errors.AsType[*ImportError](err); ok {
		return verify.NewFinding(0, kind, message.Of(fmt.Errorf("line %d: %w", bad.Line, bad.Err)))
	}
	return err
}
