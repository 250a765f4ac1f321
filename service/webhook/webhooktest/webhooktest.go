// Package webhooktest is a gateway in front of the webhook channel, with real HTTP.
//
// It posts one message at a time and repeats it until the channel has accepted it. It receives the replies, checks
// their signatures, and misbehaves on request.
package webhooktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/webhook"
)

// secret signs the requests in both directions.
const secret = "0123456789abcdef-of-the-gateway"

// longest is the longest text that the gateway takes.
const longest = 4000

// Subject returns the webhook for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "webhook", Secrets: []string{secret},
		Start: start,
		Dial: func(address, files string) (channel.Channel, error) {
			listen, reply, _ := strings.Cut(address, " ")
			return webhook.Open(webhook.Options{Listen: listen, ReplyURL: reply, Secret: secret, Buttons: true,
				Format: channel.Plain, Text: longest, Files: files, Timeout: time.Minute})
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Pictures:    "the gateway decides how people see a file",
			channeltest.HalfPairs:   "the sender gets the status 400",
			channeltest.Echoes:      "a reply that comes back has other members than a message, so it is refused",
			channeltest.Connects:    "the gateway connects to the channel",
			channeltest.Revocations: "only the user changes the secret",
		},
	}
}

// platform is the gateway. Its fields above mu do not change.
type platform struct {
	channeltest.Faults
	listen  string // the address of the channel
	replies *httptest.Server
	ctx     context.Context
	wg      sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	change chan struct{}
	queue  []message // not yet accepted
	said   []message
	held   []message
	holds  bool
	count  int // the number of messages of people
	skew   time.Duration
	sent   []channeltest.Sent
	gone   []string // deleted chats
}

// message is a message of a person, as the gateway posts it.
type message struct {
	ID      string    `json:"id"`
	Chat    string    `json:"chat"`
	Contact string    `json:"contact"`
	Name    string    `json:"name"`
	Text    string    `json:"text"`
	Sent    time.Time `json:"sent"`
	ReplyTo string    `json:"reply_to,omitempty"`
	Button  string    `json:"button,omitempty"`
	Files   []file    `json:"files,omitempty"`
}

type file struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// reply is a reply of the bot, as the channel posts it.
type reply struct {
	Type, ID, Chat, Text, Key string
	ReplyTo                   string `json:"reply_to"`
	Buttons                   []channel.Button
	File                      *file
}

// start starts a gateway. The channel gets a port on an address that no other process uses, so that a restarted
// channel finds it free.
func start(t testing.TB) channeltest.Platform {
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &platform{listen: l.Addr().String(), ctx: ctx, change: make(chan struct{})}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.replies = httptest.NewServer(p)
	p.wg.Go(p.post)
	t.Cleanup(func() {
		cancel()
		p.wg.Wait()
		p.replies.CloseClientConnections()
		p.replies.Close()
	})
	return p
}

func (p *platform) Address() string { return p.listen + " " + p.replies.URL + "/replies" }

func (p *platform) Join(name string) channeltest.Person {
	return channeltest.Person{Name: name, Contact: "contact-" + name, Chat: "chat-" + name}
}

// wake wakes the waiting goroutines. The caller holds mu.
func (p *platform) wake() {
	close(p.change)
	p.change = make(chan struct{})
}

// post posts the queued messages in their order until the end of the test.
func (p *platform) post() {
	for p.ctx.Err() == nil {
		p.mu.Lock()
		change, m := p.change, message{}
		if len(p.queue) > 0 {
			m = p.queue[0]
		}
		p.mu.Unlock()
		if m.ID == "" {
			select {
			case <-change:
			case <-p.ctx.Done():
			}
			continue
		}
		if !p.attempt(m) {
			channel.Wait(p.ctx, 20*time.Millisecond) // the channel may be restarting
			continue
		}
		p.mu.Lock()
		p.queue = p.queue[1:]
		p.mu.Unlock()
	}
}

// attempt posts a message once and reports whether the channel has accepted it.
func (p *platform) attempt(m message) bool {
	body, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	req, err := http.NewRequestWithContext(p.ctx, http.MethodPost, "http://"+p.listen+"/messages",
		bytes.NewReader(body))
	if err != nil {
		panic(err) // the address was parsed before
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set(webhook.TimestampHeader, stamp)
	req.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, body))
	req.Close = true
	switch p.Next(channeltest.Receiving, nil) {
	case channeltest.Drop, channeltest.Half:
		p.writePart(req, 2)
		return false
	case channeltest.LateDrop:
		p.writePart(req, 1)
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode == http.StatusAccepted
}

