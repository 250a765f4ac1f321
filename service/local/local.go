// Package local is the bridge's own channel: a Unix socket, and phones that connect to it.
//
// It promises that a message is accepted only once the bridge has it on disk, that no one but
// the user can connect, that what is sent twice arrives once, and that a contact is anyone who has its
// token, whatever names others give themselves. It refuses nothing else: who may do what is the
// bridge's to judge.
//
// The one idea: JSON lines, one object each. A phone says "hello" with its token, or is given one;
// then "message" until it is "accepted" or "refused"; the bridge says "send" or "edit" until the phone has
// "got" it.
package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/perlica/perlica/service/channel"
)

// Name is the channel's name.
const Name = "local"

// Message is what a phone says.
type Message struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Sent    time.Time `json:"sent"`
	ReplyTo string    `json:"reply_to,omitempty"`
	Button  string    `json:"button,omitempty"`
	Files   []string  `json:"files,omitempty"` // paths
}

// Arrived is what a phone is sent.
type Arrived struct {
	Key     string           `json:"key"` // its id
	Text    string           `json:"text"`
	Buttons []channel.Button `json:"buttons,omitempty"`
	ReplyTo string           `json:"reply_to,omitempty"`
	File    string           `json:"file,omitempty"` // its name
	Content []byte           `json:"content,omitempty"`
	Edits   string           `json:"edits,omitempty"` // the key of the message that it replaces
}

// maxLine is the longest line that is read.
const maxLine = 8 << 20

// maxSocketPath is the longest path that every system takes for a socket.
const maxSocketPath = 103

// Path is where the bridge of a project listens: in the user's folder for sockets, or, where
// its path is too long, in one of the system's folder for temporary files.
func Path(runtime, root string) string {
	name := "phone-" + hashed(root) + ".sock"
	if path := filepath.Join(runtime, name); len(path) <= maxSocketPath {
		return path
	}
	return filepath.Join(os.TempDir(), "perlica-"+hashed(runtime), name)
}

// leastToken is the shortest token that is taken for one.
const leastToken = 20

// longestName is how much of a name goes into a contact's id, in characters.
const longestName = 32

// ContactID is the contact that a phone with this token is. The name is there for people to read;
// the token alone makes it that contact, and cannot be told from it.
func ContactID(name, token string) string {
	readable := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._@", r) {
			return r
		}
		return '_'
	}, name))
	return string(readable[:min(len(readable), longestName)]) + "-" + hashed("perlica phone\x00"+token)
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// Channel is the channel. The caller must Close it, after the bridge.
type Channel struct {
	limits   channel.Limits
	instance string // of the cursor: messages are numbered anew by each process
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex // guards what follows; never held during I/O
	change  chan struct{}
	count   int
	waiting []numbered
	phones  map[string]*phone
	got     map[string]chan struct{}
	conns   map[*phone]bool
	places  channel.Recent[place] // of what phones have got, by contact and key
}

// numbered is a message that the bridge has not confirmed.
type numbered struct {
	n    int
	from *phone
	Message
}

// DefaultLimits are those of a phone in a terminal.
func DefaultLimits() channel.Limits {
	return channel.Limits{Text: 16_000, Format: channel.Plain, Dedupes: true}
}

// dying is how long a socket may be held behind its process's death: by a child that was just being
// started, and has not closed yet what is not its own.
const dying = 500 * time.Millisecond

// Listen opens the socket. No one but the user can enter its folder.
func Listen(path string, limits channel.Limits) (*Channel, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("local: the folder for sockets: %w", err)
	}
	// Only its owner may change a folder's mode: this fails in somebody else's.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("local: the folder for sockets: %w", err)
	}
	for end := time.Now().Add(dying); ; time.Sleep(dying / 10) {
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			break
		}
		_ = conn.Close() // nothing was written
		if time.Now().After(end) {
			return nil, fmt.Errorf("local: another process listens on %s", path)
		}
	}
	_ = os.Remove(path) // of a process that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	c := &Channel{
		limits: limits, instance: rand.Text(), listener: l, change: make(chan struct{}),
		phones: map[string]*phone{}, got: map[string]chan struct{}{}, conns: map[*phone]bool{},
	}
	c.wg.Go(c.accept)
	return c, nil
}

