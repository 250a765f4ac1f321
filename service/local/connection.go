package local

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/provider/descent"
)

// line is one line of the protocol in either direction. One of its fields is set.
type line struct {
	Hello    *hello   `json:"hello,omitempty"`
	Message  *Message `json:"message,omitempty"`
	Accepted string   `json:"accepted,omitempty"`
	Refused  *Refusal `json:"refused,omitempty"`
	Send     *Arrived `json:"send,omitempty"`
	Got      string   `json:"got,omitempty"`
	Typing   bool     `json:"typing,omitempty"`
	Token    string   `json:"token,omitempty"` // for a phone without a token
}

type hello struct {
	Name  string `json:"name"`
	Token string `json:"token,omitempty"`
}

// place records when and on which connection a phone confirmed a message. n is the value of Channel.count at that
// moment, because messages are numbered with this count.
type place struct {
	n  int
	by *phone
}

// phone is one connection of a phone.
type phone struct {
	contact string // empty means that the phone has not identified itself
	name    string
	since   int // the count of messages when the phone identified itself
	conn    net.Conn
	gone    chan struct{}

	writing sync.Mutex
}

func (c *Channel) acceptPhones() {
	for {
		conn, err := c.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // wait, because too many files may be open
			continue
		}
		p := &phone{conn: conn, gone: make(chan struct{})}
		c.mu.Lock()
		c.conns[p] = true
		if c.life.Context().Err() != nil { // Close may have ended the other connections before
			_ = conn.Close() // its reader then ends
		}
		c.mu.Unlock()
		c.wg.Go(func() { c.servePhone(p) })
	}
}

// servePhone reads the lines of one phone until it is gone.
func (c *Channel) servePhone(p *phone) {
	defer func() {
		_ = p.conn.Close() // the connection may be closed already
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, p)
		if c.phones[p.contact] == p {
			delete(c.phones, p.contact)
			for other := range c.conns { // an earlier connection of the contact takes over
				if other.contact == p.contact {
					c.phones[p.contact] = other
					c.changed()
				}
			}
		}
		close(p.gone)
	}()
	if c, ok := p.conn.(*net.UnixConn); ok && descent.CheckUnix(c) != nil {
		return // refuse an agent's process, and a process that has already ended
	}
	in := bufio.NewScanner(p.conn)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		var l line
		if strict.Unmarshal(in.Bytes(), &l) != nil {
			return
		}
		if !c.handleLine(p, l) {
			return
		}
	}
}

// handleLine handles one line of a phone and reports whether the connection may continue.
func (c *Channel) handleLine(p *phone, l line) bool {
	if l.Hello != nil && p.contact == "" {
		token := l.Hello.Token
		if len(token) < leastToken {
			// The phone gets its token first. If the token is lost, no contact with this token exists.
			token = rand.Text()
			if p.writeLine(line{Token: token}) != nil {
				return false
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		p.contact, p.name = ContactID(l.Hello.Name, token), l.Hello.Name
		c.count++
		p.since = c.count
		c.phones[p.contact] = p
		c.changed()
		return true
	}
	if p.contact == "" || l.Hello != nil { // the phone must identify itself exactly once
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	switch {
	case l.Message != nil:
		c.waiting = append(c.waiting, numbered{c.count, p, *l.Message})
		c.changed()
	case l.Got != "":
		key := p.contact + "/" + l.Got
		if done := c.got[key]; done != nil {
			close(done)
			delete(c.got, key)
			c.places.Put(key, place{c.count, p})
		}
	}
	return true
}

// writeLine sends a line to a phone, or loses it.
func (p *phone) writeLine(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.conn.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = p.conn.Write(append(b, '\n'))
	return err
}
