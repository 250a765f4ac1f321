package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chzyer/readline"
)

// Key is a pressed key, or a text that arrived at once.
type Key struct {
	Kind keyKind
	Rune rune   // the character, for KeyRune, keyControl and keyMeta
	text string // the text, for keyPaste and keyLines
}

// keyKind is the kind of a Key.
type keyKind int

const (
	keyNone       keyKind = iota // a sequence that has no effect
	KeyRune                      // a printing character
	KeyEsc                       // the key Esc alone
	keyControl                   // a control character; an arrow key has the control character that readline uses for it
	keyMeta                      // Alt together with a character
	keyDelete                    // Delete, which removes the next character
	keyBackTab                   // Shift-Tab
	keyNewline                   // Alt-Enter, which breaks the line
	keyPasteBegin                // the sequence that a terminal sends before a paste
	keyPasteEnd                  // the sequence that a terminal sends after a paste
	keyPaste                     // the whole text of a paste
	keyLines                     // several lines that arrived at once
)

// CtrlC and CtrlZ are the control characters for [Key.IsControl].
const (
	CtrlC rune = readline.CharInterrupt
	CtrlZ rune = readline.CharCtrlZ
)

// IsControl reports whether the key is the control character c.
func (k Key) IsControl(c rune) bool { return k.Kind == keyControl && k.Rune == c }

// isEnter reports whether the key is Enter. A line feed counts, too, because Enter arrives as a line feed if it was
// pressed before raw mode.
func (k Key) isEnter() bool {
	return k.IsControl(readline.CharEnter) || k.IsControl(readline.CharCtrlJ)
}

// isBackspace reports whether the key removes the previous character.
func (k Key) isBackspace() bool {
	return k.IsControl(readline.CharBackspace) || k.IsControl(readline.CharCtrlH)
}

// Digit returns the value of a decimal digit of any script, such as 3, ３ or ٣.
func (k Key) Digit() (int, bool) {
	if k.Kind != KeyRune || !unicode.Is(unicode.Nd, k.Rune) {
		return 0, false
	}
	// In Unicode, decimal digits form groups of ten that begin with zero.
	for _, r := range unicode.Nd.R16 {
		if rune(r.Lo) <= k.Rune && k.Rune <= rune(r.Hi) {
			return int(k.Rune-rune(r.Lo)) % 10, true
		}
	}
	for _, r := range unicode.Nd.R32 {
		if rune(r.Lo) <= k.Rune && k.Rune <= rune(r.Hi) {
			return int(k.Rune-rune(r.Lo)) % 10, true
		}
	}
	return 0, false
}

const (
	esc = 0x1b

	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// decodeKey decodes the first key in b. n is the number of its bytes, or 0 if the key needs more bytes. If n is 0,
// the result "sequence" says that the bytes begin an escape sequence or a character. The rest of such a sequence
// arrives at once or never.
func decodeKey(b []byte) (k Key, n int, sequence bool) {
	if len(b) == 0 {
		return Key{}, 0, false
	}
	const ctrlE, ctrlX = 0x05, 0x18
	switch c := b[0]; {
	case c == esc:
		return decodeEscape(b)
	case c == ctrlX && len(b) == 1:
		return Key{}, 0, false
	case c == ctrlX && b[1] == ctrlE:
		return Key{Kind: keyControl, Rune: markEdit}, 2, false
	// The editor uses some of these bytes as its own marks, so a typed one is dropped.
	case c == 0, c == ctrlX, c > esc && c < ' ':
		return Key{}, 1, false
	case c < ' ', c == readline.CharBackspace:
		return Key{Kind: keyControl, Rune: rune(c)}, 1, false
	case !utf8.FullRune(b):
		return Key{}, 0, true
	}
	r, n := utf8.DecodeRune(b)
	const lineSeparator, paragraphSeparator = 0x2028, 0x2029
	if r == utf8.RuneError && n == 1 || r == lineSeparator || r == paragraphSeparator || !harmless(r) {
		return Key{}, n, false
	}
	return Key{Kind: KeyRune, Rune: r}, n, false
}

// decodeEscape decodes a sequence that begins with Esc. For example, Alt with y sends Esc and y, and must not count
// as the letter y. Ctrl-C is never a part of a sequence.
func decodeEscape(b []byte) (k Key, n int, sequence bool) {
	if len(b) == 1 {
		return Key{}, 0, true
	}
	switch c := b[1]; c {
	case esc:
		return Key{Kind: KeyEsc}, 1, false
	case readline.CharInterrupt:
		return Key{}, 1, false
	case '[', 'O': // Sequences that begin with CSI or SS3 have parameters and a final byte.
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == '[' && i == 2: // a function key of the Linux console
			case b[i] >= 0x40 && b[i] <= 0x7e:
				return namedKey(string(b[2:i]), b[i]), i + 1, false
			case b[i] < ' ' || b[i] > 0x7e:
				return Key{}, i, false
			}
		}
		return Key{}, 0, true
	case readline.CharEnter, readline.CharCtrlJ:
		return Key{Kind: keyNewline}, 2, false
	case 'b', 'f', 'd', readline.CharBackspace:
		return Key{Kind: keyMeta, Rune: rune(c)}, 2, false
	}
	if !utf8.FullRune(b[1:]) {
		return Key{}, 0, true
	}
	_, size := utf8.DecodeRune(b[1:])
	return Key{}, 1 + size, false
}

// namedKey returns the key that a CSI or SS3 sequence stands for.
func namedKey(params string, final byte) Key {
	if strings.IndexAny(params, "[?<=>") == 0 || strings.HasSuffix(params, ":3") {
		return Key{} // no effect: a function key of the Linux console, a terminal's reply, or the release of a key
	}
	withModifier := strings.HasSuffix(params, ";5") || strings.HasSuffix(params, ";3") // with Ctrl or Alt
	control := func(c rune) Key { return Key{Kind: keyControl, Rune: c} }
	switch final {
	case 'A':
		return control(readline.CharPrev)
	case 'B':
		return control(readline.CharNext)
	case 'C':
		if withModifier {
			return Key{Kind: keyMeta, Rune: 'f'}
		}
		return control(readline.CharForward)
	case 'D':
		if withModifier {
			return Key{Kind: keyMeta, Rune: 'b'}
		}
		return control(readline.CharBackward)
	case 'Z':
		return Key{Kind: keyBackTab}
	case 'H':
		return control(readline.CharLineStart)
	case 'F':
		return control(readline.CharLineEnd)
	case '~':
		switch params {
		case "1", "7":
			return control(readline.CharLineStart)
		case "4", "8":
			return control(readline.CharLineEnd)
		case "3":
			return Key{Kind: keyDelete}
		case "200":
			return Key{Kind: keyPasteBegin}
		case "201":
			return Key{Kind: keyPasteEnd}
		}
	}
	return Key{}
}
