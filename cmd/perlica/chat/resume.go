package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// errNoChoice means that the person chose no session.
var errNoChoice = errors.New("no session was chosen")

// These limits apply to the earlier turns that the chat shows when it continues a session.
const (
	shownTurns = 2
	shownLines = 30 // the last lines of each answer
)

// showEarlier shows the last turns of a session from the record.
func (c *chat) showEarlier(log event.Reader, s sessions.Session) {
	turns, err := report.ReadTurns(c.ctx, log, s.ID, 0, shownTurns)
	if err != nil {
		c.printNote("the earlier turns cannot be read: " + err.Error())
		return
	}
	for i, t := range turns {
		if i > 0 {
			fmt.Fprintln(c.a.Stderr)
		}
		if t.Pruned {
			c.printNote("a turn that is no longer on record, run " + frame.ShortID(t.Run))
			continue
		}
		fmt.Fprintln(c.a.Stderr, c.styles.Dim(t.At.Local().Format(time.DateTime)+" ❯ "+frame.OneLine(t.Text)))
		lines := strings.SplitAfter(c.renderText(t.Answer), "\n")
		if n := len(lines) - shownLines; n > 0 && t.Answer != "" {
			c.printNote(fmt.Sprintf("%d lines above: perlica log show %s", n, frame.ShortID(t.Run)))
			lines = lines[n:]
		}
		if t.Answer != "" {
			fmt.Fprint(c.a.Stderr, strings.Join(lines, ""))
		}
		if end := t.Ending(language.English.Sentences()); end != "" {
			c.printNote(frame.OneLine(end))
		}
	}
}

// chooseSession lets the person choose a session. Sessions that contain the words stand first in the list. It fails
// with errNoChoice if the person chooses no session.
func (c *chat) chooseSession(ctx context.Context, keys *screen.Keys, words string) (s sessions.Session, err error) {
	view, err := c.r.Sessions(ctx)
	if err != nil {
		return s, err
	}
	list, err := view.List(ctx, false)
	if err = errors.Join(err, view.Close()); err != nil {
		return s, err
	}
	choice := &sessionList{c: c, ctx: ctx, list: list, costs: map[event.SessionID]string{}, now: time.Now()}
	defer choice.closeIndex()
	if err := choice.dropCurrent(words); err != nil {
		return s, err
	}
	if c.dumb {
		return choice.chooseByNumber(keys, words)
	}
	i, err := screen.Pick(ctx, keys, screen.PickList{
		Out: c.a.Stderr, Styles: c.styles, Title: "go on with", Words: words,
		Size: func() (int, int) { return screen.TerminalWidth(c.a.Stderr), screen.TerminalHeight(c.a.Stderr) },
		Find: choice.findSessions, Row: choice.sessionRow,
	})
	if errors.Is(err, screen.ErrInterrupted) {
		return s, errNoChoice
	}
	if err != nil {
		return s, err
	}
	return list[i], nil
}

// sessionList is the list from which the person chooses a session.
type sessionList struct {
	c     *chat
	ctx   context.Context
	list  []sessions.Session
	costs map[event.SessionID]string
	now   time.Time

	texts  *report.Search // search index; nil if it was not needed yet or cannot be opened
	remove func()
	tried  bool
}

// dropCurrent removes the session of this chat from the list. It returns an error if no other session is left, or if
// no other session contains the words.
func (l *sessionList) dropCurrent(words string) error {
	found := l.findSessions(words)
	here := -1
	if l.c.conv != nil {
		here = slices.IndexFunc(l.list, func(s sessions.Session) bool { return s.ID == l.c.conv.Session() })
	}
	onlyHere := here >= 0 && len(found) == 1 && found[0] == here
	if here >= 0 {
		l.list = slices.Delete(l.list, here, here+1)
	}
	searched := fmt.Sprintf("%q", frame.OneLine(words))
	switch {
	case words != "" && onlyHere:
		return fmt.Errorf("only this session has %s in it", searched)
	case words != "" && len(found) == 0:
		return fmt.Errorf("no session has %s in its title or in its texts", searched)
	case len(l.list) == 0 && here >= 0:
		return errors.New("there is no other session")
	case len(l.list) == 0:
		return errors.New("there is no session yet: 'perlica' starts one")
	}
	return nil
}

// findSessions returns the sessions that have all words in their titles, names, ids or agents. Sessions that have the
// words in their texts follow.
func (l *sessionList) findSessions(words string) (rows []int) {
	wanted := strings.Fields(strings.ToLower(words))
	in := map[event.SessionID]bool{}
	for i, s := range l.list {
		text := strings.ToLower(string(s.ID) + "\n" + s.Name + "\n" + s.Provider + "\n" + s.Title)
		if !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(text, w) }) {
			rows, in[s.ID] = append(rows, i), true
		}
	}
	if len(wanted) == 0 {
		return rows
	}
	at := map[event.SessionID]int{}
	for i, s := range l.list {
		at[s.ID] = i
	}
	for _, id := range l.findInTexts(wanted) {
		if i, ok := at[id]; ok && !in[id] {
			rows, in[id] = append(rows, i), true
		}
	}
	return rows
}

// mostHits is the largest number of found texts that findInTexts reads.
const mostHits = 100

