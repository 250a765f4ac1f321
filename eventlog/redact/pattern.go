package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const beginPEM = "-----BEGIN "

// maskPEM masks private keys. It does not mask certificates and public keys. The newlines of a key may be escaped,
// and its end line may be missing.
func maskPEM(t *text) *edits {
	const dashes = "-----"
	s, e := t.s, &edits{text: t}
	nextEnd := -1
	for at := 0; ; {
		i := strings.Index(s[at:], beginPEM)
		if i < 0 {
			return e
		}
		at += i + len(beginPEM)
		label := lengthOf(s[at:], func(c byte) bool { return isUpper(c) || isDigit(c) || c == ' ' })
		if !strings.Contains(s[at:at+label], "PRIVATE KEY") || !strings.HasPrefix(s[at+label:], dashes) {
			continue
		}
		end := "-----END " + s[at:at+label] + dashes
		at += label + len(dashes)
		body := pemRun(s[at:], "")
		const longest = 16 << 10
		if nextEnd < at {
			if nextEnd = strings.Index(s[at:], "-----END "); nextEnd >= 0 {
				nextEnd += at
			} else {
				nextEnd = len(s)
			}
		}
		if i := nextEnd - at; i < longest && strings.HasPrefix(s[nextEnd:], end) && pemRun(s[at:at+i], ".()@_*#>|") == i {
			body = i + len(end)
		}
		if strings.TrimLeft(s[at:at+body], " \t\r\n") != "" {
			e.replace(at, at+body, Mask)
		}
		at += body
	}
}

// pemRun returns the length of the text at the start of s that can be inside a PEM block: base64, headers, blanks,
// escaped newlines and the bytes in the parameter "more". A quote always ends that text.
func pemRun(s, more string) int {
	n := 0
	for n < len(s) {
		switch c := s[n]; {
		case isWord(c) || strings.IndexByte("+/=:,- \t\r\n", c) >= 0 || strings.IndexByte(more, c) >= 0:
			n++
		case c == '\\' && n+1 < len(s) && strings.IndexByte(`\nrt/`, s[n+1]) >= 0:
			n += 2
		default:
			return n
		}
	}
	return n
}

// urlMarks follow the scheme of a URL. The second one is a spelling in JSON.
var urlMarks = [...]string{"://", `:\/\/`}

