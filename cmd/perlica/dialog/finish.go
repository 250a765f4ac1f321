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
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Finish prints the rest of the answer, the result and any error.
func (p *Printer) Finish(res record.Result, err error) {
	defer func() { _ = p.Status.Close() }() // If the terminal is closed, there is no line to remove.
	if p.format != "text" {
		rec := streamjson.NewResult(res, err, frame.RefusalErrorType(err))
		if p.Misfit != nil && !rec.IsError {
			rec.IsError, rec.Error = true, &provider.Error{Provider: res.Provider, Message: p.Misfit.Error(), Type: "schema"}
		}
		for _, s := range p.saved {
			rec.Content[s.block].Path = s.path
		}
		if p.format == "stream-json" {
			p.streamIndex++
			rec.N = &p.streamIndex
		}
		p.printJSON(rec)
	} else if err == nil {
		if res.Replayed {
			p.printAnswer(res.Text)
		}
		if p.Answer != nil && !p.Closed {
			_ = p.Answer.Close() // Close writes the final newline. The terminal may be gone.
		} else if p.newline && p.lineOpen {
			p.printAnswer("\n")
		}
	}
	p.Status.Clear()
	p.releaseAnswer(err)
	if err == nil {
		p.Explain(res)
	}
}

// Explain prints on standard error everything about a result that is not a plain answer, with hints.
func (p *Printer) Explain(res record.Result) {
	p.explainEnd(res)
	p.explainContent(res)
	if n := res.Permissions.Unanswered; n > 0 && res.Stopped == nil && res.Err == nil {
		p.printFault(fmt.Sprintf("%s went unanswered because there was no one to ask; the answer was no",
			frame.Count(n, "question")),
			"to allow ordinary commands: --permissions allow; to allow one: --allow 'COMMAND'; to be asked later, in "+
				"'perlica pending': --wait-permissions 10m")
	}
	for _, u := range res.Unasked {
		text := fmt.Sprintf("%s (%s): %s", frame.OneLine(u.Title), cmp.Or(u.Kind, "of no kind"), frame.OneLine(u.Why))
		if u.FreedBy != "" {
			text += " (question " + frame.ShortID(string(u.FreedBy)) + ")"
		}
		if p.strict && u.FreedBy == "" {
			p.printFault(text, "")
		} else {
			p.Note("warning: " + text)
		}
	}
	if res.Replayed { // While the turn ran, its warnings were shown already.
		for _, w := range res.Warnings {
			p.warning(w)
		}
	}
	switch {
	case res.Replayed && res.Pruned:
		p.Note("this input was called before, and no call was made; the recorded result was pruned")
	case res.Replayed:
		p.Note("this input was called before; this is the recorded result, and no call was made")
	}
}

// printFault prints a description of a fault and a hint.
func (p *Printer) printFault(text, hint string) {
	rows := card.Marked("perlica: "+text, screen.TerminalWidth(p.a.Stderr))
	p.Line(p.Styles.Red("perlica:") + strings.TrimPrefix(rows, "perlica:"))
	if hint != "" {
		// The hint contains commands to copy and no text of an agent.
		p.Line(p.Styles.Dim("hint: " + screen.Sanitize(hint)))
	}
}

// explainEnd prints how a run ended, unless it ended with a plain answer.
func (p *Printer) explainEnd(res record.Result) {
	show := "perlica log show " + string(res.Run) + p.Elsewhere
	if res.Run == "" { // The input was sent to a team and has no run here.
		show = "perlica team inputs " + string(res.Input)
	}
	// A stopped turn may have an error, because an agent may answer the cancel with an error. The reason of the stop
	// is then printed first.
	if res.Err != nil || res.Outcome == record.OutcomeUnknown {
		p.explainStop(res)
	}
	switch {
	case res.Err != nil && res.Err.Subtype == kernel.IntentLost:
		p.printFault("the outcome is unknown: "+frame.ProviderMessage(res.Err),
			"the prompt may have been carried out; nothing was sent. To ask again, give another --input-id; 'perlica log "+
				"verify' says what the log lost")
	case res.Outcome == record.OutcomeUnknown:
		p.printFault("the outcome is unknown: "+frame.ProviderMessage(res.Err),
			"the prompt may have been carried out; Perlica does not send it again. The known facts:  "+show)
	case res.Err != nil:
		p.printFault(frame.ProviderMessage(res.Err), p.errorHint(res, show))
	case res.Outcome == record.OutcomeProviderError:
		p.printFault("the call failed; how is no longer on record", show)
	case res.Stopped != nil:
		p.explainStop(res)
	case res.StopReason == "refusal":
		p.printFault(res.Provider+" refused to answer", "")
	case res.StopReason == "max_tokens", res.StopReason == "max_turn_requests":
		p.printFault("the answer is cut off: "+res.Provider+" reached its limit ("+res.StopReason+")", "")
	case res.StopReason != "" && res.StopReason != "end_turn":
		p.Note("the turn ended with the agent's reason " + frame.OneLine(res.StopReason))
	}
}

// explainStop prints the reason of a stop.
func (p *Printer) explainStop(res record.Result) {
	switch {
	case res.Stopped == nil, res.Stopped.By == streamjson.ByPipe, res.Stopped.By == streamjson.ByOutput:
		// These stops print nothing: nobody reads a closed pipe, and the command itself reports any other fault of
		// standard output.
	case res.Stopped.By == streamjson.ByTimeout:
		p.printFault("stopped: "+res.Stopped.Why, "")
	default:
		p.Note("stopped: " + res.Stopped.Why)
	}
}

// errorHint returns a hint for a provider's error.
func (p *Printer) errorHint(res record.Result, show string) string {
	switch hint := AgentHint(res.Err, res.Provider, p.adHoc, p.Held); {
	case hint != "":
		return hint
	case res.Calls == 0:
		return "nothing was sent. The record: " + show
	}
	return "the record: " + show
}

// Held returns the names of this environment's variables that Perlica did not pass to the agent. They may contain the
// agent's key, or they are in loginVars, because the agent's login needs them. logsIn reports whether the agent has a
// login. A model without an agent program has only a key, so logsIn is false.
type Held func(loginVars []string) (names []string, logsIn bool)

// HeldFrom returns the Held function of an agent. environ is the environment of this process, and Perlica passes
// only some of its variables to the agent.
func HeldFrom(agent agents.Agent, environ []string) Held {
	return func(loginVars []string) ([]string, bool) { return agent.HeldBack(environ, loginVars), !agent.Model }
}

// rateLimitPattern matches messages about a rate limit. Some agents report a rate limit with the error code of a
// missing login.
var rateLimitPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(rate|usage|request|spending|weekly|hourly|daily)[ -]?limit|quota|too many requests`)
})

// AgentHint returns a hint for an agent's error according to its type.
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
			return "" // The error's message names the source of the key already.
		}
		if rateLimitPattern().MatchString(e.Message) {
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

// printJSON prints a value as one line of JSON.
func (p *Printer) printJSON(v any) {
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
