// Package email is a channel over IMAP and SMTP.
//
// The name of a sender can be forged, so it proves nothing. The channel gives each contact a secret address and
// names it as the reply address of each mail. A mail is the contact's own only if it comes from the contact's
// address to the contact's secret address. Any other mail may pair its sender with a code, and does nothing else.
// Each option of a question has a secret address, too. The address is bound to the contact, the mail of the
// question, and the option. Only a mailto link of that mail contains the address. Automatic replies, bounces and
// quoted texts therefore do not go to this address.
//
// The channel ignores mails that no person has written: automatic replies, bounces and mailing lists. It opens the
// mailbox read-only and changes nothing in it. A cursor never passes a mail that was not returned.
//
// The connection to the mailbox is kept between two calls of Poll. Only Poll uses it. Close ends Poll first.
package email

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/service/channel"
)

// These are the defaults of Options and the limits of the channel.
const (
	defaultMaxFile = 20 << 20
	defaultPollFor = 10 * time.Minute
	defaultEvery   = 30 * time.Second
	defaultTimeout = time.Minute
	minKey         = 16 // bytes
	maxText        = 100_000
	maxFiles       = 10 // files of a mail
	maxLocal       = 64 // longest part of an address before the @, by RFC 5321
)

// Options configures the channel.
type Options struct {
	Address string // the address of the mailbox; mails to this address with a plus sign must arrive, too
	IMAP    Server
	SMTP    Server
	Key     channel.Secret // the secret for addresses; at least 16 bytes
	Files   string         // the private folder of received files; empty means that files are refused
	// Accept reports whether a contact's files are stored. nil accepts all contacts. A stranger should not be able to
	// fill the disk.
	Accept  func(contact string) bool
	MaxFile int64         // limit of all files of a mail, in bytes; 0 means 20 MiB
	PollFor time.Duration // time for which Poll waits; 0 means ten minutes
	Every   time.Duration // interval of the looks for new mails on a server without IDLE; 0 means 30 s
	Timeout time.Duration // time limit of a step without a file; 0 means a minute
}

// Channel is a mailbox. Its methods may be called from several goroutines, except Poll, which one goroutine calls at a
// time.
type Channel struct {
	opt           Options
	local, domain string // the parts of the address
	now           func() time.Time
	life          *channel.Lifetime

	box *mailbox // used by Poll, and by Close after the last Poll; nil means that there is no connection

	mu       sync.Mutex // guards the fields below
	polled   map[string][]string
	subjects channel.Recent[string] // the subject of each thread
	newest   channel.Recent[string] // the newest known message id of each thread
}

var _ interface {
	channel.Channel
	channel.Checker
} = (*Channel)(nil)

// New returns the channel of a mailbox. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	a, err := mail.ParseAddress(opt.Address)
	if err != nil {
		return nil, errors.New("email: the address is not a mail address")
	}
	at := strings.LastIndexByte(a.Address, '@')
	c := &Channel{local: strings.ToLower(a.Address[:at]), domain: strings.ToLower(a.Address[at+1:]), now: time.Now,
		life: channel.NewLifetime()}
	if most := maxLocal - len("+a") - tagLength; len(c.local) > most {
		return nil, fmt.Errorf("email: the part of the address before the @ has more than %d characters", most)
	}
	if len(opt.Key) < minKey {
		return nil, fmt.Errorf("email: the key is shorter than %d bytes", minKey)
	}
	for _, s := range []Server{opt.IMAP, opt.SMTP} {
		if s.Host == "" {
			return nil, errors.New("email: a server has no name")
		}
		if s.Encryption == None && !config.IsLoopback(s.Host) {
			return nil, fmt.Errorf("email: %w", errPlain)
		}
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Every = cmp.Or(max(opt.Every, 0), defaultEvery)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	c.opt = opt
	return c, nil
}

// Name returns "email".
func (c *Channel) Name() string { return "email" }

// Limits returns the limits of the channel. Mail does not limit the length of a text. The channel does, because a
// longer text is unreadable.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Buttons: true, Files: true, Format: channel.HTML, Forgeable: true}
}

// Probe logs in to both servers and returns the address.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	box, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	box.close()
	client, done, err := c.opt.SMTP.login(ctx)
	if err != nil {
		return "", fmt.Errorf("email: %s: %w", c.opt.SMTP.Host, err)
	}
	_ = client.Quit() // the login has succeeded
	done()
	return c.address(), nil
}

// PairingLink returns an address that opens a mail with the code.
func (c *Channel) PairingLink(_ context.Context, code string) (string, error) {
	return mailto(c.address(), "Perlica", code), nil
}

// Close ends Poll and the connection to the mailbox. Later calls do nothing.
func (c *Channel) Close() error {
	c.life.Close()
	c.dropBox()
	return nil
}
