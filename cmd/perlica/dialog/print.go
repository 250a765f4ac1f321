package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Printer shows a run: the answer on standard output, everything else on standard error.
// Its methods are called by one goroutine at a time.
type Printer struct {
	a        *frame.App
	format   string
	quiet    bool
	newline  bool // ends the answer, wherever it goes
	thoughts bool
	verbose  bool // the ids, the plan and the beginning of each tool, too
	Styles   screen.Styles
	Status   *screen.StatusLine
	stop     *frame.Stopper // stopped when standard output is closed

	raw    io.Writer          // standard output
	out    io.Writer          // of the answer; sanitized if it is a terminal
	Answer *screen.SafeWriter // out, if it is a terminal
	n      int                // of stream-json
	Closed bool               // standard output is, or cannot be written
	Failed error              // why, unless its reader went away
	open   bool               // the answer so far does not end with a newline
	shared bool               // both streams are one file, and no terminal
	held   []string           // lines for standard error that wait for the end of a line of the answer
	ended  bool               // the answer is whole

	Tools   map[acp.ToolCallId]string // titles of tool calls that run
	Waiting int                       // open questions
	Held    Held                      // what to hand to the agent for its login

	Elsewhere string // what 'perlica log show RUN' needs besides, where the run is not on this machine's log

	adHoc  bool // the agent is one of --agent
	strict bool // a tool that ran unasked is an error

	Misfit error // the answer does not have the form that was asked for

	saveTo  string
	saved   []saved
	Unsaved error           // why Save did not write all
	sayings map[string]bool // what was printed of what the agent says beside its messages
	beside  bool            // a TurnView says what the turn took

	statusMu sync.Mutex // guards what follows, and which text comes last
	stopped  bool       // the turn was asked to end
	doing    string     // what the status line says
}

// NewPrinter returns a printer for one run; a closed standard output stops it through stop.
func NewPrinter(ctx context.Context, a *frame.App, f Flags, stop *frame.Stopper) *Printer {
	p := &Printer{
		a: a, format: f.Format, quiet: f.IgnoreClosedPipe, newline: f.Newline, thoughts: f.Thoughts || f.Verbose, verbose: f.Verbose, stop: stop, adHoc: f.Agent != "", strict: f.Strict, saveTo: f.SaveTo,
		Styles: screen.NewStyles(a.Getenv, screen.IsTerminal(a.Stderr)),
		Tools:  map[acp.ToolCallId]string{}, sayings: map[string]bool{},
	}
	var width func() int
	if !f.IgnoreClosedPipe && f.Format == "text" {
		width = screen.StatusWidth(a.Stderr, a.Getenv)
	}
	p.Status = screen.NewStatusLine(a.Stderr, width, p.Styles, screen.SystemClock())
	p.raw = patientWriter{ctx, a.Stdout}
	if info, err := a.Stdout.Stat(); err == nil && info.Mode().IsRegular() { // a file has no reader to wait for
		p.raw = a.Stdout
	}
	p.out = p.raw
	p.shared = f.Format == "text" && sameFile(a.Stdout, a.Stderr) && !screen.IsTerminal(a.Stdout)
	if screen.IsTerminal(a.Stdout) {
		p.Answer = screen.NewSafeWriter(p.Status.Through(p.raw))
		p.out = p.Answer
	}
	return p
}

// patientWriter waits for the reader of standard output, until its context ends: a reader
// that has stopped must not keep a run from ending.
type patientWriter struct {
	ctx context.Context
	f   *os.File
}

func (w patientWriter) Write(b []byte) (int, error) {
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	go func() { // ends with the process, if there is never a reader
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
		return 0, errNoReader
	}
}

// abortWait is how long a reader may take when the run is being ended.
const abortWait = 500 * time.Millisecond

var errNoReader = errors.New("nobody reads it")

// Note prints a line about the run, not of it.
func (p *Printer) Note(text string) {
	if p.quiet {
		return
	}
	p.Line(p.Styles.Dim(card.Marked("perlica: "+text, screen.TerminalWidth(p.a.Stderr))))
}

// row makes a text of an agent's fit for a row of a terminal in which something stands beside it.
func (p *Printer) row(text string, beside int) string {
	if w := screen.TerminalWidth(p.a.Stderr); w > 0 {
		return card.Line(text, max(w-beside, 1))
	}
	return frame.OneLine(text)
}

// Line prints a line on standard error, above the status line. Where both streams are one file, the line waits for
// the end of a line of the answer: it must not stand inside the answer.
func (p *Printer) Line(text string) {
	switch {
	case p.shared && p.open && !p.ended:
		p.held = append(p.held, text)
		return
	case p.shared && p.open:
		p.open = false
		text = "\n" + text
	}
	p.Status.Print(func(w io.Writer) { fmt.Fprintln(w, text) })
}

