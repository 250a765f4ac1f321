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
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// errNoChoice says that no session was chosen.
var errNoChoice = errors.New("no session was chosen")

// What of the earlier turns is shown when a session is opened again.
const (
	shownTurns = 2
	shownLines = 30 // of an answer, the last
)

// showEarlier shows the last turns of a session, from the record.
func (c *chat) showEarlier(log event.Reader, s sessions.Session) {
	turns, err := report.ReadTurns(c.ctx, log, s.ID, 0, shownTurns)
	if err != nil {
		c.note("the earlier turns cannot be read: " + err.Error())
		return
	}
	for i, t := range turns {
		if i > 0 {
			fmt.Fprintln(c.a.Stderr)
		}
		if t.Pruned {
			c.note("a turn that is no longer on record, run " + frame.ShortID(t.Run))
			continue
		}
		fmt.Fprintln(c.a.Stderr, c.styles.Dim(t.At.Local().Format(time.DateTime)+" ❯ "+frame.OneLine(t.Text)))
		lines := strings.SplitAfter(c.rendered(t.Answer), "\n")
		if n := len(lines) - shownLines; n > 0 && t.Answer != "" {
			c.note(fmt.Sprintf("%d lines above: perlica log show %s", n, frame.ShortID(t.Run)))
			lines = lines[n:]
		}
		if t.Answer != "" {
			fmt.Fprint(c.a.Stderr, strings.Join(lines, ""))
		}
		if end := t.Ending(); end != "" {
			c.note(frame.OneLine(end))
		}
	}
}

// chooseSession lets the person choose a session, first among those with the words, or fails with errNoChoice.
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
	defer choice.close()
	if err := choice.dropCurrent(words); err != nil {
		return s, err
	}
	if c.dumb {
		return choice.number(keys, words)
	}
	i, err := screen.Pick(ctx, keys, screen.PickList{
		Out: c.a.Stderr, Styles: c.styles, Title: "go on with", Words: words,
		Size: func() (int, int) { return screen.TerminalWidth(c.a.Stderr), screen.TerminalHeight(c.a.Stderr) },
		Find: choice.find, Row: choice.row,
	})
	if errors.Is(err, screen.ErrInterrupted) {
		return s, errNoChoice
	}
	if err != nil {
		return s, err
	}
	return list[i], nil
}

// sessionList is the sessions that are chosen from.
type sessionList struct {
	c     *chat
	ctx   context.Context
	list  []sessions.Session
	costs map[event.SessionID]string
	now   time.Time

	texts  *report.Search // nil: it was not needed yet, or cannot be had
	remove func()
	tried  bool
}

// dropCurrent takes the session of this chat off the list. It returns an error if no other session is left, or
// if no other session has the words.
func (l *sessionList) dropCurrent(words string) error {
	found := l.find(words)
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

// find returns the sessions that have all words in their titles, names, ids or agents, and behind them
// those in whose texts they stand.
func (l *sessionList) find(words string) (rows []int) {
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
	for _, id := range l.inTexts(wanted) {
		if i, ok := at[id]; ok && !in[id] {
			rows, in[id] = append(rows, i), true
		}
	}
	return rows
}

// mostHits is how many texts are looked at for the sessions that they are of.
const mostHits = 100

// inTexts returns the sessions in whose texts the words stand, the newest first.
func (l *sessionList) inTexts(words []string) (ids []event.SessionID) {
	if !l.tried {
		l.tried = true
		if paths, err := l.c.p.Workspace.Context(l.c.p.Config.ContextID); err == nil {
			// Without an index titles are searched only.
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

func (l *sessionList) close() {
	if l.texts != nil {
		_ = l.texts.Close() // it was read from
		l.remove()
	}
}

// leastTitle is the number of columns that a row of the list keeps for the title: people search by it.
const leastTitle = 20

// row describes a session: name, last use, agent, turns, cost and title. On a narrow screen, cost, turns and
// agent leave the row, in this order.
func (l *sessionList) row(i, columns int) []string {
	s := l.list[i]
	cells := []string{
		runewidth.FillRight(card.Line(frame.SessionName(s, frame.ShortID(s.ID)), 24), 8),
		fmt.Sprintf("%-8s", frame.FormatAge(s.Used, l.now)),
		runewidth.FillRight(card.Line(s.Provider, 16), 10),
		fmt.Sprintf("%8s", frame.Count(s.Turns, "turn")),
	}
	if cost := l.cost(s.ID); cost != "" {
		cells = append(cells, cost)
	}
	head := strings.Join(cells, "  ") + "  "
	for len(cells) > 1 && columns-screen.TextWidth(head) < leastTitle {
		cells = cells[:len(cells)-1]
		head = strings.Join(cells, "  ") + "  "
	}
	return []string{head, l.c.styles.Dim(card.Line(s.Title, max(columns-screen.TextWidth(head), 1)))}
}

// cost is what the agent last said that the session has cost.
func (l *sessionList) cost(id event.SessionID) string {
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

// number lets the person choose by number, where the terminal cannot move its cursor.
func (l *sessionList) number(keys *screen.Keys, words string) (s sessions.Session, err error) {
	var shown []sessions.Session
	for _, i := range l.find(words) {
		shown = append(shown, l.list[i])
	}
	shown = shown[:min(len(shown), 20)]
	for i, s := range shown {
		at := slices.IndexFunc(l.list, func(o sessions.Session) bool { return o.ID == s.ID })
		fmt.Fprintf(l.c.a.Stderr, "%2d  %s\n", i+1, strings.Join(l.row(at, max(screen.TerminalWidth(l.c.a.Stderr), 40)-5), ""))
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

// resume goes on in a session that the person chooses, first among those with the words.
func (c *chat) resume(words string) {
	s, err := c.chooseSession(c.ctx, c.keys.keys, words)
	if err != nil {
		c.a.Complain(err)
		return
	}
	if err := c.enter(s, c.agent.ID); err != nil {
		c.a.Complain(err)
	}
}

// busyHint says who holds a session and how to look at it.
func busyHint(err error, s sessions.Session) error {
	if errors.Is(err, filelock.ErrBusy) {
		return frame.WithHint(err, "to follow it: perlica watch %s", frame.SessionName(s, frame.ShortID(s.ID)))
	}
	return err
}

// sessionOf reads what is on record about a session.
func (c *chat) sessionOf(id event.SessionID) (s sessions.Session, err error) {
	view, err := c.r.Sessions(c.ctx)
	if err != nil {
		return s, err
	}
	s, err = view.Find(c.ctx, string(id))
	return s, errors.Join(err, view.Close())
}
