package trail

import (
	"encoding/base64"
	"regexp"
	"strings"
	"sync"
)

// known are the kinds of keys that can be told by how they begin, longer beginnings
// first. size returns how many bytes of what follows the beginning belong to the
// key, 0 if it is none.
var known = []struct {
	prefix string
	size   func(rest string) int
}{
	{"sk-ant-", run(dashed, 8)},
	{"sk-proj-", run(dashed, 8)},
	{"sk-svcacct-", run(dashed, 8)},
	{"sk-admin-", run(dashed, 8)},
	{"sk-or-v1-", run(dashed, 8)},
	{"sk_live_", run(dashed, 16)}, {"sk_test_", run(dashed, 16)}, {"rk_live_", run(dashed, 16)},
	{"sk-", solid},
	{"github_pat_", run(dashed, 20)},
	{"ghp_", run(isWord, 20)}, {"gho_", run(isWord, 20)}, {"ghu_", run(isWord, 20)},
	{"ghs_", run(isWord, 20)}, {"ghr_", run(isWord, 20)},
	{"AKIA", exactly16}, {"ASIA", exactly16},
	{"xoxb-", run(dashed, 10)}, {"xoxa-", run(dashed, 10)}, {"xoxp-", run(dashed, 10)},
	{"xoxr-", run(dashed, 10)}, {"xoxs-", run(dashed, 10)}, {"xapp-", run(dashed, 10)},
	{"AIza", run(dashed, 30)},
	{"glpat-", run(dashed, 16)},
	{"npm_", run(isWord, 30)},
	{"hf_", run(isWord, 30)},
	{"gsk_", run(isWord, 30)},
	{"xai-", run(isWord, 30)},
	{"pypi-AgE", run(dashed, 30)},
	{"AGE-SECRET-KEY-1", run(isWord, 30)},
	{"eyJ", jwt},
}

func dashed(c byte) bool { return isWord(c) || c == '-' || c == '_' }

func lengthOf(s string, of func(byte) bool) int {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return n
}

// run accepts at least atLeast bytes of a kind.
func run(of func(byte) bool, atLeast int) func(string) int {
	return func(rest string) int {
		if n := lengthOf(rest, of); n >= atLeast {
			return n
		}
		return 0
	}
}

// solid accepts what has 16 letters and digits without a dash between them:
// sk-folding-cube-animation is a class name.
func solid(rest string) int {
	n := lengthOf(rest, dashed)
	for _, part := range strings.FieldsFunc(rest[:n], func(r rune) bool { return r == '-' || r == '_' }) {
		if len(part) >= 16 && strings.ContainsAny(part, "0123456789") {
			return n
		}
	}
	return 0
}

func exactly16(rest string) int {
	if lengthOf(rest, func(c byte) bool { return isUpper(c) || isDigit(c) }) == 16 && lengthOf(rest, isWord) == 16 {
		return 16
	}
	return 0
}

// jwt accepts header.payload.signature; the header alone is base64 of any JSON.
func jwt(rest string) int {
	n := lengthOf(rest, dashed)
	if n < 8 {
		return 0
	}
	parts := 1
	for n+1 < len(rest) && rest[n] == '.' {
		m := lengthOf(rest[n+1:], dashed)
		if m < 4 {
			break
		}
		n, parts = n+1+m, parts+1
	}
	if parts == 2 && strings.HasPrefix(rest[n:], ".") { // unsigned
		return n + 1
	}
	if parts < 3 {
		return 0
	}
	return n
}

// maskPrefixed masks keys of a known kind wherever they begin a word.
func maskPrefixed(s string) string {
	for _, k := range known {
		if !strings.Contains(s, k.prefix) {
			continue
		}
		e := edits{s: s}
		for at := 0; ; {
			i := strings.Index(s[at:], k.prefix)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(k.prefix)
			if !beginsWord(s, from) {
				continue
			}
			if n := k.size(s[at:]); n > 0 {
				e.replace(from, at+n, k.prefix+maskTail)
				at += n
			} else {
				at += lengthOf(s[at:], dashed) // what begins later in the same run is shorter still
			}
		}
		s = e.String()
	}
	return s
}

// beginsWord reports whether no letter or digit stands before s[i]. The n of an
// escaped newline and the digits of \u003c are none.
func beginsWord(s string, i int) bool {
	if i == 0 || !isWord(s[i-1]) {
		return true
	}
	if strings.IndexByte("nrtbf", s[i-1]) >= 0 && backslashes(s, i-1)%2 == 1 {
		return true
	}
	return i >= 6 && s[i-5] == 'u' && backslashes(s, i-5)%2 == 1
}

