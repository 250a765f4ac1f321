package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/provider"
)

// fill translates a sentence and inserts the values.
func fill(say *language.Sentences, sentence *message.Text, args ...any) string {
	return say.Say(sentence.With(args...))
}

// number returns a number and its noun, such as "2 calls", in the language of the parameter "say".
func number(say *language.Sentences, n int, what noun) string {
	if n == 1 {
		return fill(say, what.one, n)
	}
	return fill(say, what.many, n)
}

// reason translates the reason why a question ended without an answer.
func reason(say *language.Sentences, why string) string {
	if say.Messages == nil {
		return words(why)
	}
	return cmp.Or(say.Closings[why], words(why))
}

func millis(say *language.Sentences, n int64) string {
	d := time.Duration(n) * time.Millisecond
	if say.Messages == nil {
		return d.String()
	}
	return fill(say, milliseconds, n)
}

// translated returns the description of a type of event. P is a pointer to its payload: see fact.DecodeNew. Phones show
// such events in the reader's language.
func translated[P any](title *message.Text, f func(*language.Sentences, P) string) summarized {
	return summarized{title, func(say *language.Sentences, e event.Event) (string, error) {
		p, err := fact.DecodeNew[P](e)
		if err != nil {
			return "", err
		}
		return f(say, p), nil
	}}
}

// failure describes an error. The error is nil if its payload is missing.
func failure(say *language.Sentences, err *provider.Error) string {
	if err == nil {
		return say.Say(nothingElse)
	}
	return err.Translated(say.Read).Error()
}

func failedSummary(say *language.Sentences, p *fact.Failed) string {
	text := failure(say, p.Error)
	if p.Known != "" {
		text += "; " + say.Read(p.Known, p.KnownMessage)
	}
	if p.NoticedBy == "recovery" {
		text += say.Say(noticedLater)
	}
	return text
}

func startedSummary(say *language.Sentences, p *fact.SessionStarted) string {
	var parts []string
	if p.Agent != nil {
		parts = append(parts, strings.TrimSpace(p.Agent.Name+" "+p.Agent.Version))
	}
	if p.Mode != "" {
		parts = append(parts, fill(say, modeIs, cmp.Or(p.ModeName, p.Mode)))
	}
	return strings.Join(append(parts, fill(say, strategyIs, p.Strategy)), ", ")
}

func connectedSummary(say *language.Sentences, p *fact.SandboxConnected) string {
	to := say.Say(furtherHosts)
	if p.Host != "" {
		to = fmt.Sprintf("%s:%d", p.Host, p.Port)
	}
	if p.Times > 1 {
		to += fill(say, manyTimes, p.Times)
	}
	if p.Refused != "" {
		return fill(say, connectionRefused, to, say.Word(p.Refused))
	}
	return fill(say, connectionOver, to, number(say, int(p.Sent), nounByte),
		number(say, int(p.Received), nounByte), millis(say, p.DurationMS))
}

func replySummary(say *language.Sentences, p *fact.ReplySent) string {
	by := say.Word(words(p.By))
	if p.Outcome != "selected" {
		return say.Word(p.Outcome) + " (" + by + ")"
	}
	return fill(say, optionBy, p.Option, say.Word(p.Kind), by)
}
