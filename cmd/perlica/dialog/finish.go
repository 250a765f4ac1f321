package dialog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Finish ends the output: the rest of the answer, the result, and what went wrong.
func (p *Printer) Finish(res kernel.Result, err error) {
	defer func() { _ = p.Status.Close() }() // a terminal that is gone shows nothing
	if p.format != "text" {
		rec := streamjson.NewResult(res, err, frame.RefusalErrorType(err))
		if p.Misfit != nil && !rec.IsError {
			rec.IsError, rec.Error = true, &provider.Error{Provider: res.Provider, Message: p.Misfit.Error(), Type: "schema"}
		}
		for _, s := range p.saved {
			rec.Content[s.block].Path = s.path
		}
		if p.format == "stream-json" {
			p.n++
			rec.N = &p.n
		}
		p.json(rec)
	} else if err == nil {
		if res.Replayed {
			p.text(res.Text)
		}
		if p.Answer != nil && !p.Closed {
			_ = p.Answer.Close() // writes the final newline; the terminal may be gone
		} else if p.newline && p.open {
			p.text("\n")
		}
	}
	p.Status.Clear()
	p.endAnswer(err)
	if err == nil {
		p.Explain(res)
	}
}

// Explain says on standard error what is not a plain answer, and what to do.
func (p *Printer) Explain(res kernel.Result) {
	p.explainEnd(res)
	p.explainContent(res)
	if n := res.Permissions.Unanswered; n > 0 && res.Stopped == nil && res.Err == nil {
		p.wrong(fmt.Sprintf("%s went unanswered because there was no one to ask; the answer was no", frame.Count(n, "question")),
			"to allow ordinary commands: --permissions allow; to allow one: --allow 'COMMAND'; to be asked later, in 'perlica pending': --wait-permissions 10m")
	}
	for _, u := range res.Unasked {
		text := fmt.Sprintf("%s (%s): %s", frame.OneLine(u.Title), cmp.Or(u.Kind, "of no kind"), frame.OneLine(u.Why))
		if u.FreedBy != "" {
			text += " (question " + frame.ShortID(string(u.FreedBy)) + ")"
		}
		if p.strict && u.FreedBy == "" {
			p.wrong(text, "")
		} else {
			p.Note("warning: " + text)
		}
	}
	if res.Replayed { // those of a turn were shown as they came
		for _, w := range res.Warnings {
			p.Note("warning: " + strings.Replace(w, "_", " ", 2))
		}
	}
	switch {
	case res.Replayed && res.Pruned:
		p.Note("this input was called before, and no call was made; the recorded result was pruned")
	case res.Replayed:
		p.Note("this input was called before; this is the recorded result, and no call was made")
	}
}

// wrong prints what went wrong, and what to do about it.
func (p *Printer) wrong(text, hint string) {
	rows := card.Marked("perlica: "+text, screen.TerminalWidth(p.a.Stderr))
	p.Line(p.Styles.Red("perlica:") + strings.TrimPrefix(rows, "perlica:"))
	if hint != "" {
		p.Line(p.Styles.Dim("hint: " + screen.Sanitize(hint))) // commands to be copied, and no words of an agent
	}
}

