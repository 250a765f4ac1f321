package provider

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
)

// replacement is shown for half a character if the other half did not arrive.
const replacement = "\ufffd"

// Halves joins the two UTF-16 halves of a character that came in two chunks. Agents that cut their strings at UTF-16
// units write such chunks. The zero value is ready for the first chunk.
type Halves struct{ message, thought half }

// half is the first UTF-16 half of a character that waits for its second half, with the id of its message. A unit of 0
// means that no half waits.
type half struct {
	unit rune
	of   string
}

// Join completes a character if its first half ended the previous chunk. It stores a first half that ends this chunk.
// If this chunk does not begin with the second half, Join returns U+FFFD, and the caller shows it before the chunk's
// text.
func (h *Halves) Join(u *Update) (alone string) {
	open := h.halfOf(u.Kind)
	if open == nil || u.Text == "" {
		return ""
	}
	if open.unit != 0 {
		if second := u.second; second != 0 && open.of == u.Message {
			u.Text = string(utf16.DecodeRune(open.unit, second)) + strings.TrimPrefix(u.Text, replacement)
		} else {
			alone = replacement
		}
	}
	if *open = (half{u.first, u.Message}); u.first != 0 {
		u.Text = strings.TrimSuffix(u.Text, replacement)
	}
	return alone
}

// Rest is called after the last chunk. It returns U+FFFD if a half is still stored, and forgets the half.
func (h *Halves) Rest() string {
	if h.message.unit == 0 {
		return ""
	}
	h.message = half{}
	return replacement
}

func (h *Halves) halfOf(kind string) *half {
	switch kind {
	case AgentMessageChunk:
		return &h.message
	case AgentThoughtChunk:
		return &h.thought
	}
	return nil
}

var (
	firstHalf  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u([dD][89abAB][0-9a-fA-F]{2})"$`) })
	secondHalf = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^"\\u([dD][c-fC-F][0-9a-fA-F]{2})`) })
)

// noteHalves stores the halves at the beginning and at the end of a chunk's text. In the text such a half is
// U+FFFD.
func (u *Update) noteHalves(content []byte) {
	begins, ends := strings.HasPrefix(u.Text, replacement), strings.HasSuffix(u.Text, replacement)
	if !begins && !ends {
		return
	}
	var raw struct{ Text json.RawMessage }
	if json.Unmarshal(content, &raw) != nil {
		return
	}
	unit := func(form *regexp.Regexp) rune {
		m := form.FindSubmatch(raw.Text)
		if m == nil {
			return 0
		}
		n, _ := strconv.ParseUint(string(m[1]), 16, 16) // the pattern has four hex digits
		return rune(n)
	}
	if begins {
		u.second = unit(secondHalf())
	}
	if ends {
		u.first = unit(firstHalf())
	}
}
