package chat

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// take does what a line says and reports whether the chat is over.
func (c *chat) take(line string) (leave bool) {
	doubted := c.doubtful == line
	c.doubtful = ""
	l, err := command.Parse(line, c.agentCommands()...)
	switch {
	case err != nil:
		c.a.Complain(err)
	case l.Name != "":
		return c.do(l)
	case strings.TrimSpace(l.Text) == "?":
		c.print(keysHelp)
	case !doubted && c.doubts(l.Text):
		c.doubtful = line
		c.stand(line)
	default:
		c.say(line, l.Text)
	}
	return false
}

// do carries out a command, and reports whether the chat is over.
func (c *chat) do(l command.Line) (leave bool) {
	if c.there != nil && !slices.Contains(answering, l.Name) {
		return c.doThere(l)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	stop := frame.NewStopper(cancel)
	c.under(stop, nil)
	c.keys.begin(c.events(func() { cancel(context.Canceled) }), c.hangup)
	out, err := c.host.Do(ctx, l)
	c.keys.end()
	c.under(nil, nil)
	givenUp := ctx.Err() != nil
	cancel(nil)
	if givenUp && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("/%s was given up", l.Name)
	}
	if hint := c.hint(err); hint != "" {
		err = frame.WithHint(err, "%s", hint)
	}
	if err != nil {
		c.a.Complain(err)
		return false
	}
	c.print(out.Text)
	return c.there == nil && c.effect(out)
}

// doubts says why a text may not be what who wrote it takes it for: it is sent with the next Enter.
func (c *chat) doubts(text string) (doubtful bool) {
	if strings.HasPrefix(text, "!") {
		c.note("Perlica runs nothing: this is text for the agent, and Enter sends it; Ctrl-Z is the way to the shell")
		return true
	}
	for _, name := range c.missing(text) {
		doubtful = true
		c.note("@" + name + " is no file in " + c.dir() + "; Enter sends it as text")
	}
	return doubtful
}

// during carries out a command that was given while a turn is under way.
func (c *chat) during(l command.Line, say func(string)) {
	out, err := c.host.Do(c.ctx, l)
	switch {
	case err != nil:
		say(err.Error())
	case out.Effect == command.Queue:
		c.unqueue(out.Path, say)
	default:
		c.tell(out.Text)
	}
}

// tell prints a text while a turn may be under way.
func (c *chat) tell(text string) {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line == nil {
		c.print(text)
	} else if text != "" {
		line.Print(func(w io.Writer) { _, _ = io.WriteString(w, c.rendered(text)) })
	}
}

// agentCommands are the names of the agent's own commands, as far as it has said them.
func (c *chat) agentCommands() (names []string) {
	if c.conv == nil {
		return nil
	}
	if o, _, ok := c.conv.Offers(); ok {
		for _, a := range o.Commands {
			names = append(names, a.Name)
		}
	}
	return names
}

func (c *chat) print(text string) {
	if text != "" {
		_, _ = io.WriteString(c.a.Stderr, c.rendered(text)) // a terminal that is gone is noticed elsewhere
	}
}

func (c *chat) rendered(text string) string {
	if c.dumb {
		return screen.Sanitize(text) + "\n"
	}
	return screen.RenderMarkdown(text, c.styles, screen.TerminalWidth(c.a.Stderr))
}

// effect does the chat's part of a command.
func (c *chat) effect(out command.Output) (leave bool) {
	switch out.Effect {
	case command.Exit:
		return true
	case command.Discard:
		id := c.conv.Session()
		c.leaveConversation()
		if err := c.r.DeleteSession(context.WithoutCancel(c.ctx), id); err != nil {
			c.a.Complain(err)
		}
		c.note("the session is off every list; its events stay on the log")
		c.turns = 0
		return true
	case command.Thoughts:
		c.thoughts = !c.thoughts
		c.note(map[bool]string{true: "thoughts are shown", false: "thoughts are not shown"}[c.thoughts])
	case command.Recall:
		c.recall()
	case command.Attach:
		path := c.absolute(out.Path)
		if !isFile(path) {
			c.a.Complain(fmt.Errorf("%s is no file", out.Path))
			return false
		}
		c.attached = append(c.attached, path)
	case command.Export:
		c.export(out.Path)
	case command.Copy:
		c.copyAnswer()
	case command.Resume:
		c.resume(out.Path)
	case command.Queue:
		c.unqueue(out.Path, c.note)
	case command.Unfold:
		if err := c.unfold(out.Path); err != nil {
			c.a.Complain(err)
		}
	case command.Switch:
		c.change(out)
	case command.None:
		if s, err := c.sessionOf(c.conv.Session()); err == nil {
			c.session.Name = s.Name // it may have been saved
		}
	}
	return false
}

// unqueue takes a queued input back into the next line: the one of that number, or the "last"; without
// either it lists them. "send" has those that are held sent.
func (c *chat) unqueue(number string, say func(string)) {
	if number == "send" {
		c.backlog.confirm()
		return
	}
	if number == "" {
		say(c.backlog.list())
		return
	}
	n, err := strconv.Atoi(number)
	if number != "last" && (err != nil || n < 1) {
		say(frame.OneLine(number) + " is no number of a queued input: /queue lists them")
		return
	}
	line, err := c.backlog.takeBack(n)
	if err != nil {
		say(err.Error())
		return
	}
	say("taken back: " + frame.OneLine(line))
	c.stand(line)
}

