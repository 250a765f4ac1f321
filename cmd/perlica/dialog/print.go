package dialog

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

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/signals"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Printer shows a run: the answer on standard output, everything else on standard error.
// Its methods are called by one goroutine at a time.
type Printer struct {
	a        *cli.App
	format   string
	quiet    bool
	thoughts bool
	Styles   term.Styles
	Status   *term.Status
	stop     *signals.Stopper // told when standard output is closed

	raw    io.Writer    // standard output
	out    io.Writer    // of the answer; sanitized if it is a terminal
	Answer *term.Writer // out, if it is a terminal
	n      int          // of stream-json
	Closed bool         // standard output is, or cannot be written
	Failed error        // why, unless its reader went away

	Tools   map[acp.ToolCallId]string // titles of tool calls that run
	Waiting int                       // open questions

	adHoc  bool // the agent is one of --agent
	strict bool // a tool that ran unasked is an error

	statusMu sync.Mutex // guards what follows, and which text comes last
	stopped  bool       // the turn was asked to end
	doing    string     // what the status line says
	typed    string     // what the chat's user has typed meanwhile
}

// NewPrinter returns a printer for one run; a closed standard output stops it through stop.
func NewPrinter(ctx context.Context, a *cli.App, f Flags, stop *signals.Stopper) *Printer {
	p := &Printer{
		a: a, format: f.Format, quiet: f.IgnoreClosedPipe, thoughts: f.Thoughts, stop: stop, adHoc: f.Agent != "", strict: f.Strict,
		Styles: term.NewStyles(a.Getenv, term.IsTerminal(a.Stderr)),
		Tools:  map[acp.ToolCallId]string{},
	}
	var width func() int
	if !f.IgnoreClosedPipe && f.Format == "text" {
		width = term.StatusWidth(a.Stderr, a.Getenv)
	}
	p.Status = term.NewStatus(a.Stderr, width, p.Styles, term.SystemClock())
	p.raw = abortable(ctx, a.Stdout)
	p.out = p.raw
	if term.IsTerminal(a.Stdout) {
		p.Answer = term.NewWriter(p.Status.Through(p.raw))
		p.out = p.Answer
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

// Note prints a line about the run, not of it.
func (p *Printer) Note(text string) {
	if p.quiet {
		return
	}
	p.Line(p.Styles.Dim(card.Marked("perlica: "+text, term.Width(p.a.Stderr))))
}

// row makes a text of an agent's fit for a row of a terminal in which something stands beside it.
func (p *Printer) row(text string, beside int) string {
	if w := term.Width(p.a.Stderr); w > 0 {
		return card.Line(text, max(w-beside, 1))
	}
	return printing.OneLine(text)
}

// Line prints a line on standard error, above the status line.
func (p *Printer) Line(text string) {
	p.Status.Print(func(w io.Writer) { fmt.Fprintln(w, text) })
}

// Show is the kernel's Show.
func (p *Printer) Show(n kernel.Notice) {
	if p.format == "stream-json" {
		p.emit(n)
		return
	}
	switch n := n.(type) {
	case kernel.Started:
		p.SetStatus(n.Provider + " is working")
	case kernel.Updated:
		p.update(n)
	case kernel.Asked:
		p.Waiting++
		p.showStatus()
	case kernel.Closed:
		p.Waiting--
		p.showStatus()
		p.closedLine(n)
	case kernel.Decided:
		p.Note(fmt.Sprintf("%s: %s (%s)", n.Effect, printing.OneLine(n.Title), printing.OneLine(n.Why)))
	case kernel.Blocked:
		p.Note("refused: " + printing.OneLine(n.Method) + ": Perlica touches no files and runs no commands for an agent")
	case kernel.Warned:
		p.Note("warning: " + strings.ReplaceAll(n.Subtype, "_", " ") + ": " + printing.OneLine(n.Detail))
	}
}

func (p *Printer) update(n kernel.Updated) {
	switch {
	case n.Kind == provider.AgentMessageChunk:
		if p.format == "text" {
			p.text(n.Text)
		}
	case n.Kind == provider.AgentThoughtChunk:
		if p.thoughts && strings.TrimSpace(n.Text) != "" {
			p.Line(p.Styles.Dim(term.Sanitize(strings.TrimRight(n.Text, "\n"))))
		}
		p.SetStatus("thinking")
	case n.Tool != nil:
		p.tool(*n.Tool)
	}
}

// text prints a piece of the answer as it came.
func (p *Printer) text(s string) {
	if p.Closed || s == "" {
		return
	}
	if _, err := io.WriteString(p.out, s); err != nil {
		p.outputFailed(err)
	}
}

// outputFailed stops the turn: nobody reads the answer any more.
func (p *Printer) outputFailed(err error) {
	p.Closed = true
	if signals.IsClosedPipe(err) {
		p.stop.Stop(kernel.Stop{By: streamjson.ByPipe, Why: "standard output was closed"})
		return
	}
	p.Failed = err
	p.stop.Stop(kernel.Stop{By: streamjson.ByOutput, Why: "standard output: " + err.Error()})
}

func (p *Printer) tool(t provider.ToolCall) {
	switch t.Status {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed:
		if title, ok := p.Tools[t.ID]; ok && !p.quiet {
			mark := p.Styles.Green("✓")
			if t.Status == acp.ToolCallStatusFailed {
				mark = p.Styles.Red("✗")
			}
			p.Line(mark + " " + p.Styles.Dim(p.row(title, 2)))
		}
		delete(p.Tools, t.ID)
	default:
		if t.Title != "" || p.Tools[t.ID] == "" {
			p.Tools[t.ID] = t.Title
		}
	}
	p.showStatus()
}

// SetStatus says what the run is doing, until it is being stopped.
func (p *Printer) SetStatus(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	if !p.stopped {
		p.doing = text
		p.drawStatus()
	}
}

// SetTyped shows what is being typed for the next prompt.
func (p *Printer) SetTyped(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.typed = text
	p.drawStatus()
}

// drawStatus sets the status line. The caller holds statusMu.
func (p *Printer) drawStatus() {
	if p.typed == "" {
		p.Status.Set(p.doing)
		return
	}
	p.Status.Set(p.doing + " ❯ " + p.typed)
}

// Stopping says that the turn was asked to end, and what can be done if it does not. It
// may be called by any goroutine.
func (p *Printer) Stopping() {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.stopped = true
	p.doing = "stopping: waiting for the agent; Ctrl-C ends it at once"
	p.drawStatus()
}

func (p *Printer) showStatus() {
	switch {
	case p.Waiting == 1:
		p.SetStatus("a question waits for an answer")
	case p.Waiting > 1:
		p.SetStatus(fmt.Sprintf("%d questions wait for answers", p.Waiting))
	case len(p.Tools) > 0:
		for _, title := range p.Tools {
			more := ""
			if len(p.Tools) > 1 {
				more = fmt.Sprintf(" (and %d more)", len(p.Tools)-1)
			}
			p.SetStatus("running: " + printing.OneLine(title) + more)
			return
		}
	default:
		p.SetStatus("working")
	}
}

func (p *Printer) closedLine(n kernel.Closed) {
	title := card.Line(n.Question.Title, 60) // a row of a terminal holds all of it
	if n.Answer == nil {
		why := strings.ReplaceAll(string(n.Reason), "_", " ")
		if n.Question.Why != "" && n.Reason == interaction.Nobody {
			why += "; " + printing.OneLine(n.Question.Why)
		}
		p.Note(fmt.Sprintf("no answer: %s (%s)", title, why))
		return
	}
	for _, o := range n.Question.Options {
		if o.ID == n.Answer.Option {
			where := n.Answer.Where
			if where == "pending" {
				where = "with perlica pending" // alone it reads as if it still were
			}
			sign, word := card.Kind(o)
			p.Note(fmt.Sprintf("%s %s, %s: %s (%s, %s)", sign, word, card.Line(o.Label, 40), title, n.Answer.By, where))
		}
	}
}

// Finish ends the output: the rest of the answer, the result, and what went wrong.
func (p *Printer) Finish(res kernel.Result, err error) {
	defer func() { _ = p.Status.Close() }() // errors of the terminal are nobody's business
	if p.format != "text" {
		rec := streamjson.NewResult(res, err, exitcode.ErrorType(err))
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
		}
	}
	p.Status.Clear()
	if err == nil {
		p.Explain(res)
	}
}

// Explain says on standard error what is not a plain answer, and what to do.
func (p *Printer) Explain(res kernel.Result) {
	say := func(text, hint string) {
		rows := card.Marked("perlica: "+text, term.Width(p.a.Stderr))
		p.Line(p.Styles.Red("perlica:") + strings.TrimPrefix(rows, "perlica:"))
		if hint != "" {
			p.Line(p.Styles.Dim("hint: " + term.Sanitize(hint))) // commands to be copied, and no words of an agent
		}
	}
	show := "perlica log show " + string(res.Run)
	switch {
	case res.Outcome == kernel.OutcomeUnknown:
		say("the outcome is unknown: "+printing.Message(res.Err), "the prompt may have been carried out; nothing is sent again by itself. What is known: "+show)
	case res.Err != nil && res.Err.Type == provider.TypeAuth:
		say(printing.Message(res.Err), printing.LoginHint(res.Provider))
	case res.Err != nil:
		say(printing.Message(res.Err), p.errorHint(res, show))
	case res.Outcome == kernel.OutcomeProviderError:
		say("the call failed; how is no longer on record", show)
	case res.Stopped != nil && (res.Stopped.By == streamjson.ByPipe || res.Stopped.By == streamjson.ByOutput):
		// A closed pipe ends quietly; any other fault is the run's error.
	case res.Stopped != nil && res.Stopped.By == streamjson.ByTimeout:
		say("stopped: "+res.Stopped.Why, "")
	case res.Stopped != nil:
		p.Note("stopped: " + res.Stopped.Why)
	case res.StopReason == "refusal":
		say(res.Provider+" refused to answer", "")
	case res.StopReason == "max_tokens", res.StopReason == "max_turn_requests":
		say("the answer is cut off: "+res.Provider+" reached its limit ("+res.StopReason+")", "")
	}
	if n := res.Permissions.Unanswered; n > 0 && res.Stopped == nil && res.Err == nil {
		say(fmt.Sprintf("%s went unanswered for want of anybody to ask; the answer was no", printing.Count(n, "question")),
			"--wait-permissions 10m leaves questions open for 'perlica pending'; --permissions or a [[policy.rule]] answers them")
	}
	for _, u := range res.Unasked {
		text := fmt.Sprintf("%s (%s): %s", printing.OneLine(u.Title), cmp.Or(u.Kind, "of no kind"), printing.OneLine(u.Why))
		if u.FreedBy != "" {
			text += " (question " + printing.Short(string(u.FreedBy)) + ")"
		}
		if p.strict && u.FreedBy == "" {
			say(text, "")
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

// errorHint says what to do about a provider's error.
func (p *Printer) errorHint(res kernel.Result, show string) string {
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
