package shell

import (
	"encoding/base64"
	"slices"
	"strings"
)

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

// unpacks remembers that files of unknown names came out of a download.
func (w *walker) unpacks(name string, fs []field, st *state, in flow) {
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

// decode is what comes out of a program that decodes: the text where it is known, else
// something unknown. ok is false where it does not decode.
func (w *walker) decode(name string, fs []field, st *state, in flow) (out flow, ok bool) {
	decodes := name == "uudecode" || slices.ContainsFunc(fs[1:], func(f field) bool {
		return slices.Contains([]string{"-d", "-D", "-di", "-id", "--decode", "-r", "-rp", "-pr"}, f.text) && (name != "xxd" || strings.Contains(f.text, "r"))
	})
	if !decodes {
		return flow{}, false
	}
	opts, operands := options(fs[1:], "wo --wrap --input --output", false)
	if len(operands) > 0 && !isStdin(operands[0].text) {
		in = w.fileFlow(operands[0], st)
	}
	out = flow{piped: true, origin: in.origin | decoded}
	if text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.text), "")); strings.HasSuffix(name, "base64") && err == nil && in.text != "" {
		out.text, out.known = string(text), in.known
		if in.known {
			out.origin = in.origin
		}
	}
	for i, f := range fs[1:] {
		if (f.text == "-out" || f.text == "-o" && name != "openssl") && i+2 < len(fs) {
			w.mark(fs[i+2], st, out.origin)
			w.keep(fs[i+2], st, out)
		}
	}
	if o, found := find(opts, "--output"); found && o.value != nil {
		w.mark(*o.value, st, out.origin)
	}
	if name == "xxd" && len(operands) > 1 {
		w.mark(operands[1], st, out.origin)
	}
	if name == "uudecode" && len(opts) == 0 {
		w.unnamed |= decoded // the name stands in the file
	}
	return out, true
}

// applyPatch judges the files that a patch in the form of codex' apply_patch names.
func (w *walker) applyPatch(fs []field, st *state, in flow) {
	texts := fs[1:]
	if len(texts) == 0 {
		texts = []field{{text: in.text, vague: !in.known && in.text == ""}}
	}
	for _, f := range texts {
		if f.vague {
			w.unknown("the text does not tell which files this changes: %s", shown(fs))
		}
		for line := range strings.Lines(f.text) {
			m := patched().FindStringSubmatch(strings.TrimSpace(line))
			switch {
			case m == nil:
			case m[1] == "Delete File":
				w.destroy(*part(f, m[2]), st, false, "removes", fs)
			default:
				w.write(*part(f, m[2]), st, "writes to "+m[2])
			}
		}
	}
}

var patched = lazily(`^\*\*\* (Add File|Update File|Delete File|Move to|Create File): *(.+)$`)