// Show is the kernel's Show.
func (p *Printer) Show(n kernel.Notice) {
	if p.format == "stream-json" {
		line := streamjson.NewLine(n)
		p.n++
		line["n"] = p.n
		p.json(line)
		return
	}
	switch n := n.(type) {
	case kernel.Started:
		if p.verbose {
			p.Note(fmt.Sprintf("run %s, session %s", n.Run, n.Session))
		}
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
		p.Note(fmt.Sprintf("%s: %s (%s)", n.Effect, card.Line(n.What(), mostJudged), frame.OneLine(n.Why)))
	case kernel.Blocked:
		p.Note("refused: " + frame.OneLine(n.Method) + ": Perlica touches no files and runs no commands for an agent")
	case kernel.Warned:
		p.Note("warning: " + strings.ReplaceAll(n.Subtype, "_", " ") + ": " + frame.OneLine(n.Detail))
	}
}

// mostJudged is how many columns what a rule decided about has; 'perlica log show' shows all of it.
const mostJudged = 300

func (p *Printer) update(n kernel.Updated) {
	switch {
	case n.Kind == provider.AgentMessageChunk:
		if p.format == "text" {
			p.text(n.Text)
		}
	case n.Kind == provider.AgentThoughtChunk:
		if p.thoughts && strings.TrimSpace(n.Text) != "" {
			p.Line(p.Styles.Dim(screen.Sanitize(strings.TrimRight(n.Text, "\n"))))
		}
		p.SetStatus("thinking")
	case n.Tool != nil:
		p.tool(*n.Tool)
	case n.Kind == provider.PlanChanged && p.verbose:
		for _, e := range n.Plan {
			p.Line(p.Styles.Dim(fmt.Sprintf("plan: %s: %s", e.Status, p.row(e.Content, 20))))
		}
	default:
		p.saying(n.Update)
	}
}

// text prints a piece of the answer as it came.
func (p *Printer) text(s string) {
	if p.Closed || s == "" {
		return
	}
	p.open = !strings.HasSuffix(s, "\n")
	if _, err := io.WriteString(p.out, s); err != nil {
		p.outputFailed(err)
	}
	p.release()
}

// release prints the lines that waited for the end of a line of the answer.
func (p *Printer) release() {
	if p.open && !p.ended {
		return
	}
	held := p.held
	p.held = nil
	for _, line := range held {
		p.Line(line)
	}
}

// endAnswer releases the lines that still wait. The first of them, or an error that follows, begins a new line.
func (p *Printer) endAnswer(err error) {
	p.ended = true
	p.release()
	if err != nil && p.shared && p.open {
		p.open = false
		p.Status.Print(func(w io.Writer) { fmt.Fprintln(w) })
	}
}

// sameFile reports whether two files are one, such as the log of a CI job.
func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// outputFailed stops the turn: the answer has no reader any more.
func (p *Printer) outputFailed(err error) {
	p.Closed = true
	if frame.IsClosedPipe(err) {
		p.stop.Stop(kernel.Stop{By: streamjson.ByPipe, Why: "standard output was closed"})
		return
	}
	p.Failed = err
	p.stop.Stop(kernel.Stop{By: streamjson.ByOutput, Why: "standard output: " + err.Error()})
}

func (p *Printer) tool(t provider.ToolCall) {
	switch {
	case t.Over():
		p.toolOver(t, "")
		return
	case t.Title != "" && t.Title != p.Tools[t.ID] && p.verbose:
		p.Line(p.Styles.Dim("▸ " + p.row(t.Title, 2)))
	}
	if t.Title != "" || p.Tools[t.ID] == "" {
		p.Tools[t.ID] = t.Title
	}
	p.showStatus()
}

// toolOver says that a tool call has ended that was said to run, and what came of it.
func (p *Printer) toolOver(t provider.ToolCall, outcome string) {
	if title, ok := p.Tools[t.ID]; ok && !p.quiet {
		mark := p.Styles.Green("✓")
		if t.Failed() {
			mark = p.Styles.Red("✗")
		}
		p.Line(mark + " " + p.Styles.Dim(p.row(title, 2+screen.TextWidth(outcome))+outcome))
	}
	delete(p.Tools, t.ID)
	p.showStatus()
}

// SetStatus says what the run is doing, until it is being stopped.
func (p *Printer) SetStatus(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	if !p.stopped {
		p.doing = text
		p.Status.Set(p.doing)
	}
}

// Stopping says that the turn was asked to end, and what can be done if it does not. It
// may be called by any goroutine.
func (p *Printer) Stopping() { p.stopping("waiting for the agent; Ctrl-C ends it at once") }

// StoppingElsewhere is Stopping of a turn that another machine's process does.
func (p *Printer) StoppingElsewhere() {
	p.stopping("waiting for the worker; Ctrl-C ends the waiting, and the input goes on there")
}

func (p *Printer) stopping(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	p.stopped = true
	p.doing = "stopping: " + text
	p.Status.Set(p.doing)
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
			p.SetStatus("running: " + frame.OneLine(title) + more)
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
		if n.Question.Why != "" && n.Reason == interaction.Unattended {
			why += "; " + frame.OneLine(n.Question.Why)
		}
		if len(n.Question.Allow) > 0 && n.Reason == interaction.Unattended {
			why += "; " + frame.OneLine(frame.AllowFlags(n.Question.Allow)) + " would allow it"
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
			label := card.Line(o.Label, 40)
			if o.Text {
				label = "“" + card.Line(n.Answer.Text, 40) + "”"
			}
			p.Note(fmt.Sprintf("%s %s, %s: %s (%s, %s)", sign, word, label, title, n.Answer.By, where))
		}
	}
}