// Close ends all connections. Later calls do nothing.
func (c *Channel) Close() error {
	err := c.listener.Close()
	c.mu.Lock()
	for p := range c.conns {
		_ = p.conn.Close() // its reader tells
	}
	c.mu.Unlock()
	c.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Name is "local".
func (c *Channel) Name() string { return Name }

// Limits are those given to Listen.
func (c *Channel) Limits() channel.Limits { return c.limits }

// changed wakes the goroutines that wait. The caller holds mu.
func (c *Channel) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// After reports whether a message that waits came behind one that was sent: its phone had said that
// it has that, or connected when another of the same contact had said so.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.places.Get(m.Chat + "/" + sent)
	for _, w := range c.waiting {
		if w.id() == m.ID {
			return ok && w.n > at.n && (w.from == at.by || w.from.since > at.n)
		}
	}
	return false
}

// Poll confirms the messages up to the cursor to their phones: the bridge has them. Then it
// waits for others.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	c.confirm(cursor)
	for {
		c.mu.Lock()
		change := c.change
		var list []channel.Inbound
		for _, m := range c.waiting {
			list = append(list, m.inbound())
		}
		last := c.count
		c.mu.Unlock()
		if len(list) > 0 {
			return list, c.instance + "/" + strconv.Itoa(last), nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, cursor, ctx.Err()
		}
	}
}

func (c *Channel) confirm(cursor string) {
	instance, number, _ := strings.Cut(cursor, "/")
	n, err := strconv.Atoi(number)
	if instance != c.instance || err != nil {
		return
	}
	c.mu.Lock()
	var done []numbered
	for len(c.waiting) > 0 && c.waiting[0].n <= n {
		done = append(done, c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	c.mu.Unlock()
	for _, m := range done {
		_ = m.from.write(line{Accepted: m.ID}) // if it is lost the phone says it again, and it is known
	}
}

func (m numbered) id() string { return m.from.contact + "/" + m.ID }

func (m numbered) inbound() channel.Inbound {
	in := channel.Inbound{
		ID: m.id(), Chat: m.from.contact, Contact: m.from.contact, Name: m.from.name,
		Text: m.Text, Sent: m.Sent, ReplyTo: m.ReplyTo, Button: m.Button,
	}
	for _, path := range m.Files {
		in.Files = append(in.Files, channel.File{Name: filepath.Base(path), Path: path})
	}
	return in
}

// Send waits for the contact's phone, however long that takes, and until it has the message.
// The message's id is its key.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	a := Arrived{Key: m.Key, Text: m.Text, Buttons: m.Buttons, ReplyTo: m.ReplyTo}
	if m.File != nil {
		b, err := os.ReadFile(m.File.Path)
		if err != nil {
			return "", errors.Join(channel.ErrNotSent, err)
		}
		a.File, a.Content = m.File.Name, b
	}
	return m.Key, c.hand(ctx, m.Chat, a)
}

// Edit replaces the text of a message.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	return c.hand(ctx, m.Chat, Arrived{Key: m.Key + "/edit/" + hashed(m.Text), Text: m.Text, Edits: id})
}

// Typing shows that somebody is typing.
func (c *Channel) Typing(_ context.Context, chat string) error {
	c.mu.Lock()
	p := c.phones[chat]
	c.mu.Unlock()
	if p == nil {
		return channel.ErrNotSent
	}
	return p.write(line{Typing: true})
}

// hand gives a phone a message until it has it.
func (c *Channel) hand(ctx context.Context, chat string, a Arrived) error {
	written := false
	for {
		c.mu.Lock()
		p, change := c.phones[chat], c.change
		var got chan struct{}
		if p != nil {
			if got = c.got[chat+"/"+a.Key]; got == nil {
				got = make(chan struct{})
				c.got[chat+"/"+a.Key] = got
			}
		}
		c.mu.Unlock()
		if p == nil {
			select {
			case <-change:
				continue
			case <-ctx.Done():
				if !written {
					return errors.Join(channel.ErrNotSent, ctx.Err())
				}
				return ctx.Err()
			}
		}
		written = true
		if p.write(line{Send: &a}) != nil {
			_ = p.conn.Close() // it is of no more use; its reader takes it off the list
		}
		select {
		case <-got:
			return nil
		case <-p.gone:
			if !c.limits.Dedupes {
				return errors.New("the phone went away before it said that it has the message")
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Refusal says that a message was not taken: its id was received before, with another text or with one
// that is not on record any more, and it is of no use to say it again.
type Refusal struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Refuse tells the phone why the message is not taken.
func (c *Channel) Refuse(m channel.Inbound, why *channel.ConflictError) {
	c.mu.Lock()
	var refused []numbered
	c.waiting = slices.DeleteFunc(c.waiting, func(w numbered) bool {
		same := reflect.DeepEqual(w.inbound(), m)
		if same {
			refused = append(refused, w)
		}
		return same
	})
	c.mu.Unlock()
	for _, w := range refused {
		_ = w.from.write(line{Refused: &Refusal{w.ID, why.Error()}}) // if it is lost the phone says it again
	}
}
