package shell

import "strings"

// printed is the output of echo and of the plainest uses of printf.
func printed(name string, args []field) flow {
	var words []string
	out := flow{piped: true, known: true}
	for _, a := range args {
		out.known = out.known && !a.vague && !a.glob
		out.origin |= a.origin
		words = append(words, a.text)
	}
	if name == "printf" {
		out.text = format(words)
		return out
	}
	escapes := false
	for len(words) > 0 && strings.Trim(words[0], "neE") == "-" && len(words[0]) > 1 {
		escapes = escapes || strings.Contains(words[0], "e")
		words = words[1:]
	}
	out.text = strings.Join(words, " ") + "\n"
	// The echo of some shells reads escapes without an option.
	if read := unquoteANSI(out.text); escapes {
		out.text = read
	} else if read != out.text {
		out.other = read
	}
	return out
}

// format is printf for %s, %b and %q; a number reads as it was given.
func format(words []string) string {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	pattern, args := unescapeANSI(words[0]), words[1:]
	var b strings.Builder
	for round := 0; round == 0 || len(args) > 0; round++ {
		used := false
		for i := 0; i < len(pattern); i++ {
			if pattern[i] != '%' || i+1 == len(pattern) {
				b.WriteByte(pattern[i])
				continue
			}
			for i++; i < len(pattern)-1 && strings.IndexByte("-+ #0123456789.l", pattern[i]) >= 0; i++ {
			}
			if pattern[i] == '%' {
				b.WriteByte('%')
			} else if used = true; len(args) > 0 {
				arg := args[0]
				if pattern[i] == 'b' {
					arg = unescapeANSI(arg)
				}
				b.WriteString(arg)
				args = args[1:]
			}
		}
		if !used || b.Len() > maxText {
			break
		}
	}
	return b.String()
}

// cat passes on what it reads.
func (w *walker) cat(name string, fs []field, st *state, in flow) flow {
	_, operands := options(fs[1:], "", false)
	if name != "cat" && name != "nl" {
		for _, f := range operands {
			w.write(f, st, "writes to "+f.src)
			w.mark(f, st, in.origin)
			w.keep(f, st, in)
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
