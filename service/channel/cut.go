package channel

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reserve is the space in a message for the numbering and the mark of repetition.
const reserve = len("(possibly repeated)\n") + len("(1000/1000)\n")

// longestLang is the largest length of a language's name.
const longestLang = 20

// smallest is the smallest space of a part, even if the platform allows less.
const smallest = 20

// Cut translates Markdown to a platform's format and cuts it into messages that the platform
// accepts. It cuts between paragraphs and code blocks if possible, otherwise between lines, words
// or characters. A cut code block is closed and opened again. Several messages are numbered.
// Nothing is lost.
func Cut(markdown string, limits Limits) []string {
	blocks := parseBlocks(strings.ToValidUTF8(markdown, "\uFFFD")) // cutting needs valid characters
	room := 0
	if limits.Text > 0 {
		room = max(limits.Text-reserve, smallest)
	}
	var parts []string
	var cur strings.Builder
	for _, b := range blocks {
		for _, piece := range fitting(b, limits.Format, room) {
			text := piece.render(limits.Format)
			if cur.Len() > 0 && room > 0 && Units(cur.String())+2+Units(text) > room {
				parts = append(parts, cur.String())
				cur.Reset()
			}
			if cur.Len() > 0 {
				cur.WriteString("\n\n")
			}
			cur.WriteString(text)
		}
	}
	if cur.Len() > 0 || len(parts) == 0 {
		parts = append(parts, cur.String())
	}
	if len(parts) > 1 {
		for i := range parts {
			parts[i] = fmt.Sprintf("(%d/%d)\n%s", i+1, len(parts), parts[i])
		}
	}
	return parts
}

// Units returns the length of a text in UTF-16 code units.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// block is a paragraph or a block of code.
type block struct {
	code bool
	lang string
	text string
}

// parseBlocks cuts Markdown at blank lines and at fences. An unclosed block of code extends to the
// end.
func parseBlocks(markdown string) (list []block) {
	var lines []string
	fence, lang := "", ""
	end := func(code bool) {
		if text := strings.Join(lines, "\n"); code || strings.TrimSpace(text) != "" {
			list = append(list, block{code, lang, text})
		}
		lines, lang = nil, ""
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(markdown, "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				end(true)
				fence = ""
				continue
			}
			lines = append(lines, line)
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
			info := trimmed[len(mark):]
			if strings.Contains(info, "`") { // code within a line
				lines = append(lines, line)
				continue
			}
			end(false)
			fence, lang = mark, strings.TrimSpace(info)
			if len(lang) > longestLang || strings.ContainsAny(lang, " \t") {
				lines, lang = append(lines, lang), "" // not the name of a language, so keep the words as text
			}
		case trimmed == "":
			end(false)
		default:
			lines = append(lines, line)
		}
	}
	end(fence != "")
	return list
}

// fitting cuts a block into smaller blocks that each fit into room, in UTF-16 code units.
func fitting(b block, f Format, room int) []block {
	if room == 0 || Units(b.render(f)) <= room {
		return []block{b}
	}
	var pieces []block
	var cur strings.Builder
	frame := Units(block{b.code, b.lang, ""}.render(f)) // the length of the marks around code
	size, started := frame, false                       // size is the length of the rendered cur
	add := func(text, glue string) {
		// The lines of a block are rendered separately, so the block is at most as long as the sum of its lines. This
		// does not hold for parts of a line, so they stay separate.
		n := Units(block{b.code, b.lang, text}.render(f)) - frame
		if started && (glue == "" || size+len(glue)+n > room) {
			pieces = append(pieces, block{b.code, b.lang, cur.String()})
			cur.Reset()
			size, started = frame, false
		}
		if started {
			cur.WriteString(glue)
			size += len(glue)
		}
		cur.WriteString(text)
		size, started = size+n, true
	}
	for line := range strings.SplitSeq(b.text, "\n") {
		glue := "\n"
		for _, atom := range atoms(block{b.code, b.lang, line}, f, room) {
			add(atom, glue)
			glue = ""
		}
	}
	return append(pieces, block{b.code, b.lang, cur.String()})
}

// atoms cuts one line into texts that fit, at a space near the middle if possible.
func atoms(b block, f Format, room int) []string {
	if Units(b.render(f)) <= room || utf8.RuneCountInString(b.text) < 2 {
		return []string{b.text}
	}
	at := len(b.text) / 2
	for !utf8.RuneStart(b.text[at]) {
		at--
	}
	if space := strings.LastIndexByte(b.text[:at], ' '); space > at/2 {
		at = space + 1
	}
	if at == 0 { // the middle is in the first character: cut after it
		_, at = utf8.DecodeRuneInString(b.text)
	}
	left, right := b, b
	left.text, right.text = b.text[:at], b.text[at:]
	return append(atoms(left, f, room), atoms(right, f, room)...)
}
