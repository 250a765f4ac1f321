package email

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/perlica/perlica/service/channel"
)

// mailbox is an open connection to the folder INBOX. It is open for reading only.
type mailbox struct {
	client   *imapclient.Client
	validity uint32        // the generation of the mails' numbers
	next     imap.UID      // the number of the next mail, as the server said at the beginning; 0 means unknown
	changed  chan struct{} // capacity 1: the server has named a new number of mails
	idle     bool          // the server reports new mails without being asked
}

// errGone says that the connection ended while it waited. Servers end such connections from time to time.
var errGone = errors.New("the server has ended the connection")

// open connects to the mailbox.
func (c *Channel) open(ctx context.Context) (*mailbox, error) {
	box, err := c.openBox(ctx)
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("email: %s: %w", c.opt.IMAP.Host, err)
	}
	return box, nil
}

func (c *Channel) openBox(ctx context.Context) (_ *mailbox, err error) {
	s := c.opt.IMAP
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	conn, err := s.dial(ctx, map[Encryption]int{Implicit: 993, StartTLS: 143, None: 143})
	if err != nil {
		return nil, err
	}
	box := &mailbox{changed: make(chan struct{}, 1)}
	opt := &imapclient.Options{TLSConfig: s.tls(), UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(d *imapclient.UnilateralDataMailbox) {
			if d.NumMessages != nil {
				select {
				case box.changed <- struct{}{}:
				default:
				}
			}
		},
	}}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if s.Encryption == StartTLS {
		box.client, err = imapclient.NewStartTLS(conn, opt)
	} else {
		box.client = imapclient.New(conn, opt)
		err = box.client.WaitGreeting()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the greeting: %w", err)
	}
	if err = box.client.Login(s.User, string(s.Password)).Wait(); err != nil {
		box.close()
		var refusal *imap.Error
		if errors.As(err, &refusal) { // a server may repeat the password
			refusal.Text = s.hidePassword(refusal.Text)
		}
		return nil, fmt.Errorf("the login: %w", said(err))
	}
	box.idle = box.client.Caps().Has(imap.CapIdle)
	d, err := box.client.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil {
		box.close()
		return nil, fmt.Errorf("the folder INBOX: %w", said(err))
	}
	box.validity, box.next = d.UIDValidity, d.UIDNext
	return box, nil
}

func (b *mailbox) close() { _ = b.client.Close() } // the mailbox is only read, so nothing can be lost

// said returns an error with the server's own words, also those of an alert.
func said(err error) error {
	var e *imap.Error
	if errors.As(err, &e) {
		return errors.New(strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, map[bool]string{true: "[" + string(e.Code) +
			"]"}[e.Code != ""], short(e.Text))))
	}
	return err
}

// within runs a function that uses the connection. It closes the connection at the end of ctx or of the time limit,
// so that the function returns.
func (b *mailbox) within(ctx context.Context, limit time.Duration, steps func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, b.close)
	defer stop()
	err := steps()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return said(err)
	}
	return nil
}

// search returns the numbers of mails, in order.
func (b *mailbox) search(ctx context.Context, limit time.Duration, what *imap.SearchCriteria) (list []imap.UID,
	err error) {
	err = b.within(ctx, limit, func() error {
		d, err := b.client.UIDSearch(what, nil).Wait()
		if err == nil {
			list = d.AllUIDs()
		}
		return err
	})
	return list, err
}

// part is a part of a fetched mail.
type part struct {
	uid   imap.UID
	size  int64
	came  time.Time // arrival in the mailbox
	bytes []byte
}

// fetch reads a part of the mails with these numbers, and at most a number of bytes of each. A mail that no longer
// exists is left out.
func (b *mailbox) fetch(ctx context.Context, limit time.Duration, uids []imap.UID, of imap.PartSpecifier,
	most int64) (list []part, err error) {
	section := &imap.FetchItemBodySection{Specifier: of, Peek: true, Partial: &imap.SectionPartial{Size: most}}
	opt := &imap.FetchOptions{UID: true, InternalDate: true, RFC822Size: true,
		BodySection: []*imap.FetchItemBodySection{section}}
	err = b.within(ctx, limit, func() error {
		found, err := b.client.Fetch(imap.UIDSetNum(uids...), opt).Collect()
		for _, m := range found {
			p := part{uid: m.UID, size: m.RFC822Size, came: m.InternalDate}
			for _, s := range m.BodySection {
				p.bytes = s.Bytes
			}
			list = append(list, p)
		}
		return err
	})
	return list, err
}

// wait returns when new mails may have arrived, or the time is over. The error is errGone if the connection ended.
func (b *mailbox) wait(ctx context.Context, limit, pollFor, every time.Duration) error {
	if !b.idle {
		if !channel.Wait(ctx, min(every, pollFor)) {
			return ctx.Err()
		}
		return b.gone(ctx, b.within(ctx, limit, func() error { return b.client.Noop().Wait() }))
	}
	var idle *imapclient.IdleCommand
	err := b.within(ctx, limit, func() (err error) {
		idle, err = b.client.Idle()
		return err
	})
	if err != nil {
		return b.gone(ctx, err)
	}
	over := time.NewTimer(pollFor)
	defer over.Stop()
	select {
	case <-b.changed:
	case <-over.C:
	case <-b.client.Closed():
	case <-ctx.Done():
		b.close()
		return ctx.Err()
	}
	return b.gone(ctx, b.within(ctx, limit, func() error {
		if err := idle.Close(); err != nil {
			return err
		}
		return idle.Wait()
	}))
}

// gone returns errGone instead of an error if the server has ended the connection.
func (b *mailbox) gone(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	select {
	case <-b.client.Closed():
		return errGone
	default:
		return err
	}
}
