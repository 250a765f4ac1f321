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

// When it is looked what the bridge does: for a view, which is painted only when it changed,
// soon behind each thing that the bridge notes and as long as something is under way; else for
// systemd, for pairing, and for what other processes do.
const (
	screenSoon  = 100 * time.Millisecond
	screenEvery = 500 * time.Millisecond
	screenIdle  = 5 * time.Second
	lookEvery   = 10 * time.Second
)

// serviceView shows what a bridge does: on a terminal as a view that is painted over, else
// as lines.
type serviceView struct {
	a        *app
	log      *slog.Logger
	live     bool
	shown    string
	happened chan struct{} // capacity 1: the bridge did something

	stopping bool
}

// observing learns that a bridge did something, where it is shown as a view.
type observing struct {
	slog.Handler
	happened chan struct{}
}

func (observing) Enabled(context.Context, slog.Level) bool { return true }

func (n observing) Handle(context.Context, slog.Record) error {
	select {
	case n.happened <- struct{}{}:
	default:
	}
	return nil
}

func newServiceView(a *app) *serviceView {
	s := &serviceView{a: a, live: screen.IsTerminal(a.Stderr) && !a.HasDumbTerminal(), happened: make(chan struct{}, 1)}
	if s.log = slog.New(printed{a}); s.live {
		s.log = slog.New(observing{slog.DiscardHandler, s.happened})
	}
	return s
}

// every is how long the screen can wait before it is shown what the bridge does.
func (s *serviceView) every(l service.Live) time.Duration {
	switch {
	case !s.live:
		return lookEvery
	case len(l.Turns)+l.Queued+l.Unsent > 0:
		return screenEvery
	}
	return screenIdle
}

func (s *serviceView) show(l service.Live, pairing string) {
	if !s.live {
		return
	}
	text := s.render(l, pairing)
	if text == s.shown {
		return
	}
	s.close()
	s.shown = text
	fmt.Fprint(s.a.Stderr, text)
}

// close takes the view off the screen: also where a terminal that became narrower has broken
// its lines, and where the echo of a key stands behind it.
func (s *serviceView) close() {
	rows := 0
	for line := range strings.Lines(s.shown) {
		rows += screen.TextRows(strings.TrimRight(line, "\n"), s.width())
	}
	if rows > 0 {
		fmt.Fprintf(s.a.Stderr, "\r\x1b[%dA"+screen.ClearBelow, rows)
	}
	s.shown = ""
}

func (s *serviceView) width() int {
	if w := screen.TerminalWidth(s.a.Stderr); w > 0 {
		return max(w, 20)
	}
	return 80
}

// render is the view. No line is wider than the terminal, and there are no more than it has:
// it is painted over by their number.
func (s *serviceView) render(l service.Live, pairing string) string {
	styles := s.a.Styles(s.a.Stderr)
	var lines []string
	line := func(style func(string) string, label, format string, args ...any) {
		text := fmt.Sprintf("  %-9s ", label) + frame.OneLine(fmt.Sprintf(format, args...))
		if text = runewidth.Truncate(text, s.width()-1, "…"); style != nil {
			text = style(text)
		}
		lines = append(lines, text+"\n")
	}
	head := runewidth.Truncate("perlica service, since "+l.Since.Local().Format(time.DateTime), s.width()-1, "…")
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

// notifier tells systemd how the service is, if it asked.
type notifier struct {
	socket string
	every  time.Duration // it wants to hear that the service lives
}

func newNotifier(getenv func(string) string) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET"), every: lookEvery}
	if strings.HasPrefix(n.socket, "@") {
		n.socket = "\x00" + n.socket[1:]
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 1 {
		n.every = min(n.every, time.Duration(usec)*time.Microsecond/2) // as sd_watchdog_enabled(3) has it
	}
	return n
}

func (n notifier) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", n.socket)
	if err != nil {
		return // systemd finds out by itself
	}
	if conn.SetWriteDeadline(time.Now().Add(noticeTime)) == nil { // a reader that is slow holds up no bridge
		_, _ = conn.Write([]byte(state)) // likewise
	}
	_ = conn.Close()
}

// noticeTime is how long a notice waits for room.
const noticeTime = 500 * time.Millisecond
