package screen

import (
	"sort"
	"strings"
)

// drawRows is the function draw of [StatusLine.showLive].
func (s *MarkdownStream) drawRows(columns, room, gone int) (final string, rows []string) {
	if gone > 0 {
		s.settleRows(gone, s.columns) // Rows that have left the screen cannot change.
	}
	s.columns = columns
	final = s.out.String()
	s.out.Reset()
	if rows = s.previewRows(columns); len(rows) > room {
		final += s.settleRows(len(rows)-room+room/4, columns)
		rows = s.previewRows(columns)
	}
	// A long line that cannot be divided may need more rows than there is room.
	return final, rows[max(len(rows)-room, 0):]
}

// previewRows returns the rows of the incomplete text. It renders the text as if it ended here.
func (s *MarkdownStream) previewRows(columns int) []string {
	if s.split.raw {
		return nil
	}
	p := s.page
	return rowsOf(s.layBlocks(&p, s.split.cutBlocks(s.split.pending()), columns), columns-1)
}

// settleRows makes the beginning of the incomplete text final and returns its rendering. The parameter rows is the
// largest number of rows that become final. Text that comes later does not change these rows, even if it ends an
// emphasis or widens a table.
func (s *MarkdownStream) settleRows(rows, columns int) string {
	src := s.split.pending()
	if s.split.fence.mark != 0 || s.split.raw {
		return "" // A line of code is never divided, so that it can be copied.
	}
	upTo := func(n int) (text string, p page) {
		p = s.page
		return s.layBlocks(&p, s.split.cutBlocks(src[:n]), columns), p
	}
	ends := places(src, s.page.skip)
	best := sort.Search(len(ends), func(i int) bool {
		text, _ := upTo(ends[i])
		return len(rowsOf(text, columns-1)) > rows
	}) - 1
	if best < 0 {
		return ""
	}
	end := ends[best]
	all, _ := upTo(len(src))
	for i := best; i >= 0 && i > best-maxTries; i-- {
		if text, _ := upTo(ends[i]); text != "" && strings.HasPrefix(all, text) {
			end = ends[i]
			break
		}
	}
	text, _ := upTo(end)
	if text != "" {
		s.page.skip = end
		s.page.shown = true
	}
	return text
}

// maxTries limits the tries in settleRows. Each try looks for a place at which the text can be divided without
// changing its look.
const maxTries = 60

// places returns the places at which a text may be divided, after the place in the parameter "from": before a line, a
// word, or a wide character. A place is a number of bytes.
func places(src string, from int) (list []int) {
	begun := false // true if the current line has text before i
	for i, c := range src {
		switch {
		case i <= from || i == 0:
		case src[i-1] == '\n', begun && c != ' ' && src[i-1] == ' ', begun && isWide(c) && trailingLength(src[i:]) == 0:
			list = append(list, i)
		}
		begun = c != '\n' && (begun || c != ' ')
	}
	return list
}

// renderRest renders a block without its first skip bytes, which are shown already. Usually it returns the end of
// the rendered block. Sometimes the beginning looks different in the whole block, and the rest is rendered as a new
// block. No text is lost and no text is shown twice.
func (r *renderer) renderRest(b markdownBlock, skip int) string {
	f := r.fence
	all := r.renderBlock(b)
	switch {
	case skip == 0:
		return all
	case skip == len(b.text):
		return ""
	case b.kind == blockRaw:
		return b.text[skip:]
	}
	begun := renderer{styles: r.styles, width: r.width, fence: f}
	if rest, ok := strings.CutPrefix(all, begun.renderBlock(markdownBlock{b.kind, b.text[:skip]})); ok {
		return rest
	}
	text := b.text[skip:]
	if isBlank(text) {
		return ""
	}
	if head, ok := tableHead(b.text[:skip]); ok {
		if t, ok := parseTable(head + text); ok {
			if _, body, ok := begun.renderTable(t); ok {
				return body
			}
		}
	}
	return begun.renderBlock(markdownBlock{b.kind, strings.TrimLeft(text, " ")})
}
