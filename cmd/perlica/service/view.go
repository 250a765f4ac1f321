package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/service"
)

// These are the intervals for looking at the bridge. The view is painted only after a change. It is painted soon
// after each recorded event, and often while a turn runs. Without a view, a slow interval is enough for systemd,
// pairing and other processes.
const (
	screenSoon  = 100 * time.Millisecond
	screenEvery = 500 * time.Millisecond
	screenIdle  = 5 * time.Second
	lookEvery   = 10 * time.Second
)

// serviceView shows the work of a bridge. On a terminal it repaints a view, and elsewhere it prints lines.
type serviceView struct {
	a        *app
	log      *slog.Logger
	live     bool
	shown    string
	happened chan struct{} // capacity 1; receives a value after the bridge has done something

	stopping bool
}

// observingHandler is a handler for the bridge's log records. It tells the view about each record.
type observingHandler struct {
	slog.Handler
	happened chan struct{}
}

func (observingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (n observingHandler) Handle(context.Context, slog.Record) error {
	select {
	case n.happened <- struct{}{}:
	default:
	}
	return nil
}

func newServiceView(a *app) *serviceView {
	s := &serviceView{a: a, live: screen.IsTerminal(a.Stderr) && !a.HasDumbTerminal(), happened: make(chan struct{}, 1)}
	if s.log = slog.New(plainHandler{a}); s.live {
		s.log = slog.New(observingHandler{slog.DiscardHandler, s.happened})
	}
	return s
}

// interval returns the time until the next look at the bridge.
func (s *serviceView) interval(l service.Live) time.Duration {
	switch {
	case !s.live:
		return lookEvery
	case len(l.Turns)+l.Queued+l.Unsent > 0:
		return screenEvery
	}
	return screenIdle
}

func (s *serviceView) paint(l service.Live, pairing string) {
	if !s.live {
		return
	}
	text := s.renderText(l, pairing)
	if text == s.shown {
		return
	}
	s.clearScreen()
	s.shown = text
	fmt.Fprint(s.a.Stderr, text)
}

// clearScreen removes the view from the screen. It also works after the terminal became narrower and broke lines,
// and after a typed key was echoed.
func (s *serviceView) clearScreen() {
	rows := 0
	for line := range strings.Lines(s.shown) {
		rows += screen.TextRows(strings.TrimRight(line, "\n"), s.columns())
	}
	if rows > 0 {
		fmt.Fprintf(s.a.Stderr, "\r\x1b[%dA"+screen.ClearBelow, rows)
	}
	s.shown = ""
}

func (s *serviceView) columns() int {
	if w := screen.TerminalWidth(s.a.Stderr); w > 0 {
		return max(w, 20)
	}
	return 80
}

// renderText returns the view as text. Its lines fit the width of the terminal, so that clearScreen can count the
// rows.
func (s *serviceView) renderText(l service.Live, pairing string) string {
	styles := s.a.Styles(s.a.Stderr)
	var lines []string
	line := func(style func(string) string, label, format string, args ...any) {
		text := fmt.Sprintf("  %-9s ", label) + frame.OneLine(fmt.Sprintf(format, args...))
		if text = runewidth.Truncate(text, s.columns()-1, "…"); style != nil {
			text = style(text)
		}
		lines = append(lines, text+"\n")
	}
	head := runewidth.Truncate("perlica service, since "+l.Since.Local().Format(time.DateTime), s.columns()-1, "…")
	lines = append(lines, styles.Bold(head)+"\n")
	if s.stopping {
		line(styles.Yellow, "stopping", "turns under way may end; once more ends at once")
	}
	for _, rows := range []struct {
		style func(string) string
		label string
		texts []string
	}{{styles.Yellow, "question", l.Questions}, {styles.Cyan, "running", l.Turns}, {nil, "project", l.Projects}} {
		for _, text := range rows.texts {
			line(rows.style, rows.label, "%s", text)
		}
	}
	if l.Queued > 0 {
		line(nil, "waiting", "%s of %s to be answered", frame.Count(l.Queued, "message"), frame.Count(l.InLine, "contact"))
	}
	if l.Held > 0 {
		line(nil, "held", "%s until who wrote confirms", frame.Count(l.Held, "message"))
	}
	if l.Unsent > 0 {
		line(nil, "sending", "%s", frame.Count(l.Unsent, "message"))
	}
	for _, c := range l.Channels {
		switch {
		case c.Error != "":
			line(styles.Red, "channel", "%s, since %s: %s", c.Name, c.Since.Local().Format(time.TimeOnly), c.Error)
		case c.Served:
			line(nil, "channel", "%s", c.Name)
		}
	}
	if pairing != "" {
		line(styles.Green, "pairing", "%s", pairing)
	}
	for _, e := range l.Errors {
		line(styles.Dim, "warning", "%s", e)
	}
	names := service.Names(l.Contacts)
	for i, c := range l.Contacts {
		line(nil, "contact", "%s: %s", names[i], c.Rights.Shown())
	}
	if n := len(l.Unconfirmed); n > 0 {
		line(styles.Yellow, "contacts", "%d on record only, without rights: 'perlica service contacts'", n)
	}
	if most := max(screen.TerminalHeight(s.a.Stderr), 4) - 2; len(lines) > most && screen.TerminalHeight(s.a.Stderr) > 0 {
		lines = append(lines[:most], fmt.Sprintf("  and %s\n", frame.Count(len(lines)-most, "line")))
	}
	return strings.Join(lines, "")
}

// notifier tells systemd the state of the service, if systemd asks for it.
type notifier struct {
	socket string
	every  time.Duration // interval of the watchdog
}

func newNotifier(getenv func(string) string) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET"), every: lookEvery}
	if strings.HasPrefix(n.socket, "@") {
		n.socket = "\x00" + n.socket[1:]
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 1 {
		n.every = min(n.every, time.Duration(usec)*time.Microsecond/2) // sd_watchdog_enabled(3) recommends half of the time.
	}
	return n
}

func (n notifier) sendState(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", n.socket)
	if err != nil {
		return // The error is ignored, because systemd notices the missing report.
	}
	if conn.SetWriteDeadline(time.Now().Add(noticeTime)) == nil { // A reader that is slow must not stop the bridge.
		_, _ = conn.Write([]byte(state)) // The error is ignored, because systemd notices the missing report.
	}
	_ = conn.Close()
}

// noticeTime is the longest time that the write of a report may block.
const noticeTime = 500 * time.Millisecond
