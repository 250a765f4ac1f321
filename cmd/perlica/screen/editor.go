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

// errEdit, errSuspend and errCycle end the reading of a line for a while. Line handles them and reads on.
var (
	errEdit    = errors.New("line editor: the line goes to another editor")
	errSuspend = errors.New("line editor: suspended")
	errCycle   = errors.New("line editor: the next of what Shift-Tab chooses from")
)

// EditorOptions configure an Editor.
type EditorOptions struct {
	Out    io.Writer          // the terminal, which turns \n into \r\n
	Size   func() (w, h int)  // the columns and rows of the terminal
	Dumb   bool               // the terminal cannot move its cursor
	Keep   func(entry string) // keeps a line for the next start, see [LineHistory]
	Past   []string           // lines of earlier starts, oldest first
	Styles Styles

	// Complete returns words for the end of the text before the cursor. A word replaces the bytes of before from the
	// returned position on.
	Complete func(before string) (from int, words []string)
	// Pasted returns the text that replaces a paste, such as the name of a file. A nil Pasted keeps the paste.
	Pasted func(text string) string
	// Edit lets another program change the text. Suspend stops the process. Both have the terminal until they return.
	// Cycle changes a choice that the prompt shows. A key with a nil function does nothing.
	Edit    func(text string) (string, error)
	Suspend func()
	Cycle   func() // Shift-Tab
}

// Editor reads lines from a terminal in raw mode. One goroutine at a time calls Line, Ahead and Early. Any goroutine
// may call Redraw, Resized and Above.
//
// readline edits the text and does nothing else: it knows no pastes, and it takes the wrong width for many characters.
// typingReader decodes the keys and canvas draws the line. sink drops the output of readline.
type Editor struct {
	o      EditorOptions
	keys   *Keys
	rl     *readline.Instance
	in     *pump
	typing typingReader
	past   []string

	ahead aheadLine                 // text that was typed without a prompt
	typed atomic.Pointer[time.Time] // the time of the last typed bytes

	mu      sync.Mutex // guards the fields below
	canvas  canvas
	active  bool
	prompt  func() string
	text    []rune
	pos     int
	search  string                                     // readline's own prompt during a search
	op      func([]rune, int) ([]rune, int)            // the change that the next OnChange makes
	ops     []func(text []rune, pos int) ([]rune, int) // one change for each markOp, in their order
	reason  error                                      // why the line ends; nil means that Enter was pressed
	ended   chan struct{}                              // closed by the last OnChange of a line
	folded  []fold                                     // the pastes in the line
	counted int                                        // the number of pastes so far
	rawEOT  bool                                       // the next Ctrl-D is the key itself and not Delete
	settle  settling                                   // tells when a resized terminal may be drawn on
	later   *time.Timer                                // the timer of a delayed drawing; nil means that no drawing waits
	opening context.Context                            // the context of a line that begins; nil means none
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
		FuncGetWidth:       func() int { return 1 << 20 }, // readline must not break lines: canvas breaks them
		FuncOnWidthChanged: func(func()) {},
		UniqueEditLine:     true, DisableAutoSaveHistory: true, HistoryLimit: 2 * maxPast,
		AutoComplete: noHelp{}, Painter: noHelp{}, Listener: listener{e}, FuncFilterInputRune: e.filterRune,
	})
	return e, err
}

// Close ends the editor's goroutines. The caller must not call it during Line.
func (e *Editor) Close() error {
	e.in.closeInput()
	return e.rl.Close()
}

// Line shows a prompt and returns the sent line, with the full text of its pastes. The Editor calls prompt at each
// drawing; prompt must not use the Editor. The line begins with text, or with the text that was typed before.
//
// Line fails with [ErrInterrupted], with io.EOF or with ctx's error. io.EOF means Ctrl-D on an empty line, or that the
// terminal is gone. With ErrInterrupted, Line returns the abandoned text. With ctx's error, it returns the text so far,
// which the caller may pass to the next Line.
func (e *Editor) Line(ctx context.Context, prompt func() string, text string) (string, error) {
	if ahead := e.takeAhead(); text == "" {
		text = ahead
	} else if ahead != "" {
		text += "\n" + ahead
	}
	for {
		line, err := e.readLine(ctx, prompt, text)
		switch {
		case errors.Is(err, errSuspend):
			e.o.Suspend()
		case errors.Is(err, errCycle):
			e.o.Cycle()
		case errors.Is(err, errEdit):
			edited, eerr := e.o.Edit(e.unfoldLabels(line))
			if eerr != nil {
				e.writeText(e.o.Styles.Red("the editor: "+Sanitize(eerr.Error())) + "\n")
				break
			}
			line = e.foldText(strings.TrimRight(edited, "\n"))
		case err != nil:
			return line, err
		default:
			e.rememberLine(line)
			return e.unfoldLabels(line), nil
		}
		text = line
	}
}