// stand has a line stand in the next prompt, behind what stands there.
func (c *chat) stand(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != "" {
		c.next += "\n"
	}
	c.next += line
}

// recall puts the last input back into the line, with the files that commands had attached to it;
// those that its text names are attached by that.
func (c *chat) recall() {
	if c.last == "" {
		c.note("nothing was sent yet")
	}
	c.next = c.last
	for _, f := range c.with {
		switch {
		case !isFile(f):
			c.note(c.relative(f) + " was attached and is gone")
		case !slices.Contains(c.attached, f):
			c.attached = append(c.attached, f)
			c.note("attached again: " + c.relative(f))
		}
	}
}

// copyAnswer asks the terminal to put the last answer of the session on the clipboard, by OSC 52 of xterm's control
// sequences. A terminal that does not allow this says nothing.
func (c *chat) copyAnswer() {
	turns, err := report.ReadTurns(c.ctx, &c.r.Log().Reader, c.conv.Session(), 0, 1)
	switch {
	case err != nil:
		c.a.Complain(err)
	case len(turns) == 0 || turns[0].Answer == "":
		c.note("there is no answer to copy yet")
	default:
		answer := turns[0].Answer
		fmt.Fprintf(c.a.Stderr, "\x1b]52;c;%s\a", base64.StdEncoding.EncodeToString([]byte(answer)))
		c.note(fmt.Sprintf("%s sent to the clipboard of the terminal; if nothing arrives there, the terminal does not allow OSC 52",
			frame.Count(utf8.RuneCountInString(answer), "character")))
	}
}

// export writes the record of this session to a file that is not there yet.
func (c *chat) export(path string) {
	f := export.Flags{EventFilter: frame.EventFilter{Session: string(c.conv.Session())}, Out: c.absolute(path), Format: "jsonl"}
	if _, err := os.Lstat(f.Out); err == nil {
		c.a.Complain(frame.WithHint(fmt.Errorf("%s is there already", path), "choose another name; 'perlica session export -o' replaces files"))
		return
	}
	_, _ = c.r.Log().Checkpoint(c.ctx) // Without it the export says that no signature covers its end.
	if err := export.Write(c.ctx, c.a.App, &c.r.Log().Reader, c.p, f); err != nil {
		c.a.Complain(err)
	}
}

// change goes on in another session. Where that cannot be had, the chat stays where it is.
func (c *chat) change(out command.Output) {
	var s sessions.Session
	if out.Session != "" {
		if out.Session == c.conv.Session() {
			c.note("this is the session that you are in")
			return
		}
		var err error
		if s, err = c.sessionOf(out.Session); err != nil {
			c.a.Complain(err)
			return
		}
	}
	provider := cmp.Or(out.Provider, c.agent.ID)
	if err := c.enter(s, provider); err != nil {
		c.a.Complain(err)
	}
}

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
		words = c.commandWords(before)
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

// commandWords completes a command.
func (c *chat) commandWords(before string) (words []string) {
	if c.there == nil || strings.Contains(before, " ") {
		return c.host.Complete(c.ctx, before)
	}
	for _, cmd := range thereCommands {
		if name, _, _ := strings.Cut(cmd[0], " "); strings.HasPrefix(name, before) {
			words = append(words, name)
		}
	}
	return words
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

// paths completes a path after a mark: @, @" or none. Where no name begins with the word, names are offered that hold
// it, in any case. Hidden files are offered where the word begins with their dot.
func (c *chat) paths(path, mark string) (words []string) {
	words = c.pathsBy(path, mark, strings.HasPrefix)
	if len(words) > 0 || mark == "" {
		return words
	}
	return c.pathsBy(path, mark, func(name, base string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(base))
	})
}

// pathsBy returns the paths whose names fit the last part of a path.
func (c *chat) pathsBy(path, mark string, fits func(name, base string) bool) (words []string) {
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
		if !fits(name, base) || !strings.HasPrefix(base, ".") && strings.HasPrefix(name, ".") || name != screen.Sanitize(name) {
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

// missing returns what a text names with an @, and what looks like a path, where there is no such file.
func (c *chat) missing(text string) (names []string) {
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		name := cmp.Or(m[1], strings.TrimRight(m[2], `.,:;!?)"'`))
		if strings.ContainsAny(name, "./") && len(c.mentioned(m[0])) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// pasted is what stands in the line for a paste: an image that was dropped on the terminal comes as its path.
func (c *chat) pasted(text string) string {
	path := strings.TrimSpace(text)
	if n := len(path); n > 2 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	} else if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
		path = u.Path
	} else {
		path = regexp.MustCompile(`\\(.)`).ReplaceAllString(path, "$1")
	}
	images := []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}
	if strings.ContainsAny(path, "\n\"") || !filepath.IsAbs(path) || !slices.Contains(images, strings.ToLower(filepath.Ext(path))) || !isFile(path) {
		return text
	}
	return `@"` + path + `" `
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
