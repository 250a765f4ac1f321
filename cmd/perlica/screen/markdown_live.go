package screen

import (
	"sort"
	"strings"
)

// draw is what term.Status.Live takes.
func (s *MarkdownStream) draw(columns, room, gone int) (final string, rows []string) {
	if gone > 0 {
		s.settle(gone, s.columns) // what has left the screen stands there, as it was
	}
	s.columns = columns
	final = s.out.String()
	s.out.Reset()
	if rows = s.preview(columns); len(rows) > room {
		final += s.settle(len(rows)-room+room/4, columns)
		rows = s.preview(columns)
	}
	return final, rows[max(len(rows)-room, 0):] // a line that cannot be divided may still have more
}

// preview is what is not finished, in rows as if the text ended here.
func (s *MarkdownStream) preview(columns int) []string {
	if s.split.raw {
		return nil
	}
	p := s.page
	return rowsOf(s.lay(&p, s.split.cut(s.split.pending()), columns), columns-1)
}

// settle decides that about that many rows of what is not finished, and no more, are as they stand
// now, and returns them. What follows is never set so that it changes them, even if it turns out to
// end emphasis or to widen a table that begins in them.
func (s *MarkdownStream) settle(rows, columns int) string {
	src := s.split.pending()
	if s.split.fence.mark != 0 || s.split.raw {
		return "" // a line of code is whole, so that it can be copied
	}
	upTo := func(n int) (text string, p page) {
		p = s.page
		return s.lay(&p, s.split.cut(src[:n]), columns), p
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

// maxTries is in how many places before the last it is tried to divide a text so that both parts
// look as they do in one piece.
const maxTries = 60

// places are where a text may be divided: before a line, a word, or a wide character, and behind
// from.
func places(src string, from int) (list []int) {
	begun := false // the line has text before
	for i, c := range src {
		switch {
		case i <= from || i == 0:
		case src[i-1] == '\n', begun && c != ' ' && src[i-1] == ' ', begun && isWide(c) && trailing(src[i:]) == 0:
			list = append(list, i)
		}
		begun = c != '\n' && (begun || c != ' ')
	}
	return list
}

// rest renders a block without the beginning of it that stands there already. That is exact where
// the beginning looks as it would in one piece; else what follows begins anew, so that nothing is
// lost and nothing is said twice.
func (r *renderer) rest(b markdownBlock, skip int) string {
	f := r.fence
	all := r.render(b)
	switch {
	case skip == 0:
		return all
	case skip == len(b.text):
		return ""
	case b.kind == blockRaw:
		return b.text[skip:]
	}
	begun := renderer{styles: r.styles, width: r.width, fence: f}
	if rest, ok := strings.CutPrefix(all, begun.render(markdownBlock{b.kind, b.text[:skip]})); ok {
		return rest
	}
	text := b.text[skip:]
	if isBlank(text) {
		return ""
	}
	if head, ok := tableHead(b.text[:skip]); ok {
		if t, ok := parseTable(head + text); ok {
			if _, body, ok := begun.table(t); ok {
				return body
			}
		}
	}
	return begun.render(markdownBlock{b.kind, strings.TrimLeft(text, " ")})
}
