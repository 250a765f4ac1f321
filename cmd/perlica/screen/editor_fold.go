package screen

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// maxInline is the largest paste of one line that stands in the line itself.
const maxInline = 500

// fold is a text that has a label in the line.
type fold struct{ label, text string }

// pastedLabel returns the replacement of a pasted text in the line.
func (e *Editor) pastedLabel(text string) string {
	text = escapes().ReplaceAllString(text, "")
	if e.o.Pasted != nil {
		text = e.o.Pasted(text)
	}
	return e.foldText(text)
}

// escapes matches the sequences of a terminal, such as a colour, in a copied text.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|" +
		"\x1b[\\]PX^_][^\a\x1b]*(?:\a|\x1b\\\\)?|\x1b[ -/]*[0-~]")
})

// foldText returns a short text itself and a label for a longer text.
func (e *Editor) foldText(text string) string {
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

// visible removes the control characters from a text, except tabs and line breaks.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// unfoldLabels replaces each label in the line by its text. Labels within such a text stay.
func (e *Editor) unfoldLabels(line string) string {
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

// unfoldable returns a function that removes the label before the cursor. nil means that there is no label. The caller
// holds mu.
func (e *Editor) unfoldable() func([]rune, int) ([]rune, int) {
	n := e.labelLength(e.text[:e.pos])
	if n == 0 {
		return nil
	}
	return func(text []rune, pos int) ([]rune, int) {
		return append(append([]rune(nil), text[:pos-n]...), text[pos:]...), pos - n
	}
}

// labelLength returns the length of the label at the end of a text, or 0. The caller holds mu.
func (e *Editor) labelLength(text []rune) int {
	before := string(text)
	for _, f := range e.folded {
		if strings.HasSuffix(before, f.label) {
			return len([]rune(f.label))
		}
	}
	return 0
}
