package shell

import (
	"strconv"
	"strings"
)

// A dialect says which escapes a text has.
type dialect int

const (
	inQuotes  dialect = iota // $'…'
	inFormat                 // the format of printf
	inOperand                // what its %b writes
	inEcho                   // what echo -e writes
)

// unquote reads the escapes of $'…', of which bash keeps what stands before a NUL.
func unquote(s string) string {
	text, _ := unescape(s, inQuotes)
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// unescape reads escapes. It says whether one of them, \c, ends all output.
func unescape(s string, d dialect) (text string, ends bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		prints := d == inOperand || d == inEcho // then quotes are no special characters
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 && !(prints && strings.IndexByte(`'"?`, s[i]) >= 0) {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		if prints && s[i] == 'c' {
			return b.String(), true
		}
		n := number(&b, s[i:], d)
		if n == 0 {
			b.WriteByte('\\')
			b.WriteByte(s[i])
			n = 1
		}
		i += n - 1
	}
	return b.String(), false
}

// number reads \NNN, \0NNN, \xHH, \x{H…}, \uHHHH, \UHHHHHHHH and \cX, and tells how many
// bytes it took.
func number(b *strings.Builder, s string, d dialect) int {
	skip, most, base := 1, 0, 16
	switch c := s[0]; {
	case c == '0' && d >= inOperand:
		skip, most, base = 0, 4, 8
	case c >= '0' && c <= '7' && d != inEcho:
		skip, most, base = 0, 3, 8
	case c == 'x' && d == inQuotes && strings.HasPrefix(s, "x{"):
		return braced(b, s)
	case c == 'x':
		most = 2
	case c == 'u':
		most = 4
	case c == 'U':
		most = 8
	case c == 'c' && len(s) > 1 && d == inQuotes:
		b.WriteByte(s[1] & 0x1f)
		return 2
	}
	n := skip + digits(s[skip:], most, base)
	if n == skip {
		return 0
	}
	v, err := strconv.ParseUint(s[skip:n], base, 32)
	if err != nil {
		return 0
	}
	if s[0] == 'u' || s[0] == 'U' {
		b.WriteRune(rune(v))
	} else {
		b.WriteByte(byte(v))
	}
	return n
}

// braced reads \x{H…}, of which the last two digits count.
func braced(b *strings.Builder, s string) int {
	n := len("x{") + digits(s[len("x{"):], len(s), 16)
	v, _ := strconv.ParseUint(s[max(len("x{"), n-2):n], 16, 8) // 0 without digits
	b.WriteByte(byte(v))
	if strings.HasPrefix(s[n:], "}") {
		n++
	}
	return n
}

// digits counts those at the start of s, up to so many.
func digits(s string, most, base int) (n int) {
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	return n
}
