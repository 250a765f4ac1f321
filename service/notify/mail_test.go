package notify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/email"
)

// mailServer is a small SMTP server. It accepts one connection after the other.
type mailServer struct {
	listener net.Listener
	tls      *tls.Config
	implicit bool
	// replies maps the beginning of a command to the replies to it, in order. The last one stays. "close" ends the
	// connection. "." stands for the end of a mail.
	replies map[string][]string

	mu    sync.Mutex // guards the fields below
	lines []string   // the commands, with "(tls) " before those of an encrypted connection
	mails []string
}

// newMailServer starts a server that ends with the test. It returns the settings that reach it.
func newMailServer(t *testing.T, s *mailServer) *mailer {
	certified := httptest.NewTLSServer(nil) // only its certificate is used
	t.Cleanup(certified.Close)
	s.tls = &tls.Config{Certificates: certified.TLS.Certificates}
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.serve(conn)
		}
	})
	t.Cleanup(func() {
		_ = s.listener.Close()
		served.Wait()
	})
	how := email.StartTLS
	if s.implicit {
		how = email.Implicit
	}
	return &mailer{from: "p@shop.example", to: "me@example.org", server: email.Server{
		Host: "127.0.0.1", Port: s.listener.Addr().(*net.TCPAddr).Port, Encryption: how,
		User: "perlica", Password: "letmein", TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

// reply returns the reply to a command.
func (s *mailServer) reply(line, usual string) string {
	for begin, list := range s.replies {
		if strings.HasPrefix(line, begin) {
			if len(list) > 1 {
				s.replies[begin] = list[1:]
			}
			return list[0]
		}
	}
	return usual
}

func (s *mailServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	encrypted := s.implicit
	if encrypted {
		conn = tls.Server(conn, s.tls)
	}
	in := bufio.NewReader(conn)
	say := func(text string) bool {
		if text == "close" {
			return false
		}
		_, err := io.WriteString(conn, text+"\r\n")
		return err == nil
	}
	for going := say("220 mail.test ESMTP"); going; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		s.mu.Lock()
		s.lines = append(s.lines, map[bool]string{true: "(tls) "}[encrypted]+line)
		verb, _, _ := strings.Cut(line, " ")
		usual := "250 ok"
		switch strings.ToUpper(verb) {
		case "EHLO":
			usual = "250-mail.test\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS"
			if encrypted {
				usual = "250-mail.test\r\n250 AUTH PLAIN LOGIN"
			}
		case "STARTTLS":
			usual = "220 go"
		case "AUTH":
			usual = "235 welcome"
		case "DATA":
			usual = "354 go"
		case "QUIT":
			usual = "221 bye"
		}
		text := s.reply(line, usual)
		s.mu.Unlock()
		going = say(text)
		switch {
		case going && verb == "STARTTLS" && text == "220 go":
			conn, encrypted = tls.Server(conn, s.tls), true
			in = bufio.NewReader(conn)
		case going && verb == "DATA" && text == "354 go":
			var b bytes.Buffer
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				b.WriteString(strings.TrimPrefix(line, "."))
			}
			s.mu.Lock()
			s.mails = append(s.mails, b.String())
			text = s.reply(".", "250 queued as 42")
			s.mu.Unlock()
			going = say(text)
		}
	}
}

// hostileNote returns a note with hostile words.
func hostileNote() note {
	return note{Key: "0199-key", Kind: question, Title: oneLine("A question waits in 网站 "+hostile, 120), Project: "shop",
		Lines: []string{"Session: x"}, Content: "你好 " + strings.Repeat("x", 2000) + "\n.\nend"}
}

// TestMail sends a mail with encryption and a login, and reads it as a mail program does. The title is encoded, and a
// line with a single dot does not end the mail.
func TestMail(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		s := &mailServer{implicit: implicit}
		m := newMailServer(t, s)
		n := hostileNote()
		reply, err := m.send(t.Context(), n)
		if err != nil || reply != "queued as 42" && reply != "250 queued as 42" {
			t.Fatalf("reply %q, error %v", reply, err)
		}
		login := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00perlica\x00letmein"))
		all := strings.Join(s.lines, "\n")
		if !strings.Contains(all, "(tls) "+login) || !strings.Contains(all, "(tls) MAIL FROM:<p@shop.example>") ||
			!strings.Contains(all, "(tls) RCPT TO:<me@example.org>") {
			t.Errorf("commands:\n%s", all)
		}
		got, err := mail.ReadMessage(strings.NewReader(s.mails[0]))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		if err != nil || subject != n.Title || len(got.Header) != 9 || got.Header.Get("Message-Id") !=
			"<0199-key@shop.example>" || got.Header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("%v: headers %v", err, got.Header)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
		if want := strings.ReplaceAll(n.body(), "\n", "\r\n") + "\r\n"; err != nil || string(body) != want {
			t.Errorf("%v: body %q, want %q", err, body, want)
		}
	}
}

