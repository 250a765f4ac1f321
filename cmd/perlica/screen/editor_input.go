package screen

import (
	"context"
	"io"
	"sync"

	"github.com/chzyer/readline"
)

// The bytes that are passed to readline for what it has no key for.
const (
	markCycle = 0x1c
	markOp    = 0x1d // the next of ops
	markEdit  = 0x1e
)

// pump is readline's standard input. It is closed but while a line is read, and after each
// byte that may end one it waits until it is known whether it did: what follows belongs to
// the next reader.
type pump struct {
	e *Editor

	mu     sync.Mutex // guards what follows
	cond   sync.Cond
	ctx    context.Context
	gate   bool // bytes may pass
	closed bool
	over   bool // readline was told so
	queue  []byte
}

func (p *pump) open(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	p.gate = true
	p.cond.Broadcast()
}

// pass lets bytes through again behind one that did not end the line. Where that could not have ended it, the gate, if it
// is closed, is so for one behind it.
func (p *pump) pass(behind rune) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = p.gate || mayEnd(behind)
	p.cond.Broadcast()
}

// close ends readline's input, and waits until it has read that: its goroutine counts itself when it starts to run,
// for which readline's Close does not wait.
func (p *pump) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.cond.Broadcast()
	p.e.rl.Terminal.KickRead()
	for !p.over {
		p.cond.Wait()
	}
}

// Close is readline's.
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
			p.e.reason = err // why the line that is being read ends
			p.e.mu.Unlock()
			k = Key{Kind: keyControl, Rune: readline.CharEnter}
		}
		bytes := p.e.encode(k)
		p.mu.Lock()
		p.queue = append(p.queue, bytes...)
		p.mu.Unlock()
	}
}

func mayEnd(r rune) bool {
	switch r {
	case readline.CharInterrupt, readline.CharDelete, readline.CharBell, readline.CharEnter, readline.CharCtrlZ, markEdit, markCycle:
		return true
	}
	return false
}

// encode turns a key into what readline reads for it.
func (e *Editor) encode(k Key) []byte {
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
		return later(insert(e.paste(k.text)))
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

// filter sees each character before readline does, in readline's goroutine, after all that was
// typed before it has had its effect. What ends a line is passed on as Enter, with a reason.
func (e *Editor) filter(r rune) (rune, bool) {
	searching := e.rl.Operation.IsSearchMode()
	e.mu.Lock()
	defer e.mu.Unlock()
	end := func(reason error) (rune, bool) {
		if e.reason == nil {
			e.reason = reason
		}
		return readline.CharEnter, true
	}
	stay := func(as rune, op func([]rune, int) ([]rune, int)) (rune, bool) {
		e.op = op
		e.in.pass(r)
		return as, true
	}
	same := func(text []rune, pos int) ([]rune, int) { return text, pos }
	switch r {
	case readline.CharEnter:
		if e.reason != nil || searching || !continues(string(e.text)) {
			return r, true
		}
		e.rl.Terminal.KickRead() // it takes the line for finished
		return stay(readline.CharBell, func(text []rune, _ int) ([]rune, int) {
			return append(text[:len(text)-1:len(text)-1], '\n'), len(text)
		})
	case readline.CharInterrupt:
		if searching {
			e.search = ""
			return stay(r, nil)
		}
		return end(ErrInterrupted)
	case readline.CharDelete:
		raw := e.rawEOT
		e.rawEOT = false
		if raw && len(e.text) == 0 && !searching {
			return end(io.EOF)
		}
		return stay(r, nil)
	case readline.CharBell, markEdit, readline.CharCtrlZ, markCycle:
		if searching && r == readline.CharBell {
			e.search = ""
			return stay(r, nil)
		}
		if reason := e.aside(r); reason != nil {
			return end(reason)
		}
		return stay(readline.CharBell, same)
	case markOp:
		op := e.ops[0]
		e.ops = e.ops[1:]
		return stay(readline.CharBell, op)
	case readline.CharTab:
		return stay(readline.CharBell, e.complete)
	case readline.CharCtrlL:
		e.canvas.clear()
		return stay(readline.CharBell, same)
	case readline.CharPrev, readline.CharNext:
		if op := e.vertical(r); op != nil && !searching {
			return stay(readline.CharBell, op)
		}
	case readline.CharBackspace, readline.CharCtrlH:
		if op := e.unfoldable(); op != nil && !searching {
			return stay(readline.CharBell, op)
		}
	}
	if searching && r < ' ' && r != readline.CharBckSearch && r != readline.CharFwdSearch && r != readline.CharCtrlH {
		e.search = "" // it leaves its search
	}
	return r, usable(r)
}

// aside is why a key ends the reading of the line for a while; nil: it does not.
func (e *Editor) aside(r rune) error {
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

// usable reports whether readline has an effect for a character; it would write the others
// into the line.
func usable(r rune) bool {
	const ctrlQ, ctrlV, ctrlX = 17, 22, 24
	switch r {
	case ctrlQ, ctrlV, ctrlX, readline.MetaTranspose, readline.CharO - 64:
		return false
	}
	return r >= ' ' || r < 0 || r <= readline.CharCtrlZ
}

// listener hears from readline what the line has become, after each character.
type listener struct{ e *Editor }

func (l listener) OnChange(text []rune, pos int, r rune) ([]rune, int, bool) {
	e := l.e
	if text == nil && r == 0 {
		return nil, 0, false // it is about to read
	}
	searching := e.rl.Operation.IsSearchMode()
	e.mu.Lock()
	defer e.mu.Unlock()
	if r == readline.CharEnter {
		if e.ended != nil {
			close(e.ended) // the line stays as it was
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
	e.draw()
	return append([]rune(nil), text...), pos, changed
}

// vertical moves within a text of several lines. It returns nil at the first or the last: the
// key is for the history.
func (e *Editor) vertical(r rune) func([]rune, int) ([]rune, int) {
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
