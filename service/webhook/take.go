package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/provider/descent"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// message is the body of a request. Unlisted fields are refused. A reply of Perlica that is sent back with its own
// signature is therefore not a message.
type message struct {
	ID      string    `json:"id"`
	Chat    string    `json:"chat"`
	Contact string    `json:"contact"`
	Name    string    `json:"name"`
	Text    string    `json:"text"`
	Sent    time.Time `json:"sent"`
	ReplyTo string    `json:"reply_to"`
	Button  string    `json:"button"`
	Files   []file    `json:"files"`
}

// file is a file of a received or a sent message.
type file struct {
	Name string `json:"name"`
	MIME string `json:"mime,omitempty"`
	Data []byte `json:"data"` // base64
}

// maxID limits the length of all ids.
const maxID = 256

// refusal is an answer other than 202.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

// Refuse answers the sender with 409 and both digests. If there is no recorded digest, it answers 202 with a warning.
func (c *Channel) Refuse(m channel.Inbound, why *channel.ConflictError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(h *handover) bool {
		refused := reflect.DeepEqual(h.message, m)
		if refused {
			h.refused = why
			close(h.taken)
		}
		return refused
	})
}

// takeMessage serves POST /messages.
func (c *Channel) takeMessage(w http.ResponseWriter, r *http.Request) {
	// The number is assigned before the body arrives, because the body may take long.
	came := c.tick()
	var m channel.Inbound
	err := notAnAgent(r)
	if err == nil {
		m, err = c.readMessage(w, r)
	}
	if err == nil {
		err = c.handOver(r.Context(), m, came)
	}
	w.Header().Set("Content-Type", "application/json")
	status, said := http.StatusAccepted, map[string]string{"id": m.ID}
	no := &refusal{status: http.StatusInternalServerError}
	var conflict *channel.ConflictError
	switch {
	case err == nil:
	case errors.As(err, &conflict) && conflict.Recorded == "":
		said["warning"] = conflict.Error()
	case errors.As(err, &conflict):
		status, said = http.StatusConflict, map[string]string{"error": conflict.Error(), "recorded": conflict.Recorded,
			"given": conflict.Given}
	case errors.As(err, &no) && no.status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
		fallthrough
	default:
		status, said = no.status, map[string]string{"error": no.why}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(said) // a client without this answer sends the message again
}

// notAnAgent refuses a request of a process that descends from an agent. Such a process could read
// the secret and answer the questions of its own agent.
func notAnAgent(r *http.Request) error {
	here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil // the listener does not use TCP
	}
	at, err := netip.ParseAddrPort(here.String())
	if err != nil {
		return nil
	}
	var agent *descent.ForeignError
	switch err := descent.CheckTCP(peer, at); {
	case errors.As(err, &agent):
		return &refusal{http.StatusForbidden, err.Error()}
	case err != nil: // ask the sender to try again, because its process may be visible then
		return &refusal{http.StatusServiceUnavailable, err.Error()}
	}
	return nil
}

// readMessage reads a message from a request. It checks the signature before the content.
func (c *Channel) readMessage(w http.ResponseWriter, r *http.Request) (in channel.Inbound, err error) {
	stamp := r.Header.Get(TimestampHeader)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.opt.MaxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return in, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", c.opt.MaxBody)}
	}
	if err != nil {
		return in, &refusal{http.StatusBadRequest, "the body could not be read"}
	}
	if !hmac.Equal([]byte(r.Header.Get(SignatureHeader)), []byte(Sign(c.opt.Secret, stamp, body))) {
		return in, &refusal{http.StatusUnauthorized, "the signature does not match"}
	}
	// Only a client that knows the secret learns the further reasons.
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if age := c.now().Sub(time.Unix(unix, 0)); err != nil || age > window || age < -window {
		return in, &refusal{http.StatusUnauthorized, fmt.Sprintf("%s is not within %s of the time here", TimestampHeader,
			window)}
	}
	var m message
	if err := strict.UnmarshalObject(body, &m); err != nil {
		return in, &refusal{http.StatusBadRequest, "the body is no message: " + err.Error()}
	}
	if err := m.check(); err != nil {
		return in, err
	}
	if m.Sent.IsZero() {
		m.Sent = time.Unix(unix, 0)
	}
	in = channel.Inbound{
		ID: m.ID, Chat: m.Chat, Contact: m.Contact, Name: m.Name, Text: m.Text, Sent: m.Sent, ReplyTo: m.ReplyTo,
		Button: m.Button,
	}
	in.Files, err = c.keepFiles(m)
	return in, err
}

