package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// printer shows a run: the answer on standard output, everything else on standard error.
// Its methods are called by one goroutine at a time.
type printer struct {
	a        *app
	format   string
	quiet    bool
	thoughts bool
	styles   term.Styles
	status   *term.Status
	stop     *stopper // told when standard output is closed

	raw    io.Writer    // standard output
	out    io.Writer    // of the answer; sanitized if it is a terminal
	answer *term.Writer // out, if it is a terminal
	n      int          // of stream-json
	closed bool         // standard output is, or cannot be written
	failed error        // why, unless its reader went away

	tools   map[acp.ToolCallId]string // titles of tool calls that run
	waiting int                       // open questions

	adHoc  bool // the agent is one of --agent
	strict bool // a tool that ran unasked is an error

	statusMu sync.Mutex // guards what follows, and which text comes last
	stopped  bool       // the turn was asked to end
	doing    string     // what the status line says
	typed    string     // what the chat's user has typed meanwhile
}

func newPrinter(ctx context.Context, a *app, f runFlags, stop *stopper) *printer {
	p := &printer{
		a: a, format: f.format, quiet: f.quiet, thoughts: f.thoughts, stop: stop, adHoc: f.agent != "", strict: f.strict,
		styles: term.NewStyles(a.getenv, term.IsTerminal(a.stderr)),
		tools:  map[acp.ToolCallId]string{},
	}
	var width func() int
	if !f.quiet && f.format == "text" {
		width = term.StatusWidth(a.stderr, a.getenv)
	}
	p.status = term.NewStatus(a.stderr, width, p.styles, term.SystemClock())
	p.raw = abortable(ctx, a.stdout)
	p.out = p.raw
	if term.IsTerminal(a.stdout) {
		p.answer = term.NewWriter(p.status.Through(p.raw))
		p.out = p.answer
	}
	return p
}

// patientWriter waits for whoever reads standard output, until its context ends: a reader
// that has stopped must not keep a run from ending.
type patientWriter struct {
	ctx context.Context
	f   *os.File
}

// abortable returns a writer to f that gives up when ctx is done. Files need no such thing.
func abortable(ctx context.Context, f *os.File) io.Writer {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f
	}
	return patientWriter{ctx, f}
}

