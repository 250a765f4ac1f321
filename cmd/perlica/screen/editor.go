package screen

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chzyer/readline"
)

// What ends a line but is no answer to its caller.
var (
	errEdit    = errors.New("line editor: the line goes to another editor")
	errSuspend = errors.New("line editor: suspended")
	errCycle   = errors.New("line editor: the next of what Shift-Tab chooses from")
)

// EditorOptions are what an Editor works with.
type EditorOptions struct {
	Out    io.Writer          // the terminal, which keeps turning \n into \r\n
	Size   func() (w, h int)  // its columns and rows
	Dumb   bool               // it cannot move its cursor
	Keep   func(entry string) // keeps a line for the next start; see [LineHistory]
	Past   []string           // lines of earlier starts, oldest first
	Styles Styles

	// Complete returns the words that may stand in place of what lies between the returned
	// position, in bytes, and the end of before.
	Complete func(before string) (from int, words []string)
	// Pasted returns what a paste stands for, such as the file that it names; nil: itself.
	Pasted func(text string) string
	// Edit lets another program change the text. Suspend stops the process. The terminal is
	// the editor's again when they return. Cycle chooses something that the prompt shows. Where they
	// are nil the keys do nothing.
	Edit    func(text string) (string, error)
	Suspend func()
	Cycle   func() // Shift-Tab
}

// Editor reads lines from a terminal in raw mode. Line and Ahead are for one goroutine at a
// time; Redraw and Above may be called by any.
type Editor struct {
	o      EditorOptions
	keys   *Keys
	rl     *readline.Instance
	in     *pump
	typing typingReader
	past   []string

	ahead aheadLine                 // typed while there was no prompt
	typed atomic.Pointer[time.Time] // when it was, the last of it

	mu      sync.Mutex // guards what follows
	canvas  canvas
	active  bool
	prompt  func() string
	text    []rune
	pos     int
	search  string                                     // what readline asks while it searches
	op      func([]rune, int) ([]rune, int)            // for the next OnChange
	ops     []func(text []rune, pos int) ([]rune, int) // in the order of their marks
	reason  error                                      // why Enter is passed on; nil: it was pressed
	ended   chan struct{}                              // closed by the last OnChange of a line
	folded  []fold                                     // pastes
	counted int                                        // pastes so far
	rawEOT  bool                                       // Ctrl-D came as such, not as the Delete key
	settle  settling                                   // after a change of the terminal's size
	later   *time.Timer                                // of the drawing that waits for that; nil: none does
	opening context.Context                            // of the line that lets no key through yet; nil: none does
}

// NewEditor returns an Editor that reads from keys.
func NewEditor(keys *Keys, o EditorOptions) (*Editor, error) {
	e := &Editor{o: o, keys: keys, past: o.Past}
	e.canvas = canvas{w: o.Out, size: o.Size, dumb: o.Dumb}
	e.in = &pump{e: e}
	e.in.cond.L = &e.in.mu
	nop := func() error { return nil }
	yes := func() bool { return true }
	var err error
	e.rl, err = readline.NewEx(&readline.Config{
		Stdin: e.in, Stdout: sink{e}, Stderr: io.Discard,
		FuncIsTerminal: yes, ForceUseInteractive: true, FuncMakeRaw: nop, FuncExitRaw: nop,
		FuncGetWidth:       func() int { return 1 << 20 }, // it never breaks a line: we do
		FuncOnWidthChanged: func(func()) {},
		UniqueEditLine:     true, DisableAutoSaveHistory: true, HistoryLimit: 2 * maxPast,
		AutoComplete: noHelp{}, Painter: noHelp{}, Listener: listener{e}, FuncFilterInputRune: e.filter,
	})
	return e, err
}

// Close ends the editor's goroutines. No Line may be running.
func (e *Editor) Close() error {
	e.in.close()
	return e.rl.Close()
}

// Line shows a prompt and returns the line that is sent, with pastes unfolded. prompt is asked for it
// whenever it is drawn, and must not use the Editor. The line begins with text, or with what was
// typed ahead. It returns [ErrInterrupted], io.EOF (Ctrl-D on an empty line, or the terminal is gone)
// or ctx's error; with the first the line that was given up, so that its caller knows whether there
// was one, and with the last the line so far, which may be the text of another Line.
func (e *Editor) Line(ctx context.Context, prompt func() string, text string) (string, error) {
	if ahead := e.takeAhead(); text == "" {
		text = ahead
	} else if ahead != "" {
		text += "\n" + ahead
	}
	for {
		line, err := e.read(ctx, prompt, text)
		switch {
		case errors.Is(err, errSuspend):
			e.o.Suspend()
		case errors.Is(err, errCycle):
			e.o.Cycle()
		case errors.Is(err, errEdit):
			edited, eerr := e.o.Edit(e.unfold(line))
			if eerr != nil {
				e.out(e.o.Styles.Red("the editor: "+Sanitize(eerr.Error())) + "\n")
				break
			}
			line = e.fold(strings.TrimRight(edited, "\n"))
		case err != nil:
			return line, err
		default:
			e.remember(line)
			return e.unfold(line), nil
		}
		text = line
	}
}

