package email

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"

	"github.com/perlica/perlica/service/channel"
)

const (
	batch       = 20        // mails of one Poll
	maxHeader   = 256 << 10 // bytes
	maxStranger = 64 << 10  // bytes that are read of a mail of an unproven sender
	firstDays   = 1         // days that the empty cursor covers
)

// position is a cursor. Poll has returned all mails up to its number.
type position struct {
	validity uint32 // the generation of the numbers
	uid      imap.UID
	at       time.Time // time of the Poll
}

// parsePosition reads a cursor. The zero position belongs to the empty cursor.
func parsePosition(cursor string) (p position, err error) {
	if cursor == "" {
		return p, nil
	}
	var unix int64
	var uid uint32
	text, at, ok := strings.Cut(cursor, "@")
	validity, number, ok2 := strings.Cut(text, ":")
	v, err := strconv.ParseUint(validity, 10, 32)
	n, err2 := strconv.ParseUint(number, 10, 32)
	unix, err3 := strconv.ParseInt(at, 10, 64)
	if uid = uint32(n); !ok || !ok2 || err != nil || err2 != nil || err3 != nil {
		return p, fmt.Errorf("email: %.40q is no cursor of this channel", cursor)
	}
	return position{uint32(v), imap.UID(uid), time.Unix(unix, 0)}, nil
}

func (p position) String() string { return fmt.Sprintf("%d:%d@%d", p.validity, p.uid, p.at.Unix()) }

// Poll waits for mails after the cursor and returns the messages of people. The empty cursor covers the mails of the
// last day. If the server has changed the numbers of its mails, Poll begins a day before the time of the cursor. The
// caller recognises the ids of known messages.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	return c.life.Poll(ctx, cursor, c.pollOnce)
}

func (c *Channel) pollOnce(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	at, err := parsePosition(cursor)
	if err != nil {
		return nil, cursor, err
	}
	box, err := c.kept(ctx)
	if err != nil {
		return nil, cursor, err
	}
	list, next, err := c.pollBox(ctx, box, at)
	switch {
	case errors.Is(err, errGone): // the next Poll connects again
		c.dropBox()
		return nil, cursor, nil
	case err != nil:
		c.dropBox()
		return nil, cursor, fmt.Errorf("email: %s: %w", c.opt.IMAP.Host, err)
	case next == at:
		return nil, cursor, nil
	}
	return list, next.String(), nil
}

// kept returns the connection of the last Poll, or a new one.
func (c *Channel) kept(ctx context.Context) (*mailbox, error) {
	if c.box != nil {
		select {
		case <-c.box.client.Closed():
			c.dropBox()
		default:
			return c.box, nil
		}
	}
	box, err := c.open(ctx)
	c.box = box
	return box, err
}

// dropBox ends the connection, if there is one.
func (c *Channel) dropBox() {
	if c.box != nil {
		c.box.close()
		c.box = nil
	}
}

// pollBox returns the messages after a position and the position after them. Without new mails it waits once.
func (c *Channel) pollBox(ctx context.Context, box *mailbox, at position) (list []channel.Inbound, next position,
	err error) {
	uids, err := c.newer(ctx, box, at)
	err = box.gone(ctx, err) // the server may have ended the connection between two calls of Poll
	if err == nil && len(uids) == 0 && at.validity == box.validity {
		if err = box.wait(ctx, c.opt.Timeout, c.opt.PollFor, c.opt.Every); err == nil {
			uids, err = c.newer(ctx, box, at)
		}
	}
	if err != nil {
		return nil, at, err
	}
	next = position{box.validity, at.uid, c.now()}
	switch {
	case len(uids) > batch:
		uids = uids[:batch]
	case len(uids) == 0 && at.validity == box.validity:
		return nil, at, nil
	case len(uids) == 0: // there is no recent mail, so the position is before the next mail
		next.uid = max(box.next, 1) - 1
		return nil, next, nil
	}
	next.uid = uids[len(uids)-1]
	heads, err := box.fetch(ctx, c.opt.Timeout, uids, imap.PartSpecifierHeader, maxHeader)
	if err != nil {
		return nil, at, err
	}
	slices.SortFunc(heads, func(a, b part) int { return int(int64(a.uid) - int64(b.uid)) })
	polled := map[string][]string{}
	for _, h := range heads {
		m, refs, ok, err := c.inbound(ctx, box, h)
		if err != nil {
			return nil, at, err
		}
		if ok {
			list = append(list, m)
			polled[m.ID] = refs
		}
	}
	c.mu.Lock()
	c.polled = polled
	c.mu.Unlock()
	return list, next, nil
}

