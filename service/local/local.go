// Package local is the bridge's own channel: a Unix socket, and phones that connect to it.
//
// A message is accepted only after the bridge has it on disk. Only the user can connect. A repeated message arrives
// once. A contact is identified by its token and not by its name. The channel judges no rights, because the bridge does
// this.
//
// The protocol has JSON lines with one object each. A phone sends "hello" with its token, or gets a
// new token. It then repeats "message" until the message is "accepted" or "refused". The bridge
// repeats "send" until the phone has "got" it.
package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
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

// Message is a message from a phone.
type Message struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Sent    time.Time `json:"sent"`
	ReplyTo string    `json:"reply_to,omitempty"`
	Button  string    `json:"button,omitempty"`
	Files   []string  `json:"files,omitempty"` // paths
}

// Arrived is a message to a phone.
type Arrived struct {
	Key     string           `json:"key"` // the id of the message
	Text    string           `json:"text"`
	Buttons []channel.Button `json:"buttons,omitempty"`
	ReplyTo string           `json:"reply_to,omitempty"`
	File    string           `json:"file,omitempty"` // the file's name
	Content []byte           `json:"content,omitempty"`
	Edits   string           `json:"edits,omitempty"` // the key of the earlier message that this one replaces
}

// maxLine is the longest line that is read.
const maxLine = 8 << 20

// maxSocketPath is the longest path of a socket on every system.
const maxSocketPath = 103

// Path returns the socket of a project's bridge. It lies in the user's folder for sockets, or in
// the system's temporary folder if that path is too long.
func Path(runtime, root string) string {
	name := "phone-" + hashed(root) + ".sock"
	if path := filepath.Join(runtime, name); len(path) <= maxSocketPath {
		return path
	}
	return filepath.Join(os.TempDir(), "perlica-"+hashed(runtime), name)
}

// leastToken is the shortest accepted token.
const leastToken = 20

// longestName limits the part of a name in a contact's id, in characters.
const longestName = 32

// ContactID returns the contact of a phone with this token. The name helps people to read the id.
// Only the token identifies the contact, and the id does not reveal it.
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

// Channel is the local channel. The caller must Close it after the bridge.
type Channel struct {
	limits   channel.Limits
	instance string // part of the cursor, because each process counts messages from 1
	path     string // the path of the socket
	listener net.Listener
	life     *channel.Lifetime // of Poll
	wg       sync.WaitGroup

	mu      sync.Mutex // guards the fields below; never held during I/O
	change  chan struct{}
	count   int
	waiting []numbered
	phones  map[string]*phone
	got     map[string]chan struct{}
	conns   map[*phone]bool
	places  channel.Recent[place] // the places of confirmed messages, by contact and key
}

// numbered is a message that the bridge has not confirmed.
type numbered struct {
	n    int
	from *phone
	Message
}

// DefaultLimits returns the limits of a phone in a terminal.
func DefaultLimits() channel.Limits {
	return channel.Limits{Text: 16_000, Format: channel.Plain, Dedupes: true}
}

// dying is the time for which a socket may survive its process. A child process that is just starting may still hold
// the socket.
const dying = 500 * time.Millisecond

// Listen opens the socket. Only the user can enter its folder.
func Listen(path string, limits channel.Limits) (*Channel, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("local: the folder for sockets: %w", err)
	}
	// Only the owner can change a folder's mode, so this fails in another user's folder.
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
	_ = os.Remove(path) // left by a killed process
	l, err := net.Listen("unix", path)
	if errors.Is(err, fs.ErrNotExist) { // Another process removed the empty folder.
		return Listen(path, limits)
	}
	if err != nil {
		removeFolder(path)
		return nil, fmt.Errorf("local: %w", err)
	}
	c := &Channel{
		limits: limits, instance: rand.Text(), path: path, listener: l,
		life: channel.NewLifetime(), change: make(chan struct{}),
		phones: map[string]*phone{}, got: map[string]chan struct{}{}, conns: map[*phone]bool{},
	}
	c.wg.Go(c.acceptPhones)
	return c, nil
}

// Close ends Poll and all connections. Later calls do nothing.
func (c *Channel) Close() error {
	c.life.Close()
	err := c.listener.Close()
	c.mu.Lock()
	for p := range c.conns {
		_ = p.conn.Close() // its reader reports errors
	}
	c.mu.Unlock()
	c.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	removeFolder(c.path)
	return err
}

// removeFolder removes the folder of a socket if it is empty and lies in the system's temporary folder.
func removeFolder(path string) {
	if dir := filepath.Dir(path); filepath.Dir(dir) == filepath.Clean(os.TempDir()) {
		_ = os.Remove(dir) // fails while another process has a socket in the folder
	}
}

// Name returns "local".
func (c *Channel) Name() string { return Name }

// Limits returns the limits that were given to Listen.
func (c *Channel) Limits() channel.Limits { return c.limits }

// changed wakes the waiting goroutines. The caller holds mu.
func (c *Channel) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// After reports whether a waiting message came after a sent one. It is true if the message's phone had confirmed the
// sent message before. It is also true if this phone connected after another phone of the contact had confirmed it.
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

// Poll first confirms the messages up to the cursor to their phones, because the bridge has them. It then waits for
// further messages.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	return c.life.Poll(ctx, cursor, c.pollOnce)
}

func (c *Channel) pollOnce(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	c.confirmUpTo(cursor)
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

func (c *Channel) confirmUpTo(cursor string) {
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
		_ = m.from.writeLine(line{Accepted: m.ID}) // a phone without this line repeats the message, which is then recognised
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

// Send waits until the contact's phone has the message, for an unlimited time. The returned id is the key of the
// message.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if most := c.limits.Text; most > 0 && channel.Units(m.Text) > most {
		return "", &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", most)}
	}
	if err := ctx.Err(); err != nil {
		return "", errors.Join(channel.ErrNotSent, err)
	}
	a := Arrived{Key: m.Key, Text: m.Text, Buttons: m.Buttons, ReplyTo: m.ReplyTo}
	if m.File != nil {
		b, err := os.ReadFile(m.File.Path)
		if err != nil {
			return "", errors.Join(channel.ErrNotSent, err)
		}
		a.File, a.Content = filepath.Base(m.File.Name), b
	}
	return m.Key, c.deliver(ctx, m.Chat, a)
}

// Edit replaces the text of a message.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	return c.deliver(ctx, m.Chat, Arrived{Key: m.Key + "/edit/" + hashed(m.Text), Text: m.Text, Edits: id})
}

// Typing shows a typing sign.
func (c *Channel) Typing(_ context.Context, chat string) error {
	c.mu.Lock()
	p := c.phones[chat]
	c.mu.Unlock()
	if p == nil {
		return channel.ErrNotSent
	}
	return p.writeLine(line{Typing: true})
}

// deliver repeats a message until the phone has it.
func (c *Channel) deliver(ctx context.Context, chat string, a Arrived) error {
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
		if p.writeLine(line{Send: &a}) != nil {
			_ = p.conn.Close() // useless from now on; its reader removes it from the list
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

// Refusal says that a message was not accepted. The bridge received this id before, and the earlier text differs or is
// no longer on record. Repeating the message is useless.
type Refusal struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Refuse tells the phone why the message is not accepted.
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
		_ = w.from.writeLine(line{Refused: &Refusal{w.ID, why.Error()}}) // a phone without this line repeats the message
	}
}
