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

// handleLine handles an entered line and reports whether the chat is over.
func (c *chat) handleLine(line string) (leave bool) {
	doubted := c.doubtful == line
	c.doubtful = ""
	l, err := command.Parse(line, c.agentCommands()...)
	switch {
	case err != nil:
		c.a.Complain(err)
	case l.Name != "":
		return c.runCommand(l)
	case strings.TrimSpace(l.Text) == "?":
		c.printText(keysHelp)
	case !doubted && c.isDoubtful(l.Text):
		c.doubtful = line
		c.addToNextLine(line)
	default:
		c.sendLine(line, l.Text)
	}
	return false
}

// runCommand runs a command of the chat and reports whether the chat is over.
func (c *chat) runCommand(l command.Line) (leave bool) {
	if c.team != nil && !slices.Contains(questionCommands, l.Name) {
		return c.runTeamCommand(l)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	stop := frame.NewStopper(cancel)
	c.setActive(stop, nil)
	c.keys.beginTurn(c.keyEvents(func() { cancel(context.Canceled) }), c.hangup)
	out, err := c.host.Do(ctx, l)
	c.keys.endTurn()
	c.setActive(nil, nil)
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
	c.printText(out.Text)
	return c.team == nil && c.applyOutput(out)
}

// isDoubtful warns the person about a text that begins with ! or names a missing file after an @. The same line,
// entered again, is sent.
func (c *chat) isDoubtful(text string) (doubtful bool) {
	if strings.HasPrefix(text, "!") {
		c.printNote("Perlica runs nothing: this is text for the agent, and Enter sends it; Ctrl-Z is the way to the shell")
		return true
	}
	for _, name := range c.missingFiles(text) {
		doubtful = true
		c.printNote("@" + name + " is no file in " + c.dir() + "; Enter sends it as text")
	}
	return doubtful
}

// runCommandDuringTurn runs a command that was given during a turn.
func (c *chat) runCommandDuringTurn(l command.Line, say func(string)) {
	out, err := c.host.Do(c.ctx, l)
	switch {
	case err != nil:
		say(err.Error())
	case out.Effect == command.Queue:
		c.unqueue(out.Path, say)
	default:
		c.printDuringTurn(out.Text)
	}
}

// printDuringTurn prints a text. A turn may be running.
func (c *chat) printDuringTurn(text string) {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line == nil {
		c.printText(text)
	} else if text != "" {
		line.Print(func(w io.Writer) { _, _ = io.WriteString(w, c.renderText(text)) })
	}
}

// agentCommands returns the names of the agent's own commands that it has reported.
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

func (c *chat) printText(text string) {
	if text != "" {
		// If the terminal is closed, reading the next key fails, too, and ends the chat.
		_, _ = io.WriteString(c.a.Stderr, c.renderText(text))
	}
}

func (c *chat) renderText(text string) string {
	if c.dumb {
		return screen.Sanitize(text) + "\n"
	}
	return screen.RenderMarkdown(text, c.styles, screen.TerminalWidth(c.a.Stderr))
}

// applyOutput carries out the effects of a command that only the chat itself can produce, such as the change to
// another session. It reports whether the chat is over.
func (c *chat) applyOutput(out command.Output) (leave bool) {
	switch out.Effect {
	case command.Exit:
		return true
	case command.Discard:
		id := c.conv.Session()
		c.leaveConversation()
		if err := c.r.DeleteSession(context.WithoutCancel(c.ctx), id); err != nil {
			c.a.Complain(err)
		}
		c.printNote("the session is off every list; its events stay on the log")
		c.turns = 0
		return true
	case command.Thoughts:
		c.thoughts = !c.thoughts
		c.printNote(map[bool]string{true: "thoughts are shown", false: "thoughts are not shown"}[c.thoughts])
	case command.Recall:
		c.recallInput()
	case command.Attach:
		path := c.absolutePath(out.Path)
		if !isFile(path) {
			c.a.Complain(fmt.Errorf("%s is no file", out.Path))
			return false
		}
		c.attached = append(c.attached, path)
	case command.Export:
		c.exportSession(out.Path)
	case command.Copy:
		c.copyAnswer()
	case command.Resume:
		c.resumeSession(out.Path)
	case command.Queue:
		c.unqueue(out.Path, c.printNote)
	case command.Unfold:
		if err := c.showWholeResult(out.Path); err != nil {
			c.a.Complain(err)
		}
	case command.Switch:
		c.changeSession(out)
	case command.None:
		if s, err := c.sessionOf(c.conv.Session()); err == nil {
			c.session.Name = s.Name // The command may have given the session a name.
		}
	}
	return false
}

// unqueue removes a queued input from the queue and puts its text into the next line. number names the input or is
// "last". If number is empty, unqueue lists the inputs. If number is "send", the chat sends the held inputs.
func (c *chat) unqueue(number string, say func(string)) {
	if number == "send" {
		c.backlog.confirmHeld()
		return
	}
	if number == "" {
		say(c.backlog.listInputs())
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
	c.addToNextLine(line)
}

// addToNextLine adds a line to the text of the next prompt.
func (c *chat) addToNextLine(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nextLine != "" {
		c.nextLine += "\n"
	}
	c.nextLine += line
}

// recallInput puts the last input back into the line. It also attaches the files again that commands had attached.
// Files that the text names with an @ are attached when the line is sent.
func (c *chat) recallInput() {
	if c.lastInput == "" {
		c.printNote("nothing was sent yet")
	}
	c.nextLine = c.lastInput
	for _, f := range c.lastAttached {
		switch {
		case !isFile(f):
			c.printNote(c.relativePath(f) + " was attached and is gone")
		case !slices.Contains(c.attached, f):
			c.attached = append(c.attached, f)
			c.printNote("attached again: " + c.relativePath(f))
		}
	}
}

// copyAnswer asks the terminal by OSC 52 of xterm to put the session's last answer on the clipboard. A terminal that
// does not allow this gives no reply.
func (c *chat) copyAnswer() {
	turns, err := report.ReadTurns(c.ctx, &c.r.Log().Reader, c.conv.Session(), 0, 1)
	switch {
	case err != nil:
		c.a.Complain(err)
	case len(turns) == 0 || turns[0].Answer == "":
		c.printNote("there is no answer to copy yet")
	default:
		answer := turns[0].Answer
		fmt.Fprintf(c.a.Stderr, "\x1b]52;c;%s\a", base64.StdEncoding.EncodeToString([]byte(answer)))
		c.printNote(
			fmt.Sprintf("%s sent to the clipboard of the terminal; if nothing arrives there, the terminal does not allow OSC 52",
				frame.Count(utf8.RuneCountInString(answer), "character")))
	}
}

// exportSession writes the record of this session to a new file.
func (c *chat) exportSession(path string) {
	f := export.Flags{EventFilter: frame.EventFilter{Session: string(c.conv.Session())}, Out: c.absolutePath(path),
		Format: "jsonl"}
	if _, err := os.Lstat(f.Out); err == nil {
		c.a.Complain(frame.WithHint(fmt.Errorf("%s is there already", path),
			"choose another name; 'perlica session export -o' replaces files"))
		return
	}
	_, _ = c.r.Log().Checkpoint(c.ctx) // Without a checkpoint, the export would report that no signature covers its end.
	if err := export.Write(c.ctx, c.a.App, &c.r.Log().Reader, c.p, f); err != nil {
		c.a.Complain(err)
	}
}

// changeSession continues in another session. If this fails, the chat stays in its session.
func (c *chat) changeSession(out command.Output) {
	var s sessions.Session
	if out.Session != "" {
		if out.Session == c.conv.Session() {
			c.printNote("this is the session that you are in")
			return
		}
		var err error
		if s, err = c.sessionOf(out.Session); err != nil {
			c.a.Complain(err)
			return
		}
	}
	provider := cmp.Or(out.Provider, c.agent.ID)
	if err := c.enterSession(s, provider); err != nil {
		c.a.Complain(err)
	}
}

// completeWord returns completions for the last word of the line: commands, or paths after an @. The result "from" is
// the offset of this word, in bytes.
func (c *chat) completeWord(before string) (from int, words []string) {
	from = strings.LastIndexAny(before, " \t\n") + 1
	last := before[from:]
	for _, command := range []string{"/attach ", "/session export "} {
		if rest, ok := strings.CutPrefix(before, command); ok {
			return len(before) - len(rest), c.completePath(rest, "")
		}
	}
	if strings.HasPrefix(before, "/") && !strings.Contains(before, "\n") {
		words = c.commandWords(before)
		slices.Sort(words)
		return from, slices.Compact(words)
	}
	if m := openQuote().FindStringSubmatchIndex(before); m != nil {
		return m[2], c.completePath(before[m[2]+len(`@"`):], `@"`)
	}
	if path, ok := strings.CutPrefix(last, "@"); ok {
		return from, c.completePath(path, "@")
	}
	return from, nil
}

// commandWords completes the name of a command.
func (c *chat) commandWords(before string) (words []string) {
	if c.team == nil || strings.Contains(before, " ") {
		return c.host.Complete(c.ctx, before)
	}
	for _, cmd := range teamCommands {
		if name, _, _ := strings.Cut(cmd[0], " "); strings.HasPrefix(name, before) {
			words = append(words, name)
		}
	}
	return words
}

// mention matches an @ and the name of a file in a text. A name with blanks stands in quotes. openQuote matches the
// start of a name in quotes.
var (
	mention = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)[("']*@(?:"([^"\n]+)"|(\S+))`)
	})
	openQuote = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)[("']*(@"[^"\n]*)$`)
	})
)

// completePath completes a path. mark is the text before the path: @, @" or nothing. After an @, it also offers names
// that only contain the last part of the path, if no name begins with this part. A hidden file is offered only if
// this part begins with a dot.
func (c *chat) completePath(path, mark string) (words []string) {
	words = c.pathsMatching(path, mark, strings.HasPrefix)
	if len(words) > 0 || mark == "" {
		return words
	}
	return c.pathsMatching(path, mark, func(name, base string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(base))
	})
}