// maskPEM masks private keys; certificates and public keys stay. Line ends may be
// escaped, and the end may be missing.
func maskPEM(s string) string {
	const begin, dashes = "-----BEGIN ", "-----"
	e := edits{s: s}
	for at := 0; ; {
		i := strings.Index(s[at:], begin)
		if i < 0 {
			return e.String()
		}
		at += i + len(begin)
		label := lengthOf(s[at:], func(c byte) bool { return isUpper(c) || isDigit(c) || c == ' ' })
		if !strings.Contains(s[at:at+label], "PRIVATE KEY") || !strings.HasPrefix(s[at+label:], dashes) {
			continue
		}
		end := "-----END " + s[at:at+label] + dashes
		at += label + len(dashes)
		body := pemRun(s[at:])
		if i := strings.Index(s[at:at+body], end); i >= 0 {
			body = i + len(end)
		}
		if strings.TrimLeft(s[at:at+body], " \t\r\n") != "" {
			e.replace(at, at+body, maskTail)
		}
		at += body
	}
}

// pemRun returns the length of what can be the inside of a PEM block: base64, its
// headers, blanks and escaped line ends, but never a quote.
func pemRun(s string) int {
	n := 0
	for n < len(s) {
		switch c := s[n]; {
		case isWord(c) || strings.IndexByte("+/=:,- \t\r\n", c) >= 0:
			n++
		case c == '\\' && n+1 < len(s) && strings.IndexByte(`\nrt/`, s[n+1]) >= 0:
			n += 2
		default:
			return n
		}
	}
	return n
}

// maskURLs masks the password in scheme://user:password@host, and a user without a
// password if it looks like a key.
func maskURLs(s string) string {
	for _, mark := range []string{"://", `:\/\/`} {
		e := edits{s: s}
		for at := 0; ; {
			i := strings.Index(s[at:], mark)
			if i < 0 {
				break
			}
			at += i + len(mark)
			user := s[at : at+authority(s[at:])]
			host := strings.LastIndexByte(user, '@')
			if host < 0 {
				continue
			}
			colon := strings.IndexByte(user[:host], ':')
			switch {
			case colon >= 0 && colon+1 < host:
				e.replace(at+colon+1, at+host, redacted)
			case colon < 0 && looksSecret(user[:host]):
				e.replace(at, at+host, redacted)
			}
			at += host
		}
		s = e.String()
	}
	return s
}

// authority returns the length of what stands between :// and the path.
func authority(s string) int {
	n := 0
	for n < len(s) {
		switch c := s[n]; {
		case c <= ' ' || c == 0x7f || strings.IndexByte("/?#\"'<>`", c) >= 0:
			return n
		case c == '\\' && n+1 < len(s) && s[n+1] == '\\':
			n += 2
		case c == '\\' && n+6 <= len(s) && s[n+1] == 'u':
			n += 6
		case c == '\\':
			return n
		default:
			n++
		}
	}
	return n
}

// A pattern is looked for only where one of its literals stands.
type pattern struct {
	literals []string
	re       func() *regexp.Regexp
	check    func(match string) bool // of the group that is masked
}

var patterns = []pattern{
	{ // telegram bot token
		[]string{":AA"},
		lazy(`[0-9]{6,12}:AA([A-Za-z0-9_-]{30,})`), nil,
	},
	{
		[]string{"earer ", "EARER "},
		lazy(`(?i:bearer) +([A-Za-z0-9._~+/=-]{8,})`), looksSecret,
	},
	{
		[]string{"asic ", "ASIC "},
		lazy(`(?i:basic) +([A-Za-z0-9+/]{6,}={0,2})`), isBasic,
	},
	{ // --api-key VALUE, also as two arguments of a JSON array
		[]string{"--"},
		lazy(`--(?:[A-Za-z0-9]+-)*(?i:password|passwd|passphrase|secret|token|api-?key|secret-key|access-key)(?: +|" *, *"|\\" *, *\\"|\\{3}" *, *\\{3}")([^\s"'\\,-][^\s"'\\]*)`), nil,
	},
}

func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// isBasic reports whether s is base64 of user:password.
func isBasic(s string) bool {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.Contains(string(b), ":")
}

func (p pattern) present(s string) bool {
	for _, l := range p.literals {
		if strings.Contains(s, l) {
			return true
		}
	}
	return false
}

// mask masks the first group of each match.
func (p pattern) mask(s string) string {
	e := edits{s: s}
	for _, m := range p.re().FindAllStringSubmatchIndex(s, -1) {
		v := s[m[2]:m[3]]
		if strings.HasPrefix(v, redacted) || strings.HasSuffix(v, maskTail) || p.check != nil && !p.check(v) {
			continue
		}
		mask := maskOf(v)
		if mask == redacted {
			mask = maskTail
		}
		e.replace(m[2], m[3], mask)
	}
	return e.String()
}
