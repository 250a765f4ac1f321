package screen

import (
	"strings"
	"unicode/utf8"
)

const maxListed = 100

// completeWord inserts the common beginning of all completions. If this adds nothing, it lists the completions. It
// runs within OnChange, so the caller holds mu.
func (e *Editor) completeWord(text []rune, pos int) ([]rune, int) {
	if e.o.Complete == nil {
		return text, pos
	}
	before := string(text[:pos])
	from, words := e.o.Complete(before)
	if len(words) == 0 {
		return text, pos
	}
	common := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, common) {
			_, n := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-n]
		}
	}
	if len(words) == 1 && !strings.HasSuffix(common, "/") {
		common += " "
	}
	if len(common) > len(before)-from {
		r := []rune(before[:from] + common)
		return append(r, text[pos:]...), len(r)
	}
	if len(words) > 1 {
		e.listWords(words)
	}
	return text, pos
}

func (e *Editor) listWords(words []string) {
	more := ""
	if len(words) > maxListed {
		words, more = words[:maxListed], "…\n"
	}
	w, _ := e.o.Size()
	widest := 0
	for _, word := range words {
		widest = max(widest, TextWidth(word))
	}
	columns := max(1, (w-1)/(widest+2))
	var b strings.Builder
	for i, word := range words {
		b.WriteString(word)
		if i%columns == columns-1 || i == len(words)-1 {
			b.WriteString("\n")
		} else {
			b.WriteString(strings.Repeat(" ", widest+2-TextWidth(word)))
		}
	}
	e.canvas.leaveRows("\n" + e.o.Styles.Dim(b.String()+more))
}
