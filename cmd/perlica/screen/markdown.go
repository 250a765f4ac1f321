package screen

import (
	"io"
	"strings"
)

// MarkdownStream shows Markdown while it is written. Only one goroutine may use it.
//
// A splitter cuts the text into blocks and looks only at whole lines. Each block can then be rendered without the
// text after it. The blocks together are the whole text. Code is shown without indentation and borders, so that it
// can be copied.
type MarkdownStream struct {
	w      io.Writer
	live   *liveText // nil if only complete blocks are shown
	clean  *SafeWriter
	split  splitter
	page   page
	styles Styles
	width  func() int

	out     strings.Builder // finished text that is not yet on the terminal
	columns int             // the width of the terminal at the last drawing
	err     error
}

// page has the facts about the shown blocks that affect the look of the next block.
type page struct {
	shown bool  // true after the first block
	gap   bool  // the next block needs a blank line before it
	fence fence // the fence of the code block that is open
	skip  int   // number of bytes of the next block that the terminal shows already
}

// NewMarkdownStream returns a MarkdownStream that writes each complete block to a terminal. width returns the columns
// of the terminal, or 0 if they are unknown.
func NewMarkdownStream(w io.Writer, styles Styles, width func() int) *MarkdownStream {
	s := &MarkdownStream{w: w, styles: styles, width: width}
	s.clean = NewSafeWriter(splitting{s})
	return s
}

// NewLiveMarkdownStream returns a MarkdownStream that also shows incomplete blocks. It shows them above a status
// line. w is the terminal of the status line. size returns its columns and rows, or 0 if they are unknown.
func NewLiveMarkdownStream(
	w io.Writer, status *StatusLine, styles Styles, size func() (columns, rows int),
) *MarkdownStream {
	s := NewMarkdownStream(nil, styles, func() int { c, _ := size(); return c })
	s.live = status.showLive(w, func() int { _, r := size(); return r }, s.drawRows)
	return s
}

// Write makes a part of the text harmless and shows the blocks that became complete. A live stream soon shows the
// incomplete rest, too.
func (s *MarkdownStream) Write(p []byte) (n int, err error) {
	if s.live != nil {
		// Errors of the terminal come from the liveText, which draws the text later.
		err := s.live.changeContent(func() { n, _ = s.clean.Write(p) })
		return n, err
	}
	n, err = s.clean.Write(p)
	if err == nil {
		err = s.err
	}
	return n, err
}

// Flush shows the incomplete text as if it were complete. The caller needs it before something else is shown below.
func (s *MarkdownStream) Flush() error {
	if s.live != nil {
		return s.live.finishContent(func() { _ = s.flushText() }) // Errors of the terminal come from the liveText.
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

// splitting is an io.Writer that receives the harmless text and passes it to the splitter.
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

// layBlocks renders the blocks that come next on page p. It leaves out the bytes that are shown already.
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

// RenderMarkdown renders a whole text for a terminal with width columns.
func RenderMarkdown(text string, styles Styles, width int) string {
	var b strings.Builder
	s := NewMarkdownStream(&b, styles, func() int { return width })
	_, _ = io.WriteString(s, text) // Writing to a strings.Builder never fails.
	_ = s.Flush()
	return b.String()
}
