package email_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/email"
	"github.com/perlica/perlica/service/email/emailtest"
)

const ann, eve = "ann@home.example", "eve@evil.example"

// world is a mail server with a channel.
type world struct {
	*testing.T
	server *emailtest.Server
	opt    email.Options
	ch     *email.Channel
	cursor string
}

func newWorld(t *testing.T, change ...func(*emailtest.Server)) *world {
	t.Helper()
	w := &world{T: t, server: &emailtest.Server{}}
	for _, f := range change {
		f(w.server)
	}
	if err := w.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.server.Close() })
	w.opt = w.server.Options()
	w.opt.Files, w.opt.PollFor = t.TempDir(), 50*time.Millisecond
	w.open()
	return w
}

// open opens the channel again, as a restart does.
func (w *world) open() {
	w.Helper()
	if w.ch != nil {
		_ = w.ch.Close()
	}
	ch, err := email.New(w.opt)
	if err != nil {
		w.Fatal(err)
	}
	w.ch = ch
	w.Cleanup(func() { _ = ch.Close() })
}

// deliver puts a mail into the mailbox.
func (w *world) deliver(text string) {
	w.Helper()
	if err := w.server.Deliver(text); err != nil {
		w.Fatal(err)
	}
}

// poll returns the next messages, or none if there are no new mails.
func (w *world) poll() []channel.Inbound {
	w.Helper()
	for range 3 { // the first Poll only finds its position, and a Poll with an ended connection returns nothing
		list, next, err := w.ch.Poll(w.Context(), w.cursor)
		if err != nil {
			w.Fatal(err)
		}
		if w.cursor = next; len(list) > 0 {
			return list
		}
	}
	return nil
}

// one returns the only new message.
func (w *world) one() channel.Inbound {
	w.Helper()
	list := w.poll()
	if len(list) != 1 {
		w.Fatalf("%d messages, want 1: %+v", len(list), list)
	}
	return list[0]
}

// send sends a message and returns the mail that the person gets.
func (w *world) send(m channel.Outbound) (l emailtest.Letter) {
	w.Helper()
	id, err := w.ch.Send(w.Context(), m)
	if err != nil {
		w.Fatal(err)
	}
	sent := w.server.Sent()
	last := sent[len(sent)-1]
	if l, err = emailtest.Read(last.Text); err != nil || l.ID != id || last.To+"/" != m.Chat[:len(last.To)+1] {
		w.Fatalf("%v: mail %q to %q, want id %q", err, l.ID, last.To, id)
	}
	return l
}

// meet makes Ann write a first mail, and returns the chat and her secret address.
func (w *world) meet() (chat, secret string) {
	w.Helper()
	w.deliver(emailtest.Write("first@home.example", ann, emailtest.Address, "Hello", "123456"))
	chat = w.one().Chat
	return chat, w.send(channel.Outbound{Chat: chat, Text: "Paired.", Key: "k0"}).ReplyTo
}

// TestSender checks that a mail is a contact's own only if it comes from the contact's address to its secret address.
func TestSender(t *testing.T) {
	w := newWorld(t)
	_, secret := w.meet()
	w.deliver(emailtest.Write("e1@x", eve, emailtest.Address, "Hello", "123456"))
	eveSecret := w.send(channel.Outbound{Chat: w.one().Chat, Text: "No.", Key: "k1"}).ReplyTo
	if eveSecret == secret || !strings.HasPrefix(secret, "bot+c") {
		t.Fatalf("addresses %q and %q", secret, eveSecret)
	}
	for name, c := range map[string]struct {
		from, to string
		proven   bool
	}{
		"own":                   {ann, secret, true},
		"own, large letters":    {"Ann <ANN@Home.Example>", strings.ToUpper(secret), true},
		"own, among others":     {ann, "bob@home.example, Perlica <" + secret + ">", true},
		"public address":        {ann, emailtest.Address, false},
		"forged":                {ann, eveSecret, false},
		"another's address":     {eve, secret, false},
		"guessed address":       {ann, "bot+caaaaaaaaaaaaaaaaaaaa@mail.example", false},
		"address in a name":     {ann, `"` + secret + `" <bot@mail.example>`, false},
		"another domain":        {ann, strings.Replace(secret, "mail.example", "evil.example", 1), false},
		"contact's own as name": {`"` + ann + `" <` + eve + `>`, secret, false},
	} {
		w.deliver(emailtest.Write(strings.ReplaceAll(name, " ", ".")+"@x", c.from, c.to, "", "Delete it."))
		m := w.one()
		if m.Unproven == c.proven {
			t.Errorf("%s: unproven %v", name, m.Unproven)
		}
		if c.proven && (m.Contact != ann || m.Text != "Delete it.") {
			t.Errorf("%s: contact %q, text %q", name, m.Contact, m.Text)
		}
	}
}

