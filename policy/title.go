package policy

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"github.com/perlica/perlica/policy/shell"
)

// lazily returns a function that compiles expr at its first call, because most runs need few of the expressions.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	where  = lazily(`\[(in|current working directory) `)
	detail = lazily(`(?s)^(.*?) ?\[(in|current working directory) ([^\]]*)\](?: \(.*\))?(?: \[background\])?$`)
)

// takeTitle takes the command from the title of a call without a command. It does so only for the agents in titles.
// For other agents, and for a cut title, it records the title only as a guess.
func (r *reader) takeTitle() {
	title := strings.TrimSpace(r.call.Title)
	if titles[cmp.Or(r.call.Agent, r.call.Provider)] {
		if c, ok := r.commandInTitle(title); ok {
			r.commands = append(r.commands, c)
			return
		}
	}
	if title != "" {
		r.guesses = append(r.guesses, shell.Command{Text: title})
	}
	if _, rest, ok := strings.Cut(title, "`"); ok { // a title such as Run `git status`
		inner, _, _ := strings.Cut(rest, "`")
		r.guesses = append(r.guesses, shell.Command{Text: inner})
	}
}

// commandInTitle reads a title that is a command. The starting directory, as [in DIR], follows the command in the title
// or stands alone in a text of the content. commandInTitle returns false for a cut title, or if the title names
// directories at several places.
func (r *reader) commandInTitle(title string) (shell.Command, bool) {
	if title == "" || isCut(title) {
		return shell.Command{}, false
	}
	for _, t := range r.call.Text {
		if m := detail().FindStringSubmatch(strings.TrimSpace(t)); m != nil && m[1] == "" {
			return shell.Command{Text: title, Dir: r.startDir(m)}, true
		}
	}
	switch len(where().FindAllString(title, 2)) {
	case 0:
		return shell.Command{Text: title}, true
	case 1:
		if m := detail().FindStringSubmatch(title); m != nil && strings.TrimSpace(m[1]) != "" {
			return shell.Command{Text: m[1], Dir: r.startDir(m)}, true
		}
	}
	return shell.Command{}, false
}

func (r *reader) startDir(m []string) string {
	if m[3] == "" {
		return ""
	}
	return r.absolute(m[3])
}

// isCut reports whether the text is empty or seems to be only the beginning of a longer text.
func isCut(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(text, "…") ||
		(strings.HasSuffix(text, "...") && !strings.HasSuffix(text, "/..."))
}
