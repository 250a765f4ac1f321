package email_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/email"
	"github.com/perlica/perlica/service/email/emailtest"
)

var mailServers = flag.Bool("mail-servers", false, "run TestServers with Dovecot and OpenSMTPD; it needs root")

const dovecotConf = `protocols = imap
base_dir = %[1]s/base
state_dir = %[1]s/state
log_path = %[1]s/dovecot.log
listen = 127.0.0.1
ssl = required
ssl_cert = <%[1]s/cert.pem
ssl_key = <%[1]s/key.pem
mail_location = maildir:%[1]s/mail/%%n
first_valid_uid = 1
passdb {
  driver = static
  args = password=%[2]s
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=%[1]s/mail/%%n allow_all_users=yes
}
service imap-login {
  inet_listener imap {
    port = %[3]d
  }
  inet_listener imaps {
    port = %[4]d
  }
}
`

const smtpdConf = `table people { "@" = "nobody" }
listen on 127.0.0.1 port %[2]d hostname mail.example
action "bot" maildir "%[1]s/mail/bot" virtual <people>
action "others" maildir "%[1]s/mail/others" virtual <people>
match from any for rcpt-to regex "^bot([+].*)?@mail.example$" action "bot"
match from any for domain "home.example" action "others"
`

// servers are the servers of TestServers. OpenSMTPD has no TLS here, because the package of Debian 12 ends each
// handshake with an internal error.
type servers struct {
	t                     *testing.T
	dir                   string
	startTLS, imaps, smtp int // ports
	roots                 *x509.CertPool
	read                  map[string]bool // files of others
}

// TestServers checks the channel over Dovecot and OpenSMTPD: the check, pairing, a reply, a link, forged senders,
// programs, files, and a certificate that nobody signed.
func TestServers(t *testing.T) {
	if !*mailServers {
		t.Skip("NOT TESTED: mail over Dovecot and OpenSMTPD: the test runs with -mail-servers")
	}
	s := startServers(t)
	server := func(port int, e email.Encryption) email.Server {
		return email.Server{Host: "127.0.0.1", Port: port, Encryption: e, TLS: &tls.Config{RootCAs: s.roots,
			MinVersion: tls.VersionTLS12}}
	}
	opt := email.Options{Address: emailtest.Address, Key: "0123456789abcdef", Files: t.TempDir(), PollFor: time.Second,
		IMAP: server(s.imaps, email.Implicit), SMTP: server(s.smtp, email.None)}
	opt.IMAP.User, opt.IMAP.Password = emailtest.User, emailtest.Password
	s.check(opt, "")
	other := opt
	other.IMAP.Port, other.IMAP.Encryption = s.startTLS, email.StartTLS
	s.check(other, "")
	other.IMAP.TLS = nil // the certificates of the system
	s.check(other, "IMAP")
	other = opt
	other.IMAP.Password = "wrong"
	s.check(other, "IMAP")

	w := &world{T: t, opt: opt}
	w.open()
	const public = emailtest.Address
	s.write(ann, public, emailtest.Write("1@home.example", ann, public, "", "123456"))
	m := s.next(w)
	if !m.Unproven || m.Contact != ann || m.Text != "123456" {
		t.Fatalf("a stranger: %+v", m)
	}
	buttons := []channel.Button{{Label: "yes", Data: "q:1:1"}, {Label: "no", Data: "q:1:2"}}
	data := strings.Repeat("0123456789\x00\n", 200_000)
	path := filepath.Join(t.TempDir(), "out.bin")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := w.ch.Send(t.Context(), channel.Outbound{Chat: m.Chat, Text: "<b>May I?</b>", Buttons: buttons, Key: "k",
		ReplyTo: m.ID, File: &channel.File{Name: "out.bin", Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	card := s.arrives()
	if card.ID != id || len(card.Links) != 2 || card.Files["out.bin"] != data {
		t.Fatalf("the card %s with %d links and %d bytes, want %s", card.ID, len(card.Links), len(card.Files["out.bin"]), id)
	}
	yes := card.Links[0]
	s.write("", card.ReplyTo, emailtest.Write("2@home.example", "MAILER-DAEMON@home.example", card.ReplyTo, "Failed", "x"))
	s.write(ann, yes.To, emailtest.Write("3@home.example", ann, yes.To, yes.Subject, "away",
		"Auto-Submitted: auto-replied"))
	s.write(eve, yes.To, emailtest.Write("4@home.example", eve, yes.To, yes.Subject, "yes"))
	if m = s.next(w); m.Contact != eve || !m.Unproven || m.Button != "" {
		t.Errorf("a link of another person: %+v", m)
	}
	s.write(ann, yes.To, emailtest.Write("5@home.example", ann, yes.To, yes.Subject, "yes"))
	if m = s.next(w); m.Contact != ann || m.Unproven || m.Button != "q:1:1" || m.ReplyTo != id {
		t.Errorf("a link: %+v", m)
	}
	s.write(ann, card.ReplyTo, emailtest.Write("6@home.example", ann, card.ReplyTo, "Re: Perlica", "--b\n\nLook.\n--b\n"+
		"Content-Type: text/plain; name=a.txt\n\n"+strings.Repeat("a line of text\n", 300_000)+"--b--\n",
		"Content-Type: multipart/mixed; boundary=b", "References: <"+id+">"))
	if m = s.next(w); m.Unproven || m.Text != "Look." || len(m.Files) != 1 || !w.ch.After(m, id) {
		t.Errorf("a reply with a file: %+v", m)
	}
	s.write(ann, card.ReplyTo, emailtest.Write("7@home.example", ann, card.ReplyTo, "", strings.Repeat("x", 70)+
		strings.Repeat("\n"+strings.Repeat("x", 70), 30<<20/71)))
	if m = s.next(w); m.Unread != "a mail that is too large" {
		t.Errorf("30 MB: unread %q, %d bytes of text", m.Unread, len(m.Text))
	}
	s.write(ann, public, emailtest.Write("8@home.example", ann, public, "", "delete it"))
	if m = s.next(w); !m.Unproven {
		t.Errorf("a mail to the public address: %+v", m)
	}
}

// startServers starts both servers. They end with the test.
func startServers(t *testing.T) *servers {
	for _, program := range []string{"dovecot", "smtpd"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Skip("NOT TESTED: mail over Dovecot and OpenSMTPD: they are not installed, or the test does not run as root")
		}
	}
	dir, err := os.MkdirTemp("", "mail")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &servers{t: t, dir: dir, roots: x509.NewCertPool(), read: map[string]bool{}}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	if err := os.Chmod(dir, 0o755); err != nil { // the servers write mails as another user
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("mail"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(s.path("mail"), uid, -1); err != nil {
		t.Fatal(err)
	}
	s.makeCertificate()
	var listeners []net.Listener
	for _, port := range []*int{&s.startTLS, &s.imaps, &s.smtp} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*port, listeners = l.Addr().(*net.TCPAddr).Port, append(listeners, l)
	}
	for _, l := range listeners {
		_ = l.Close()
	}
	s.save("dovecot.conf", fmt.Appendf(nil, dovecotConf, dir, emailtest.Password, s.startTLS, s.imaps))
	s.save("smtpd.conf", fmt.Appendf(nil, smtpdConf, dir, s.smtp))
	s.start(s.imaps, "dovecot", "-F", "-c", s.path("dovecot.conf"))
	s.start(s.smtp, "smtpd", "-d", "-f", s.path("smtpd.conf"))
	return s
}

func (s *servers) path(name string) string { return filepath.Join(s.dir, name) }

func (s *servers) save(name string, data []byte) {
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// makeCertificate makes the certificate of this machine.
func (s *servers) makeCertificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	s.roots.AppendCertsFromPEM(text)
	s.save("cert.pem", text)
	s.save("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// start starts a server and waits until it listens.
func (s *servers) start(port int, program string, args ...string) {
	var said strings.Builder
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr, c.WaitDelay = &said, &said, 10*time.Second
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Wait() }() // its exit status says nothing about the channel
	s.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // the process may have ended
		<-ended
		if s.t.Failed() {
			s.t.Logf("%s: %s", program, &said)
		}
	})
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			s.t.Fatalf("%s ended: %s", program, &said)
		default:
		}
		s.pause()
	}
}

