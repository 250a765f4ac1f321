package shell

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxFields is the maximum number of words of one command that this package expands. maxArgs is the maximum number of
// positional parameters that it remembers.
const (
	maxFields = 1 << 15
	maxArgs   = 256
)

// positional returns args as positional parameters. If there are more than maxArgs, it returns nil, which means
// unknown.
func positional(args []field) []field {
	if len(args) > maxArgs {
		return nil
	}
	return args
}

// countable reports whether each field of the list certainly becomes exactly one word when the command runs.
func countable(list []field) bool {
	return !slices.ContainsFunc(list, func(f field) bool { return f.glob || f.loose })
}

// many reports whether an expansion such as "$@" can become several words or none, even inside quotes.
func many(p *syntax.ParamExp) bool {
	index, _ := p.Index.(*syntax.Word)
	return p.Names != 0 || p.Param != nil && p.Param.Value == "@" || index != nil && index.Lit() == "@"
}

// nth returns the n-th word of a list. It returns false if the text does not determine that word.
func nth(list []field, n int) (field, bool) {
	switch {
	case n < 0 || !countable(list[:min(n, len(list))]):
		return field{}, false
	case n >= len(list):
		return field{}, true
	}
	return list[n], !list[n].vague
}

// expansion is the list of words to which an expansion such as $@ leads.
type expansion struct {
	list []field
	join bool // one word inside quotes, as in "$*"
}

// elements returns the words for $@, $*, ${NAME[@]}, ${NAME[*]} and ${NAME[1]}. It returns false for other expansions,
// and if the list is unknown.
func (w *walker) elements(p *syntax.ParamExp, st *state) (expansion, bool) {
	if !plainParam(p) || p.Length || p.Exp != nil {
		return expansion{}, false
	}
	name := p.Param.Value
	if p.Index == nil {
		return expansion{st.args, name == "*"}, (name == "@" || name == "*") && st.args != nil
	}
	v := st.vars[name]
	if v.refers != "" {
		v = st.vars[v.refers]
	}
	index, _ := p.Index.(*syntax.Word)
	if v.list == nil || index == nil {
		return expansion{}, false
	}
	switch which := index.Lit(); which {
	case "@", "*":
		return expansion{v.list, which == "*"}, true
	default:
		n, err := strconv.Atoi(which)
		if n < 0 && countable(v.list) {
			n += len(v.list)
		}
		if f, ok := nth(v.list, n); ok && err == nil {
			return expansion{[]field{f}, true}, true
		}
		return expansion{}, false
	}
}

// words returns the runs for the words of an expansion. "$*" becomes one word; all other expansions become separate
// words.
func (w *walker) words(e expansion, quoted bool, st *state) []run {
	joint := known(" ", true)
	if e.join {
		joint = w.joint(st)
	}
	if !quoted || !e.join {
		return all(e.list, quoted, joint)
	}
	whole := run{quoted: true}
	for _, r := range all(e.list, quoted, joint) {
		whole.appendField(r.field)
	}
	whole.loose = false
	return []run{whole}
}

// joint returns the text that "$*" puts between words: the first character of IFS.
func (w *walker) joint(st *state) run {
	ifs, ok := w.lookup("IFS", st)
	if !ok {
		return vague(true)
	}
	_, n := utf8.DecodeRuneInString(ifs.text)
	return known(ifs.text[:n], true)
}

// all returns the runs for a list of separate words, with the run joint between two words. The function scalar later
// joins the words, because its result is one word.
func all(args []field, quoted bool, joint run) []run {
	joint.between = true
	var out []run
	for i, a := range args {
		if i > 0 {
			out = append(out, joint)
		}
		r := valueRun(a, quoted)
		if a.vague {
			r = partly(a, quoted)
		}
		r.loose = a.loose
		out = append(out, r)
	}
	return out
}
