// Package agentside is the agent's side of an ACP connection on stdio. The agents of this program share it.
//
// The package makes three promises. One goroutine handles the client's lines in their order. A line that the agent
// sends is one Write, and its members keep their bytes. Each response of the client goes to one request: the oldest
// open request with the response's id.
//
// The package knows no method of ACP and shares no code with the client's side. The agents can therefore test that
// side.
package agentside

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"sync"
)

// Conn is one connection. Several goroutines may call its methods. A client that does not read blocks all senders.
type Conn struct {
	writing sync.Mutex // guards out
	out     io.Writer

	mu      sync.Mutex // guards the fields below
	nextID  int
	waiting map[string][]func(Message) // the receivers of responses, by the id of the request
}

// New returns a connection that writes to the parameter "out".
func New(out io.Writer) *Conn { return &Conn{out: out, waiting: map[string][]func(Message){}} }

// Serve reads lines from the parameter "in" until it ends or ctx is cancelled, and then returns nil. Otherwise it
// returns the error of reading. It hands requests and notifications to the function "handle", one after the other. When
// ctx is cancelled first, the goroutine that reads these lines stays until its Read returns.
func (c *Conn) Serve(ctx context.Context, in io.Reader, handle func(Message)) error {
	return Read(ctx, in, func(line []byte) {
		m, err := Parse(line)
		switch {
		case err != nil:
			c.Refuse(m.ID, err)
		case m.Version != "2.0":
			c.Refuse(m.ID, &Error{Code: CodeInvalid, Message: `"jsonrpc" is not "2.0"`})
		case m.Method == "":
			c.deliverResponse(m)
		default:
			handle(m)
		}
	})
}

// Read reads lines from the parameter "in" and calls the function "handle" with each line that is not blank. A line is
// valid until handle returns. Read ends in the same cases as Serve, with the same results.
func Read(ctx context.Context, in io.Reader, handle func(line []byte)) error {
	ended := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), math.MaxInt)
		for lines.Scan() && ctx.Err() == nil {
			if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
				handle(line)
			}
		}
		ended <- lines.Err()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Request sends a request. The goroutine of Serve calls the function "received" with the response. If id is empty,
// Request uses the next number, beginning with 0.
func (c *Conn) Request(method string, params json.RawMessage, id string, received func(Message)) error {
	c.mu.Lock()
	if id == "" {
		id = strconv.Itoa(c.nextID)
		c.nextID++
	}
	c.waiting[id] = append(c.waiting[id], received)
	c.mu.Unlock()
	return c.Send(Message{ID: json.RawMessage(id), Method: method, Params: params})
}

// deliverResponse drops a response that nothing waits for.
func (c *Conn) deliverResponse(m Message) {
	c.mu.Lock()
	waiting := c.waiting[string(m.ID)]
	if len(waiting) > 1 {
		c.waiting[string(m.ID)] = waiting[1:]
	} else {
		delete(c.waiting, string(m.ID))
	}
	c.mu.Unlock()
	if len(waiting) > 0 {
		waiting[0](m)
	}
}

// Refuse answers a request with an error. A nil id means that the request could not be read.
func (c *Conn) Refuse(id json.RawMessage, e *Error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	_ = c.Send(Message{ID: id, Error: Encode(e)}) // ignore the error, because Serve ends if the client has gone
}

// Send sends a message.
func (c *Conn) Send(m Message) error { return c.WriteLine(m.Line()) }

// WriteLine writes a line and its line feed. The caller must not use the line's memory afterwards.
func (c *Conn) WriteLine(line []byte) error {
	line = append(line, '\n')
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(line)
	return err
}