func (s *servers) pause() {
	if !channel.Wait(s.t.Context(), 20*time.Millisecond) {
		s.t.Fatal(s.t.Context().Err())
	}
}

// check compares the findings that fail with the wanted name, or with none.
func (s *servers) check(opt email.Options, want string) {
	s.t.Helper()
	c, err := email.New(opt)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range c.Check(s.t.Context()) {
		if f.Fails != (f.Name == want) {
			s.t.Errorf("%+v, want a failure of %q", f, want)
		}
	}
	if err := c.Close(); err != nil {
		s.t.Error(err)
	}
}

// write sends a mail of a person.
func (s *servers) write(from, to, text string) {
	s.t.Helper()
	server := email.Server{Host: "127.0.0.1", Port: s.smtp, Encryption: email.None}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if _, err := server.Send(ctx, from, to, []byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next message of the channel.
func (s *servers) next(w *world) channel.Inbound {
	s.t.Helper()
	for {
		if list := w.poll(); len(list) > 0 {
			if len(list) > 1 {
				s.t.Fatalf("several messages: %+v", list)
			}
			return list[0]
		}
	}
}

// arrives waits for a mail to a person.
func (s *servers) arrives() emailtest.Letter {
	s.t.Helper()
	for {
		found, err := filepath.Glob(s.path("mail/others/new/*"))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range found {
			if s.read[name] {
				continue
			}
			s.read[name] = true
			text, err := os.ReadFile(name)
			if err != nil {
				s.t.Fatal(err)
			}
			l, err := emailtest.Read(string(text))
			if err != nil {
				s.t.Fatal(err)
			}
			return l
		}
		s.pause()
	}
}
