package screen

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
)

// script is an input that returns prepared chunks. The chunk "" is a pause.
type script struct {
	chunks []string
	shown  strings.Builder
}

func (s *script) readBytes(_ context.Context, wait time.Duration) ([]byte, error) {
	if len(s.chunks) == 0 {
		return nil, io.EOF
	}
	c := s.chunks[0]
	s.chunks = s.chunks[1:]
	if c == "" && wait > 0 {
		return nil, errNothing
	}
	return []byte(c), nil
}

func (s *script) discardTyped() error { s.chunks = nil; return nil }
func (s *script) echoText(t string)   { s.shown.WriteString(t) }

func r(c rune) Key { return Key{Kind: KeyRune, Rune: c} }

// controlKey returns the key of a control character.
func controlKey(c rune) Key { return Key{Kind: keyControl, Rune: c} }

func TestKeys(t *testing.T) {
	enter, newline, escape := controlKey('\r'), controlKey('\n'), Key{Kind: KeyEsc}
	for _, tt := range []struct {
		name   string
		chunks []string
		want   []Key
	}{
		{"letters", []string{"yN1"}, []Key{r('y'), r('N'), r('1')}},
		{"kinds", []string{"\r\n\x7f\b\x03\x04"},
			[]Key{enter, newline, controlKey(0x7f), controlKey('\b'), controlKey(3), controlKey(4)}},
		{"other control", []string{"\x01\t\x15\x00a"}, []Key{r('a')}},
		{"split rune", []string{"\xe4", "\xb8", "\xad", "中"}, []Key{r('中'), r('中')}},
		{"torn rune", []string{"\xe4\xb8", "", "a"}, []Key{r('a')}},
		{"no UTF-8", []string{"\xff\xc3(a"}, []Key{r('('), r('a')}},
		{"full width", []string{"１ ٣"}, []Key{r('１'), r(' '), r('٣')}},
		{"escape", []string{"\x1b", "", "a"}, []Key{escape, r('a')}},
		{"escape at the end", []string{"\x1b"}, []Key{escape}},
		{"escape twice", []string{"\x1b\x1b", ""}, []Key{escape, escape}},
		{"arrow", []string{"\x1b[A", "y"}, []Key{r('y')}},
		{"split arrow", []string{"\x1b", "[", "1;5", "C", "y"}, []Key{r('y')}},
		{"application arrow", []string{"\x1bOAy"}, []Key{r('y')}},
		{"function key", []string{"\x1b[15~\x1b[[Ay"}, []Key{r('y')}},
		{"unfinished", []string{"\x1b[1", "", "y"}, []Key{r('y')}},
		{"interrupted", []string{"\x1b[1\x03"}, []Key{controlKey(CtrlC)}},
		{"Esc, then Ctrl-C", []string{"\x1b\x03"}, []Key{controlKey(CtrlC)}},
		{"cut SS3, then Ctrl-C", []string{"\x1bO\x03"}, []Key{controlKey(CtrlC)}},
		{"keys of the editor", []string{"\x1b[Z\x1b[3~\x1bb\x1b\r\x18\x05\x1b[Hy"}, []Key{r('y')}},
		{"SS3 with parameters", []string{"\x1bO5Ay"}, []Key{r('y')}},
		{"alt y", []string{"\x1byn"}, []Key{r('n')}},
		{"alt 中", []string{"\x1b中n"}, []Key{r('n')}},
		{"answer of the terminal", []string{"\x1b]11;rgb:0/0/0\x1b\\\x1b]0;y\ay"}, []Key{r('y')}},
		{"paste", []string{"n\x1b[200~yes\r1\x1b[2", "01~", "1"}, []Key{r('n'), r('1')}},
		{"cut paste", []string{"\x1b[200~yes", "", "y\x03n"}, []Key{controlKey(CtrlC), r('n')}},
		{"8-bit controls", []string{"\u009b\u202ey"}, []Key{r('y')}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &Keys{in: &script{chunks: tt.chunks}}
			for i := 0; ; i++ {
				got, err := k.Next(t.Context())
				if errors.Is(err, io.EOF) {
					if i != len(tt.want) {
						t.Errorf("%d keys, want %v", i, tt.want)
					}
					return
				}
				if err != nil || i >= len(tt.want) || got != tt.want[i] {
					t.Fatalf("key %d: %v, %v, want %v", i, got, err, tt.want)
				}
			}
		})
	}
}

func TestDiscardDropsWhatIsDecodedToo(t *testing.T) {
	k := &Keys{in: &script{chunks: []string{"ny", "y"}}}
	if got, err := k.Next(t.Context()); got != r('n') || err != nil {
		t.Fatalf("got %v, %v; want got == r('n') && err == nil", got, err)
	}
	if err := k.Discard(); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v after Discard", got, err)
	}
}

