// Package emailtest is a mail server for tests.
//
// The IMAP side is the memory server of go-imap, which other people wrote. The SMTP side is written here from RFC 5321.
// It remembers each mail to other people, and delivers mails for the mailbox. It misbehaves on request.
package emailtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/perlica/perlica/service/email"
)

// These values reach the mailbox.
const (
	Address  = "bot@mail.example"
	User     = "bot"
	Password = "letmein-4711"
)

// key is the key of the channels in tests.
const key = "0123456789abcdef0123456789abcdef"

// Mail is a mail to another person.
type Mail struct {
	To   string
	Text string // with its header
}

// Server is a mail server. Its methods may be called from several goroutines.
type Server struct {
	// Reply returns the reply to an SMTP command, or "" for the usual one. The command "." ends a mail. The reply
	// "close" ends the connection. "take, close" accepts the mail and then ends the connection. "take, half" does so
	// after half a reply. It must be set before the first connection and be safe for several goroutines.
	Reply func(command string) string
	// NoIdle is true if the IMAP side does not offer IDLE. It must be set before Start.
	NoIdle bool

	search     func() // called before each search of mails; nil means that nothing happens
	imap, smtp net.Listener
	server     *imapserver.Server
	running    sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	user   *imapmemserver.User
	conns  map[net.Conn]bool
	refuse string
	sent   []Mail
	change chan struct{} // closed and replaced with each mail to another person
}

// Start begins to listen on free ports of this machine.
func (s *Server) Start() (err error) {
	s.user, s.conns, s.change = imapmemserver.NewUser(User, Password), map[net.Conn]bool{}, make(chan struct{})
	if err = s.user.Create("INBOX", nil); err != nil {
		return err
	}
	if s.imap, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.smtp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return errors.Join(err, s.imap.Close())
	}
	s.server = imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return &session{server: s}, nil, nil
		},
		Caps: imap.CapSet{imap.CapIMAP4rev1: {}}, InsecureAuth: true, Logger: log.New(io.Discard, "", 0),
	})
	s.running.Go(func() { _ = s.server.Serve(&tracked{s.imap, s}) }) // Close ends the server
	s.running.Go(func() {
		for {
			conn, err := (&tracked{s.smtp, s}).Accept()
			if err != nil {
				return
			}
			s.running.Go(func() { s.serveSMTP(conn) })
		}
	})
	return nil
}

// Close stops the server.
func (s *Server) Close() error {
	err := errors.Join(s.server.Close(), s.smtp.Close())
	s.Cut()
	s.running.Wait()
	return err
}

// Cut ends all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close() // the connection may be closed already
	}
}

// Refuse makes the IMAP side refuse each login with these words. "" accepts logins again.
func (s *Server) Refuse(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = words
}

// Renumber gives the mailbox a new generation of numbers, as after a repair. The mails stay.
func (s *Server) Renumber(mails ...string) error {
	s.Cut()
	if err := errors.Join(s.user.Delete("INBOX"), s.user.Create("INBOX", nil)); err != nil {
		return err
	}
	for _, m := range mails {
		if err := s.Deliver(m); err != nil {
			return err
		}
	}
	return nil
}

// Options returns the options of a channel of this server.
func (s *Server) Options() email.Options {
	port := func(l net.Listener) int {
		if l == nil { // the server runs in another process
			return 0
		}
		return l.Addr().(*net.TCPAddr).Port
	}
	return email.Options{
		Address: Address, Key: key, Every: 20 * time.Millisecond,
		IMAP: email.Server{Host: "127.0.0.1", Port: port(s.imap), Encryption: email.None, User: User, Password: Password},
		SMTP: email.Server{Host: "127.0.0.1", Port: port(s.smtp), Encryption: email.None, User: User, Password: Password},
	}
}

