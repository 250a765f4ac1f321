package emailtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/email"
)

// Subject returns mail for the table of cases.
func Subject() channeltest.Subject {
	const noCode = "a reply from 400 on says that the server has not accepted the mail, also after the text"
	return channeltest.Subject{
		Name: "email", Secrets: []string{Password, key},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{}
			p.Server = &Server{Reply: p.answer, search: p.searched}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			return p
		},
		Dial: func(address, files string) (channel.Channel, error) {
			s := Server{}
			opt := s.Options()
			if _, err := fmt.Sscan(address, &opt.IMAP.Port, &opt.SMTP.Port); err != nil {
				return nil, err
			}
			opt.Files, opt.PollFor = files, time.Second
			return email.New(opt)
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.TextAnswers: "the sender of a mail can be forged",
			channeltest.Edits:       "a sent mail cannot be changed", channeltest.Orders: "mails have no common numbers",
			channeltest.RateLimits: "SMTP names no time for a pause", channeltest.ServerErrors: noCode,
		},
	}
}

// platform is the server as a channeltest.Platform. Each person writes in one thread.
type platform struct {
	*Server
	channeltest.Faults

	mine    sync.Mutex // guards the fields below
	people  int
	mails   []string // of people, as they were delivered
	skew    time.Duration
	revoked bool
	gone    []string // addresses that no longer exist
	held    []string // mails for the reverse order
	holds   bool
}

func (p *platform) Address() string {
	opt := p.Options()
	return fmt.Sprint(opt.IMAP.Port, " ", opt.SMTP.Port)
}

// base32Of returns the beginning of bytes in base32.
func base32Of(b []byte, n int) string {
	return strings.ToLower(base32.StdEncoding.EncodeToString(b))[:n]
}

// secretAddress returns the secret address of a contact, as docs/channel-email.md describes it. It is computed here a
// second time.
func secretAddress(contact string) string {
	mac := hmac.New(sha256.New, []byte(key))
	for _, part := range []string{"perlica mail", "c", contact} {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:]) // never fails
	}
	return "bot+c" + base32Of(mac.Sum(nil), 20) + "@mail.example"
}

func (p *platform) Join(name string) channeltest.Person {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.people++
	contact := fmt.Sprintf("p%d@home.example", p.people)
	root := sha256.Sum256([]byte("root." + contact))
	return channeltest.Person{Name: name, Contact: contact, Chat: contact + "/" + base32Of(root[:], 12)}
}

// deliver delivers a mail of a person, or holds it back. The caller holds the lock.
func (p *platform) deliver(text string) {
	if p.holds {
		p.held = append(p.held, text)
		return
	}
	p.mails = append(p.mails, text)
	if err := p.Deliver(text); err != nil {
		panic(err) // the memory server takes every mail
	}
}

// head returns the beginning of a mail of a person.
func (p *platform) head(from channeltest.Person, to, subject string) (id, head string) {
	id = fmt.Sprintf("m%d.%s", len(p.mails)+len(p.held), from.Contact)
	return id, fmt.Sprintf("Message-ID: <%s>\nFrom: %s <%s>\nTo: %s\nSubject: %s\nDate: %s\nMIME-Version: 1.0\n", id,
		from.Name, from.Contact, to, subject, time.Now().Add(p.skew).Format(time.RFC1123Z))
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	p.mine.Lock()
	defer p.mine.Unlock()
	id, head := p.head(from, secretAddress(from.Contact), "Re: Perlica")
	refs := "<root." + from.Contact + ">"
	if m.ReplyTo != "" {
		head += "In-Reply-To: <" + m.ReplyTo + ">\n"
		refs += " <" + m.ReplyTo + ">"
	}
	head += "References: " + refs + "\n"
	text := "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString([]byte(m.Text)) + "\n"
	if m.File == nil {
		p.deliver(head + text)
		return id
	}
	p.deliver(fmt.Sprintf("%sContent-Type: multipart/mixed; boundary=b\n\n--b\n%s--b\nContent-Type: text/x-log\n"+
		"Content-Disposition: attachment; filename=%q\nContent-Transfer-Encoding: base64\n\n%s\n--b--\n", head, text,
		m.File.Name, base64.StdEncoding.EncodeToString(m.File.Data)))
	return id
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	for _, l := range p.letters() {
		if l.ID != sent {
			continue
		}
		for _, link := range l.Links {
			if dataOf(link) == data {
				p.mine.Lock()
				_, head := p.head(from, link.To, link.Subject)
				p.deliver(head + "\n\n")
				p.mine.Unlock()
				return
			}
		}
	}
	panic("no mail " + sent + " has the option " + data)
}

