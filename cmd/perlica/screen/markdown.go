package screen

import (
	"io"
	"strings"
)

// MarkdownStream renders text as it is written. It is for one goroutine.
type MarkdownStream struct {
	w      io.Writer
	live   *LiveText // nil: only what is finished is shown
	clean  *SafeWriter
	split  splitter
	page   page
	styles Styles
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

// NewMarkdownStream returns a Stream that writes to a terminal, each block when it is finished. width
// returns its columns, 0 if they are not known.
func NewMarkdownStream(w io.Writer, styles Styles, width func() int) *MarkdownStream {
	s := &MarkdownStream{w: w, styles: styles, width: width}
	s.clean = NewSafeWriter(splitting{s})
	return s
}

// NewLiveMarkdownStream returns a Stream that writes to the terminal of a status line and shows above it what
// is not finished, too. size returns its columns and rows, 0 if they are not known.
func NewLiveMarkdownStream(w io.Writer, status *StatusLine, styles Styles, size func() (columns, rows int)) *MarkdownStream {
	s := NewMarkdownStream(nil, styles, func() int { c, _ := size(); return c })
	s.live = status.Live(w, func() int { _, r := size(); return r }, s.draw)
	return s
}

// Write takes a piece of the text, made harmless, and shows what is finished by it; a live stream
// shows all of it, soon.
func (s *MarkdownStream) Write(p []byte) (n int, err error) {
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
func (s *MarkdownStream) Flush() error {
	if s.live != nil {
		return s.live.Finish(func() { _ = s.flush() }) // as in Write
	}
	return s.flush()
}

func (s *MarkdownStream) flush() error {
	if err := s.clean.Close(); err != nil {
		return err
	}
	s.show(s.split.Flush())
	s.page = page{shown: s.page.shown}
	return s.err
}

// splitting hands text that is harmless to the splitter.
type splitting struct{ s *MarkdownStream }

func (w splitting) Write(p []byte) (int, error) {
	w.s.show(w.s.split.Feed(string(p)))
	return len(p), w.s.err
}

// show shows blocks that are finished.
func (s *MarkdownStream) show(blocks []markdownBlock) {
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
func (s *MarkdownStream) lay(p *page, blocks []markdownBlock, width int) string {
	r := renderer{styles: s.styles, width: width, fence: p.fence}
	var b strings.Builder
	for _, block := range blocks {
		skip := min(p.skip, len(block.text))
		p.skip -= skip
		if block.kind == blockBlank {
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

// RenderMarkdown renders a whole text.
func RenderMarkdown(text string, styles Styles, width int) string {
	var b strings.Builder
	s := NewMarkdownStream(&b, styles, func() int { return width })
	_, _ = io.WriteString(s, text) // a strings.Builder takes all
	_ = s.Flush()
	return b.String()
}
