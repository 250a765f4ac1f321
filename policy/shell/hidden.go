package shell

import (
	"strings"
)

// maxPieces is the maximum number of parts of a text that judgeHiddenIn judges as commands.
const maxPieces = 100

// judgeHidden asks about a command if a word or the input contains the text of a command that would be refused. It
// skips programs such as echo, for which every word is only text.
func (w *walker) judgeHidden(name string, fs []field, st *state, in flow) {
	p, _ := w.row(unversioned(name))
	_, wraps := wrappers(name)
	if w.refusedOnly > 0 || !wraps && p.reads || isShell(name) || listed("messengers", name) ||
		listed("textPrograms", name) || listed("builtins", name) {
		return
	}
	if in.piped && in.known {
		w.judgeHiddenIn(literal(in.text), shown(fs), st)
	}
	for i, f := range fs[1:] {
		if option, _, _ := strings.Cut(fs[i].text, "="); !listed("messageOptions", option) {
			w.judgeHiddenIn(f, shown(fs), st)
		}
	}
}

// judgeHiddenIn asks about a text if a part of it would be refused as a command. A part begins at the start of the text
// or a line, or after a quote, a bracket or =. A command may begin at one of the first three words of a part, as in
// "shell rm …". The parameter "said" is the quotation in the reason.
func (w *walker) judgeHiddenIn(f field, said string, st *state) {
	if w.refusedOnly > 0 || f.vague || !strings.ContainsAny(f.text, " \t") || w.verdict.Tier == Refused {
		return
	}
	before := w.verdict
	pieces := strings.FieldsFunc(f.text, func(r rune) bool { return strings.ContainsRune("\"'`()[]{}=\n", r) })
	for _, piece := range append([]string{f.text}, pieces[:min(len(pieces), maxPieces)]...) {
		words := strings.Fields(piece)
		for i := 0; i < min(3, len(words)-1); i++ {
			text := strings.TrimLeft(strings.Join(words[i:], " "), "!|:~#&;, ")
			w.ifRefused(field{text: text, src: f.src}, st)
		}
	}
	if w.verdict.Tier == Refused {
		w.verdict = before
		w.askBecause(whyHiddenRefusal, said)
	}
}
