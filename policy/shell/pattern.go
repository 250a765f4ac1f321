package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Pattern is the pattern of commands in a rule. In a pattern, the word * matches any one word, and the last word ...
// matches any number of words, including zero.
type Pattern struct {
	text  string
	words []*syntax.Word
	fixed []field // the expanded words; nil if they depend on the place
}

const (
	anyWord = "*"
	anyRest = "..."
)

var errNotSimple = errors.New("is not one plain command")

// ParsePattern parses the pattern of a rule, which must be one simple command in a shell's syntax.
func ParsePattern(text string) (*Pattern, error) {
	list, read, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("command %q: %w", text, err)
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("command %q %w", text, errNotSimple)
	}
	call, ok := list[0].Cmd.(*syntax.CallExpr)
	if !ok || !plain(list[0]) || !still(call) {
		return nil, fmt.Errorf("command %q %w", text, errNotSimple)
	}
	p := &Pattern{text: read, words: call.Args}
	for i, word := range p.words {
		if word.Lit() == anyRest && i < len(p.words)-1 {
			return nil, fmt.Errorf("command %q: ... stands for the rest, so it can only be the last word", text)
		}
	}
	if !slices.ContainsFunc(p.words, placed) {
		p.fixed = p.fields(Place{})
	}
	return p, nil
}

// placed reports whether the expansion of the word may depend on the place, as the expansion of ~ does.
func placed(word *syntax.Word) (may bool) {
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word, *syntax.SglQuoted, *syntax.DblQuoted:
		case *syntax.Lit:
			may = may || strings.Contains(n.Value, "~")
		default:
			may = true
		}
		return true
	})
	return may
}

// Names reports whether the first word of the pattern is the name of a program and not a wildcard.
func (p *Pattern) Names() bool {
	first := p.words[0].Lit()
	return first != anyWord && first != anyRest
}

// Literal reports whether the pattern has no wildcards and so matches only one command.
func (p *Pattern) Literal() bool {
	return !slices.ContainsFunc(p.words, func(w *syntax.Word) bool { return w.Lit() == anyWord || w.Lit() == anyRest })
}

// fields returns the words of the pattern, expanded for the place "at". For example, ~ becomes the home directory.
func (p *Pattern) fields(at Place) []field {
	if p.fixed != nil {
		return p.fixed
	}
	w := newWalker(at)
	w.text = p.text
	return w.fields(p.words, newState(w.place.Dir))
}

// Program returns the name of the program, as Call.Program does. Each call that matches the pattern has this name among
// its Programs. ok is false if a call of any program may match.
func (p *Pattern) Program(at Place) (name string, ok bool) {
	fs := p.fields(at)
	if len(fs) == 0 || !p.Names() {
		return "", false
	}
	return commandName(fs[0]), true
}

// Programs returns the names by which a pattern may name the program of the call.
func (c Call) Programs() []string {
	names := []string{commandName(c[0])}
	for i, r := range c[0].text {
		if r == '-' { // MatchLoose compares git-push as git push
			names = append(names, commandName(literal(c[0].text[:i])))
		}
	}
	for _, name := range names {
		names = append(names, strings.TrimRight(name, versionSigns))
	}
	return names
}

// Answer says whether a call matches a pattern.
type Answer int

const (
	No    Answer = iota
	Maybe        // the answer depends on an unknown word of the call
	Yes
)

// MatchExact reports whether the call matches the pattern of an allow rule. Every word must match, and no word may be
// unknown.
func (p *Pattern) MatchExact(call Call, at Place) bool {
	m := matcher{want: p.fields(at), call: call, exact: true}
	return m.matchFrom(0, 0) == Yes
}

// MatchLoose says whether the call matches the pattern of a deny or ask rule. The call may name its program with a
// directory, may have options before a subcommand, and may have unknown words. A match that depends on an unknown word
// is Maybe.
func (p *Pattern) MatchLoose(call Call, at Place) Answer {
	m := matcher{want: p.fields(at), call: call}
	best := m.matchFrom(0, 0)
	for i := 0; i < len(call[0].text) && best != Yes; i++ {
		if call[0].text[i] == '-' { // compare git-push as git push, docker-compose as docker compose
			m.call = append(Call{literal(call[0].text[:i]), literal(call[0].text[i+1:])}, call[1:]...)
			best = max(best, m.matchFrom(0, 0))
		}
	}
	return best
}

// matcher compares a call with the words of a pattern.
type matcher struct {
	want  []field
	call  Call
	exact bool
	steps int
}

// maxMatches is the maximum number of comparisons that a matcher tries for one call.
const maxMatches = 2000

// matchFrom compares the words of the pattern from index i on with the words of the call from index j on.
func (m *matcher) matchFrom(i, j int) Answer {
	if m.steps++; m.steps > maxMatches {
		return Maybe
	}
	switch {
	case i < len(m.want) && m.want[i].src == anyRest:
		return Yes
	case i == len(m.want) && j == len(m.call):
		return Yes
	case i == len(m.want) || j == len(m.call):
		return m.skipOption(i, j)
	}
	best := m.skipOption(i, j)
	if here := m.matchWord(i, j); here != No && best != Yes {
		best = max(best, min(here, m.matchFrom(i+1, j+1)))
	}
	return best
}

