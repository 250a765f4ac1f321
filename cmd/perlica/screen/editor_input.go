package screen

import (
	"context"
	"io"
	"sync"

	"github.com/chzyer/readline"
)

// These bytes stand for keys that readline does not know. The editor itself handles them.
const (
	markCycle = 0x1c
	markOp    = 0x1d // calls the next function of the field ops
	markEdit  = 0x1e
)

// pump is the standard input of readline. It passes bytes to readline only while a line is read. After a byte that
// may end the line, pump waits until the editor knows whether the line has ended. The next bytes may belong to the
// next reader.
type pump struct {
	e *Editor

	mu     sync.Mutex // guards the fields below
	cond   sync.Cond
	ctx    context.Context
	gate   bool // true while bytes may pass to readline
	closed bool
	over   bool // true after readline has read the end of its input
	queue  []byte
}

func (p *pump) openGate(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	p.gate = true
	p.cond.Broadcast()
}

// openGateAfter is called after a byte that did not end the line. If such a byte could have ended it, pump has closed
// the gate, and openGateAfter opens the gate again. Otherwise the gate does not change, because a later byte may have
// closed it.
func (p *pump) openGateAfter(after rune) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = p.gate || mayEnd(after)
	p.cond.Broadcast()
}

// closeInput ends the input of readline and waits until readline has read the end. This wait is needed: readline's
// Close does not wait for a goroutine that has not begun to run.
func (p *pump) closeInput() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.cond.Broadcast()
	p.e.rl.Terminal.KickRead()
	for !p.over {
		p.cond.Wait()
	}
}

// Close does nothing. readline calls it at its end.
func (p *pump) Close() error { return nil }

func (p *pump) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		for !p.gate && !p.closed {
			p.cond.Wait()
		}
		if p.closed {
			p.over = true
			p.cond.Broadcast()
			p.mu.Unlock()
			return 0, io.EOF
		}
		if len(p.queue) > 0 {
			n := 0
			for n < len(b) && n < len(p.queue) && p.gate {
				b[n] = p.queue[n]
				p.gate = !mayEnd(rune(b[n]))
				n++
			}
			p.queue = p.queue[n:]
			p.mu.Unlock()
			return n, nil
		}
		ctx := p.ctx
		p.mu.Unlock()
		k, err := p.e.typing.nextKey(ctx, p.e.keys.Read)
		if err != nil {
			p.e.mu.Lock()
			p.e.reason = err // err is the reason why the current line ends
			p.e.mu.Unlock()
			k = Key{Kind: keyControl, Rune: readline.CharEnter}
		}
		bytes := p.e.encodeKey(k)
		p.mu.Lock()
		p.queue = append(p.queue, bytes...)
		p.mu.Unlock()
	}
}

func mayEnd(r rune) bool {
	switch r {
	case readline.CharInterrupt, readline.CharDelete, readline.CharBell, readline.CharEnter, readline.CharCtrlZ,
		markEdit, markCycle:
		return true
	}
	return false
}

// encodeKey returns the bytes that readline gets for a key.
func (e *Editor) encodeKey(k Key) []byte {
	later := func(op func([]rune, int) ([]rune, int)) []byte {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ops = append(e.ops, op)
		return []byte{markOp}
	}
	switch k.Kind {
	case KeyRune:
		return []byte(string(k.Rune))
	case keyMeta:
		return []byte{readline.CharEsc, byte(k.Rune)}
	case keyControl:
		if k.Rune == readline.CharDelete {
			e.mu.Lock()
			e.rawEOT = true
			e.mu.Unlock()
		}
		return []byte{byte(k.Rune)}
	case keyDelete:
		return later(func(text []rune, pos int) ([]rune, int) {
			if pos < len(text) {
				text = append(text[:pos:pos], text[pos+1:]...)
			}
			return text, pos
		})
	case keyBackTab:
		return []byte{markCycle}
	case keyNewline:
		return later(insert("\n"))
	case keyPaste:
		return later(insert(e.pastedLabel(k.text)))
	case keyLines:
		return later(insert(visible(k.text)))
	}
	return nil
}