// continues reports whether a line ends with a backslash that is not escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func (e *Editor) readLine(ctx context.Context, prompt func() string, text string) (string, error) {
	e.rl.ResetHistory()
	if len(e.past) == 0 {
		_ = e.rl.SaveHistory("") // The search of readline needs at least one entry.
	}
	for _, p := range e.past {
		_ = e.rl.SaveHistory(p) // The history has no file, so saving cannot fail.
	}
	ended := make(chan struct{})
	e.mu.Lock()
	e.active, e.prompt, e.reason, e.ended = true, prompt, nil, ended
	e.text, e.pos = []rune(text), len([]rune(text))
	e.canvas.forgetRows()
	e.drawLine()
	e.mu.Unlock()

	e.rl.Operation.SetBuffer(text)
	e.mu.Lock()
	e.opening = ctx
	e.mu.Unlock()
	_, err := e.rl.Readline()
	if err == nil {
		<-ended // readline's goroutine has reported the last change.
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
	e.drawLine()
	end := "\n"
	if errors.Is(err, ErrInterrupted) {
		end = e.o.Styles.Dim("^C") + "\n"
	}
	e.canvas.leaveRows(end)
	return line, err
}

// Redraw asks for the prompt and draws it again. lost means that another program has written on the terminal.
func (e *Editor) Redraw(lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.active {
		return
	}
	if lost {
		e.canvas.forgetRows()
	}
	e.drawLine()
}

// Resized draws the prompt again as soon as the new size of the terminal is certain.
func (e *Editor) Resized() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settle.Changed(time.Now()); e.active {
		e.drawLine()
	}
}

// unsettled returns the time for which the editor must not draw. The caller holds mu.
func (e *Editor) unsettled() time.Duration {
	columns, _ := e.o.Size()
	return e.settle.Left(time.Now(), columns)
}

// atRest waits until the editor may draw. It is for callers that cannot return later. The caller holds mu, which atRest
// releases while it waits.
func (e *Editor) atRest() {
	for tries, left := 0, e.unsettled(); left > 0 && tries < 10; tries, left = tries+1, e.unsettled() {
		e.mu.Unlock()
		time.Sleep(left)
		e.mu.Lock()
	}
}

// Above shows lines above the prompt. Without a prompt it writes them at the cursor.
func (e *Editor) Above(lines string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.active {
		e.writeText(lines)
		return
	}
	e.atRest()
	e.canvas.writeAbove(lines)
	e.drawLine()
}

// writeText writes to the terminal. The reader of the keys notices a terminal that is gone.
func (e *Editor) writeText(s string) { _, _ = io.WriteString(e.o.Out, s) }

// drawLine shows the current line. The caller holds mu.
func (e *Editor) drawLine() {
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
	e.canvas.drawRows(prompt, e.text, e.pos)
}

func (e *Editor) drawLater() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.later = nil; e.active {
		e.drawLine()
	}
}

// noHelp completes nothing and paints nothing, because the Editor does both.
type noHelp struct{}

func (noHelp) Do([]rune, int) ([][]rune, int)  { return nil, 0 }
func (noHelp) Paint(line []rune, _ int) []rune { return line }

// openInput lets the keys of a new line pass after readline has drawn the line. readline holds a lock while it draws,
// but it does not hold the lock when a key ends a line.
func (e *Editor) openInput() {
	e.mu.Lock()
	ctx := e.opening
	e.opening = nil
	e.mu.Unlock()
	if ctx != nil {
		go func() {
			e.rl.SetPrompt("") // SetPrompt waits for the lock of readline's drawing.
			e.in.openGate(ctx)
		}()
	}
}

// sink drops the output of readline. It keeps only the prompt of a search.
type sink struct{ e *Editor }

func (s sink) Write(p []byte) (int, error) {
	s.e.openInput()
	if head, _, ok := strings.Cut(string(p), "\x1b[4m \x1b[0m"); ok {
		if i := strings.LastIndex(head, "\x1b[J"); i >= 0 && strings.Contains(head, "-i-search: ") {
			asks := strings.NewReplacer("bck-i-search", "search back", "fwd-i-search", "search on",
				"failing ", "nothing found, ").Replace(head[i+len("\x1b[J"):])
			s.e.mu.Lock()
			s.e.search = Sanitize(asks)
			s.e.mu.Unlock()
		}
	}
	return len(p), nil
}