// matchWord compares the word i of the pattern with the word j of the call.
func (m *matcher) matchWord(i, j int) Answer {
	want, have := m.want[i], m.call[j]
	switch {
	case m.exact && have.vague:
		return No
	case want.src == anyWord:
		return Yes
	case have.vague && j > 0:
		return Maybe
	case want.text == have.text, i == 0 && !m.exact && sameProgram(commandName(want), commandName(have)):
		return Yes
	}
	return No
}

// sameProgram reports whether the name of a program in a rule also means the program of a call. The call may add a
// version: pip in the rule also means pip3.11.
func sameProgram(rule, program string) bool {
	return rule == program || rule == strings.TrimRight(program, versionSigns)
}

// versionSigns are the characters of a version at the end of a program's name.
const versionSigns = "0123456789.-"

// skipOption skips an option at the word j of the call and compares the following words with the pattern. It tries an
// unknown option with a value in the next word and without one.
func (m *matcher) skipOption(i, j int) Answer {
	if m.exact || i == 0 || i >= len(m.want) || j >= len(m.call) || strings.HasPrefix(m.want[i].text, "-") {
		return No
	}
	have := m.call[j]
	switch {
	case have.loose: // the word may expand to no word at all
		return min(Maybe, m.matchFrom(i, j+1))
	case besideOption().MatchString(have.text): // a word as in make CC=clang deploy or cargo +nightly publish
		return m.matchFrom(i, j+1)
	case len(have.text) < 2 || have.text[0] != '-':
		if slices.Contains(goalPrograms, commandName(m.call[0])) { // an earlier goal, as in make test deploy
			return m.matchFrom(i, j+1)
		}
		return No
	}
	best := m.matchFrom(i, j+1)
	if slices.Contains(twoValues, have.text) && j+3 <= len(m.call) {
		best = max(best, m.matchFrom(i, j+3))
	}
	bare := strings.HasPrefix(have.text, "--no-") || slices.Contains(bareOptions, have.text)
	if best != Yes && j+1 < len(m.call) && !bare && !strings.Contains(have.text, "=") {
		best = max(best, m.matchFrom(i, j+2))
	}
	return best
}

// besideOption matches a word that may stand before a subcommand and is neither an option nor a subcommand, such as
// CC=clang.
var besideOption = lazily(`^([A-Za-z_][A-Za-z0-9_]*=|\+[A-Za-z0-9])`)

// bareOptions are options before a subcommand that never take a value in the next word. Options that begin with --no-
// are not listed, and never take a value either.
var bareOptions = []string{
	"--", "--help", "--quiet", "--silent", "--verbose", "--paginate", "--bare", "--literal-pathspecs", "--offline",
	"--yes",
}

// twoValues are options before a subcommand with two values, in the next two words.
var twoValues = []string{"--option", "--arg", "--argstr", "--override-input"}

// goalPrograms are programs such as make, with several goals as operands in any order.
var goalPrograms = []string{
	"make", "gmake", "bmake", "ninja", "samu", "just", "mvn", "mvnw", "mvnd", "gradle", "gradlew", "ant", "rake",
	"sbt", "lein", "tox",
	"nox", "invoke", "inv", "doit", "scons", "xcodebuild", "fastlane", "mage", "task", "cake", "buck",
}

// Known returns the words of the call. ok is false if no pattern can match the call, for example because a word is
// unknown.
func (c Call) Known() (words []string, ok bool) {
	for _, f := range c {
		if f.vague || f.glob || f.text == anyWord || f.text == anyRest {
			return nil, false
		}
		words = append(words, f.text)
	}
	return words, len(c) > 0
}

// nested has words that need the next word to name an action, as in npm run build.
var nested = []string{"run", "exec", "compose", "tool", "-m", "pr", "issue", "stash", "remote", "config"}

// Action returns the number of words at the beginning of the call that name its action, such as 2 for go test. It
// returns 0 if all words are needed.
func (c Call) Action() int {
	name := c.Program()
	if _, runs := wrappers(name); runs || slices.Contains([]string{"xargs", "find", "parallel"}, name) {
		return 0
	}
	switch row, _ := everyday(name); {
	case row.reads:
		return 1
	case len(c) > 2 && slices.Contains(nested, c[1].text):
		return 3
	case len(c) > 1 && !strings.HasPrefix(c[1].text, "-"):
		return 2
	}
	return 0
}

// Rule returns a pattern for a new rule that allows the call. For an unknown program, the pattern has a wildcard for
// the arguments, as in mytool *. Rule returns false if no pattern can match the call, for example because a word is
// unknown.
func (c Call) Rule() (string, bool) {
	words, ok := c.Known()
	if !ok {
		return "", false
	}
	if isProgram(c.Program()) || len(words) == 1 {
		return Words(words)
	}
	name, ok := Words(words[:1])
	if len(words) == 2 {
		return name + " " + anyWord, ok
	}
	return name + " " + anyRest, ok
}
