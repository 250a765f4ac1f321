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

// Phone is a phone's side of the channel. It connects repeatedly, stores each message until the bridge has it, and
// shows each arrived message once. Its token identifies the contact.
type Phone struct {
	Path  string
	Name  string
	Token string // empty means that the bridge gives one, which Run then stores in this field
	// Keep is called with the token that the bridge has given. It may be nil; the token then ends
	// with the phone.
	Keep func(token string)
	// Show is called with each arrived message, one at a time.
	Show func(Arrived)
	// Refused is called when the bridge does not accept a message. It may be nil.
	Refused func(Refusal)
	// Typing is called for a typing sign. Online is called when the phone connects or disconnects.
	// Both may be nil.
	Typing func()
	Online func(bool)

	mu   sync.Mutex // guards the fields below
	out  []Message
	conn net.Conn
	seen map[string]bool
	due  string        // the key of the message that is being shown and not yet confirmed
	idle chan struct{} // closed when out becomes empty
}

// retryEvery is the interval of the attempts to connect.
const retryEvery = 100 * time.Millisecond

// Say queues a message for the bridge and returns its id. If the message has no id, Say makes one.
func (p *Phone) Say(m Message) string {
	if m.ID == "" {
		m.ID = rand.Text()
	}
	if m.Sent.IsZero() {
		m.Sent = time.Now()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// An answer to the shown message proves that the person has seen it.
	p.got()
	p.out = append(p.out, m)
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	if p.conn != nil && p.Token != "" {
		p.writeLine(line{Message: &m})
	}
	return m.ID
}

// Flush waits until the bridge has all messages.
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
			p.serveConn(ctx, conn)
		}
		channel.Wait(ctx, retryEvery)
	}
}

// writeLine writes a line. If the bridge is gone, the line is lost, because stored messages are sent again. The caller
// holds mu.
func (p *Phone) writeLine(l line) {
	b, err := json.Marshal(l)
	if err == nil {
		_ = p.conn.SetWriteDeadline(time.Now().Add(10 * time.Second)) // an error of the connection also fails the write
		_, err = p.conn.Write(append(b, '\n'))
	}
	if err != nil {
		_ = p.conn.Close() // serveConn then ends with a read error
	}
}

func (p *Phone) serveConn(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the loop below then ends with a read error
	defer stop()
	p.mu.Lock()
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.conn = conn
	p.writeLine(line{Hello: &hello{p.Name, p.Token}})
	// Without a token the bridge could not recognise the sender later, so the messages wait for the token.
	if p.Token != "" {
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
		p.handleLine(l)
	}
	p.mu.Lock()
	p.conn = nil
	p.mu.Unlock()
	_ = conn.Close() // the connection may be closed already
	if p.Online != nil {
		p.Online(false)
	}
}

// sayAll sends all messages that the bridge has not accepted. The caller holds mu.
func (p *Phone) sayAll() {
	for _, m := range p.out {
		p.writeLine(line{Message: &m})
	}
}

func (p *Phone) handleLine(l line) {
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

// done removes a message that the bridge has accepted or refused.
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

// got confirms the message that is being shown. The caller holds mu.
func (p *Phone) got() {
	if p.due != "" && p.conn != nil {
		p.writeLine(line{Got: p.due})
	}
	p.due = ""
}
