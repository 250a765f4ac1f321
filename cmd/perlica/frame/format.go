package frame

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// OneLine prepares a text for one line of output. It writes invisible characters as visible escapes.
func OneLine(s string) string {
	return card.Line(s, 0)
}

// AllowFlags returns the options of 'perlica run' that allow the given commands.
func AllowFlags(commands []string) string {
	var flags []string
	for _, c := range commands {
		flags = append(flags, "--allow '"+strings.ReplaceAll(c, "'", `'\''`)+"'")
	}
	return strings.Join(flags, " ")
}

// ProviderMessage describes an error of an agent in one line.
func ProviderMessage(e *provider.Error) string {
	if e == nil {
		return "no details are known"
	}
	return e.Error()
}

// LoginHint tells how to log in to an agent. The parameter "held" lists variables that may hold the agent's key and
// that the agent did not get. adHoc means that the flag --agent named the agent's command, so 'perlica provider login'
// cannot name the agent.
func LoginHint(id string, adHoc bool, held []string) string {
	// For a variable that the registry does not list, nobody knows whether it has the key.
	if i := slices.IndexFunc(held, func(name string) bool { return !registry.Uses(name) }); i >= 0 {
		return "the agent asks for " + strings.Join(held, ", ") +
			", set here and not handed to it; if it may have that: '--env " + held[i] + "'"
	}
	if len(held) > 0 {
		return "set here and not handed to the agent: " + strings.Join(held, ", ") + "; '--env " + held[0] + "' hands it over"
	}
	if adHoc {
		return "log in with the agent's own command, or hand it the variable with its key: '--env NAME'; then try again"
	}
	if k, ok := registry.Lookup(id); ok && k.Login != "" && id != agents.Predictable {
		return k.Login
	}
	return "log in with the agent's own command or 'perlica provider login " + id + "', then try again"
}

// TimeoutHint names the settings for an agent's timeouts. adHoc means that the flag --agent named the agent's
// command. Such an agent has no settings.
func TimeoutHint(id string, adHoc bool) string {
	if adHoc {
		return "an agent that the configuration names can have other timeouts: see docs/configuration.md"
	}
	return "providers." + id + ".acp.connect_timeout and request_timeout set how long to wait"
}

// Count returns a number and its noun, in the singular or plural. Copies of Count at its many uses would make the
// program larger.
//
//go:noinline
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// DefaultWidth is the width of a question in columns if the width of the screen is unknown.
const DefaultWidth = 80

// QuestionTitle returns the title of a question in one line, with the name of the agent.
func QuestionTitle(q interaction.Question) string {
	title := cmp.Or(q.Title, "use a tool")
	return card.Line(q.Subject.Provider+" asks: "+title, 0)
}

// RenderRows returns the rows of a question as text for a terminal.
func RenderRows(rows []card.Row, s screen.Styles) string {
	var b strings.Builder
	for _, r := range rows {
		head, text := r.Head, r.Text
		if text == "" {
			head = strings.TrimRight(head, " ")
		}
		switch {
		case r.Tone == card.Title:
			head, text = s.Yellow(head[:1])+s.Bold(head[1:]), s.Bold(text)
		case r.Agent:
			head = s.Dim(head)
		}
		switch r.Tone {
		case card.Added:
			head, text = tinted(r, head, text, s.Green)
		case card.Removed:
			head, text = tinted(r, head, text, s.Red)
		case card.Warning:
			head, text = tinted(r, head, text, s.Yellow)
		case card.Refused:
			text = s.Red(text)
		case card.Aside:
			head, text = s.Dim(r.Head), s.Dim(text)
		}
		b.WriteString(head + text + "\n")
	}
	return b.String()
}

// tinted colours one of the two parts of a row. In the row of an option it colours the head, which is Perlica's
// text. Otherwise it colours the agent's text.
func tinted(r card.Row, head, text string, color func(string) string) (string, string) {
	if r.Agent || strings.TrimSpace(r.Text) != "" && r.Must {
		return head, color(text)
	}
	return color(head), text
}

// FormatDuration returns a duration in a short form for people.
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// FormatAge returns how long ago a time was, in the largest unit that fits.
func FormatAge(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return Count(int(d.Hours()), "hour") + " ago"
	case d < 60*24*time.Hour:
		return Count(int(d.Hours()/24), "day") + " ago"
	}
	return at.Local().Format(time.DateOnly)
}

// ShortID returns the last eight characters of an id. The beginning of an id is a time and is often the same. The
// end is random.
func ShortID[T ~string](id T) string {
	s := string(id)
	return s[max(0, len(s)-8):]
}

// DescribeChoices lists the mode, the model and the options that a session's user chose. It returns "" if nothing
// was chosen.
func DescribeChoices(c fact.SessionConfigured) string {
	var parts []string
	if c.Mode != "" {
		parts = append(parts, "mode "+OneLine(cmp.Or(c.ModeName, c.Mode)))
	}
	if c.Model != "" {
		parts = append(parts, "model "+OneLine(c.Model))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Options)) {
		parts = append(parts, OneLine(id)+" "+OneLine(c.Options[id]))
	}
	return strings.Join(parts, ", ")
}

// SessionName returns the name of a session, or the given part of its id if it has no name.
func SessionName(s sessions.Session, id string) string {
	return cmp.Or(s.Name, id)
}

// DescribeSession returns the name and the id of a session, for people.
func DescribeSession(s sessions.Session) string {
	if s.Name == "" {
		return string(s.ID)
	}
	return fmt.Sprintf("%s (%s)", s.Name, s.ID)
}

// WriteFields writes one line for each named value. It leaves out empty values.
func WriteFields(w io.Writer, s screen.Styles, indent string, width int, fields [][2]string) error {
	for _, f := range fields {
		if f[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s%s %s\n", indent, s.Dim(fmt.Sprintf("%-*s", width, f[0])), OneLine(f[1])); err != nil {
			return err
		}
	}
	return nil
}

// CutOff returns the notice about an earlier run. Its process died before the outcome was on record.
func CutOff(run event.RunID) string {
	return "an earlier run was cut off; its outcome is unknown and nothing was sent again: perlica log show " + string(run)
}
