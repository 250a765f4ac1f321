package screen

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// maxInline is how long a paste of one line may be to stand in the line as it is.
const maxInline = 500

// fold is a text that stands in the line as one word.
type fold struct{ label, text string }

// paste returns what stands in the line for what was pasted.
func (e *Editor) paste(text string) string {
	text = escapes().ReplaceAllString(text, "")
	if e.o.Pasted != nil {
		text = e.o.Pasted(text)
	}
	return e.fold(text)
}

// escapes matches the sequences of a terminal, such as a colour, in a copied text.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\a\x1b]*(?:\a|\x1b\\\\)?|\x1b[ -/]*[0-~]")
})

// fold returns what stands in the line for a text: itself if it is short, else a label.
func (e *Editor) fold(text string) string {
	text = strings.TrimRight(text, "\n")
	lines := strings.Count(text, "\n") + 1
	if lines == 1 && len(text) <= maxInline {
		return visible(text)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counted++
	what := fmt.Sprintf("%d lines", lines)
	if lines == 1 {
		what = fmt.Sprintf("%d KB", (len(text)+1023)/1024)
	}
	f := fold{fmt.Sprintf("[pasted %s #%d]", what, e.counted), text}
	e.folded = append(e.folded, f)
	return f.label
}

// visible is a text without what no row of the terminal shows.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// unfold puts the texts in place of their labels, each label once.
func (e *Editor) unfold(line string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for {
		at, which := -1, fold{}
		for _, f := range e.folded {
			if i := strings.Index(line, f.label); i >= 0 && (at < 0 || i < at) {
				at, which = i, f
			}
		}
		if at < 0 {
			b.WriteString(line)
			return b.String()
		}
		b.WriteString(line[:at] + which.text)
		line = line[at+len(which.label):]
	}
}

// unfoldable returns what takes the label before the cursor away, if there is one. The caller
// holds mu.
func (e *Editor) unfoldable() func([]rune, int) ([]rune, int) {
	n := e.label(e.text[:e.pos])
	if n == 0 {
		return nil
	}
	return func(text []rune, pos int) ([]rune, int) {
		return append(append([]rune(nil), text[:pos-n]...), text[pos:]...), pos - n
	}
}

// label is how long the label at the end of a text is, or 0. The caller holds mu.
func (e *Editor) label(text []rune) int {
	before := string(text)
	for _, f := range e.folded {
		if strings.HasSuffix(before, f.label) {
			return len([]rune(f.label))
		}
	}
	return 0
}
