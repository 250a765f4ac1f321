package screen

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// maxInline is the largest size of a one-line paste that the line shows in full, in bytes.
const maxInline = 500

// fold is a pasted text. The line shows its label instead.
type fold struct{ label, text string }

// pastedLabel returns the text that the line shows for a pasted text.
func (e *Editor) pastedLabel(text string) string {
	text = escapes().ReplaceAllString(text, "")
	if e.o.Pasted != nil {
		text = e.o.Pasted(text)
	}
	return e.foldText(text)
}

// escapes matches the escape sequences of a terminal, such as a colour, in a copied text.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|" +
		"\x1b[\\]PX^_][^\a\x1b]*(?:\a|\x1b\\\\)?|\x1b[ -/]*[0-~]")
})

// foldText returns a short text unchanged, and a label for a longer text.
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

// visible returns a text without its control characters, except tabs and line breaks.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// unfoldLabels replaces each label in the line by its pasted text. It does not look for labels within a pasted text.
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

// unfoldable returns a function that removes the label directly before the cursor. It returns nil if no label stands
// there. The caller holds mu.
func (e *Editor) unfoldable() func([]rune, int) ([]rune, int) {
	n := e.labelLength(e.text[:e.pos])
	if n == 0 {
		return nil
	}
	return func(text []rune, pos int) ([]rune, int) {
		return append(append([]rune(nil), text[:pos-n]...), text[pos:]...), pos - n
	}
}

// labelLength returns the length of the label at the end of a text, or 0 without a label. The caller holds mu.
func (e *Editor) labelLength(text []rune) int {
	before := string(text)
	for _, f := range e.folded {
		if strings.HasSuffix(before, f.label) {
			return len([]rune(f.label))
		}
	}
	return 0
}