func (w patientWriter) Write(b []byte) (int, error) {
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	go func() { // ends with the process, if nobody ever reads
		n, err := w.f.Write(b)
		done <- written{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-w.ctx.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(abortWait):
		return 0, errNobodyReads
	}
}

// abortWait is how long a reader may take when the run is being ended.
const abortWait = 500 * time.Millisecond

var errNobodyReads = errors.New("nobody reads it")

// note prints a line about the run, not of it.
func (p *printer) note(text string) {
	if p.quiet {
		return
	}
	p.line(p.styles.Dim(card.Marked("perlica: "+text, term.Width(p.a.stderr))))
}

// row makes a text of an agent's fit for a row of a terminal in which something stands beside it.
func (p *printer) row(text string, beside int) string {
	if w := term.Width(p.a.stderr); w > 0 {
		return card.Line(text, max(w-beside, 1))
	}
	return oneLine(text)
}

// line prints a line on standard error, above the status line.
func (p *printer) line(text string) {
	p.status.Print(func(w io.Writer) { fmt.Fprintln(w, text) })
}

// show is the kernel's Show.
func (p *printer) show(n kernel.Notice) {
	if p.format == "stream-json" {
		p.emit(n)
		return
	}
	switch n := n.(type) {
	case kernel.Started:
		p.setStatus(n.Provider + " is working")
	case kernel.Updated:
		p.update(n)
	case kernel.Asked:
		p.waiting++
		p.showStatus()
	case kernel.Closed:
		p.waiting--
		p.showStatus()
		p.closedLine(n)
	case kernel.Decided:
		p.note(fmt.Sprintf("%s: %s (%s)", n.Effect, oneLine(n.Title), oneLine(n.Why)))
	case kernel.Blocked:
		p.note("refused: " + oneLine(n.Method) + ": Perlica touches no files and runs no commands for an agent")
	case kernel.Warned:
		p.note("warning: " + strings.ReplaceAll(n.Subtype, "_", " ") + ": " + oneLine(n.Detail))
	}
}

func (p *printer) update(n kernel.Updated) {
	switch {
	case n.Kind == provider.AgentMessageChunk:
		if p.format == "text" {
			p.text(n.Text)
		}
	case n.Kind == provider.AgentThoughtChunk:
		if p.thoughts && strings.TrimSpace(n.Text) != "" {
			p.line(p.styles.Dim(term.Sanitize(strings.TrimRight(n.Text, "\n"))))
		}
		p.setStatus("thinking")
	case n.Tool != nil:
		p.tool(*n.Tool)
	}
}

// text prints a piece of the answer as it came.
func (p *printer) text(s string) {
	if p.closed || s == "" {
		return
	}
	if _, err := io.WriteString(p.out, s); err != nil {
		p.outputFailed(err)
	}
}

// outputFailed stops the turn: nobody reads the answer any more.
func (p *printer) outputFailed(err error) {
	p.closed = true
	if isClosedPipe(err) {
		p.stop.stop(kernel.Stop{By: streamjson.ByPipe, Why: "standard output was closed"})
		return
	}
	p.failed = err
	p.stop.stop(kernel.Stop{By: streamjson.ByOutput, Why: "standard output: " + err.Error()})
}

func (p *printer) tool(t provider.ToolCall) {
	switch t.Status {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed:
		if title, ok := p.tools[t.ID]; ok && !p.quiet {
			mark := p.styles.Green("✓")
			if t.Status == acp.ToolCallStatusFailed {
				mark = p.styles.Red("✗")
			}
			p.line(mark + " " + p.styles.Dim(p.row(title, 2)))
		}
		delete(p.tools, t.ID)
	default:
		if t.Title != "" || p.tools[t.ID] == "" {
			p.tools[t.ID] = t.Title
		}
	}
	p.showStatus()
}

// setStatus says what the run is doing, until it is being stopped.
func (p *printer) setStatus(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	if !p.stopped {
		p.doing = text
		p.drawStatus()
	}
}

// setTyped shows what is being typed for the next prompt.
func (p *printer) setTyped(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.typed = text
	p.drawStatus()
}

// drawStatus sets the status line. The caller holds statusMu.
func (p *printer) drawStatus() {
	if p.typed == "" {
		p.status.Set(p.doing)
		return
	}
	p.status.Set(p.doing + " ❯ " + p.typed)
}

// stopping says that the turn was asked to end, and what can be done if it does not. It
// may be called by any goroutine.
func (p *printer) stopping() {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.stopped = true
	p.doing = "stopping: waiting for the agent; Ctrl-C ends it at once"
	p.drawStatus()
}

func (p *printer) showStatus() {
	switch {
	case p.waiting == 1:
		p.setStatus("a question waits for an answer")
	case p.waiting > 1:
		p.setStatus(fmt.Sprintf("%d questions wait for answers", p.waiting))
	case len(p.tools) > 0:
		for _, title := range p.tools {
			more := ""
			if len(p.tools) > 1 {
				more = fmt.Sprintf(" (and %d more)", len(p.tools)-1)
			}
			p.setStatus("running: " + oneLine(title) + more)
			return
		}
	default:
		p.setStatus("working")
	}
}

func (p *printer) closedLine(n kernel.Closed) {
	title := card.Line(n.Question.Title, 60) // a row of a terminal holds all of it
	if n.Answer == nil {
		why := strings.ReplaceAll(string(n.Reason), "_", " ")
		if n.Question.Why != "" && n.Reason == interaction.Nobody {
			why += "; " + oneLine(n.Question.Why)
		}
		p.note(fmt.Sprintf("no answer: %s (%s)", title, why))
		return
	}
	for _, o := range n.Question.Options {
		if o.ID == n.Answer.Option {
			where := n.Answer.Where
			if where == "pending" {
				where = "with perlica pending" // alone it reads as if it still were
			}
			sign, word := card.Kind(o)
			p.note(fmt.Sprintf("%s %s, %s: %s (%s, %s)", sign, word, card.Line(o.Label, 40), title, n.Answer.By, where))
		}
	}
}

// oneLine makes a text fit for a place within a line: what cannot be seen in it is spelled out.
func oneLine(s string) string {
	return card.Line(s, 0)
}

// finish ends the output: the rest of the answer, the result, and what went wrong.
func (p *printer) finish(res kernel.Result, err error) {
	defer func() { _ = p.status.Close() }() // errors of the terminal are nobody's business
	if p.format != "text" {
		rec := streamjson.NewResult(res, err, errorType(err))
		if p.format == "stream-json" {
			p.n++
			rec.N = &p.n
		}
		p.json(rec)
	} else if err == nil {
		if res.Replayed {
			p.text(res.Text)
		}
		if p.answer != nil && !p.closed {
			_ = p.answer.Close() // writes the final newline; the terminal may be gone
		}
	}
	p.status.Clear()
	if err == nil {
		p.explain(res)
	}
}

// explain says on standard error what is not a plain answer, and what to do.
func (p *printer) explain(res kernel.Result) {
	say := func(text, hint string) {
		rows := card.Marked("perlica: "+text, term.Width(p.a.stderr))
		p.line(p.styles.Red("perlica:") + strings.TrimPrefix(rows, "perlica:"))
		if hint != "" {
			p.line(p.styles.Dim("hint: " + term.Sanitize(hint))) // commands to be copied, and no words of an agent
		}
	}
	show := "perlica log show " + string(res.Run)
	switch {
	case res.Outcome == kernel.OutcomeUnknown:
		say("the outcome is unknown: "+message(res.Err), "the prompt may have been carried out; nothing is sent again by itself. What is known: "+show)
	case res.Err != nil && res.Err.Type == provider.TypeAuth:
		say(message(res.Err), loginHint(res.Provider))
	case res.Err != nil:
		say(message(res.Err), p.errorHint(res, show))
	case res.Outcome == kernel.OutcomeProviderError:
		say("the call failed; how is no longer on record", show)
	case res.Stopped != nil && (res.Stopped.By == streamjson.ByPipe || res.Stopped.By == streamjson.ByOutput):
		// A closed pipe ends quietly; any other fault is the run's error.
	case res.Stopped != nil && res.Stopped.By == streamjson.ByTimeout:
		say("stopped: "+res.Stopped.Why, "")
	case res.Stopped != nil:
		p.note("stopped: " + res.Stopped.Why)
	case res.StopReason == "refusal":
		say(res.Provider+" refused to answer", "")
	case res.StopReason == "max_tokens", res.StopReason == "max_turn_requests":
		say("the answer is cut off: "+res.Provider+" reached its limit ("+res.StopReason+")", "")
	}
	if n := res.Permissions.Unanswered; n > 0 && res.Stopped == nil && res.Err == nil {
		say(fmt.Sprintf("%s went unanswered for want of anybody to ask; the answer was no", count(n, "question")),
			"--wait-permissions 10m leaves questions open for 'perlica pending'; --permissions or a [[policy.rule]] answers them")
	}
	for _, u := range res.Unasked {
		text := fmt.Sprintf("%s (%s): %s", oneLine(u.Title), cmp.Or(u.Kind, "of no kind"), oneLine(u.Why))
		if u.FreedBy != "" {
			text += " (question " + short(string(u.FreedBy)) + ")"
		}
		if p.strict && u.FreedBy == "" {
			say(text, "")
		} else {
			p.note("warning: " + text)
		}
	}
	if res.Replayed { // those of a turn were shown as they came
		for _, w := range res.Warnings {
			p.note("warning: " + strings.Replace(w, "_", " ", 2))
		}
	}
	switch {
	case res.Replayed && res.Pruned:
		p.note("this input was called before, and no call was made; the recorded result was pruned")
	case res.Replayed:
		p.note("this input was called before; this is the recorded result, and no call was made")
	}
}

func message(e *provider.Error) string {
	if e == nil {
		return "no more is known"
	}
	return e.Error()
}

// errorHint says what to do about a provider's error.
func (p *printer) errorHint(res kernel.Result, show string) string {
	switch res.Err.Type {
	case provider.TypeStart:
		if p.adHoc {
			return "--agent takes a program, by its path or as it is found on PATH, and its arguments"
		}
		return "see 'perlica provider show " + res.Provider + "'"
	case provider.TypeTimeout:
		if p.adHoc {
			return "an agent that the configuration names can have other timeouts: see docs/agents.md"
		}
		return "providers." + res.Provider + ".acp.request_timeout and connect_timeout set how long to wait; 'perlica provider test " + res.Provider + "' tries it"
	case provider.TypeRecord:
		return "nothing more was sent; 'perlica doctor' says what is wrong with the log"
	}
	if res.Calls == 0 {
		return "nothing was sent. The record: " + show
	}
	return "the record: " + show
}

func loginHint(id string) string {
	if k, ok := provider.Lookup(id); ok && k.Login != "" && id != agents.Predictable {
		return k.Login
	}
	return "log in with the agent's own command, then try again"
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// json prints one object on a line of its own.
func (p *printer) json(v any) {
	if p.closed {
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
