package chat

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// complete returns the words that may stand in place of the last one: of a command, or a path
// behind an @.
func (c *chat) complete(before string) (from int, words []string) {
	from = strings.LastIndexAny(before, " \t\n") + 1
	last := before[from:]
	for _, command := range []string{"/attach ", "/session export "} {
		if rest, ok := strings.CutPrefix(before, command); ok {
			return len(before) - len(rest), c.paths(rest, "")
		}
	}
	if strings.HasPrefix(before, "/") && !strings.Contains(before, "\n") {
		words = c.host.Complete(c.ctx, before)
		slices.Sort(words)
		return from, slices.Compact(words)
	}
	if m := openQuote().FindStringSubmatchIndex(before); m != nil {
		return m[2], c.paths(before[m[2]+len(`@"`):], `@"`)
	}
	if path, ok := strings.CutPrefix(last, "@"); ok {
		return from, c.paths(path, "@")
	}
	return from, nil
}

// mention is a file that a text names, in quotes if there are blanks in its name; openQuote is
// the beginning of one in quotes.
var (
	mention = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)[("']*@(?:"([^"\n]+)"|(\S+))`)
	})
	openQuote = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)[("']*(@"[^"\n]*)$`)
	})
)

// paths completes a path behind a mark: @, @" or none. Hidden files are offered where the word begins with their dot.
func (c *chat) paths(path, mark string) (words []string) {
	dir, base := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, base = path[:i+1], path[i+1:]
	}
	entries, err := os.ReadDir(filepath.Clean(c.absolute(dir) + "/"))
	if err != nil {
		return nil // there is nothing to offer
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") || name != term.Sanitize(name) {
			continue
		}
		if info, err := os.Stat(filepath.Join(c.absolute(dir), name)); err == nil && info.IsDir() {
			name += "/"
		}
		word := mark + dir + name
		if mark == `@"` || mark == "@" && strings.ContainsAny(dir+name, " \t") {
			if strings.Contains(dir+name, `"`) {
				continue // an @ cannot say it; /attach can
			}
			word = `@"` + dir + name
			if !strings.HasSuffix(name, "/") {
				word += `"`
			}
		}
		words = append(words, word)
	}
	return words
}

// mentioned returns the files that a text names with an @. What is no file stays text.
func (c *chat) mentioned(text string) (paths []string) {
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		quoted, name := m[1], m[2]
		for _, try := range []string{quoted, name, strings.TrimRight(name, `.,:;!?)"'`)} {
			if path := c.absolute(try); try != "" && isFile(path) {
				if !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
				break
			}
		}
	}
	return paths
}
