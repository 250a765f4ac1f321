package provider

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
)

// replacement stands for half of a character.
const replacement = "\ufffd"

// Halves joins a character whose two UTF-16 halves came in two chunks. Agents that cut their strings by UTF-16 units
// write such chunks. The zero value stands before the first chunk.
type Halves struct{ message, thought half }

// half is a first half whose second one has not come, or 0, and the id of its message.
type half struct {
	unit rune
	of   string
}

// Join completes the text of a chunk with the half of the chunk before, and keeps a half at its end. It returns
// U+FFFD when the kept half stays alone: that belongs before the chunk's text.
func (h *Halves) Join(u *Update) (alone string) {
	open := h.open(u.Kind)
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

// Rest returns U+FFFD for the half at the end of the messages that stays alone, and forgets it.
func (h *Halves) Rest() string {
	if h.message.unit == 0 {
		return ""
	}
	h.message = half{}
	return replacement
}

func (h *Halves) open(kind string) *half {
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

// noteHalves remembers the halves with which the text of a chunk begins and ends. Such a half is U+FFFD in the text.
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
		n, _ := strconv.ParseUint(string(m[1]), 16, 16) // The form has four digits.
		return rune(n)
	}
	if begins {
		u.second = unit(secondHalf())
	}
	if ends {
		u.first = unit(firstHalf())
	}
}
