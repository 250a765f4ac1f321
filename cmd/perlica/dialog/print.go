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
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
)

// Printer shows a run. The answer goes to standard output and everything else to standard error. Only one goroutine
// at a time may call its methods.
type Printer struct {
	a        *frame.App
	format   string
	quiet    bool
	newline  bool // The answer ends with a newline, also if standard output is a pipe or file.
	thoughts bool
	verbose  bool // Also show the ids, the plan and the start of each tool call.
	Styles   screen.Styles
	Status   *screen.StatusLine
	stop     *frame.Stopper // stopped when standard output is closed

	raw         io.Writer          // standard output
	out         io.Writer          // output for the answer; sanitized on a terminal
	Answer      *screen.SafeWriter // same writer as out on a terminal, otherwise nil
	streamIndex int                // index of the next stream-json object
	Closed      bool               // Standard output is closed or cannot be written.
	Failed      error              // the write error, unless the reader closed the pipe
	lineOpen    bool               // The answer so far does not end with a newline.
	shared      bool               // Standard output and standard error are the same file, which is not a terminal.
	held        []string           // lines for standard error that wait until a line of the answer ends
	answerEnded bool               // The answer is complete.

	Tools   map[acp.ToolCallId]string // titles of running tool calls
	Waiting int                       // number of open questions
	Held    Held                      // Held finds the variables that the agent would need for its login and did not get.

	Elsewhere string // flags to add to 'perlica log show RUN' because the run is on another machine's log

	adHoc  bool // The agent's command comes from the flag --agent.
	strict bool // A tool call that ran without asking is an error.

	Misfit error // Misfit is the error of an answer that does not match the requested schema.

	saveTo              string
	saved               []savedFile
	Unsaved             error           // Unsaved is the reason why Save did not write every file.
	sayings             map[string]bool // printed texts that the agent sent outside of its messages
	usageShownElsewhere bool            // A TurnView shows the usage, so the Printer does not.

	statusMu sync.Mutex // guards the fields below and the order of status texts
	stopped  bool       // The turn was asked to stop.
	doing    string     // text of the status line
}