// writePart writes a part of a request: the bytes divided by n. Then it cuts the connection.
func (p *platform) writePart(req *http.Request, n int) {
	var b bytes.Buffer
	if err := req.Write(&b); err != nil {
		panic(err) // the body is in memory
	}
	conn, err := net.Dial("tcp", p.listen)
	if err != nil {
		return // the channel may be restarting
	}
	_, _ = conn.Write(b.Bytes()[:b.Len()/n])
	_ = conn.Close() // the gateway posts the message again
}

// ServeHTTP receives a reply with the next fault.
func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m reply
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	stamp := r.Header.Get(webhook.TimestampHeader)
	if err != nil || r.Header.Get(webhook.SignatureHeader) != webhook.Sign(secret, stamp, body) {
		http.Error(w, "not a signed reply", http.StatusUnauthorized)
		return
	}
	fault := p.Next(channeltest.Sending, nil)
	switch fault {
	case channeltest.RateLimit:
		w.Header().Set("Retry-After", strconv.Itoa(int(channeltest.Pause.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case channeltest.ServerError:
		w.WriteHeader(http.StatusBadGateway)
		return
	case channeltest.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	}
	id, status := p.take(m)
	switch fault {
	case channeltest.LateServerError:
		status = http.StatusInternalServerError
	case channeltest.LateDrop:
		panic(http.ErrAbortHandler)
	case channeltest.Half:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id":"r`)
		_ = http.NewResponseController(w).Flush() // the connection is cut next
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": id}) // fails only if the client has disconnected
}

// take stores a reply, or changes an earlier one. It returns the id of the reply and the status of the answer.
func (p *platform) take(m reply) (id string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.gone, m.Chat) {
		return "", http.StatusGone
	}
	if m.Type == "edit" {
		i := slices.IndexFunc(p.sent, func(s channeltest.Sent) bool { return s.ID == m.ID })
		if i < 0 {
			return "", http.StatusNotFound
		}
		s := &p.sent[i]
		s.Text, s.Shown, s.Buttons, s.Edited = m.Text, m.Text, m.Buttons, true
		p.wake()
		return m.ID, http.StatusOK
	}
	s := channeltest.Sent{ID: fmt.Sprint("reply-", len(p.sent)), Chat: m.Chat, Text: m.Text, Shown: m.Text,
		ReplyTo: m.ReplyTo, Buttons: m.Buttons}
	if m.File != nil {
		s.File = &channeltest.File{Name: m.File.Name, Data: m.File.Data}
	}
	p.sent = append(p.sent, s)
	p.wake()
	return s.ID, http.StatusOK
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := message{Text: m.Text, ReplyTo: m.ReplyTo}
	if m.File != nil {
		said.Files = []file{{m.File.Name, m.File.Data}}
	}
	return p.say(from, said)
}

// say queues a message of a person and returns its id. The caller holds mu.
func (p *platform) say(from channeltest.Person, m message) string {
	p.count++
	m.ID, m.Sent = fmt.Sprint("m", p.count), time.Now().Add(p.skew)
	m.Chat, m.Contact, m.Name = from.Chat, from.Contact, from.Name
	if p.holds {
		p.held = append(p.held, m)
	} else {
		p.said, p.queue = append(p.said, m), append(p.queue, m)
		p.wake()
	}
	return m.ID
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
		for _, b := range m.Buttons {
			if m.ID == sent && b.Data == data {
				p.say(from, message{Text: b.Label, ReplyTo: sent, Button: data})
			}
		}
	}
}

func (p *platform) Sent() []channeltest.Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func (p *platform) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.change
	}, ok)
}

func (p *platform) Redeliver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, p.said...)
	p.wake()
}

func (p *platform) Reverse(write func()) {
	p.mu.Lock()
	p.holds = true
	p.mu.Unlock()
	write()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Reverse(p.held)
	p.said, p.queue = append(p.said, p.held...), append(p.queue, p.held...)
	p.held, p.holds = nil, false
	p.wake()
}

func (p *platform) Skew(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew += d
}

func (p *platform) Delete(of channeltest.Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = append(p.gone, of.Chat)
}

func (p *platform) Echo() {}

func (p *platform) Revoke() {}

var _ channeltest.Platform = (*platform)(nil)
