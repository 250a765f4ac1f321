package redact

import (
	"slices"
	"strings"
)

// maskColoured masks a text in which the colours of a terminal may divide a secret. It tries the text without the
// colours, and the text with a blank in place of each colour. A text without secrets keeps its colours.
func (t *text) maskColoured() bool {
	for _, instead := range []string{"", " "} {
		plain := text{s: t.s, valid: t.valid, names: t.names}
		plain.withoutColours(instead)
		before := plain.s
		if before == t.s {
			return false
		}
		if plain.applyRules(); plain.s != before {
			*t = plain
			return true
		}
	}
	return false
}

// escapes are the spellings of the byte ESC: the byte itself, and its escapes in JSON, Go and C.
var escapes = []string{"\x1b", `\u001b`, `\u001B`, `\x1b`, `\x1B`, `\033`, `\e`}

// withoutColours replaces each control sequence (CSI) with the text in the parameter "instead".
func (t *text) withoutColours(instead string) {
	for _, esc := range escapes {
		s, e := t.s, &edits{text: t}
		for at := 0; ; {
			i := strings.Index(s[at:], esc)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(esc)
			if n := sequence(s[at:]); n > 0 {
				for from > 0 && esc[0] == '\\' && s[from-1] == '\\' { // an escaped escape
					from--
				}
				e.replace(from, at+n, instead)
				at += n
			}
		}
		t.applyEdits(e)
	}
}

// coloured reports whether the text contains an ESC with a bracket after it.
func coloured(s string) bool {
	isEnd := func(text string) bool {
		return slices.ContainsFunc(escapes, func(esc string) bool { return strings.HasSuffix(text, esc) })
	}
	for _, c := range []byte("[](") {
		for at := 0; ; {
			i := strings.IndexByte(s[at:], c)
			if i < 0 {
				break
			}
			at += i + 1
			if at > 1 && strings.IndexByte("\x1bbB3e", s[at-2]) >= 0 && isEnd(s[:at-1]) {
				return true
			}
		}
	}
	return false
}

// titleEnd returns the length of an operating system command (OSC), such as a link. s begins after its ESC.
func titleEnd(s string) int {
	const longest = 256
	s = s[:min(len(s), longest)]
	for _, end := range []string{"\a", "\x1b\\", `\u0007`, `\u001b\\`, `\x07`} {
		if i := strings.Index(s, end); i >= 0 && !strings.ContainsAny(s[:i], "\n\"") {
			return i + len(end)
		}
	}
	return 0
}

// sequence returns the length of the control sequence at the start of s, or 0. s begins after its ESC.
func sequence(s string) int {
	switch {
	case strings.HasPrefix(s, "(B"):
		return 2
	case strings.HasPrefix(s, "]"):
		return titleEnd(s)
	case !strings.HasPrefix(s, "["):
		return 0
	}
	n := 1
	for n < len(s) && n < 32 && s[n] >= 0x20 && s[n] < 0x40 && s[n] != '"' {
		n++
	}
	if n < len(s) && (isWord(s[n]) && !isDigit(s[n]) || s[n] == '@') {
		return n + 1
	}
	return 0
}
