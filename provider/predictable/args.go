package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// args are the arguments after a directive's name. The function "prepare" of the directive removes its arguments from
// args. An argument that remains afterwards is an error. args keeps the first error.
//
// Spaces separate the arguments. An argument that begins with ", { or [ is JSON, and any other argument is a bare word.
// An argument key=value may stand at any place.
type args struct {
	text  string // the unescaped rest of the line, for a directive with text
	words []word
	keys  map[string]word
	err   error
	deaf  bool // the script ignores session/cancel
}

// word is one argument as text. raw is the argument as JSON, if the script wrote it as JSON.
type word struct {
	s   string
	raw json.RawMessage
}

// json returns the argument as JSON. A bare word that is not JSON becomes a string.
func (w word) json() string {
	switch {
	case w.raw != nil:
		return string(w.raw)
	case json.Valid([]byte(w.s)):
		return w.s
	}
	return quote(w.s)
}

func (d *directive) parseArgs(rest string) (step, error) {
	a := &args{}
	if d.text {
		a.text, a.err = unescape(rest)
	} else {
		a.err = a.splitWords(rest)
	}
	if a.err != nil {
		return step{}, a.err
	}
	run := d.prepare(a)
	if a.err == nil && len(a.words) > 0 {
		a.err = fmt.Errorf("too many arguments: %s", a.words[0].s)
	}
	for k := range a.keys {
		a.setError(fmt.Errorf("unknown key %s=", k))
	}
	return step{name: d.Name, run: run, deaf: a.deaf}, a.err
}

func (a *args) setError(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *args) splitWords(rest string) error {
	for rest = strings.TrimLeft(rest, " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		key := ""
		if n := strings.IndexByte(rest, '='); n > 0 && strings.Trim(rest[:n], "abcdefghijklmnopqrstuvwxyz") == "" {
			key, rest = rest[:n], rest[n+1:]
		}
		w, n, err := cutWord(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
		if key == "" {
			a.words = append(a.words, w)
			continue
		}
		if a.keys == nil {
			a.keys = map[string]word{}
		}
		a.keys[key] = w
	}
	return nil
}

// cutWord returns the argument at the start of s, and its length in s.
func cutWord(s string) (word, int, error) {
	if s == "" || !strings.ContainsRune(`"{[`, rune(s[0])) {
		n := strings.IndexAny(s, " \t")
		if n < 0 {
			n = len(s)
		}
		return word{s: s[:n]}, n, nil
	}
	var raw json.RawMessage
	d := json.NewDecoder(strings.NewReader(s))
	if err := d.Decode(&raw); err != nil {
		return word{}, 0, fmt.Errorf("bad JSON: %w", err)
	}
	n := int(d.InputOffset())
	if n < len(s) && s[n] != ' ' && s[n] != '\t' {
		return word{}, 0, fmt.Errorf("no space after %s", s[:n])
	}
	w := word{s: string(raw), raw: raw}
	if raw[0] == '"' {
		// A valid JSON string always decodes into a string.
		_ = json.Unmarshal(raw, &w.s)
	}
	return w, n, nil
}

// nextWord removes and returns the next positional argument. The parameter "name" is the name of the argument in an
// error. Copies of nextWord at its many uses would make the program larger.
//
//go:noinline
func (a *args) nextWord(name string) word {
	if len(a.words) == 0 {
		a.setError(errors.New(name + " is missing"))
		return word{}
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *args) word(name string) string { return a.nextWord(name).s }

// remainingWords removes and returns all remaining positional arguments. There must be at least one.
func (a *args) remainingWords(name string) []string {
	all := []string{a.word(name)}
	for len(a.words) > 0 {
		all = append(all, a.word(name))
	}
	return all
}

// key removes the argument NAME=value with this name and returns the value. Without such an argument it returns the
// default value in the parameter "otherwise".
func (a *args) key(name, otherwise string) string {
	if w, ok := a.takeKey(name); ok {
		return w.s
	}
	return otherwise
}

func (a *args) takeKey(name string) (word, bool) {
	w, ok := a.keys[name]
	delete(a.keys, name)
	return w, ok
}

// jsonKey removes the argument NAME=JSON with this name and returns the JSON, or "".
func (a *args) jsonKey(name string) string {
	if w, ok := a.takeKey(name); ok {
		return w.json()
	}
	return ""
}

// yes removes the argument NAME=yes or NAME=no with this name. It returns false only for no.
func (a *args) yes(name string) bool {
	switch a.key(name, "yes") {
	case "no":
		return false
	case "yes":
	default:
		a.setError(errors.New(name + "= is yes or no"))
	}
	return true
}

func (a *args) number(name string, least, most int) int {
	return a.parseNumber(name, a.word(name), least, most)
}

func (a *args) parseNumber(name, s string, least, most int) int {
	n, err := strconv.ParseInt(s, 0, 0)
	if err != nil || n < int64(least) || n > int64(most) {
		a.setError(fmt.Errorf("%s is a number from %d to %d", name, least, most))
	}
	return int(n)
}

func (a *args) duration(name, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		a.setError(fmt.Errorf("%s is a duration such as 50ms or 10s", name))
	}
	return d
}

// oneOf removes and returns the next positional argument, which must be one of the choices.
func (a *args) oneOf(name string, choices ...string) string {
	w := a.word(name)
	for _, c := range choices {
		if w == c {
			return w
		}
	}
	a.setError(fmt.Errorf("%s is one of %s", name, strings.Join(choices, ", ")))
	return w
}

// unescape replaces the escapes \n, \r, \t, \\, \xHH and \uHHHH.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", errors.New(`\ at the end; write \\`)
		}
		switch c := s[i]; c {
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case '\\':
			b = append(b, '\\')
		case 'x', 'u':
			digits := map[byte]int{'x': 2, 'u': 4}[c]
			n, err := strconv.ParseUint(s[i+1:min(i+1+digits, len(s))], 16, 32)
			if err != nil || i+digits >= len(s) {
				return "", fmt.Errorf(`\%c wants %d hex digits`, c, digits)
			}
			if i += digits; c == 'x' {
				b = append(b, byte(n))
			} else {
				b = utf8.AppendRune(b, rune(n))
			}
		default:
			return "", fmt.Errorf(`\%c is no escape; write \\`, c)
		}
	}
	return string(b), nil
}

// plainStep makes a step from a function that never waits and so needs no context.
func plainStep(f func(r *request) error) func(context.Context, *request) error {
	return func(_ context.Context, r *request) error { return f(r) }
}