// TestMailFaults checks the kind of error after each fault of a server. A 5xx is final and a 4xx is not. If the reply
// to the text is lost, the result is unknown.
func TestMailFaults(t *testing.T) {
	for name, c := range map[string]struct {
		replies map[string][]string
		kind    string
	}{
		"greylisted":       {map[string][]string{"RCPT": {"450 later"}}, "not sent"},
		"unknown person":   {map[string][]string{"RCPT": {"550 no such user"}}, "rejected"},
		"text later":       {map[string][]string{".": {"451 later"}}, "not sent"},
		"text refused":     {map[string][]string{".": {"554 spam"}}, "rejected"},
		"lost reply":       {map[string][]string{".": {"close"}}, "unknown"},
		"closed before":    {map[string][]string{"DATA": {"close"}}, "not sent"},
		"wrong password":   {map[string][]string{"AUTH": {"535 no"}}, "rejected"},
		"no encryption":    {map[string][]string{"STARTTLS": {"454 not now"}}, "not sent"},
		"never encryption": {map[string][]string{"STARTTLS": {"502 unknown"}}, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &mailServer{replies: c.replies}
			m := newMailServer(t, s)
			_, err := m.send(t.Context(), hostileNote())
			kind := "unknown"
			switch {
			case isRejected(err):
				kind = "rejected"
			case errors.Is(err, channel.ErrNotSent):
				kind = "not sent"
			}
			if err == nil || kind != c.kind {
				t.Errorf("%s: %v, want %s", kind, err, c.kind)
			}
			for _, line := range s.lines {
				if strings.HasPrefix(line, "AUTH") || strings.HasPrefix(line, "MAIL") {
					t.Errorf("%q left without encryption", line)
				}
			}
		})
	}
}

// TestMailOnce checks that a mail that was refused for now is delivered once, later.
func TestMailOnce(t *testing.T) {
	s := &mailServer{replies: map[string][]string{"RCPT": {"450 later", "250 ok"}}}
	m := newMailServer(t, s)
	w := newWorld(t, table("desktop", ""))
	clock := time.Now().Add(time.Second)
	d := w.delivery(Options{}, &clock)
	d.target.send = m.send
	w.finish("hello", 0)
	for range 100 {
		w.deliver(t.Context(), d)
		clock = clock.Add(time.Minute)
	}
	if got := w.history(); got != "started, failed, started, sent" || len(s.mails) != 1 {
		t.Errorf("%s; %d mails", got, len(s.mails))
	}
}

// TestMailCertificate checks that a server with an unknown certificate gets nothing.
func TestMailCertificate(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		s := &mailServer{implicit: implicit}
		m := newMailServer(t, s)
		m.server.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		if _, err := m.send(t.Context(), hostileNote()); !errors.Is(err, channel.ErrNotSent) {
			t.Errorf("got %v, want ErrNotSent", err)
		}
		if strings.Contains(strings.Join(s.lines, "\n"), "AUTH") {
			t.Errorf("commands %q", s.lines)
		}
	}
}

// TestNoPlainMail checks that a server on another machine without encryption is no target.
func TestNoPlainMail(t *testing.T) {
	w := newWorld(t, table("mailto:me@example.org", "")+"[smtp]\nhost = \"mail.example.org\"\nfrom = \"p@x.example\"\n"+
		"tls = \"none\"\n")
	_, errs := Targets(t.Context(), w.project, Options{})
	if len(errs) != 1 || !strings.Contains(fmt.Sprint(errs), "this machine alone") {
		t.Errorf("errors %v", errs)
	}
}

// TestMailHangs checks that the end of the context ends each step.
func TestMailHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		cancel() // the greeting never comes
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	m := &mailer{server: email.Server{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Encryption: email.None}}
	if _, err := m.send(ctx, note{}); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("got %v, want ErrNotSent", err)
	}
	_ = l.Close()
	all.Wait()
}
