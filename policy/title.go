package policy

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"github.com/perlica/perlica/policy/shell"
)

// lazily compiles an expression when it is first used: most runs need none of them.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	where  = lazily(`\[(in|current working directory) `)
	detail = lazily(`(?s)^(.*?) ?\[(in|current working directory) ([^\]]*)\](?: \(.*\))?(?: \[background\])?$`)
)

// title takes the command from the title where it is nowhere else. It does so for agents whose title is the
// command; any other title, and one that is cut, is only a guess.
func (r *reader) title() {
	title := strings.TrimSpace(r.call.Title)
	if titles[cmp.Or(r.call.Agent, r.call.Provider)] {
		if c, ok := r.titled(title); ok {
			r.commands = append(r.commands, c)
			return
		}
	}
	if title != "" {
		r.guesses = append(r.guesses, shell.Command{Text: title})
	}
	if _, rest, ok := strings.Cut(title, "`"); ok { // Run `git status`
		inner, _, _ := strings.Cut(rest, "`")
		r.guesses = append(r.guesses, shell.Command{Text: inner})
	}
}

// titled reads a title that is the command. The directory stands after it or, alone, in
// the content; if it could stand at two places the title cannot be read.
func (r *reader) titled(title string) (shell.Command, bool) {
	if title == "" || isCut(title) {
		return shell.Command{}, false
	}
	for _, t := range r.call.Text {
		if m := detail().FindStringSubmatch(strings.TrimSpace(t)); m != nil && m[1] == "" {
			return shell.Command{Text: title, Dir: r.started(m)}, true
		}
	}
	switch len(where().FindAllString(title, 2)) {
	case 0:
		return shell.Command{Text: title}, true
	case 1:
		if m := detail().FindStringSubmatch(title); m != nil && strings.TrimSpace(m[1]) != "" {
			return shell.Command{Text: m[1], Dir: r.started(m)}, true
		}
	}
	return shell.Command{}, false
}

func (r *reader) started(m []string) string {
	if m[3] == "" {
		return ""
	}
	return r.absolute(m[3])
}

// isCut says whether a text seems to be only the beginning of one.
func isCut(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(text, "…") || (strings.HasSuffix(text, "...") && !strings.HasSuffix(text, "/..."))
}