// NewPrinter returns a Printer for one run. If standard output is closed, the Printer stops the run with the parameter
// "stop".
func NewPrinter(ctx context.Context, a *frame.App, f Flags, stop *frame.Stopper) *Printer {
	p := &Printer{
		a: a, format: f.Format, quiet: f.Quiet, newline: f.Newline, thoughts: f.Thoughts ||
			f.Verbose, verbose: f.Verbose, stop: stop, adHoc: f.Agent != "", strict: f.Strict, saveTo: f.SaveTo,
		Styles: screen.NewStyles(a.Getenv, screen.IsTerminal(a.Stderr)),
		Tools:  map[acp.ToolCallId]string{}, sayings: map[string]bool{},
	}
	var width func() int
	if !f.Quiet && f.Format == "text" {
		width = screen.StatusWidth(a.Stderr, a.Getenv)
	}
	p.Status = screen.NewStatusLine(a.Stderr, width, p.Styles, screen.SystemClock())
	p.raw = patientWriter{ctx, a.Stdout}
	if info, err := a.Stdout.Stat(); err == nil && info.Mode().IsRegular() { // A write to a file never waits for a reader.
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

// patientWriter writes to standard output and waits for its reader. The wait ends with the context, because a reader
// that does not read must not keep a run from ending.
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
	go func() { // If nobody ever reads, the goroutine ends with the process.
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

// abortWait is the time that the reader of standard output has after the run was told to end.
const abortWait = 500 * time.Millisecond

var errNoReader = errors.New("nobody reads it")

// Note prints a line about the run on standard error.
func (p *Printer) Note(text string) {
	if p.quiet {
		return
	}
	p.Line(p.Styles.Dim(card.Marked("perlica: "+text, screen.TerminalWidth(p.a.Stderr))))
}

// fitRow shortens an agent's text to one row of the terminal. beside is the number of columns that other text in this
// row needs.
func (p *Printer) fitRow(text string, beside int) string {
	if w := screen.TerminalWidth(p.a.Stderr); w > 0 {
		return card.Line(text, max(w-beside, 1))
	}
	return frame.OneLine(text)
}

// Line prints a line on standard error, above the status line. If standard output and standard error are the same
// file, Line must not split a line of the answer. It then waits for the end of this line.
func (p *Printer) Line(text string) {
	switch {
	case p.shared && p.lineOpen && !p.answerEnded:
		p.held = append(p.held, text)
		return
	case p.shared && p.lineOpen:
		p.lineOpen = false
		text = "\n" + text
	}
	p.Status.Print(func(w io.Writer) { fmt.Fprintln(w, text) })
}

// Show shows a notice of the kernel.
func (p *Printer) Show(n record.Notice) {
	if p.format == "stream-json" {
		line := streamjson.NewLine(n)
		p.streamIndex++
		line["n"] = p.streamIndex
		p.printJSON(line)
		return
	}
	switch n := n.(type) {
	case record.Started:
		if p.verbose {
			p.Note(fmt.Sprintf("run %s, session %s", n.Run, n.Session))
		}
		p.SetStatus(n.Provider + " is working")
	case record.Updated:
		p.update(n)
	case record.Asked:
		p.Waiting++
		p.showStatus()
	case record.Closed:
		p.Waiting--
		p.showStatus()
		p.closedLine(n)
	case record.Decided:
		p.Note(fmt.Sprintf("%s: %s (%s)", n.Effect, card.Line(n.What(), mostJudged), frame.OneLine(n.Why)))
	case record.Blocked:
		p.Note("refused: " + frame.OneLine(n.Method) + ": Perlica touches no files and runs no commands for an agent")
	case record.Warned:
		p.warning(n)
	}
}

func (p *Printer) warning(w record.Warned) {
	p.Note("warning: " + strings.ReplaceAll(w.Subtype, "_", " ") + ": " + frame.OneLine(w.Detail))
}

// mostJudged is the largest number of columns for an action that the policy has decided, such as a command. The
// command 'perlica log show' shows the whole action.
const mostJudged = 300

func (p *Printer) update(n record.Updated) {
	switch {
	case n.Kind == provider.AgentMessageChunk:
		if p.format == "text" {
			p.printAnswer(n.Text)
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
			p.Line(p.Styles.Dim(fmt.Sprintf("plan: %s: %s", e.Status, p.fitRow(e.Content, 20))))
		}
	default:
		p.printSaying(n.Update)
	}
}

// printAnswer prints a piece of the answer as it arrives.
func (p *Printer) printAnswer(s string) {
	if p.Closed || s == "" {
		return
	}
	p.lineOpen = !strings.HasSuffix(s, "\n")
	if _, err := io.WriteString(p.out, s); err != nil {
		p.outputFailed(err)
	}
	p.printHeldLines()
}

// printHeldLines prints the lines that waited for the end of an answer line.
func (p *Printer) printHeldLines() {
	if p.lineOpen && !p.answerEnded {
		return
	}
	held := p.held
	p.held = nil
	for _, line := range held {
		p.Line(line)
	}
}

// releaseAnswer prints the lines that still wait for the end of an answer line. If err is not nil or a line waits,
// the output continues on a new line.
func (p *Printer) releaseAnswer(err error) {
	p.answerEnded = true
	p.printHeldLines()
	if err != nil && p.shared && p.lineOpen {
		p.lineOpen = false
		p.Status.Print(func(w io.Writer) { fmt.Fprintln(w) })
	}
}

// sameFile reports whether two open files are the same file. The streams of a CI job often are.
func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// outputFailed stops the turn after a failed write, because nobody can read the answer.
func (p *Printer) outputFailed(err error) {
	p.Closed = true
	if frame.IsClosedPipe(err) {
		p.stop.Stop(fact.Stop{By: streamjson.ByPipe, Why: "standard output was closed"})
		return
	}
	p.Failed = err
	p.stop.Stop(fact.Stop{By: streamjson.ByOutput, Why: "standard output: " + err.Error()})
}

func (p *Printer) tool(t provider.ToolCall) {
	switch {
	case t.Over():
		p.toolOver(t, "")
		return
	case t.Title != "" && t.Title != p.Tools[t.ID] && p.verbose:
		p.Line(p.Styles.Dim("▸ " + p.fitRow(t.Title, 2)))
	}
	if t.Title != "" || p.Tools[t.ID] == "" {
		p.Tools[t.ID] = t.Title
	}
	p.showStatus()
}

// toolOver prints that a tool call has ended, and its outcome.
func (p *Printer) toolOver(t provider.ToolCall, outcome string) {
	if title, ok := p.Tools[t.ID]; ok && !p.quiet {
		mark := p.Styles.Green("✓")
		if t.Failed() {
			mark = p.Styles.Red("✗")
		}
		p.Line(mark + " " + p.Styles.Dim(p.fitRow(title, 2+screen.TextWidth(outcome))+outcome))
	}
	delete(p.Tools, t.ID)
	p.showStatus()
}

// SetStatus sets the text of the status line. It has no effect after a stop.
func (p *Printer) SetStatus(text string) {
	p.statusMu.Lock()
	defer p.statusMu.Unlock()
	if !p.stopped {
		p.doing = text
		p.Status.Set(p.doing)
	}
}

// Stopping shows that the turn was asked to stop, and how to end it at once. Any goroutine may call it.
func (p *Printer) Stopping() { p.stopping("waiting for the agent; Ctrl-C ends it at once") }

// StoppingElsewhere works like Stopping for a turn that runs on another machine.
func (p *Printer) StoppingElsewhere() {
	p.stopping("waiting for the worker; Ctrl-C ends the wait, and the worker continues")
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

func (p *Printer) closedLine(n record.Closed) {
	title := card.Line(n.Question.Title, 60) // 60 columns leave room for the rest of the line in one row.
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
				// With the bare word "pending" the line would read as if the question were still open.
				where = "with perlica pending"
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