// Deliver puts a mail into the mailbox. Its lines may end with a line feed alone.
func (s *Server) Deliver(text string) error {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	_, err := s.user.Append("INBOX", literal{strings.NewReader(text)}, &imap.AppendOptions{})
	return err
}

type literal struct{ *strings.Reader }

// Sent returns the mails to other people.
func (s *Server) Sent() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.sent...)
}

// Changed returns a channel that is closed with the next mail to another person.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change
}

// tracked is a listener that knows its connections.
type tracked struct {
	net.Listener
	server *Server
}

func (t *tracked) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err == nil {
		t.server.mu.Lock()
		t.server.conns[c] = true
		t.server.mu.Unlock()
		if t.server.NoIdle {
			c = withoutIdle{c}
		}
	}
	return c, err
}

// session is an IMAP session.
type session struct {
	*imapmemserver.UserSession // nil before the login
	server                     *Server
}

func (s *session) Login(user, password string) error {
	s.server.mu.Lock()
	refuse := s.server.refuse
	s.server.mu.Unlock()
	if refuse != "" {
		return &imap.Error{Type: imap.StatusResponseTypeNo, Code: "ALERT", Text: refuse}
	}
	if err := s.server.user.Login(user, password); err != nil {
		return err
	}
	s.UserSession = imapmemserver.NewUserSession(s.server.user)
	return nil
}

func (s *session) Close() error {
	if s.UserSession == nil {
		return nil
	}
	return s.UserSession.Close()
}

// withoutIdle hides the capability IDLE.
type withoutIdle struct{ net.Conn }

func (c withoutIdle) Write(p []byte) (int, error) {
	if _, err := c.Conn.Write(bytes.ReplaceAll(p, []byte(" IDLE"), nil)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// serveSMTP serves a connection.
func (s *Server) serveSMTP(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	say := func(text string) bool {
		_, err := io.WriteString(conn, text+"\r\n")
		return err == nil && text != "close"
	}
	var to []string
	for going := say("220 mail.example ESMTP"); going; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		usual := "250 2.0.0 ok"
		switch verb = strings.ToUpper(verb); verb {
		case "EHLO":
			usual = "250-mail.example\r\n250 AUTH PLAIN LOGIN"
		case "AUTH":
			usual = "235 2.7.0 welcome"
		case "DATA":
			usual = "354 go"
		case "QUIT":
			usual = "221 2.0.0 bye"
		case "MAIL", "RSET":
			to = nil
		}
		text := s.reply(line, usual)
		if verb == "RCPT" && text == usual {
			to = append(to, strings.Trim(strings.TrimPrefix(rest, "TO:"), "<>"))
		}
		if going = text != "close" && say(text); going && verb == "DATA" && text == usual {
			going = s.readData(in, to, say)
		}
	}
}

func (s *Server) reply(command, usual string) string {
	if s.Reply == nil {
		return usual
	}
	if text := s.Reply(command); text != "" {
		return text
	}
	return usual
}

// readData reads a mail and delivers it.
func (s *Server) readData(in *bufio.Reader, to []string, say func(string) bool) bool {
	var b bytes.Buffer
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		b.WriteString(strings.TrimPrefix(line, "."))
	}
	text := s.reply(".", "250 2.0.0 queued as 42")
	if strings.HasPrefix(text, "250") || strings.HasPrefix(text, "take") {
		for _, a := range to {
			s.take(a, b.String())
		}
	}
	if text == "take, half" {
		text = "25"
		_ = say(text)
		return false
	}
	return text != "close" && text != "take, close" && say(text)
}

func (s *Server) take(to, text string) {
	local, domain, _ := strings.Cut(to, "@")
	name, _, _ := strings.Cut(local, "+")
	if name+"@"+domain == Address {
		if err := s.Deliver(fmt.Sprintf("Delivered-To: %s\r\n%s", to, text)); err != nil {
			panic(err) // the memory server takes every mail
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, Mail{to, text})
	close(s.change)
	s.change = make(chan struct{})
}