// dataOf returns the data of an option from its link.
func dataOf(l Link) string {
	data, _, _ := strings.Cut(l.Subject[strings.LastIndexByte(l.Subject, '[')+1:], " ")
	return data
}

// letters returns the mails of the bot.
func (p *platform) letters() (list []Letter) {
	for _, m := range p.Server.Sent() {
		l, err := Read(m.Text)
		if err != nil {
			panic(err) // the channel wrote a malformed mail
		}
		list = append(list, l)
	}
	return list
}

var (
	textForm = regexp.MustCompile(`(?s)pre-wrap">(.*)</div>\r?\n`)
	anyTag   = regexp.MustCompile(`<[^<>]*>`)
)

// Sent shows only the first mail with a message id, as many mailboxes do.
func (p *platform) Sent() (list []channeltest.Sent) {
	for _, l := range p.letters() {
		if slices.ContainsFunc(list, func(s channeltest.Sent) bool { return s.ID == l.ID }) {
			continue
		}
		rich := strings.ReplaceAll(textForm.FindStringSubmatch(l.HTML)[1], "\r\n", "\n")
		contact := strings.Trim(l.Header.Get("To"), "<>")
		thread := l.ID[strings.IndexByte(l.ID, '.')+1 : strings.IndexByte(l.ID, '@')]
		s := channeltest.Sent{ID: l.ID, Chat: contact + "/" + thread, Text: rich,
			Shown: html.UnescapeString(anyTag.ReplaceAllString(rich, "")), ReplyTo: strings.Trim(l.Header.Get("In-Reply-To"),
				"<>")}
		for _, link := range l.Links {
			s.Buttons = append(s.Buttons, channel.Button{Label: link.Label, Data: dataOf(link)})
		}
		for name, data := range l.Files {
			s.File = &channeltest.File{Name: name, Data: []byte(data),
				Picture: strings.HasPrefix(l.Types[name], "image/")}
		}
		list = append(list, s)
	}
	return list
}

func (p *platform) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, p.Changed, ok)
}

// answer returns the reply to an SMTP command.
func (p *platform) answer(command string) string {
	p.mine.Lock()
	defer p.mine.Unlock()
	switch {
	case p.revoked && strings.HasPrefix(command, "AUTH"):
		return "535 5.7.8 " + Password + " is not valid"
	case slices.ContainsFunc(p.gone, func(a string) bool { return command == "RCPT TO:<"+a+">" }):
		return "550 5.1.1 no such mailbox"
	case command != ".":
		return ""
	}
	return map[channeltest.Fault]string{channeltest.Drop: "close", channeltest.LateDrop: "take, close",
		channeltest.Half: "take, half"}[p.Next(channeltest.Sending, nil)]
}

// searched cuts the connections if a fault is wanted.
func (p *platform) searched() {
	if p.Next(channeltest.Receiving, nil) != "" {
		p.Cut()
	}
}

// Search may misbehave.
func (s *session) Search(kind imapserver.NumKind, what *imap.SearchCriteria,
	opt *imap.SearchOptions) (*imap.SearchData, error) {
	if s.server.search != nil {
		s.server.search()
	}
	return s.UserSession.Search(kind, what, opt)
}

func (p *platform) Echo() {
	list := p.Server.Sent()
	if err := p.Deliver(list[len(list)-1].Text); err != nil {
		panic(err) // the memory server takes every mail
	}
}

func (p *platform) Redeliver() {
	p.mine.Lock()
	defer p.mine.Unlock()
	for _, m := range p.mails {
		if err := p.Deliver("X-Again: yes\n" + m); err != nil {
			panic(err) // the memory server takes every mail
		}
	}
}

func (p *platform) Reverse(write func()) {
	p.mine.Lock()
	p.holds = true
	p.mine.Unlock()
	write()
	p.mine.Lock()
	defer p.mine.Unlock()
	held := p.held
	p.held, p.holds = nil, false
	for _, m := range slices.Backward(held) {
		p.deliver(m)
	}
}

func (p *platform) Skew(d time.Duration) {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.skew += d
}

func (p *platform) Revoke() {
	p.mine.Lock()
	p.revoked = true
	p.mine.Unlock()
	p.Refuse(Password + " is not valid any more")
	p.Cut()
}

func (p *platform) Delete(of channeltest.Person) {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.gone = append(p.gone, of.Contact)
}

var _ channeltest.Platform = (*platform)(nil)