func insert(s string) func([]rune, int) ([]rune, int) {
	return func(text []rune, pos int) ([]rune, int) {
		r := []rune(s)
		return append(append(append([]rune(nil), text[:pos]...), r...), text[pos:]...), pos + len(r)
	}
}

// press is a pressed key.
type press struct {
	key       rune
	searching bool // readline is searching in the history
}

// keys maps each key with a special effect to the editor's method for it. readline handles all other keys.
var keys = map[rune]func(e *Editor, p press) (rune, bool){
	readline.CharEnter:     (*Editor).pressEnter,
	readline.CharInterrupt: (*Editor).pressInterrupt,
	readline.CharDelete:    (*Editor).pressDelete,
	readline.CharBell:      (*Editor).pressBell,
	markEdit:               (*Editor).pressAway,
	readline.CharCtrlZ:     (*Editor).pressAway,
	markCycle:              (*Editor).pressAway,
	markOp:                 (*Editor).pressOp,
	readline.CharTab: func(e *Editor, p press) (rune, bool) {
		return e.keepLine(p.key, readline.CharBell,
			e.completeWord)
	},
	readline.CharCtrlL:     (*Editor).pressClear,
	readline.CharPrev:      (*Editor).pressVertical,
	readline.CharNext:      (*Editor).pressVertical,
	readline.CharBackspace: (*Editor).pressBackspace,
	readline.CharCtrlH:     (*Editor).pressBackspace,
}

// filterRune sees each character before readline does, in readline's goroutine. All earlier characters have had
// their effect by then. filterRune turns a key that ends the line into Enter and stores the reason.
func (e *Editor) filterRune(r rune) (rune, bool) {
	p := press{key: r, searching: e.rl.Operation.IsSearchMode()}
	e.mu.Lock()
	defer e.mu.Unlock()
	if act, ok := keys[r]; ok {
		return act(e, p)
	}
	return e.passKey(p)
}

// passKey passes a key to readline, if readline has an effect for it.
func (e *Editor) passKey(p press) (rune, bool) {
	staysInSearch := p.key == readline.CharBckSearch || p.key == readline.CharFwdSearch || p.key == readline.CharCtrlH
	if p.searching && p.key < ' ' && !staysInSearch {
		e.search = ""
	}
	return p.key, usable(p.key)
}

// endLine ends the line with a reason. If the line has a reason already, the first reason stays.
func (e *Editor) endLine(reason error) (rune, bool) {
	if e.reason == nil {
		e.reason = reason
	}
	return readline.CharEnter, true
}

// keepLine lets the line continue after a key. readline gets the character in the parameter "as" instead of the key,
// and the function op then changes the text.
func (e *Editor) keepLine(key, as rune, op func([]rune, int) ([]rune, int)) (rune, bool) {
	e.op = op
	e.in.openGateAfter(key)
	return as, true
}

// unchanged is a change that leaves the text as it is.
func unchanged(text []rune, pos int) ([]rune, int) { return text, pos }

func (e *Editor) pressEnter(p press) (rune, bool) {
	if e.reason != nil || p.searching || !continues(string(e.text)) {
		return p.key, true
	}
	e.rl.Terminal.KickRead() // After Enter, readline has stopped reading. KickRead makes it read again.
	return e.keepLine(p.key, readline.CharBell, func(text []rune, _ int) ([]rune, int) {
		return append(text[:len(text)-1:len(text)-1], '\n'), len(text)
	})
}

func (e *Editor) pressInterrupt(p press) (rune, bool) {
	if p.searching {
		return e.leaveSearch(p)
	}
	return e.endLine(ErrInterrupted)
}

func (e *Editor) leaveSearch(p press) (rune, bool) {
	e.search = ""
	return e.keepLine(p.key, p.key, nil)
}

func (e *Editor) pressDelete(p press) (rune, bool) {
	raw := e.rawEOT
	e.rawEOT = false
	if raw && len(e.text) == 0 && !p.searching {
		return e.endLine(io.EOF)
	}
	return e.keepLine(p.key, p.key, nil)
}

