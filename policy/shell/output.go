package shell

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
)

// printed returns the output of echo, and of simple uses of printf.
func printed(name string, args []field) flow {
	var words []string
	out := flow{piped: true, known: true}
	for _, a := range args {
		out.known = out.known && !a.vague && !a.glob
		out.origin |= a.origin
		words = append(words, a.text)
	}
	if name == "printf" {
		text, sure := format(words)
		out.text, out.known = text, out.known && sure
		return out
	}
	escapes := false
	for len(words) > 0 && strings.Trim(words[0], "neE") == "-" && len(words[0]) > 1 {
		if i := strings.LastIndexAny(words[0], "eE"); i > 0 {
			escapes = words[0][i] == 'e'
		}
		words = words[1:]
	}
	out.text = strings.Join(words, " ") + "\n"
	// Some shells read escapes in echo even without the option -e.
	if read, _ := unescape(out.text, inEcho); escapes {
		out.text = read
	} else if read != out.text {
		out.other = read
	}
	return out
}

// unspread returns the fields that a shell without brace expansion would have in place of list.
func unspread(fs []field) (out []field) {
	for _, f := range fs {
		if f.spread == 1 {
			f.text = f.src
		}
		if f.spread <= 1 {
			out = append(out, f)
		}
	}
	return out
}

// directive matches one directive of printf, such as %-5.2f. Its groups are the flags, the width, the precision and the
// conversion.
var directive = lazily(`^%([-+ #0']*)(\*|[0-9]*)(\.\*|\.[0-9]*)?[hlLjzt]*([%a-zA-Z])`)

// format returns the output of printf. words are the format and its arguments. The result "sure" is false if the true
// output may be another text.
func format(words []string) (text string, sure bool) {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", true
	}
	pattern, args := words[0], words[1:]
	take := func() (arg string) {
		if len(args) > 0 {
			arg, args = args[0], args[1:]
		}
		return arg
	}
	var b strings.Builder
	sure = true
	for round := 0; round == 0 || len(args) > 0; round++ {
		before := len(args)
		for rest := pattern; rest != ""; {
			i := strings.IndexByte(rest+"%", '%')
			plain, _ := unescape(rest[:i], inFormat)
			b.WriteString(plain)
			if rest = rest[i:]; rest == "" {
				break
			}
			m := directive().FindStringSubmatch(rest)
			if m == nil {
				return b.String(), false
			}
			rest = rest[len(m[0]):]
			text, ok, ends := converted(m, take)
			b.WriteString(text)
			sure = sure && ok
			if ends {
				return b.String(), sure
			}
		}
		if len(args) == before || b.Len() > maxText {
			break
		}
	}
	return b.String(), sure
}

// converted returns the output of one directive of printf. m has the groups of the directive, and take returns the next
// argument. The result "sure" is false if the true output may be another text. The result "ends" is true if printf ends
// after this directive.
func converted(m []string, take func() string) (text string, sure, ends bool) {
	if m[4] == "%" {
		return "%", true, false
	}
	width, precision := m[2], m[3]
	if width == "*" {
		width = take()
	}
	if precision == ".*" {
		precision = "." + take()
	}
	text, sure = take(), true
	switch m[4] {
	case "b":
		text, ends = unescape(text, inOperand)
	case "c":
		text = text[:min(1, len(text))]
	case "s", "q":
	default:
		text, sure = numeral(text, m[4])
		precision = ""
	}
	if most, given := strings.CutPrefix(precision, "."); given {
		if n, err := strconv.Atoi(cmp.Or(most, "0")); err == nil && n >= 0 {
			text = text[:min(n, len(text))]
		}
	}
	n, _ := strconv.Atoi(width) // 0 without a number
	missing := max(n, -n) - len(text)
	switch spaces := strings.Repeat(" ", min(maxText, max(0, missing))); {
	case missing > maxText:
		sure = false
	case n < 0 || strings.Contains(m[1], "-"):
		text += spaces
	default:
		text = spaces + text
	}
	return text, sure, ends
}

// numeral returns the output of printf for a number. The parameter "how" is the conversion, such as d or x. numeral
// returns false if the result is unsure. Decimal numbers stay unchanged, because no important directory has a number as
// its name.
func numeral(text, how string) (string, bool) {
	n, err := strconv.ParseInt(text, 0, 64)
	switch {
	case text == "":
		return "0", true
	case how == "x" && err == nil && n >= 0:
		return strconv.FormatInt(n, 16), true
	case how == "o" && err == nil && n >= 0:
		return strconv.FormatInt(n, 8), true
	}
	return text, err == nil && strings.Contains("diufFeEgG", how)
}

// dialect is the place of a text in a command. It determines the escapes that the shell reads in the text.
type dialect int

const (
	inQuotes  dialect = iota // $'…'
	inFormat                 // the format of printf
	inOperand                // an operand of %b in printf
	inEcho                   // the operands of echo -e
)