// findInTexts searches the sessions' texts for the words. It returns the sessions that have them, the newest first.
func (l *sessionList) findInTexts(words []string) (ids []event.SessionID) {
	if !l.tried {
		l.tried = true
		if paths, err := l.c.p.Workspace.Context(l.c.p.Config.ContextID); err == nil {
			// OpenView returns nil if it cannot make an index. The search then covers only titles.
			l.texts, l.remove, _ = project.OpenView(paths.Search, func(path string) (*report.Search, error) {
				return report.OpenSearch(l.ctx, &l.c.r.Log().Reader, path, func(event.Seq) {})
			})
		}
	}
	if l.texts == nil {
		return nil
	}
	n := 0
	for h, err := range l.texts.Find(l.ctx, report.Wanted{Phrases: words}) {
		if n++; err != nil || n > mostHits {
			break
		}
		ids = append(ids, h.Event.Session)
	}
	return ids
}

func (l *sessionList) closeIndex() {
	if l.texts != nil {
		_ = l.texts.Close() // A failed close of a reader loses no data.
		l.remove()
	}
}

// leastTitle is the number of columns that each row reserves for the title, because people search by the title.
const leastTitle = 20

// sessionRow describes a session by name, last use, agent, turns, cost and title. On a narrow screen it leaves out
// the cost, then the turns, then the agent.
func (l *sessionList) sessionRow(i, columns int) []string {
	s := l.list[i]
	cells := []string{
		runewidth.FillRight(card.Line(frame.SessionName(s, frame.ShortID(s.ID)), 24), 8),
		fmt.Sprintf("%-8s", frame.FormatAge(s.Used, l.now)),
		runewidth.FillRight(card.Line(s.Provider, 16), 10),
		fmt.Sprintf("%8s", frame.Count(s.Turns, "turn")),
	}
	if cost := l.sessionCost(s.ID); cost != "" {
		cells = append(cells, cost)
	}
	head := strings.Join(cells, "  ") + "  "
	for len(cells) > 1 && columns-screen.TextWidth(head) < leastTitle {
		cells = cells[:len(cells)-1]
		head = strings.Join(cells, "  ") + "  "
	}
	return []string{head, l.c.styles.Dim(card.Line(s.Title, max(columns-screen.TextWidth(head), 1)))}
}

// sessionCost returns the last cost of the session that the agent reported.
func (l *sessionList) sessionCost(id event.SessionID) string {
	if text, ok := l.costs[id]; ok {
		return text
	}
	text := ""
	e, ok, err := l.c.r.Log().Last(l.ctx, event.Query{Session: id, Types: []event.Type{event.Responded}})
	if err == nil && ok {
		if f, err := fact.Decode[fact.Responded](e); err == nil && f.Cost != nil {
			text = frame.OneLine(f.Cost.String())
		}
	}
	l.costs[id] = text
	return text
}

// chooseByNumber lets the person choose a session by its number. It serves terminals that cannot move the cursor.
func (l *sessionList) chooseByNumber(keys *screen.Keys, words string) (s sessions.Session, err error) {
	var shown []sessions.Session
	for _, i := range l.findSessions(words) {
		shown = append(shown, l.list[i])
	}
	shown = shown[:min(len(shown), 20)]
	for i, s := range shown {
		at := slices.IndexFunc(l.list, func(o sessions.Session) bool { return o.ID == s.ID })
		fmt.Fprintf(l.c.a.Stderr, "%2d  %s\n", i+1,
			strings.Join(l.sessionRow(at, max(screen.TerminalWidth(l.c.a.Stderr), 40)-5), ""))
	}
	fmt.Fprint(l.c.a.Stderr, "number: ")
	line, err := keys.Line(l.ctx)
	fmt.Fprintln(l.c.a.Stderr)
	if errors.Is(err, screen.ErrInterrupted) || errors.Is(err, screen.ErrEscaped) {
		return s, errNoChoice
	}
	if err != nil {
		return s, err
	}
	n := 0
	if _, err := fmt.Sscan(line, &n); err != nil || n < 1 || n > len(shown) {
		return s, fmt.Errorf("%w: %q is no number of the list", errNoChoice, frame.OneLine(line))
	}
	return shown[n-1], nil
}

// resumeSession continues a session that the person chooses. Sessions that contain the words come first.
func (c *chat) resumeSession(words string) {
	s, err := c.chooseSession(c.ctx, c.keys.keys, words)
	if err != nil {
		c.a.Complain(err)
		return
	}
	if err := c.enterSession(s, c.agent.ID); err != nil {
		c.a.Complain(err)
	}
}

// busyHint adds a hint to the error of a busy session: the command that watches the session.
func busyHint(err error, s sessions.Session) error {
	if errors.Is(err, filelock.ErrBusy) {
		return frame.WithHint(err, "to follow it: perlica watch %s", frame.SessionName(s, frame.ShortID(s.ID)))
	}
	return err
}

// sessionOf reads the record of a session.
func (c *chat) sessionOf(id event.SessionID) (s sessions.Session, err error) {
	view, err := c.r.Sessions(c.ctx)
	if err != nil {
		return s, err
	}
	s, err = view.Find(c.ctx, string(id))
	return s, errors.Join(err, view.Close())
}
