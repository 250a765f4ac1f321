package screen

import (
	"io"
	"strings"
)

// MarkdownStream shows Markdown while it is written. It is for one goroutine.
//
// A splitter cuts the stream into blocks and looks only at whole lines. Each block can then be rendered without the
// text after it. The blocks together are the whole text. Code is shown without indentation and borders, so that it can
// be copied.
type MarkdownStream struct {
	w      io.Writer
	live   *liveText // nil means that only complete blocks are shown
	clean  *SafeWriter
	split  splitter
	page   page
	styles Styles
	width  func() int

	out     strings.Builder // finished text that is not yet on the terminal
	columns int             // the width of the terminal at the last drawing
	err     error
}

// page is the state that the look of the next block depends on.
type page struct {
	shown bool  // a block was shown
	gap   bool  // a blank line must stand before the next block
	fence fence // the fence of the current code
	skip  int   // the number of bytes of the next block that are already shown
}

// NewMarkdownStream returns a MarkdownStream that writes each complete block to a terminal. width returns the columns
// of the terminal, or 0 if they are unknown.
func NewMarkdownStream(w io.Writer, styles Styles, width func() int) *MarkdownStream {
	s := &MarkdownStream{w: w, styles: styles, width: width}
	s.clean = NewSafeWriter(splitting{s})
	return s
}

// NewLiveMarkdownStream returns a MarkdownStream that also shows incomplete blocks, above a status line. w is the
// terminal of the line. size returns its columns and rows, or 0 if they are unknown.
func NewLiveMarkdownStream(
	w io.Writer, status *StatusLine, styles Styles, size func() (columns, rows int),
) *MarkdownStream {
	s := NewMarkdownStream(nil, styles, func() int { c, _ := size(); return c })
	s.live = status.showLive(w, func() int { _, r := size(); return r }, s.drawRows)
	return s
}

// Write takes a piece of the text and makes it harmless. It shows the complete blocks. A live stream soon shows the
// rest too.
func (s *MarkdownStream) Write(p []byte) (n int, err error) {
	if s.live != nil {
		err := s.live.changeContent(func() { n, _ = s.clean.Write(p) }) // The liveText keeps the text and draws it later.
		return n, err
	}
	n, err = s.clean.Write(p)
	if err == nil {
		err = s.err
	}
	return n, err
}

// Flush shows the incomplete text as if it were complete. Call it before you show something below.
func (s *MarkdownStream) Flush() error {
	if s.live != nil {
		return s.live.finishContent(func() { _ = s.flushText() }) // as in Write
	}
	return s.flushText()
}

func (s *MarkdownStream) flushText() error {
	if err := s.clean.Close(); err != nil {
		return err
	}
	s.showBlocks(s.split.Flush())
	s.page = page{shown: s.page.shown}
	return s.err
}

// splitting gives harmless text to the splitter.
type splitting struct{ s *MarkdownStream }

func (w splitting) Write(p []byte) (int, error) {
	w.s.showBlocks(w.s.split.Feed(string(p)))
	return len(p), w.s.err
}

// showBlocks shows complete blocks.
func (s *MarkdownStream) showBlocks(blocks []markdownBlock) {
	text := s.layBlocks(&s.page, blocks, s.width())
	switch {
	case text == "":
	case s.live != nil:
		s.out.WriteString(text)
	case s.err == nil:
		_, s.err = io.WriteString(s.w, text)
	}
}

// layBlocks renders blocks that follow the page. It leaves out the bytes that are already shown.
func (s *MarkdownStream) layBlocks(p *page, blocks []markdownBlock, width int) string {
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
		b.WriteString(r.renderRest(block, skip))
	}
	p.fence = r.fence
	return b.String()
}

// RenderMarkdown renders a whole text.
func RenderMarkdown(text string, styles Styles, width int) string {
	var b strings.Builder
	s := NewMarkdownStream(&b, styles, func() int { return width })
	_, _ = io.WriteString(s, text) // A strings.Builder cannot fail.
	_ = s.Flush()
	return b.String()
}
