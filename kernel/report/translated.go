package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
)

// fill translates a format string and inserts the values.
func fill(say *language.Sentences, form string, args ...any) string {
	return fmt.Sprintf(say.Form(form), args...)
}

// number returns a number and its noun, such as "2 calls", in the language say.
func number(say *language.Sentences, n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fill(say, "%d "+what, n)
}

// reason translates the reason why a question ended without an answer.
func reason(say *language.Sentences, why string) string {
	if say.Recorded == nil {
		return words(why)
	}
	return cmp.Or(say.Closings[why], words(why))
}

func millis(say *language.Sentences, n int64) string {
	d := time.Duration(n) * time.Millisecond
	if say.Recorded == nil {
		return d.String()
	}
	return fill(say, "%d ms", n)
}

// translated returns the description of a type whose events phones show in the reader's language.
func translated[T any](title string, f func(*language.Sentences, T) string) summarized {
	return summarized{title, func(say *language.Sentences, e event.Event) (string, error) {
		v, err := fact.Decode[T](e)
		if err != nil {
			return "", err
		}
		return f(say, v), nil
	}}
}

func failedSummary(say *language.Sentences, p fact.Failed) string {
	text := say.Form("nothing else is known")
	if p.Error != nil {
		text = p.Error.Translated(say.Read).Error()
	}
	if p.Known != "" {
		text += "; " + say.Read(p.Known, p.KnownMessage)
	}
	if p.NoticedBy == "recovery" {
		text += say.Form("; noticed by a later start")
	}
	return text
}

func startedSummary(say *language.Sentences, p fact.SessionStarted) string {
	var parts []string
	if p.Agent != nil {
		parts = append(parts, strings.TrimSpace(p.Agent.Name+" "+p.Agent.Version))
	}
	if p.Mode != "" {
		parts = append(parts, fill(say, "mode %s", cmp.Or(p.ModeName, p.Mode)))
	}
	return strings.Join(append(parts, fill(say, "strategy %s", p.Strategy)), ", ")
}

func connectedSummary(say *language.Sentences, p fact.SandboxConnected) string {
	to := say.Form("further hosts")
	if p.Host != "" {
		to = fmt.Sprintf("%s:%d", p.Host, p.Port)
	}
	if p.Times > 1 {
		to += fill(say, " (%d times)", p.Times)
	}
	if p.Refused != "" {
		return fill(say, "%s refused: %s", to, say.Form(p.Refused))
	}
	return fill(say, "%s, %s sent, %s received, in %s", to, number(say, int(p.Sent), "byte"),
		number(say, int(p.Received), "byte"), millis(say, p.DurationMS))
}

func replySummary(say *language.Sentences, p fact.ReplySent) string {
	by := say.Form(words(p.By))
	if p.Outcome != "selected" {
		return say.Form(p.Outcome) + " (" + by + ")"
	}
	return fill(say, "%s (%s), by %s", p.Option, say.Form(p.Kind), by)
}