// unquote replaces the escapes in a text from $'…'. Like bash, it drops the text after a zero byte.
func unquote(s string) string {
	text, _ := unescape(s, inQuotes)
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// unescape replaces the escapes in a text. The result "ends" is true if the escape \c ends all output of the command.
func unescape(s string, d dialect) (text string, ends bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		prints := d == inOperand || d == inEcho // a backslash before a quote is then not an escape
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

// number reads a numeric escape at the start of s, such as 0NNN, xHH, x{H…}, uHHHH or cX, without its backslash. It
// appends the character to b and returns the number of bytes that it read.
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

// braced reads an escape x{H…} at the start of s, without its backslash. Bash uses only the last two digits.
func braced(b *strings.Builder, s string) int {
	n := len("x{") + digits(s[len("x{"):], len(s), 16)
	v, _ := strconv.ParseUint(s[max(len("x{"), n-2):n], 16, 8) // 0 without digits
	b.WriteByte(byte(v))
	if strings.HasPrefix(s[n:], "}") {
		n++
	}
	return n
}

// digits returns the number of digits in this base at the start of s, but at most the limit most.
func digits(s string, most, base int) (n int) {
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	return n
}

// cat returns the output of cat, nl, tee or sponge. This is the input, or for cat and nl the content of the operands.
// It judges the files that tee and sponge write.
func (w *walker) cat(name string, fs []field, st *state, in flow) flow {
	_, operands := options(fs[1:], "", false)
	if name != "cat" && name != "nl" {
		for _, f := range operands {
			w.judgeWrite(f, st, deedWrites.With(f.src))
			w.markOrigin(f, st, in.origin)
			w.keepText(f, st, in)
		}
		return in
	}
	if len(operands) == 0 {
		return in
	}
	out := flow{piped: true, known: true}
	for _, f := range operands {
		if f.text == "-" || f.text == "/dev/stdin" {
			out = out.then(in)
		} else {
			out = out.then(w.fileFlow(f, st))
		}
	}
	return out
}

// recordUnpacked records that a downloaded archive may have created files under any names.
func (w *walker) recordUnpacked(name string, fs []field, st *state, in flow) {
	switch name {
	case "tar", "gtar", "bsdtar", "unzip", "7z", "7za", "cpio", "gunzip", "unxz", "bunzip2", "ar":
	default:
		return
	}
	from := in.origin
	for _, f := range fs[1:] {
		if f.text == "-l" || f.text == "-t" || f.text == "t" || strings.HasPrefix(f.text, "-t") || f.text == "--list" {
			return
		}
		from |= w.originOf(f, st)
	}
	w.unnamed |= from & foreign
}

// decode returns the output of a program that decodes its input, such as base64 -d. The text is known if the input is
// known base64. ok is false if the command does not decode.
func (w *walker) decode(name string, fs []field, st *state, in flow) (out flow, ok bool) {
	if !decodes(name, fs) {
		return flow{}, false
	}
	opts, operands := options(fs[1:], "wo --wrap --input --output", false)
	if len(operands) > 0 && !isStdin(operands[0].text) {
		in = w.fileFlow(operands[0], st)
	}
	out = flow{piped: true, origin: in.origin | decoded}
	if text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.text), "")); strings.HasSuffix(name,
		"base64") && err == nil && in.text != "" {
		out.text, out.known = string(text), in.known
		if in.known {
			out.origin = in.origin
		}
	}
	for i, f := range fs[1:] {
		if (f.text == "-out" || f.text == "-o" && name != "openssl") && i+2 < len(fs) {
			w.judgeWrite(fs[i+2], st, deedWrites.With(fs[i+2].src))
			w.markOrigin(fs[i+2], st, out.origin)
			w.keepText(fs[i+2], st, out)
		}
	}
	if o, found := findOption(opts, "--output"); found && o.value != nil {
		w.markOrigin(*o.value, st, out.origin)
	}
	if name == "xxd" && len(operands) > 1 {
		w.markOrigin(operands[1], st, out.origin)
	}
	if name == "uudecode" && len(opts) == 0 {
		w.unnamed |= decoded // the input contains the name of the file
	}
	return out, true
}

// decodes reports whether the words fs make the program decode its input.
func decodes(name string, fs []field) bool {
	if name == "xxd" {
		return among(fs[1:], "-r", "-rp", "-pr")
	}
	return name == "uudecode" || among(fs[1:], "-d", "-D", "-di", "-id", "--decode", "-r", "-rp", "-pr")
}

// applyPatch judges the files that a command apply_patch of Codex changes. The patch is an argument or the input.
func (w *walker) applyPatch(fs []field, st *state, in flow) {
	texts := fs[1:]
	if len(texts) == 0 {
		texts = []field{{text: in.text, vague: !in.known && in.text == ""}}
	}
	for _, f := range texts {
		if f.vague {
			w.askUnknown(whyUnknownFiles, shown(fs))
		}
		w.judgePatch(PatchFiles(f.text), f, fs, st)
	}
}