// TestAlone checks that a key which arrives together with others counts as text. Alone must drop this text up to a
// Ctrl-C.
func TestAlone(t *testing.T) {
	for _, tt := range []struct {
		chunks []string
		alone  bool
		next   Key
	}{
		{[]string{"y", "n"}, true, r('n')},
		{[]string{"y\r\n", "n"}, true, controlKey('\r')},
		{[]string{"yes, but", " not", "", "n"}, false, r('n')},
		{[]string{"yes", "it is\x03n"}, false, controlKey(CtrlC)},
	} {
		k := &Keys{in: &script{chunks: tt.chunks}}
		if got, err := k.Next(t.Context()); got != r('y') || err != nil {
			t.Fatalf("got %v, %v; want got == r('y') && err == nil", got, err)
		}
		if alone, err := k.Alone(t.Context()); alone != tt.alone || err != nil {
			t.Errorf("%q: got %t, %v; want alone == %v && err == nil", tt.chunks, alone, err, tt.alone)
		}
		if got, err := k.Next(t.Context()); got != tt.next || err != nil {
			t.Errorf("%q: then %v, %v", tt.chunks, got, err)
		}
	}
}

func TestNextAfterCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := &Keys{in: &script{}, buf: []byte("y")}
	if _, err := k.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v", err)
	}
}

func TestDigits(t *testing.T) {
	for c, want := range map[rune]int{'0': 0, '7': 7, '１': 1, '٣': 3, '۹': 9, '५': 5, '𝟘': 0, '𝟡': 9, '๔': 4} {
		if got, ok := r(c).Digit(); !ok || got != want {
			t.Errorf("%c: got %d, %v; want ok && got == %v", c, got, ok, want)
		}
	}
	for _, k := range []Key{r('a'), r('Ⅳ'), r('②'), r('四'), controlKey('1')} {
		if got, ok := k.Digit(); ok {
			t.Errorf("%v is %d", k, got)
		}
	}
	// Digit relies on these properties of the Unicode table.
	for _, rt := range unicode.Nd.R16 {
		if (rt.Hi-rt.Lo+1)%10 != 0 || rt.Stride != 1 {
			t.Errorf("got %x; want (rt.Hi - rt.Lo + 1) %% 10 == 0 && rt.Stride == 1", rt)
		}
	}
	for _, rt := range unicode.Nd.R32 {
		if (rt.Hi-rt.Lo+1)%10 != 0 || rt.Stride != 1 {
			t.Errorf("got %x; want (rt.Hi - rt.Lo + 1) %% 10 == 0 && rt.Stride == 1", rt)
		}
	}
}

func TestLine(t *testing.T) {
	for _, tt := range []struct {
		name, typed, want, shown string
		err                      error
	}{
		{"word", "destroy\r", "destroy", "destroy", nil},
		{"edited", "ab\x7fc\n", "ac", "ab\b \bc", nil},
		{"wide", "中\x7fx\r", "x", "中\b \b\b \bx", nil},
		{"combining", "e\u0301\x7fx\r", "x", "e\u0301\b \bx", nil},
		{"kill", "ab\x15c\r", "c", "ab\b \b\b \bc", nil},
		{"too much erased", "\x7f\x7fx\r", "x", "x", nil},
		{"arrows and tabs", "a\x1b[D\tb\r", "ab", "ab", nil},
		{"interrupt", "ab\x03", "", "ab", ErrInterrupted},
		{"end", "\x04", "", "", io.EOF},
		{"end later", "a\x04b\r", "ab", "ab", nil},
		{"hang up", "ab", "", "ab", io.EOF},
		{"escape", "ab\x1b", "", "ab", ErrEscaped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{chunks: []string{tt.typed}}
			got, err := (&Keys{in: s}).Line(t.Context())
			if got != tt.want || !errors.Is(err, tt.err) || s.shown.String() != tt.shown {
				t.Errorf("%q, %v, shown %q", got, err, s.shown.String())
			}
		})
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("y\x1b[A\x1b", 2)
	f.Add("\x1b]0;x\x1b\\中\xff", 1)
	f.Fuzz(func(t *testing.T, s string, size int) {
		in := &script{}
		size = max(1, size%5)
		for rest := s; rest != ""; {
			n := min(size, len(rest))
			in.chunks, rest = append(in.chunks, rest[:n]), rest[n:]
		}
		k := &Keys{in: in}
		for i := 0; ; i++ {
			key, err := k.Next(context.Background())
			if err != nil {
				return
			}
			answer := key.Kind == KeyRune || key.Kind == KeyEsc || key.Kind == keyControl &&
				strings.ContainsRune("\r\n\b\x7f\x03\x04\x1a", key.Rune)
			if i > len(s) || !answer || key.Kind == KeyRune && !harmless(key.Rune) {
				t.Fatalf("%q: key %d is %v", s, i, key)
			}
		}
	})
}