func (e *Editor) pressBell(p press) (rune, bool) {
	if p.searching {
		return e.leaveSearch(p)
	}
	return e.pressAway(p)
}

// pressAway interrupts the reading of the line if the caller of Line has a function for the key.
func (e *Editor) pressAway(p press) (rune, bool) {
	if reason := e.interruption(p.key); reason != nil {
		return e.endLine(reason)
	}
	return e.keepLine(p.key, readline.CharBell, unchanged)
}

func (e *Editor) pressOp(p press) (rune, bool) {
	op := e.ops[0]
	e.ops = e.ops[1:]
	return e.keepLine(p.key, readline.CharBell, op)
}

func (e *Editor) pressClear(p press) (rune, bool) {
	e.canvas.clearScreen()
	return e.keepLine(p.key, readline.CharBell, unchanged)
}

func (e *Editor) pressVertical(p press) (rune, bool) {
	if op := e.verticalMove(p.key); op != nil && !p.searching {
		return e.keepLine(p.key, readline.CharBell, op)
	}
	return e.passKey(p)
}

func (e *Editor) pressBackspace(p press) (rune, bool) {
	if op := e.unfoldable(); op != nil && !p.searching {
		return e.keepLine(p.key, readline.CharBell, op)
	}
	return e.passKey(p)
}

// interruption returns the error with which a key interrupts the reading of the line. It returns nil for a key that
// does not interrupt the reading.
func (e *Editor) interruption(r rune) error {
	switch {
	case r == readline.CharCtrlZ && e.o.Suspend != nil:
		return errSuspend
	case r == markCycle && e.o.Cycle != nil:
		return errCycle
	case (r == readline.CharBell || r == markEdit) && e.o.Edit != nil:
		return errEdit
	}
	return nil
}

// usable reports whether readline has an effect for a control character. It would insert another one into the line.
func usable(r rune) bool {
	const ctrlQ, ctrlV, ctrlX = 17, 22, 24
	switch r {
	case ctrlQ, ctrlV, ctrlX, readline.MetaTranspose, readline.CharO - 64:
		return false
	}
	return r >= ' ' || r < 0 || r <= readline.CharCtrlZ
}

// listener receives the text from readline after each character.
type listener struct{ e *Editor }

func (l listener) OnChange(text []rune, pos int, r rune) ([]rune, int, bool) {
	e := l.e
	if text == nil && r == 0 {
		return nil, 0, false // readline also calls OnChange before it reads a line, and then nothing has changed.
	}
	searching := e.rl.Operation.IsSearchMode()
	e.mu.Lock()
	defer e.mu.Unlock()
	if r == readline.CharEnter {
		if e.ended != nil {
			close(e.ended) // The line has ended, and its text does not change any more.
			e.ended = nil
		}
		return nil, 0, false
	}
	changed := false
	if op := e.op; op != nil {
		e.op = nil
		text, pos = op(text, pos)
		changed = true
	}
	if !searching {
		e.search = ""
	}
	e.text, e.pos = text, pos
	e.drawLine()
	return append([]rune(nil), text...), pos, changed
}

// verticalMove returns a function that moves the cursor up or down within a text of several lines. It returns nil if
// there is no line in this direction. The key then belongs to the history.
func (e *Editor) verticalMove(r rune) func([]rune, int) ([]rune, int) {
	begin := lineBegin(e.text, e.pos)
	to := 0
	if r == readline.CharPrev {
		if begin == 0 {
			return nil
		}
		above := lineBegin(e.text, begin-1)
		to = min(above+e.pos-begin, begin-1)
	} else {
		end := e.pos
		for end < len(e.text) && e.text[end] != '\n' {
			end++
		}
		if end == len(e.text) {
			return nil
		}
		last := end + 1
		for last < len(e.text) && e.text[last] != '\n' {
			last++
		}
		to = min(end+1+e.pos-begin, last)
	}
	return func(text []rune, _ int) ([]rune, int) { return text, to }
}

func lineBegin(text []rune, pos int) int {
	for pos > 0 && text[pos-1] != '\n' {
		pos--
	}
	return pos
}