// TestAnswer checks the addresses of options. Only the link of an option, from the asked contact, chooses it.
func TestAnswer(t *testing.T) {
	w := newWorld(t)
	chat, secret := w.meet()
	buttons := []channel.Button{{Label: "yes, <once> [q:3 x]", Data: "q:0199:1"}, {Label: "no", Data: "q:0199:2"}}
	card := w.send(channel.Outbound{Chat: chat, Text: "<b>May I?</b>", Buttons: buttons, Key: "k1"})
	if len(card.Links) != 2 || card.Links[0].Label != buttons[0].Label {
		t.Fatalf("links %+v", card.Links)
	}
	yes, no, thread := card.Links[0], card.Links[1], chat[len(ann)+1:]
	for field, values := range card.Header {
		if strings.Contains(strings.Join(values, " "), "bot+a") {
			t.Errorf("the field %s has the address of an answer", field)
		}
	}
	if strings.Contains(card.Plain, "bot+a") {
		t.Error("the plain text has the address of an answer")
	}
	for name, c := range map[string]struct {
		from, to, subject string
		more              []string
		want              string
	}{
		"yes":              {from: ann, to: yes.To, subject: yes.Subject, want: "q:0199:1"},
		"no":               {from: ann, to: no.To, subject: no.Subject, want: "q:0199:2"},
		"a prefix":         {from: ann, to: yes.To, subject: "[EXTERN] " + yes.Subject, want: "q:0199:1"},
		"another sender":   {from: eve, to: yes.To, subject: yes.Subject},
		"another option":   {from: ann, to: no.To, subject: yes.Subject},
		"another question": {from: ann, to: yes.To, subject: strings.Replace(yes.Subject, "0199:1", "0200:1", 1)},
		"another mail":     {from: ann, to: yes.To, subject: strings.Replace(yes.Subject, thread, "aaaaaaaaaaaa", 1)},
		"no address":       {from: ann, to: secret, subject: yes.Subject},
		"no subject":       {from: ann, to: yes.To, subject: ""},
	} {
		w.deliver(emailtest.Write(strings.ReplaceAll(name, " ", ".")+"@x", c.from, c.to, c.subject, "yes", c.more...))
		m := w.one()
		if m.Button != c.want || c.want != "" && (m.Unproven || m.Chat != chat || m.Contact != ann || m.ReplyTo != card.ID) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	w.deliver(emailtest.Write("auto@x", ann, yes.To, yes.Subject, "away", "Auto-Submitted: auto-replied"))
	if list := w.poll(); len(list) > 0 {
		t.Errorf("an automatic reply counts: %+v", list)
	}
	w.opt.Key = "another key, another key"
	w.open()
	w.deliver(emailtest.Write("later@x", ann, yes.To, yes.Subject, "yes"))
	if m := w.one(); m.Button != "" || !m.Unproven {
		t.Errorf("an address of another key counts: %+v", m)
	}
}

// TestAutomatic checks that mails of programs count for nothing.
func TestAutomatic(t *testing.T) {
	w := newWorld(t)
	_, secret := w.meet()
	for _, field := range []string{"Auto-Submitted: auto-replied", "Auto-Submitted: auto-generated", "Precedence: bulk",
		"Precedence: auto_reply", "List-Id: <x.example>", "List-Unsubscribe: <mailto:x@x.example>", "Return-Path: <>",
		"X-Autoreply: yes", `Content-Type: multipart/report; boundary="x"`, "From: " + eve} {
		w.deliver(emailtest.Write("a@x", ann, secret, "Away", "I am away.", field))
	}
	for _, from := range []string{"MAILER-DAEMON@mail.example", "postmaster@home.example", emailtest.Address, "", "nobody",
		ann + ", " + eve} {
		w.deliver(emailtest.Write("b@x", from, secret, "Away", "I am away."))
	}
	w.deliver("not a header\n\nat all\n")
	w.deliver("")
	w.deliver(emailtest.Write("c@x", ann, secret, "", "I am here.", "Auto-Submitted: no"))
	if m := w.one(); m.Text != "I am here." {
		t.Errorf("%+v", m)
	}
}

// TestThreads checks that a thread is a chat. Mail programs show an answer in its thread. A reply to the answer
// belongs to the same chat, also after a restart.
func TestThreads(t *testing.T) {
	w := newWorld(t)
	first, secret := w.meet()
	w.deliver(emailtest.Write("t1@home.example", ann, secret, "The build", "It fails."))
	m := w.one()
	if m.Chat == first || m.Text != "The build\n\nIt fails." || m.ID != "t1@home.example" {
		t.Fatalf("%+v", m)
	}
	reply := w.send(channel.Outbound{Chat: m.Chat, Text: "Which?", ReplyTo: m.ID, Key: "k1"})
	if reply.Subject != "Re: The build" || reply.Header.Get("In-Reply-To") != "<t1@home.example>" ||
		!strings.Contains(reply.Header.Get("References"), "<t1@home.example>") ||
		reply.Header.Get("Auto-Submitted") != "auto-replied" {
		t.Errorf("header %v", reply.Header)
	}
	w.open()
	w.deliver(emailtest.Write("t2@home.example", ann, secret, "Re: The build", "This one.",
		"In-Reply-To: <"+reply.ID+">", "References: <t1@home.example> <"+reply.ID+">"))
	again := w.one()
	if again.Chat != m.Chat || again.ReplyTo != reply.ID || again.Text != "This one." {
		t.Errorf("%+v", again)
	}
	if !w.ch.After(again, reply.ID) || w.ch.After(again, "another@mail.example") || w.ch.After(m, reply.ID) {
		t.Error("the order of the mails is wrong")
	}
	w.deliver(emailtest.Write("t3@home.example", ann, secret, "Re: The build", "And this.",
		"References: <t1@home.example>"))
	if own := w.one(); own.Chat != m.Chat {
		t.Errorf("a reply to an own mail: %+v", own)
	}
}

// TestCursor checks that each mail is returned once, also after a restart. If the server changes the numbers of its
// mails, the mails are returned again with the same ids.
func TestCursor(t *testing.T) {
	w := newWorld(t)
	_, secret := w.meet()
	var mails []string
	for i := range 45 {
		mails = append(mails, emailtest.Write(fmt.Sprintf("m%d@x", i), ann, secret, "", fmt.Sprintf("text %d", i)))
		w.deliver(mails[i])
	}
	var got []string
	for range 4 {
		w.open()
		for _, m := range w.poll() {
			got = append(got, m.ID)
		}
	}
	if len(got) != 45 || got[0] != "m0@x" || got[44] != "m44@x" {
		t.Fatalf("%d messages: %v", len(got), got)
	}
	if err := w.server.Renumber(mails[43], mails[44], emailtest.Write("new@x", ann, secret, "", "new")); err != nil {
		t.Fatal(err)
	}
	list := w.poll()
	if len(list) != 3 || list[0].ID != "m43@x" || list[2].ID != "new@x" {
		t.Errorf("after new numbers: %+v", list)
	}
	for _, bad := range []string{"x", "1:2", "1:x@3", "-1:2@3"} {
		if _, _, err := w.ch.Poll(t.Context(), bad); err == nil {
			t.Errorf("%q is a cursor", bad)
		}
	}
}

// TestNoMessageID checks that a mail without an id gets the same id when it comes again. Another mail of the same
// moment with the same subject gets another id.
func TestNoMessageID(t *testing.T) {
	w := newWorld(t)
	_, secret := w.meet()
	text := strings.SplitN(emailtest.Write("x", ann, secret, "Hi", "text"), "\n", 2)[1]
	w.deliver("Received: from a\n" + text)
	w.deliver("Received: from b\n" + text)
	w.deliver(strings.TrimSuffix(text, "text\n") + "other text\n")
	list := w.poll()
	if len(list) != 3 || list[0].ID != list[1].ID || !strings.HasPrefix(list[0].ID, "sha256:") ||
		list[2].ID == list[0].ID || list[2].Text != "Hi\n\nother text" {
		t.Errorf("%+v", list)
	}
}

// TestWaits checks that a waiting Poll returns a new mail, with and without IDLE. The end of the context ends the
// Poll. A connection that the server ends while the channel waits is no fault.
func TestWaits(t *testing.T) {
	for _, noIdle := range []bool{false, true} {
		w := newWorld(t, func(s *emailtest.Server) { s.NoIdle = noIdle })
		_, secret := w.meet()
		w.opt.PollFor = time.Hour
		w.open()
		type result struct {
			list []channel.Inbound
			err  error
		}
		done := make(chan result, 1)
		poll := func(ctx context.Context) {
			for { // an ended connection returns nothing
				list, next, err := w.ch.Poll(ctx, w.cursor)
				if w.cursor = next; len(list) > 0 || err != nil {
					done <- result{list, err}
					return
				}
			}
		}
		go poll(t.Context())
		w.server.Cut()
		w.deliver(emailtest.Write("late@x", ann, secret, "", "late"))
		if r := <-done; r.err != nil && !noIdle || len(r.list) == 1 && r.list[0].ID != "late@x" {
			t.Errorf("no IDLE %v: %+v", noIdle, r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go poll(ctx)
		cancel()
		if r := <-done; !errors.Is(r.err, context.Canceled) {
			t.Errorf("no IDLE %v: %+v, want a cancelled context", noIdle, r)
		}
	}
}

// TestRefusedLogin checks that an error has the server's words and no password, and that a later login works.
func TestRefusedLogin(t *testing.T) {
	w := newWorld(t)
	w.server.Refuse("Please log in by your browser")
	_, _, err := w.ch.Poll(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "NO [ALERT] Please log in") ||
		strings.Contains(err.Error(), emailtest.Password) {
		t.Errorf("got %v", err)
	}
	w.server.Refuse("")
	if _, _, err := w.ch.Poll(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if name, err := w.ch.Probe(t.Context()); err != nil || name != emailtest.Address {
		t.Errorf("%q, %v", name, err)
	}
}

// TestFiles checks files in both directions and their limits.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	w.opt.MaxFile = 4000
	w.open()
	chat, secret := w.meet()
	const mixed = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b"
	part := func(name, data string) string {
		return "--b\nContent-Type: text/x-log\nContent-Disposition: attachment; filename=\"" + name + "\"\n\n" + data + "\n"
	}
	text := "--b\nContent-Type: text/plain\n\nLook.\n" + part("../../a b.log", "one") + part("large.log",
		strings.Repeat("x", 5000)) + part("=?utf-8?q?=E4=BD=A0.log?=", "two") + "--b--\n"
	w.deliver(emailtest.Write("f1@x", ann, secret, "", text, mixed))
	m := w.one()
	if len(m.Files) != 2 || m.Files[0].Name != "a_b.log" || m.Files[1].Name != "你.log" ||
		m.Text != "Look.\n\n[large.log was left out]" {
		t.Fatalf("%+v", m)
	}
	for i, want := range []string{"one", "two"} {
		if got, err := os.ReadFile(m.Files[i].Path); err != nil || string(got) != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	w.deliver(emailtest.Write("f2@x", ann, secret, "", strings.Repeat("y", 2<<20)))
	if m := w.one(); m.Unread != "a mail that is too large" {
		t.Errorf("%+v", m)
	}
	w.deliver(emailtest.Write("f3@x", ann, emailtest.Address, "", text, mixed))
	if m := w.one(); len(m.Files) > 0 {
		t.Errorf("a stranger's files: %+v", m)
	}
	path := w.opt.Files + "/out"
	if err := os.WriteFile(path, []byte("\x00out\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := w.send(channel.Outbound{Chat: chat, Text: "Here.", Key: "k", File: &channel.File{Name: "r.bin", Path: path}})
	if l.Files["r.bin"] != "\x00out\xff" || strings.TrimSpace(l.Plain) != "Here." {
		t.Errorf("%+v", l)
	}
	var rejected *channel.RejectedError
	if err := os.Truncate(path, 4001); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{path, "/nonesuch", w.opt.Files} {
		_, err := w.ch.Send(t.Context(), channel.Outbound{Chat: chat, Key: "k", File: &channel.File{Path: f}})
		if !errors.As(err, &rejected) {
			t.Errorf("%s: %v", f, err)
		}
	}
	w.opt.Accept = func(string) bool { return false }
	w.open()
	w.deliver(emailtest.Write("f4@x", ann, secret, "", text, mixed))
	if m := w.one(); len(m.Files) > 0 {
		t.Errorf("files of an unaccepted contact: %+v", m)
	}
}

// TestSendFaults checks the kind of the error after each fault.
func TestSendFaults(t *testing.T) {
	for name, c := range map[string]struct{ command, reply, kind string }{
		"greylisted":         {"RCPT", "451 4.7.1 come back later", "pause"},
		"too many":           {"MAIL", "421 4.7.0 too many mails", "pause"},
		"full":               {"RCPT", "452 4.2.2 the mailbox is full", "not sent"},
		"unknown person":     {"RCPT", "550 5.1.1 no such user", "rejected"},
		"later, after DATA":  {".", "451 4.3.0 try again", "not sent"},
		"spam, after DATA":   {".", "554 5.7.1 spam", "rejected"},
		"lost before DATA":   {"DATA", "close", "not sent"},
		"lost after DATA":    {".", "close", "unknown"},
		"taken and lost":     {".", "take, close", "unknown"},
		"revoked password":   {"AUTH", "535 5.7.8 no", "not sent"},
		"no session for you": {"EHLO", "554 5.7.0 go away", "not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *emailtest.Server) {
				s.Reply = func(line string) string {
					if strings.HasPrefix(line, c.command) || c.command == "EHLO" && strings.HasPrefix(line, "HELO") {
						return c.reply
					}
					return ""
				}
			})
			_, err := w.ch.Send(t.Context(), channel.Outbound{Chat: ann + "/aaaaaaaaaaaa", Text: "Hi", Key: "k"})
			kind := "unknown"
			switch pause := (*channel.RateLimitError)(nil); {
			case errors.As(err, new(*channel.RejectedError)):
				kind = "rejected"
			case errors.As(err, &pause):
				kind = "pause"
			case errors.Is(err, channel.ErrNotSent):
				kind = "not sent"
			}
			if err == nil || kind != c.kind || strings.Contains(err.Error(), emailtest.Password) {
				t.Errorf("%s: %v, want %s", kind, err, c.kind)
			}
		})
	}
	w := newWorld(t)
	for _, chat := range []string{"", ann, "x/aaaaaaaaaaaa", ann + "/short"} {
		if _, err := w.ch.Send(t.Context(), channel.Outbound{Chat: chat}); !errors.As(err, new(*channel.RejectedError)) {
			t.Errorf("%q: %v", chat, err)
		}
	}
}

// TestCheck checks the findings about a right and about a wrong mailbox. The check sends no mail.
func TestCheck(t *testing.T) {
	refused := ""
	w := newWorld(t, func(s *emailtest.Server) {
		s.Reply = func(line string) string {
			if refused != "" && strings.HasPrefix(line, refused) {
				return "550 5.1.1 no"
			}
			return ""
		}
	})
	for command, name := range map[string]string{"": "", "RCPT": "plus address", "MAIL": "SMTP", "AUTH": "SMTP"} {
		refused = command
		failed := ""
		for _, f := range w.ch.Check(t.Context()) {
			if f.Fails {
				failed += f.Name
			}
			if (f.Next != "") != f.Fails || strings.Contains(f.Detail, emailtest.Password) {
				t.Errorf("%+v", f)
			}
		}
		if failed != name {
			t.Errorf("%q refused: %q fails, want %q", command, failed, name)
		}
	}
	w.server.Refuse("no")
	if list := w.ch.Check(t.Context()); list[0].Name != "IMAP" || !list[0].Fails {
		t.Errorf("%+v", list)
	}
	w.server.Refuse("")
	if list := w.poll(); len(w.server.Sent())+len(list) > 0 {
		t.Errorf("the check sent a mail: %+v", list)
	}
}

// TestNew checks that unusable options are refused.
func TestNew(t *testing.T) {
	good := newWorld(t).opt
	for name, change := range map[string]func(*email.Options){
		"no address": func(o *email.Options) { o.Address = "bot" },
		"long":       func(o *email.Options) { o.Address = strings.Repeat("a", 43) + "@x.example" },
		"key":        func(o *email.Options) { o.Key = "short" },
		"no server":  func(o *email.Options) { o.SMTP.Host = "" },
		"no TLS":     func(o *email.Options) { o.IMAP.Host = "mail.example" },
	} {
		opt := good
		change(&opt)
		if _, err := email.New(opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
