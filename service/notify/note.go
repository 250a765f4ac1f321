package notify

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
)

// note is a notification. All texts are one line of visible characters, except Content, which may have several lines.
// Only Content has words of the agent or of the user, apart from the name of the session.
type note struct {
	// Key is the same for each attempt to deliver the note.
	Key     string
	Kind    string
	Title   string
	Project string
	Session string // its name, or the beginning of its id; it may be empty
	Run     string // the id of the run; it may be empty
	Command string // the command that shows the cause
	Lines   []string
	Content string
	Page    string // the part of the page that shows the cause, or ""
	URL     string // the address of Page, or ""
}

// These are the sentences of notifications. The placeholder of a title is the name of the project.
var (
	titles = map[string]*message.Text{
		question: message.New("notify.question", "A question waits in %s"),
		finished: message.New("notify.finished", "A turn is finished in %s"),
		failed:   message.New("notify.failed", "A turn failed in %s"),
		unknown:  message.New("notify.unknown", "The outcome of a turn is unknown in %s"),
		budget:   message.New("notify.budget", "A budget is nearly or wholly used in %s"),
		schedule: message.New("notify.schedule", "A schedule missed a time in %s"),
		test:     message.New("notify.test", "A test of the notifications of %s"),
	}
	flowTitles = map[string]*message.Text{
		finished: message.New("notify.flow-finished", "A flow is finished in %s"),
		failed:   message.New("notify.flow-failed", "A flow failed in %s"),
	}
	inSession = message.New("notify.session", "Session: %s")
	look      = message.New("notify.look", "To see it: %s")
)

// test is the kind of the note of 'perlica notify test'.
const test = "test"

// These limit the texts of a note, in characters.
const (
	maxName    = 48
	maxError   = 200
	maxContent = 1000
	// maxRead is the number of bytes of the content that are redacted. It is larger than maxContent, so that the end of
	// the content cuts no secret in two.
	maxRead = 64 << 10
)

// teller makes the notes of a project.
type teller struct {
	project  string // its name, or the team's name
	isTeam   bool   // the log is a team's
	url      string // the address of the page, or ""
	say      *language.Sentences
	redactor *redact.Redactor
}

// tellerOf returns the teller of a project. A team is not "", if the log is the log of this team.
func tellerOf(p *project.Project, team string) (*teller, error) {
	redactor, err := p.Redactor()
	return &teller{cmp.Or(team, p.Name()), team != "", p.Config.Web.PublicURL,
		language.Language(p.Config.Service.Language).Sentences(),
		redactor}, err
}

// note returns the notification of an entry. It reads the content now, so that an event whose payload was removed has
// no content.
func (t *teller) note(ctx context.Context, log *store.Reader, e *entry) (note, error) {
	n := t.plain(e.cause.kinds[0], e.cause.ID)
	n.Run = string(e.cause.Run)
	switch {
	case n.Kind == question && t.isTeam:
		n.Command = "perlica team pending"
	case n.Kind == question:
		n.Command = "perlica pending"
	case n.Kind == budget:
		n.Command = "perlica budget"
	case n.Kind == schedule:
		n.Command = "perlica schedule list"
	case e.cause.flow != "":
		n.Title = t.say.Say(flowTitles[n.Kind].With(n.Project))
		n.Command = "perlica flow show " + e.cause.flow
	case t.isTeam:
		n.Command = "perlica team inputs"
	default:
		n.Command = "perlica log show " + n.Run
	}
	n.Page = t.page(e.cause)
	if t.url != "" {
		n.URL = strings.TrimSuffix(t.url, "/") + "/" + n.Page
	}
	if e.cause.Session != "" {
		name, err := sessionName(ctx, log, e.cause.Session)
		if err != nil {
			return n, err
		}
		n.Session = access.Cut(name, maxName)
		n.Lines = append(n.Lines, t.say.Say(inSession.With(n.Session)))
	}
	n.Lines = append(n.Lines, t.say.Say(look.With(n.Command)))
	if !e.content {
		return n, nil
	}
	for cause, err := range log.Events(ctx, event.Query{After: e.cause.Seq - 1, Until: e.cause.Seq}) {
		if err != nil {
			return n, err
		}
		n.Content = t.visible(contentOf(cause))
	}
	return n, nil
}

// plain returns a note without a cause.
func (t *teller) plain(kind, key string) note {
	name := access.Cut(t.project, maxName)
	return note{Key: key, Kind: kind, Title: t.say.Say(titles[kind].With(name)), Project: name}
}

// page returns the part of the page that shows a cause.
func (t *teller) page(c cause) string {
	if c.Run != "" && c.kinds[0] != question && c.flow == "" && !t.isTeam {
		return "#/run/" + string(c.Run)
	}
	return "#/now"
}

// sessionName returns the name that a person gave to a session, or the beginning of its id.
func sessionName(ctx context.Context, log *store.Reader, id event.SessionID) (string, error) {
	named, ok, err := log.Last(ctx, event.Query{Session: id,
		Types: []event.Type{event.SessionCreated, event.SessionRenamed}})
	short := string(id[:min(len(id), 8)])
	if !ok || err != nil {
		return short, err
	}
	f, err := fact.Decode[fact.SessionRenamed](named) // also decodes SessionCreated, which has the same field
	if err != nil {
		return short, nil
	}
	return cmp.Or(f.Name, short), nil
}

// contentOf returns the words of the agent in a cause, or "".
func contentOf(e event.Event) string {
	switch e.Type {
	case event.InteractionRequested:
		if q, err := fact.Decode[interaction.Question](e); err == nil {
			return strings.Join(append([]string{q.Title}, q.Subject.Commands...), "\n")
		}
	case event.Responded:
		if r, err := fact.Decode[fact.Responded](e); err == nil {
			return r.Text
		}
	case event.ProviderError, event.OutcomeUnknown:
		if f, err := fact.Decode[fact.Failed](e); err == nil {
			text := f.Text
			if f.Error != nil {
				text = f.Error.Error() + "\n" + text
			}
			return text
		}
	}
	return ""
}

// visible returns a text redacted, without invisible characters, and cut to maxContent. It redacts before it cuts.
func (t *teller) visible(text string) string {
	if len(text) > maxRead {
		text = text[:maxRead]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
	}
	var lines []string
	left := maxContent
	for line := range strings.Lines(t.redactor.Text(text)) {
		if left <= 0 {
			return strings.Join(append(lines, "…"), "\n")
		}
		line = access.Cut(line, left)
		left -= utf8.RuneCountInString(line) + 1
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// body returns the text of a note below its title.
func (n note) body() string {
	lines := n.Lines
	if n.Content != "" {
		lines = append([]string{n.Content, ""}, lines...)
	}
	return strings.Join(lines, "\n")
}

// oneLine returns a text as one line of at most this many visible characters.
func oneLine(s string, most int) string { return access.Cut(s, most) }