// explainEnd says how a run ended that has no plain answer.
func (p *Printer) explainEnd(res kernel.Result) {
	show := "perlica log show " + string(res.Run) + p.Elsewhere
	if res.Run == "" { // of an input that a team has
		show = "perlica team inputs " + string(res.Input)
	}
	if res.Err != nil || res.Outcome == kernel.OutcomeUnknown { // an agent may answer a cancel with an error
		p.explainStop(res)
	}
	switch {
	case res.Err != nil && res.Err.Subtype == kernel.IntentLost:
		p.wrong("the outcome is unknown: "+frame.ProviderMessage(res.Err),
			"the prompt may have been carried out; nothing was sent. To ask again, give another --input-id; 'perlica log verify' says what the log lost")
	case res.Outcome == kernel.OutcomeUnknown:
		p.wrong("the outcome is unknown: "+frame.ProviderMessage(res.Err), "the prompt may have been carried out; nothing is sent again by itself. What is known: "+show)
	case res.Err != nil:
		p.wrong(frame.ProviderMessage(res.Err), p.errorHint(res, show))
	case res.Outcome == kernel.OutcomeProviderError:
		p.wrong("the call failed; how is no longer on record", show)
	case res.Stopped != nil:
		p.explainStop(res)
	case res.StopReason == "refusal":
		p.wrong(res.Provider+" refused to answer", "")
	case res.StopReason == "max_tokens", res.StopReason == "max_turn_requests":
		p.wrong("the answer is cut off: "+res.Provider+" reached its limit ("+res.StopReason+")", "")
	case res.StopReason != "" && res.StopReason != "end_turn":
		p.Note("the turn ended with the agent's reason " + frame.OneLine(res.StopReason))
	}
}

// explainStop says who stopped a run, if it was stopped.
func (p *Printer) explainStop(res kernel.Result) {
	switch {
	case res.Stopped == nil, res.Stopped.By == streamjson.ByPipe, res.Stopped.By == streamjson.ByOutput:
		// A closed pipe ends quietly; any other fault is the run's error.
	case res.Stopped.By == streamjson.ByTimeout:
		p.wrong("stopped: "+res.Stopped.Why, "")
	default:
		p.Note("stopped: " + res.Stopped.Why)
	}
}

// errorHint says what to do about a provider's error.
func (p *Printer) errorHint(res kernel.Result, show string) string {
	switch hint := AgentHint(res.Err, res.Provider, p.adHoc, p.Held); {
	case hint != "":
		return hint
	case res.Calls == 0:
		return "nothing was sent. The record: " + show
	}
	return "the record: " + show
}

// Held returns the variables that are set here and that the agent was not handed, of those that may hold its key or
// that its logins ask for. It reports whether the agent has a login at all: a model without an agent has only its key.
type Held func(loginVars []string) (names []string, logsIn bool)

// HeldFrom is the Held of an agent that is started with some variables of an environment.
func HeldFrom(agent agents.Agent, environ []string) Held {
	return func(loginVars []string) ([]string, bool) { return agent.HeldBack(environ, loginVars), !agent.Model }
}

// limited finds a limit in the message of an error that has the code of a missing login.
var limited = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(rate|usage|request|spending|weekly|hourly|daily)[ -]?limit|quota|too many requests`)
})

// AgentHint says what to do about an agent's error, as far as its type says it.
func AgentHint(err error, id string, adHoc bool, held Held) string {
	var e *provider.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Type {
	case provider.TypeAuth:
		names, logsIn := []string(nil), true
		if held != nil {
			names, logsIn = held(e.LoginVars)
		}
		if !logsIn {
			return "" // the message names the source of the key
		}
		if limited().MatchString(e.Message) {
			return "the agent reports a limit of its account: wait, or use another account or model"
		}
		return frame.LoginHint(id, adHoc, names)
	case provider.TypeStart:
		if frame.IsTooManyOpenFiles(e) {
			return frame.HintOf(e)
		}
		if adHoc {
			return "--agent takes a program, by its path or as it is found on PATH, and its arguments"
		}
		return "see 'perlica provider show " + id + "'"
	case provider.TypeTimeout:
		hint := frame.TimeoutHint(id, adHoc)
		if !adHoc {
			hint += "; 'perlica provider test " + id + "' tries it"
		}
		return hint
	case provider.TypeRecord:
		return "nothing more was sent; 'perlica doctor' says what is wrong with the log"
	}
	return ""
}

// json prints one object on a line of its own.
func (p *Printer) json(v any) {
	if p.Closed {
		return
	}
	w := bufio.NewWriter(p.raw)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		p.outputFailed(err)
	}
}