// continues reports whether a line ends with a backslash that is not itself escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func (e *Editor) read(ctx context.Context, prompt func() string, text string) (string, error) {
	e.rl.ResetHistory()
	if len(e.past) == 0 {
		_ = e.rl.SaveHistory("") // readline's search needs an entry, whatever it is
	}
	for _, p := range e.past {
		_ = e.rl.SaveHistory(p) // it has no file to write to
	}
	ended := make(chan struct{})
	e.mu.Lock()
	e.active, e.prompt, e.reason, e.ended = true, prompt, nil, ended
	e.text, e.pos = []rune(text), len([]rune(text))
	e.canvas.fresh()
	e.draw()
	e.mu.Unlock()

	e.rl.Operation.SetBuffer(text)
	e.mu.Lock()
	e.opening = ctx
	e.mu.Unlock()
	_, err := e.rl.Readline()
	if err == nil {
		<-ended // readline's goroutine has reported its last
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.atRest()
	e.active = false
	if err == nil {
		err = e.reason
	}
	line := string(e.text)
	e.pos = len(e.text)
	e.search = ""
	e.draw()
	end := "\n"
	if errors.Is(err, ErrInterrupted) {
		end = e.o.Styles.Dim("^C") + "\n"
	}
	e.canvas.leave(end)
	return line, err
}

// Redraw draws the prompt again, which may be another one. If the line is lost somebody else had the terminal.
func (e *Editor) Redraw(lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.active {
		return
	}
	if lost {
		e.canvas.fresh()
	}
	e.draw()
}

// Resized draws the prompt again when the terminal has settled: its size changes.
func (e *Editor) Resized() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settle.Changed(time.Now()); e.active {
		e.draw()
	}
}

// unsettled is for how long nothing is to be drawn. The caller holds mu, as that of atRest.
func (e *Editor) unsettled() time.Duration {
	columns, _ := e.o.Size()
	return e.settle.Left(time.Now(), columns)
}

// atRest waits, without mu, until the terminal has settled: for those who cannot come back.
func (e *Editor) atRest() {
	for tries, left := 0, e.unsettled(); left > 0 && tries < 10; tries, left = tries+1, e.unsettled() {
		e.mu.Unlock()
		time.Sleep(left)
		e.mu.Lock()
	}
}

// Above shows lines above the prompt, if there is one, else where the cursor is.
func (e *Editor) Above(lines string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.active {
		e.out(lines)
		return
	}
	e.atRest()
	e.canvas.above(lines)
	e.draw()
}

func (e *Editor) out(s string) { _, _ = io.WriteString(e.o.Out, s) } // a terminal that is gone is no reason to stop

// draw shows the line as it is. The caller holds mu.
func (e *Editor) draw() {
	if left := e.unsettled(); left > 0 {
		if e.later == nil {
			e.later = time.AfterFunc(left, e.drawLater)
		}
		return
	}
	prompt := e.prompt()
	if e.search != "" {
		prompt = e.o.Styles.Dim(e.search) + " "
	}
	e.canvas.draw(prompt, e.text, e.pos)
}

func (e *Editor) drawLater() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.later = nil; e.active {
		e.draw()
	}
}

// noHelp completes nothing and paints nothing: both are done here.
type noHelp struct{}

func (noHelp) Do([]rune, int) ([][]rune, int)  { return nil, 0 }
func (noHelp) Paint(line []rune, _ int) []rune { return line }

// open lets keys through to a line that begins, behind readline's drawing of it: readline resets a line that a key
// ends without the lock that it draws under.
func (e *Editor) open() {
	e.mu.Lock()
	ctx := e.opening
	e.opening = nil
	e.mu.Unlock()
	if ctx != nil {
		go func() {
			e.rl.SetPrompt("") // waits for that lock
			e.in.open(ctx)
		}()
	}
}

// sink takes what readline draws. Of use is only what it asks while it searches.
type sink struct{ e *Editor }

func (s sink) Write(p []byte) (int, error) {
	s.e.open()
	if head, _, ok := strings.Cut(string(p), "\x1b[4m \x1b[0m"); ok {
		if i := strings.LastIndex(head, "\x1b[J"); i >= 0 && strings.Contains(head, "-i-search: ") {
			asks := strings.NewReplacer("bck-i-search", "search back", "fwd-i-search", "search on", "failing ", "nothing found, ").Replace(head[i+len("\x1b[J"):])
			s.e.mu.Lock()
			s.e.search = Sanitize(asks)
			s.e.mu.Unlock()
		}
	}
	return len(p), nil
}
