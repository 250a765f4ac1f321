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

// errEdit, errSuspend and errCycle interrupt the reading of a line. Line handles them and then continues to read.
var (
	errEdit    = errors.New("line editor: the line goes to another editor")
	errSuspend = errors.New("line editor: suspended")
	errCycle   = errors.New("line editor: the next of what Shift-Tab chooses from")
)

// EditorOptions configure an Editor.
type EditorOptions struct {
	Out    io.Writer          // the terminal, which turns \n into \r\n
	Size   func() (w, h int)  // returns the columns and rows of the terminal
	Dumb   bool               // the terminal cannot move its cursor
	Keep   func(entry string) // stores a line for the next start, see [LineHistory]
	Past   []string           // lines of earlier starts, oldest first
	Styles Styles

	// Complete returns words that could stand at the end of the text in the parameter "before". A chosen word
	// replaces this text from the byte at index "from" on.
	Complete func(before string) (from int, words []string)
	// Pasted returns the text that replaces a paste, such as the name of a file. If Pasted is nil, the paste stays.
	Pasted func(text string) string
	// Edit lets another program change the text. Suspend stops the process. Both use the terminal until they return.
	// Cycle changes a setting that the prompt shows. If one of these functions is nil, its key does nothing.
	Edit    func(text string) (string, error)
	Suspend func()
	Cycle   func() // called for Shift-Tab
}

// Editor reads lines from a terminal in raw mode. One goroutine at a time may call Line, Ahead and Early. Any
// goroutine may call Redraw, Resized and Above.
//
// The library readline edits the text and does nothing else, because it knows no pastes and has the wrong width for
// many characters. typingReader decodes the keys and canvas draws the line. sink drops the output of readline.
type Editor struct {
	o      EditorOptions
	keys   *Keys
	rl     *readline.Instance
	in     *pump
	typing typingReader
	past   []string

	ahead aheadLine                 // text that was typed without a prompt
	typed atomic.Pointer[time.Time] // the time at which the last bytes were typed

	mu      sync.Mutex // guards the fields below
	canvas  canvas
	active  bool
	prompt  func() string
	text    []rune
	pos     int
	search  string                                     // the prompt that readline shows during a search in the history
	op      func([]rune, int) ([]rune, int)            // the change of the text that the next OnChange makes
	ops     []func(text []rune, pos int) ([]rune, int) // queued changes; each byte markOp applies the first
	reason  error                                      // the reason why the line ends; nil means that Enter was pressed
	ended   chan struct{}                              // closed by the last OnChange of a line
	folded  []fold                                     // the pastes in the line
	counted int                                        // number of pastes so far
	rawEOT  bool                                       // the next Ctrl-D is the byte itself and not the key Delete
	settle  settling                                   // tells how long a resized terminal must not be drawn on
	later   *time.Timer                                // the timer of a delayed drawing; nil means that no drawing waits
	opening context.Context                            // the context of a line before its first drawing; nil otherwise
}

// NewEditor returns an Editor that reads its input from keys.
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
		// The width is huge, so that readline does not break lines. canvas breaks them.
		FuncGetWidth:       func() int { return 1 << 20 },
		FuncOnWidthChanged: func(func()) {},
		UniqueEditLine:     true, DisableAutoSaveHistory: true, HistoryLimit: 2 * maxPast,
		AutoComplete: noHelp{}, Painter: noHelp{}, Listener: listener{e}, FuncFilterInputRune: e.filterRune,
	})
	return e, err
}

// Close ends the editor's goroutines. The caller must not call it while Line runs.
func (e *Editor) Close() error {
	e.in.closeInput()
	return e.rl.Close()
}

// Line shows a prompt and returns the line that the person sent, with the full text of its pastes. The Editor calls
// the function prompt at each drawing, and this function must not use the Editor. The line begins with text. If text
// is empty, it begins with the text that was typed before.
//
// Line fails with [ErrInterrupted], with io.EOF or with ctx's error. io.EOF means Ctrl-D on an empty line, or that
// the terminal is closed. With ErrInterrupted, Line returns the abandoned text. With ctx's error, it returns the
// text so far, and the caller may pass this text to the next Line.
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

// continues reports whether a line ends with a backslash that is not escaped. Such a line continues in the next one.
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
		<-ended // When ended is closed, readline's goroutine has reported the last change of the text.
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

// Redraw calls the function prompt and draws the line again. The parameter "lost" means that another program has
// written on the terminal.
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

// Resized draws the prompt again when the new size of the terminal has settled.
func (e *Editor) Resized() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.settle.Changed(time.Now()); e.active {
		e.drawLine()
	}
}

// unsettled returns the time for which the editor must not draw yet. The caller holds mu.
func (e *Editor) unsettled() time.Duration {
	columns, _ := e.o.Size()
	return e.settle.Left(time.Now(), columns)
}

// atRest waits until the editor may draw. Callers that cannot draw later use it. The caller holds mu, and atRest
// releases mu while it waits.
func (e *Editor) atRest() {
	for tries, left := 0, e.unsettled(); left > 0 && tries < 10; tries, left = tries+1, e.unsettled() {
		e.mu.Unlock()
		time.Sleep(left)
		e.mu.Lock()
	}
}

// Above shows lines above the prompt. If there is no prompt, it writes the lines at the cursor.
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

// writeText writes to the terminal. It ignores errors: if the terminal is closed, reading the next key fails, too.
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

// noHelp is given to readline. It completes nothing and paints nothing, because the Editor does both.
type noHelp struct{}

func (noHelp) Do([]rune, int) ([][]rune, int)  { return nil, 0 }
func (noHelp) Paint(line []rune, _ int) []rune { return line }

// openInput lets the keys of a new line pass to readline, but only after readline has drawn the line. readline holds
// a lock while it draws, and openInput waits for this lock. A key that ends the line must not arrive earlier, because
// readline handles it without the lock.
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

// sink receives the output of readline and drops it. It stores only the prompt of a search in the history.
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