// newer returns the numbers of the mails after a position, in order.
func (c *Channel) newer(ctx context.Context, box *mailbox, at position) ([]imap.UID, error) {
	what, after := &imap.SearchCriteria{}, imap.UID(0)
	if at.validity == box.validity {
		after = at.uid
		what.UID = []imap.UIDSet{{imap.UIDRange{Start: after + 1}}} // up to the newest
	} else {
		since := at.at
		if at.validity == 0 {
			since = c.now()
		}
		what.Since = since.AddDate(0, 0, -firstDays)
	}
	uids, err := box.search(ctx, c.opt.Timeout, what)
	if err != nil {
		return nil, err
	}
	// A range up to the newest mail always contains the newest mail.
	uids = slices.DeleteFunc(uids, func(u imap.UID) bool { return u <= after })
	slices.Sort(uids)
	return uids, nil
}

// inbound returns the message of a mail. ok is false if no person has written the mail to this channel.
func (c *Channel) inbound(ctx context.Context, box *mailbox, p part) (m channel.Inbound, refs []string, ok bool,
	err error) {
	fields, err := textproto.ReadHeader(bufio.NewReader(bytes.NewReader(p.bytes)))
	if err != nil {
		return m, nil, false, nil // a malformed mail must not stop the next ones
	}
	l, ok := c.readLetter(message.Header{Header: fields})
	if !ok {
		return m, nil, false, nil
	}
	if l.id == "" {
		if l.id, err = c.makeID(ctx, box, p.uid, l); err != nil || l.id == "" {
			return m, nil, false, err
		}
	}
	l.thread = c.threadIn(l.id, l.refs)
	m = channel.Inbound{ID: l.id, Chat: chatOf(l.from, l.thread), Contact: l.from, Name: l.name, Sent: p.came,
		ReplyTo: l.replyTo, Unproven: true}
	switch {
	case has(l.tags, c.tag(answerTag, l.from, l.answered, l.answer)):
		m.Unproven, m.Chat, m.ReplyTo = false, chatOf(l.from, c.threadOfOwn(l.answered)), l.answered
		m.Button, m.Text = l.answer, l.label
		return m, l.refs, true, nil
	case has(l.tags, c.tag(contactTag, l.from)):
		m.Unproven = false
		c.noteThread(l)
	}
	most := int64(maxStranger)
	if !m.Unproven {
		if most = c.opt.MaxFile/3*4 + 1<<20; p.size > most {
			m.Unread = "a mail that is too large"
			return m, l.refs, true, nil
		}
	}
	whole, err := box.fetch(ctx, fileTime*c.opt.Timeout, []imap.UID{p.uid}, imap.PartSpecifierNone, most)
	if err != nil || len(whole) == 0 {
		return m, nil, false, err
	}
	c.fill(&m, l, readBody(whole[0].bytes))
	return m, l.refs, true, nil
}

// makeID returns an id for a mail without one: a hash of its sender, date, subject and body. These stay the same when
// the mail comes again. The id is empty if the mail no longer exists.
func (c *Channel) makeID(ctx context.Context, box *mailbox, uid imap.UID, l letter) (string, error) {
	most := int64(maxStranger)
	if has(l.tags, c.tag(contactTag, l.from)) {
		most = c.opt.MaxFile
	}
	found, err := box.fetch(ctx, fileTime*c.opt.Timeout, []imap.UID{uid}, imap.PartSpecifierText, most)
	if err != nil || len(found) == 0 {
		return "", err
	}
	sum := sha256.New()
	for _, field := range []string{l.from, l.date, l.subject, string(found[0].bytes)} {
		_, _ = fmt.Fprintf(sum, "%d\n%s\n", len(field), field) // a hash takes all bytes
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// fileTime is the ratio of the time limit of a mail with files to the limit of any other step.
const fileTime = 10

// noteThread remembers the title of a thread and its newest mail, so that answers belong to the thread everywhere.
func (c *Channel) noteThread(l letter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest.Put(l.thread, l.id)
	if _, known := c.subjects.Get(l.thread); !known && l.subject != "" {
		c.subjects.Put(l.thread, fmt.Sprintf("%.*s", maxSubject, l.subject))
	}
}

// After reports whether a message of the last Poll was written after a sent one. This is known only if the mail refers
// to the sent mail.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.polled[m.ID], sent)
}
