// Package markdown shows the text of an agent on a terminal while it arrives.
//
// It promises that what is finished is shown at once and never shown again: a paragraph, an
// item of a list, a line of code. It promises that code can be copied as it was written,
// without indentation, borders or spaces at its ends; that nothing in the text is obeyed by the
// terminal; and that what is no Markdown, or is never closed, comes out as the text that it is.
// It refuses to interpret anything but Markdown: no links are opened, no markup of terminals
// is known.
//
// The one idea a reader needs: a [Splitter] cuts the stream into blocks by looking at lines
// only, so that each block can be rendered without what follows. The blocks joined are the
// text.
package markdown

import (
	"io"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// Stream renders text as it is written. It is for one goroutine.
type Stream struct {
	w     io.Writer
	clean *term.Writer
	split Splitter
	r     renderer

	shown bool // something was
	gap   bool // a blank line stands before the next block
	err   error
}

// NewStream returns a Stream that writes to a terminal. width returns its columns, 0 if they
// are not known.
func NewStream(w io.Writer, styles term.Styles, width func() int) *Stream {
	s := &Stream{w: w, r: renderer{styles: styles, width: width}}
	s.clean = term.NewWriter(splitting{s})
	return s
}

// Write takes a piece of the text, made harmless, and shows what is finished by it.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.clean.Write(p)
	if err == nil {
		err = s.err
	}
	return n, err
}

// Tail is the end of what is not finished yet, at most the given number of bytes, on one line.
func (s *Stream) Tail(most int) string { return s.split.tail(most) }

// Flush shows what is not finished as if it were: something else is to be shown below it.
func (s *Stream) Flush() error {
	if err := s.clean.Close(); err != nil {
		return err
	}
	s.show(s.split.Flush())
	s.gap = false
	return s.err
}

// splitting hands text that is harmless to the splitter.
type splitting struct{ s *Stream }

func (w splitting) Write(p []byte) (int, error) {
	w.s.show(w.s.split.Feed(string(p)))
	return len(p), w.s.err
}

func (s *Stream) show(blocks []Block) {
	var b strings.Builder
	for _, block := range blocks {
		if block.Kind == Blank {
			s.gap = s.shown
			continue
		}
		if s.gap {
			b.WriteString("\n")
			s.gap = false
		}
		s.shown = true
		b.WriteString(s.r.render(block))
	}
	if b.Len() > 0 && s.err == nil {
		_, s.err = io.WriteString(s.w, b.String())
	}
}

// Render renders a whole text.
func Render(text string, styles term.Styles, width int) string {
	var b strings.Builder
	s := NewStream(&b, styles, func() int { return width })
	_, _ = io.WriteString(s, text) // a strings.Builder takes all
	_ = s.Flush()
	return b.String()
}
