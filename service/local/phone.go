package local

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// Phone is the other end of the channel: it connects, again and again, keeps what it says until
// the bridge has it, and is shown what it is sent once, whatever is sent twice. Its token makes it
// the contact that it is.
type Phone struct {
	Path  string
	Name  string
	Token string // empty: the bridge gives it one, which is kept here; do not change it while it runs
	// Keep is called with the token that the bridge has given. May be nil: then it is forgotten
	// with the phone.
	Keep func(token string)
	// Show is called with what arrives, one at a time.
	Show func(Arrived)
	// Refused is called when the bridge does not take a message. May be nil.
	Refused func(Refusal)
	// Typing is called when the bridge shows that somebody is typing, Online when the phone is
	// connected or is not any more. Both may be nil.
	Typing func()
	Online func(bool)

	mu   sync.Mutex // guards what follows
	out  []Message
	conn net.Conn
	seen map[string]bool
	due  string        // the key of what is being shown, of which the bridge was not told yet
	idle chan struct{} // closed when out becomes empty
}

// retryEvery is how often a phone looks for a bridge.
const retryEvery = 100 * time.Millisecond

// Say queues a message for the bridge and returns its id; one that has an id keeps it.
func (p *Phone) Say(m Message) string {
	if m.ID == "" {
		m.ID = rand.Text()
	}
	if m.Sent.IsZero() {
		m.Sent = time.Now()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got() // the person who answers what is being shown has seen it
	p.out = append(p.out, m)
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	if p.conn != nil && p.Token != "" {
		p.write(line{Message: &m})
	}
	return m.ID
}

// Flush waits until the bridge has all that was said.
func (p *Phone) Flush(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run keeps the phone connected until ctx ends.
func (p *Phone) Run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", p.Path)
		if err == nil {
			p.serve(ctx, conn)
		}
		channel.Wait(ctx, retryEvery)
	}
}

// write loses the line if the bridge is gone: what is kept is said again. The caller holds mu.
func (p *Phone) write(l line) {
	b, err := json.Marshal(l)
	if err == nil {
		_ = p.conn.SetWriteDeadline(time.Now().Add(10 * time.Second)) // the write tells
		_, err = p.conn.Write(append(b, '\n'))
	}
	if err != nil {
		_ = p.conn.Close() // the reader sees it
	}
}

func (p *Phone) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the reader sees it
	defer stop()
	p.mu.Lock()
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.conn = conn
	p.write(line{Hello: &hello{p.Name, p.Token}})
	if p.Token != "" { // else what it says would be said by no one that it could be again
		p.sayAll()
	}
	p.mu.Unlock()
	if p.Online != nil {
		p.Online(true)
	}
	in := bufio.NewScanner(conn)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		var l line
		if strict.Unmarshal(in.Bytes(), &l) != nil {
			break
		}
		p.take(l)
	}
	p.mu.Lock()
	p.conn = nil
	p.mu.Unlock()
	_ = conn.Close() // it may be closed already
	if p.Online != nil {
		p.Online(false)
	}
}

// sayAll says what the bridge has not accepted. The caller holds mu.
func (p *Phone) sayAll() {
	for _, m := range p.out {
		p.write(line{Message: &m})
	}
}

func (p *Phone) take(l line) {
	switch {
	case l.Token != "":
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Token != "" {
			return
		}
		if p.Token = l.Token; p.Keep != nil {
			p.Keep(p.Token)
		}
		p.sayAll()
	case l.Typing && p.Typing != nil:
		p.Typing()
	case l.Accepted != "":
		p.done(l.Accepted)
	case l.Refused != nil:
		p.done(l.Refused.ID)
		if p.Refused != nil {
			p.Refused(*l.Refused)
		}
	case l.Send != nil:
		p.mu.Lock()
		known := p.seen[l.Send.Key]
		p.seen[l.Send.Key] = true
		p.due = l.Send.Key
		p.mu.Unlock()
		if !known && p.Show != nil {
			p.Show(*l.Send)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got()
	}
}

// done forgets a message of which the bridge has said what becomes of it.
func (p *Phone) done(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.out, func(m Message) bool { return m.ID == id }); i >= 0 {
		p.out = slices.Delete(p.out, i, i+1)
	}
	if len(p.out) == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// got tells the bridge that what is being shown has arrived. The caller holds mu.
func (p *Phone) got() {
	if p.due != "" && p.conn != nil {
		p.write(line{Got: p.due})
	}
	p.due = ""
}
