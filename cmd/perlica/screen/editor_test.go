package screen

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// feed returns a readFunc. It returns the pieces one by one, and then io.EOF as from a closed terminal.
func feed(pieces ...string) readFunc {
	return func(_ context.Context, wait time.Duration) ([]byte, error) {
		if len(pieces) == 0 {
			if wait > 0 {
				return nil, nil
			}
			return nil, io.EOF
		}
		p := pieces[0]
		pieces = pieces[1:]
		return []byte(p), nil
	}
}

func keysOf(t *testing.T, read readFunc) (keys []Key) {
	t.Helper()
	var d typingReader
	for {
		k, err := d.nextKey(t.Context(), read)
		if err != nil {
			return keys
		}
		keys = append(keys, k)
	}
}

func runeKey(r rune) Key { return Key{Kind: KeyRune, Rune: r} }

// TestDecode checks all keys of the editor. A paste is one key, even if it arrives in several pieces. Unknown sequences
// do nothing.
func TestDecode(t *testing.T) {
	up, enter := Key{Kind: keyControl, Rune: 16}, Key{Kind: keyControl, Rune: 13}
	paste := Key{Kind: keyPaste, text: "a\nb\n中\x1b[A"}
	many := strings.Repeat("text\r", 100)
	for name, c := range map[string]struct {
		pieces []string
		want   []Key
	}{
		"text":           {[]string{"a中😀"}, []Key{runeKey('a'), runeKey('中'), runeKey('😀')}},
		"cut character":  {[]string{"\xe4\xb8", "\xad"}, []Key{runeKey('中')}},
		"arrow":          {[]string{"\x1b[A\x1bOA"}, []Key{up, up}},
		"cut arrow":      {[]string{"\x1b", "[", "A"}, []Key{up}},
		"word":           {[]string{"\x1b[1;5D\x1bb"}, []Key{{Kind: keyMeta, Rune: 'b'}, {Kind: keyMeta, Rune: 'b'}}},
		"delete":         {[]string{"\x1b[3~"}, []Key{{Kind: keyDelete}}},
		"Linux console":  {[]string{"\x1b[[A\x1b[1;1:3A\x1b[?1Aa"}, []Key{runeKey('a')}},
		"SS3 parameters": {[]string{"\x1bO5Aa"}, []Key{up, runeKey('a')}},
		"Alt-arrow":      {[]string{"\x1b\x1b[A"}, []Key{up}},
		"Esc, Ctrl-C":    {[]string{"\x1b\x03"}, []Key{{Kind: keyControl, Rune: 3}}},
		"unknown":        {[]string{"\x1b[99;1Y\x1bZa"}, []Key{runeKey('a')}},
		"Esc alone":      {[]string{"\x1b"}, []Key{{Kind: KeyEsc}}},
		"Shift-Tab":      {[]string{"\x1b[Z"}, []Key{{Kind: keyBackTab}}},
		"line break":     {[]string{"\n\x1b\r"}, []Key{{Kind: keyNewline}, {Kind: keyNewline}}},
		"paste":          {[]string{"x\x1b[200~a\rb\r\n中\x1b[A\x1b[201~y"}, []Key{runeKey('x'), paste, runeKey('y')}},
		"cut paste":      {[]string{"\x1b[20", "0~a\rb", "\r\n中\x1b[A\x1b[2", "01~"}, []Key{paste}},
		"burst": {[]string{many, "more\r"},
			[]Key{{Kind: keyPaste, text: strings.ReplaceAll(many, "\r", "\n") + "more\n"}}},
		"burst, then key": {[]string{many + "\x03"},
			[]Key{{Kind: keyPaste, text: strings.ReplaceAll(many, "\r", "\n")}, {Kind: keyControl, Rune: 3}}},
		"lines":     {[]string{"a\rb"}, []Key{{Kind: keyLines, text: "a\nb"}}},
		"cut lines": {[]string{"a\r\n\tb\xe4\xb8", "\xad\r"}, []Key{{Kind: keyLines, text: "a\n\tb中\n"}}},
		"lines, then key": {[]string{"\x15a\rb\x03c"},
			[]Key{{Kind: keyControl, Rune: 21}, {Kind: keyLines, text: "a\nb"}, {Kind: keyControl, Rune: 3}, runeKey('c')}},
		"Enter last": {[]string{"a\r", "b\r\n", "\r"},
			[]Key{runeKey('a'), enter, runeKey('b'), enter, {Kind: keyNewline}, enter}},
		"Alt-Enter":       {[]string{"a\x1b\rb"}, []Key{runeKey('a'), {Kind: keyNewline}, runeKey('b')}},
		"editor":          {[]string{"\x18", "\x05"}, []Key{{Kind: keyControl, Rune: markEdit}}},
		"our own marks":   {[]string{"\x1d\x1ea"}, []Key{runeKey('a')}},
		"no UTF-8":        {[]string{"\xffa\xc3("}, []Key{runeKey('a'), runeKey('(')}},
		"bidirectional":   {[]string{"\u202ea"}, []Key{runeKey('a')}},
		"paste, no UTF-8": {[]string{"\x1b[200~a\xff\x1b[201~"}, []Key{{Kind: keyPaste, text: "a\ufffd"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := keysOf(t, feed(c.pieces...)); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// FuzzDecode checks that reading always ends, and that the text of a paste contains no carriage return.
func FuzzDecode(f *testing.F) {
	f.Add("a\x1b[200~x\ry\x1b[201~\r", uint8(2))
	f.Add("\xfe\r\x95\xff", uint8(0)) // This input must not be taken for a paste.
	f.Fuzz(func(t *testing.T, typed string, step uint8) {
		var pieces []string
		n := int(step)%9 + 1
		for i := 0; i < len(typed); i += n {
			pieces = append(pieces, typed[i:min(i+n, len(typed))])
		}
		for _, k := range keysOf(t, feed(pieces...)) {
			if k.Kind == keyPaste && strings.ContainsRune(k.text, '\r') {
				t.Errorf("%q: %v", typed, k)
			}
		}
	})
}

// TestLayout checks the rows of several texts and the place of the cursor in them.
func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		text        string
		pos         int
		rows        string
		row, column int
	}{
		"plain":        {"hello", 5, "> hello", 0, 7},
		"inside":       {"hello", 2, "> hello", 0, 4},
		"wide":         {"中文", 1, "> 中文", 0, 4},
		"emoji":        {"a😀b", 2, "> a😀b", 0, 5},
		"full width":   {"，。", 2, "> ，。", 0, 6},
		"combining":    {"e\u0301x", 3, "> e\u0301x", 0, 4},
		"lines":        {"a\nb", 3, "> a|  b", 1, 3},
		"broken":       {"12345678ab", 10, "> 12345678|ab", 1, 2},
		"wide at edge": {"1234567中", 8, "> 1234567|中", 1, 2},
		"full":         {"12345678", 8, "> 12345678|", 1, 0},
		"control":      {"a\x01b", 3, "> a·b", 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			rows, row, column := layout("> ", []rune(c.text), c.pos, 10)
			if got := strings.Join(rows, "|"); got != c.rows || row != c.row || column != c.column {
				t.Errorf("%q at %d,%d, want %q at %d,%d", got, row, column, c.rows, c.row, c.column)
			}
		})
	}
}

// TestFold checks that a label is replaced by its text. A label that a person has changed is not replaced.
func TestFold(t *testing.T) {
	var e Editor
	if got := e.foldText("one line\x07\n"); got != "one line" {
		t.Errorf("a line became %q", got)
	}
	a, b := e.foldText("1\n2"), e.foldText(strings.Repeat("x", 5000))
	if a != "[pasted 2 lines #1]" || b != "[pasted 5 KB #2]" {
		t.Errorf(`got %q, %q; want a == "[pasted 2 lines #1]" && b == "[pasted 5 KB #2]"`, a, b)
	}
	if got := e.unfoldLabels("a " + a + b + a); got != "a 1\n2"+strings.Repeat("x", 5000)+"1\n2" {
		t.Errorf("unfolded %.40q", got)
	}
	if got := e.unfoldLabels("[pasted 2 lines #9]"); got != "[pasted 2 lines #9]" {
		t.Errorf("unfolded %q", got)
	}
}

// TestHistory checks that entries with line breaks survive, and that the file does not grow without limit.
func TestHistory(t *testing.T) {
	h := LineHistory{Path: filepath.Join(t.TempDir(), "state", "history")}
	if past, err := h.Load(); len(past) != 0 || err != nil {
		t.Errorf("got %q, %v; want len(past) == 0 && err == nil", past, err)
	}
	for _, s := range []string{"one", "two\nlines 中"} {
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if past, err := h.Load(); !slices.Equal(past, []string{"one", "two\nlines 中"}) || err != nil {
		t.Errorf(`got %q, %v; want slices.Equal(past, []string{"one", "two\nlines 中"}) && err == nil`, past, err)
	}
	if err := h.rewrite(slices.Repeat([]string{"x"}, 3*maxPast)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if past, err := h.Load(); len(past) != maxPast || err != nil {
			t.Errorf("%d entries, %v", len(past), err)
		}
	}
}
