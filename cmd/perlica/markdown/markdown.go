// Package markdown shows the text of an agent on a terminal while it arrives.
//
// It promises that text is shown as it comes, within a paragraph, too, where the terminal can be
// drawn on again: what turns out to be a heading, a table or emphasis is redrawn in place. What is
// finished, or has left the screen, is never shown again: a paragraph, an item of a list, a line of
// code. Code can be copied as it was written, without indentation, borders or spaces at its ends;
// nothing in the text is obeyed by the terminal; and what is no Markdown, or is never closed, comes
// out as the text that it is. It refuses to interpret anything but Markdown: no links are opened,
// no markup of terminals is known.
//
// The one idea a reader needs: a [Splitter] cuts the stream into blocks by looking at lines
// only, so that each block can be rendered without what follows. The blocks joined are the
// text. What is not finished is rendered as if the text ended there.
package markdown

import (
	"io"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// Stream renders text as it is written. It is for one goroutine.
type Stream struct {
	w      io.Writer
	live   *term.Live // nil: only what is finished is shown
	clean  *term.Writer
	split  Splitter
	page   page
	styles term.Styles
	width  func() int

	out     strings.Builder // what is finished and not on the terminal yet
	columns int             // of the terminal when that was drawn last
	err     error
}

// page is what the look of a text depends on, beside the text.
type page struct {
	shown bool  // something was
	gap   bool  // a blank line stands before the next block
	fence fence // of the code that is being shown
	skip  int   // how many of the bytes that follow stand there already
}

// NewStream returns a Stream that writes to a terminal, each block when it is finished. width
// returns its columns, 0 if they are not known.
func NewStream(w io.Writer, styles term.Styles, width func() int) *Stream {
	s := &Stream{w: w, styles: styles, width: width}
	s.clean = term.NewWriter(splitting{s})
	return s
}

// NewLiveStream returns a Stream that writes to the terminal of a status line and shows above it what
// is not finished, too. size returns its columns and rows, 0 if they are not known.
func NewLiveStream(w io.Writer, status *term.Status, styles term.Styles, size func() (columns, rows int)) *Stream {
	s := NewStream(nil, styles, func() int { c, _ := size(); return c })
	s.live = status.Live(w, func() int { _, r := size(); return r }, s.draw)
	return s
}

// Write takes a piece of the text, made harmless, and shows what is finished by it; a live stream
// shows all of it, soon.
func (s *Stream) Write(p []byte) (n int, err error) {
	if s.live != nil {
		err := s.live.Change(func() { n, _ = s.clean.Write(p) }) // it is kept, and drawn later
		return n, err
	}
	n, err = s.clean.Write(p)
	if err == nil {
		err = s.err
	}
	return n, err
}

// Flush shows what is not finished as if it were: something else is to be shown below it.
func (s *Stream) Flush() error {
	if s.live != nil {
		return s.live.Finish(func() { _ = s.flush() }) // as in Write
	}
	return s.flush()
}

func (s *Stream) flush() error {
	if err := s.clean.Close(); err != nil {
		return err
	}
	s.show(s.split.Flush())
	s.page = page{shown: s.page.shown}
	return s.err
}

// splitting hands text that is harmless to the splitter.
type splitting struct{ s *Stream }

func (w splitting) Write(p []byte) (int, error) {
	w.s.show(w.s.split.Feed(string(p)))
	return len(p), w.s.err
}

// show shows blocks that are finished.
func (s *Stream) show(blocks []Block) {
	text := s.lay(&s.page, blocks, s.width())
	switch {
	case text == "":
	case s.live != nil:
		s.out.WriteString(text)
	case s.err == nil:
		_, s.err = io.WriteString(s.w, text)
	}
}

// lay sets blocks that follow what is on the page, without those bytes of them that stand there.
func (s *Stream) lay(p *page, blocks []Block, width int) string {
	r := renderer{styles: s.styles, width: width, fence: p.fence}
	var b strings.Builder
	for _, block := range blocks {
		skip := min(p.skip, len(block.Text))
		p.skip -= skip
		if block.Kind == Blank {
			p.gap = p.shown
			continue
		}
		if p.gap && skip == 0 {
			b.WriteString("\n")
		}
		p.gap, p.shown = false, true
		b.WriteString(r.rest(block, skip))
	}
	p.fence = r.fence
	return b.String()
}

// Render renders a whole text.
func Render(text string, styles term.Styles, width int) string {
	var b strings.Builder
	s := NewStream(&b, styles, func() int { return width })
	_, _ = io.WriteString(s, text) // a strings.Builder takes all
	_ = s.Flush()
	return b.String()
}
