package shell

import (
	"strconv"
	"strings"
)

// unquoteANSI reads the escapes of $'…', of which bash keeps what stands before a NUL.
func unquoteANSI(s string) string {
	text, _, _ := strings.Cut(unescapeANSI(s), "\x00")
	return text
}

// unescapeANSI reads the same escapes as printf does, which writes a NUL.
func unescapeANSI(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		n := number(&b, s[i:])
		if n == 0 {
			b.WriteByte('\\')
			b.WriteByte(s[i])
			n = 1
		}
		i += n - 1
	}
	return b.String()
}

// number reads \NNN, \xHH, \uHHHH, \UHHHHHHHH and \cX, and tells how many bytes
// it took.
func number(b *strings.Builder, s string) int {
	skip, most, base := 1, 0, 16
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		skip, most, base = 0, 3, 8
	case c == 'x':
		most = 2
	case c == 'u':
		most = 4
	case c == 'U':
		most = 8
	case c == 'c' && len(s) > 1:
		b.WriteByte(s[1] & 0x1f)
		return 2
	}
	n := skip
	for n < len(s) && n-skip < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
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