func (m *message) check() error {
	for _, f := range []struct {
		name, value string
		must        bool
	}{{"id", m.ID, true}, {"chat", m.Chat, true}, {"contact", m.Contact, true}, {"name", m.Name, false},
		{"reply_to", m.ReplyTo, false}, {"button", m.Button, false}} {
		if f.must && strings.TrimSpace(f.value) == "" {
			return &refusal{http.StatusBadRequest, "the message has no " + f.name}
		}
		if f.name != "name" && strings.ContainsFunc(f.value, unicode.IsControl) {
			return &refusal{http.StatusBadRequest, "its " + f.name + " has a line break, or another sign that cannot be seen"}
		}
		if len(f.value) > maxID {
			return &refusal{http.StatusBadRequest, fmt.Sprintf("its %s has more than %d bytes", f.name, maxID)}
		}
	}
	if m.Text == "" && m.Button == "" && len(m.Files) == 0 {
		return &refusal{http.StatusBadRequest, "the message has no text, no button and no files"}
	}
	return nil
}

// keepFiles stores a message's files in the private folder.
func (c *Channel) keepFiles(m message) (list []channel.File, err error) {
	if len(m.Files) > 0 && c.opt.Files == "" {
		return nil, &refusal{http.StatusBadRequest, "files are not taken"}
	}
	if c.opt.Accept != nil && !c.opt.Accept(m.Contact) {
		return nil, nil
	}
	for i, f := range m.Files {
		// The file's place contains a hash of its content, because another content with the same id must not replace
		// the file.
		place := fmt.Sprintf("%s\n%x", m.ID, sha256.Sum256(f.Data))
		path, err := attachment.Save(c.opt.Files, place, i, f.Name, bytes.NewReader(f.Data), c.opt.MaxBody)
		if err != nil {
			// The sender must not learn the reason.
			return nil, &refusal{http.StatusServiceUnavailable, "a file could not be kept"}
		}
		list = append(list, channel.File{Name: attachment.Name(f.Name), Path: path, MIME: f.MIME})
	}
	return list, nil
}

// handOver waits until the caller of Poll has stored or refused the message.
func (c *Channel) handOver(ctx context.Context, m channel.Inbound, came int64) error {
	h, err := c.joinMessage(m, came)
	if err != nil {
		return err
	}
	defer c.leaveMessage(h)
	select {
	case <-h.taken:
		if h.refused != nil {
			return h.refused
		}
		return nil
	case <-time.After(c.opt.Handover):
	case <-c.closed:
	case <-ctx.Done():
	}
	// The message may still have been accepted. Its sender then repeats it, and the caller recognises its id.
	return &refusal{http.StatusServiceUnavailable, "the message was not taken in time: send it again"}
}

func (c *Channel) joinMessage(m channel.Inbound, came int64) (*handover, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	came = c.cameFirst(m.ID, came)
	if len(c.waiting) >= maxWaiting {
		return nil, &refusal{http.StatusServiceUnavailable, "too many messages wait"}
	}
	c.last++
	h := &handover{number: c.last, came: came, message: m, taken: make(chan struct{})}
	c.waiting = append(c.waiting, h)
	close(c.arrived)
	c.arrived = make(chan struct{})
	return h, nil
}

func (c *Channel) leaveMessage(h *handover) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w *handover) bool { return w == h })
}

// Poll returns the messages with waiting senders. The caller has stored the messages up to the given cursor. These
// messages are accepted, and their senders stop repeating them. A cursor of another process counts as empty.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	c.acceptUpTo(c.number(cursor))
	for {
		list, next, arrived := c.pending(cursor)
		if len(list) > 0 {
			return list, next, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, cursor, fmt.Errorf("webhook: %w", ctx.Err())
		case <-c.closed:
			return nil, cursor, channel.ErrClosed
		}
	}
}

// number returns the number of the last message that a cursor covers.
func (c *Channel) number(cursor string) int64 {
	epoch, digits, _ := strings.Cut(cursor, ":")
	n, err := strconv.ParseInt(digits, 10, 64)
	if epoch != c.epoch || err != nil {
		return 0
	}
	return n
}

// acceptUpTo marks the messages up to a number as taken. The requests that brought them can then be answered.
func (c *Channel) acceptUpTo(upTo int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 && c.waiting[0].number <= upTo { // waiting is in the order of the numbers
		close(c.waiting[0].taken)
		c.waiting = c.waiting[1:]
	}
}

// pending returns the waiting messages, the cursor after them, and a channel that is closed when
// the next one arrives.
func (c *Channel) pending(cursor string) (list []channel.Inbound, next string, arrived <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = cursor
	for _, h := range c.waiting {
		list = append(list, h.message)
		next = fmt.Sprintf("%s:%d", c.epoch, h.number)
	}
	return list, next, c.arrived
}