// pathsMatching returns the paths of the files in the folder of path for which the function "fits" returns true.
// This function gets the name of a file, and the last part of path as base.
func (c *chat) pathsMatching(path, mark string, fits func(name, base string) bool) (words []string) {
	dir, base := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, base = path[:i+1], path[i+1:]
	}
	entries, err := os.ReadDir(filepath.Clean(c.absolutePath(dir) + "/"))
	if err != nil {
		return nil // The folder cannot be read, so there is nothing to offer.
	}
	for _, e := range entries {
		name := e.Name()
		if !fits(name, base) || !strings.HasPrefix(base, ".") && strings.HasPrefix(name, ".") ||
			name != screen.Sanitize(name) {
			continue
		}
		if info, err := os.Stat(filepath.Join(c.absolutePath(dir), name)); err == nil && info.IsDir() {
			name += "/"
		}
		word := mark + dir + name
		if mark == `@"` || mark == "@" && strings.ContainsAny(dir+name, " \t") {
			if strings.Contains(dir+name, `"`) {
				continue // An @ cannot name a file with such a name, but /attach can.
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

// missingFiles returns the names after an @ in a text that look like files and do not exist. Such a name has a dot or
// a slash.
func (c *chat) missingFiles(text string) (names []string) {
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		name := cmp.Or(m[1], strings.TrimRight(m[2], `.,:;!?)"'`))
		if strings.ContainsAny(name, "./") && len(c.mentionedFiles(m[0])) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// pastedText returns the text that a paste adds to the line. An image dropped on the terminal arrives as its path.
func (c *chat) pastedText(text string) string {
	path := strings.TrimSpace(text)
	if n := len(path); n > 2 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	} else if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
		path = u.Path
	} else {
		path = regexp.MustCompile(`\\(.)`).ReplaceAllString(path, "$1")
	}
	images := []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}
	if strings.ContainsAny(path, "\n\"") || !filepath.IsAbs(path) ||
		!slices.Contains(images, strings.ToLower(filepath.Ext(path))) || !isFile(path) {
		return text
	}
	return `@"` + path + `" `
}

// mentionedFiles returns the files that a text names with an @. A name without a file stays text.
func (c *chat) mentionedFiles(text string) (paths []string) {
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		quoted, name := m[1], m[2]
		for _, try := range []string{quoted, name, strings.TrimRight(name, `.,:;!?)"'`)} {
			if path := c.absolutePath(try); try != "" && isFile(path) {
				if !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
				break
			}
		}
	}
	return paths
}