// maskURLs masks the password in scheme://user:password@host. If a URL has a user and no password, maskURLs masks a
// user that looks like a key.
func maskURLs(t *text, mark string) *edits {
	s, e := t.s, &edits{text: t}
	for at := 0; ; {
		i := strings.Index(s[at:], mark)
		if i < 0 {
			return e
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
}

// authority returns the length of the text between :// and the path. s begins after the ://.
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

// A pattern is a regular expression for one format of secrets. For speed, it is tried only near its literals. A match
// contains at least one of these texts.
type pattern struct {
	literals []string
	re       func() *regexp.Regexp
	check    func(match string) bool // nil, or a check of the masked group
}

var patterns = append([]pattern{
	{ // the token of a Telegram bot
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
	{ // secret URLs: everyone with the URL can post to it
		[]string{"hooks.slack.com", "hooks.slack-gov.com"},
		lazy(`hooks\.slack(?:-gov)?\.com\\*/(?:services|workflows|triggers)\\*/((?:[A-Za-z0-9+_-]|\\*/){8,})`), endsInWord,
	},
	{
		[]string{"discord.com", "discordapp.com"},
		lazy(`discord(?:app)?\.com\\*/api\\*/(?:v[0-9]+\\*/)?webhooks\\*/[0-9]+\\*/([A-Za-z0-9_-]{8,})`), nil,
	},
	{
		[]string{".office.com", ".office365.com"},
		lazy(`(?:webhook|outlook)\.office(?:365)?\.com/webhook(?:b2)?/([A-Za-z0-9@/-]{36,})`), nil,
	},
	{
		[]string{"hooks.zapier.com", "maker.ifttt.com", "hook.integromat.com", ".make.com"},
		lazy(`(?:hooks\.zapier\.com/hooks/catch/|maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/|hook\.(?:[a-z0-9]+\.)?(?:integromat|make)\.com/)([A-Za-z0-9/_-]{8,})`), endsInWord,
	},
	{
		[]string{"/hooks/"},
		lazy(`://[a-z0-9.:-]+/hooks/([a-z0-9]{26})\b`), nil, // webhooks of Mattermost
	},
	{ // keys of Authress
		[]string{".acc_", ".acc-"},
		lazy(`\b(?:sc|ext|scauth|authress)_[a-zA-Z0-9]{5,30}\.[a-zA-Z0-9]{4,6}\.acc[_-][a-zA-Z0-9-]{10,32}\.([A-Za-z0-9+/_=-]{30,120})`), nil,
	},
	{ // the secret of a client of Azure
		[]string{"Q~"},
		lazy(`(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})(?:$|[^A-Za-z0-9_~.-])`), nil,
	},
	{
		[]string{".atlasv1."},
		lazy(`[A-Za-z0-9]{14}\.atlasv1\.([A-Za-z0-9=_-]{60,})`), nil,
	},
	{
		[]string{"-us"},
		lazy(`\b([0-9a-f]{32})-us[0-9]{1,2}\b`), nil, // keys of Mailchimp
	},
	{
		[]string{"_mmk"},
		lazy(`\b([A-Za-z0-9]{6}_[A-Za-z0-9]{29})_mmk\b`), nil, // keys of MaxMind
	},
	{ // keys of Rapid API
		[]string{"jsn"},
		lazy(`\b([a-z0-9]{10}msh[a-z0-9]{15}p1[a-z0-9]{6}jsn[a-z0-9]{12})\b`), nil,
	},
	{ // a private key: its PEM in base64
		[]string{"LS0tLS1CRUdJTi"},
		lazy(`LS0tLS1CRUdJTi([A-Za-z0-9+/]{16,}={0,2})`), isEncodedPEM,
	},
	{ // private keys of PuTTY
		[]string{"Private-Lines:"},
		lazy(`Private-Lines: [0-9]+((?:[A-Za-z0-9+/=\s]|\\+[rn]){32,})`), nil,
	},
	{ // passwords in a .netrc file
		[]string{"login ", "login\t", "login\n", `login\n`, "account ", "machine "},
		lazy(`\b(?:login|account|machine)(?:[ \t]|\\+n|\n)+[^\s"'\\]+(?:[ \t]|\\+n|\n)+(?:password|passwd)[ \t]+([^\s"'\\]+)`), notInProse,
	},
	{ // passwords for Go's driver of MySQL
		[]string{"@tcp(", "@unix("},
		lazy(`[A-Za-z0-9_.-]+:([^\s"'@/]+)@(?:tcp|unix)\(`), nil,
	},
	{
		[]string{"jdbc:oracle:"},
		lazy(`jdbc:oracle:[a-z]+:[^\s"'/@]+/([^\s"'@]+)@`), nil,
	},
	{ // define('DB_PASSWORD', '…') and similar calls
		[]string{"define(", "etenv(", "etProperty(", `.set("`, ".set('", `.set(\"`, `.Set("`, `.Set(\"`, `eader("`, "eader('",
			`eader(\"`, "env('", `env("`, `env(\"`},
		lazy(`\( *\\*["'][A-Za-z0-9_.-]*(?i:password|passwd|secret|token|api[_-]?key|[a-z]_key|_salt|passphrase)\\*["'] *, *\\*["']([^"'\\]{3,})`),
		func(v string) bool { return !isReference(v) && !isProse(v) },
	},
	{ // passwords in the formats of crypt(3) and similar programs
		[]string{"$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$apr1$", "$argon2", "$pbkdf2"},
		lazy(`\$(?:(?:1|5|6|y|apr1)\$|2[aby]\$[0-9]{2}\$|(?:argon2|pbkdf2)[a-z0-9-]*\$)([A-Za-z0-9./=,+$-]{22,})`), nil,
	},
	{
		[]string{"dentified by '", "DENTIFIED BY", "DENTIFIED WITH"},
		lazy(`(?i:identified)(?: +(?i:with) +\S+)? +(?i:by|as)(?: +(?i:password))? +(?:\\*"|')([^"'\\\n]+)`), notInProse,
	},
	{
		[]string{"{SSHA", "{SHA"},
		lazy(`\{S?SHA[0-9]{0,3}\}([A-Za-z0-9+/]{20,}=*)`), nil,
	},
	{ // secrets in JSON inside a URL
		[]string{"%22%3A", "%22%3a"},
		lazy(`(?i:password|passwd|secret|token|api[_-]?key)%22%3[Aa](?:%20|\+)?%22([^%\s"'\\]{3,})`), nil,
	},
	{ // passwords in the configuration of routers
		[]string{"password 0 ", "password 5 ", "password 7 ", "secret 0 ", "secret 5 ", "secret 8 ", "secret 9 ",
			"community "},
		lazy(`(?:\b(?:password|secret|key) [05789] |snmp-server community )([^\s"'\\]{4,})`), nil,
	},
	{ // secrets as default values in Terraform
		[]string{`variable "`, `variable \"`},
		lazy(`variable \\*"[A-Za-z0-9_-]*(?i:password|secret|token|_key|passphrase)\\*" *\{[^{}]{0,200}?\bdefault *= *\\*"([^"\\]{3,})`), notInProse,
	},
	{ // a prompt for a password, with the typed password
		[]string{"assword for ", "assphrase for "},
		lazy(`(?i:password|passphrase) for [^\s:]+: +([^\s"'\\]{6,})(?:$|["'\n]|\\+n)`), nil,
	},
}, protocols...)

// notInProse reports whether a word after a flag or keyword cannot be a word of a sentence.
func notInProse(v string) bool {
	return !isReference(v) && !slices.Contains(proseWords, strings.ToLower(v))
}

// endsInWord reports whether the last part of a path is long enough for a secret.
func endsInWord(v string) bool { return len(v)-strings.LastIndexByte(v, '/') > 6 }

// isEncodedPEM reports whether v is a private key. v follows the text "-----BEGIN" in base64.
func isEncodedPEM(v string) bool {
	b, _ := base64.RawStdEncoding.DecodeString(("LS0tLS1CRUdJTi" + v)[:len("LS0tLS1CRUdJTi")+2+(len(v)-2)/4*4])
	return strings.Contains(string(b[:min(len(b), 64)]), "PRIVATE")
}

// lazy returns a function that compiles expr at its first call. Copies of lazy at its uses would add 50 KB to the
// program.
//
//go:noinline
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// maskMatches masks the first group of each match. The expression is applied only to the text near a literal of the
// pattern. If a match reaches the end of that text, the expression is applied to more text. places are the offsets of
// the literals.
func (p pattern) maskMatches(t *text, places []int) *edits {
	const before, after = 96, 320
	s, e := t.s, &edits{text: t}
	done := 0
	for i := 0; i < len(places); {
		from, to := max(done, places[i]-before), min(len(s), places[i]+after)
		for i++; i < len(places) && places[i] < to; i++ { // join windows that overlap
			to = min(len(s), places[i]+after)
		}
		for from < to {
			m := p.re().FindStringSubmatchIndex(s[from:to])
			for ; m != nil && from+m[1] == to && to < len(s); m = p.re().FindStringSubmatchIndex(s[from:to]) {
				to = min(len(s), from+4*(to-from))
			}
			if m == nil {
				break
			}
			p.maskMatch(e, from+m[2], from+m[3])
			from += m[1]
			done = from
		}
		for i < len(places) && places[i] < done {
			i++
		}
	}
	return e
}

func (p pattern) maskMatch(e *edits, from, to int) {
	v := e.s[from:to]
	if strings.Contains(v, redacted) || p.check != nil && !p.check(v) {
		return
	}
	e.maskRange(from, to)
}
