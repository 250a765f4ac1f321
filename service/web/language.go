package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Perlica's own sentences in an answer use the first supported language that the client asks for.
// The default is English. The agent's words, and values that programs read, are the same in all
// languages.

// languageKey is the key of a request's language in its context.
type languageKey struct{}

// withLanguage stores the request's language in its context, where say finds it.
func withLanguage(r *http.Request) *http.Request {
	l := language.Accepted(r.Header.Get("Accept-Language"))
	if l == language.English {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), languageKey{}, l))
}

// say returns the sentences of the request's language.
func say(ctx context.Context) *language.Sentences {
	l, _ := ctx.Value(languageKey{}).(language.Language) // the zero value is English
	return l.Sentences()
}

// localized returns a question in the request's language.
func localized(ctx context.Context, q interaction.Question) interaction.Question {
	say := say(ctx)
	if say.Messages == nil {
		return q
	}
	q.Why = say.Read(q.Why, q.Coded)
	q.Options = offered(say, q.Options)
	return q
}

// offered returns options in a language. It leaves the agent's own options unchanged.
func offered(say *language.Sentences, options []interaction.Option) []interaction.Option {
	options = slices.Clone(options)
	for i, o := range options {
		if o.Offer {
			options[i].Label = say.Offered(o, o.Label)
		}
	}
	return options
}

// localizedResult returns a result in the request's language.
func localizedResult(ctx context.Context, r streamjson.Result) *streamjson.Result {
	r.Error = r.Error.Translated(say(ctx).Read)
	r.Warnings = slices.Clone(r.Warnings)
	for i, w := range r.Warnings {
		r.Warnings[i].Detail = say(ctx).Read(w.Detail, w.Coded)
	}
	return &r
}

// members holds the members of a JSON object.
type members map[string]json.RawMessage

// put replaces the value of a member by the result of the function f. It adds no member.
func put[T any](m members, name string, f func(T) T) {
	var was *T
	if json.Unmarshal(m[name], &was) != nil || was == nil {
		return
	}
	if b, err := json.Marshal(f(*was)); err == nil {
		m[name] = b
	}
}

// say translates the sentence in the named member. The members code and args have the sentence's code and its
// insertions.
func (m members) say(say *language.Sentences, name string) {
	var c message.Coded
	if (m["code"] == nil || json.Unmarshal(m["code"], &c.Code) == nil) &&
		(m["args"] == nil || json.Unmarshal(m["args"], &c.Args) == nil) {
		put(m, name, func(text string) string { return say.Read(text, c) })
	}
}

// localizedLine returns the data of a line in a language. The line itself is in English, because all followers share
// it.
func localizedLine(say *language.Sentences, one line) []byte {
	if say.Messages == nil {
		return one.data
	}
	var change func(members)
	switch one.kind {
	case "answer", "run.stopping":
		change = func(m members) { m.say(say, "why") }
	case "warning":
		change = func(m members) { m.say(say, "detail") }
	case "question":
		change = func(m members) {
			m.say(say, "why")
			put(m, "options", func(list []interaction.Option) []interaction.Option {
				return offered(say, list)
			})
		}
	case "run.finished":
		change = func(m members) {
			put(m, "result", func(result members) members {
				put(result, "error", func(e provider.Error) provider.Error { return *e.Translated(say.Read) })
				return result
			})
		}
	default:
		return one.data
	}
	var m members
	if json.Unmarshal(one.data, &m) != nil {
		return one.data
	}
	change(m)
	if b, err := json.Marshal(m); err == nil {
		return b
	}
	return one.data
}
