package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/channel"
)

// mailer sends mail through the user's server.
type mailer struct {
	settings config.SMTP
	password string
	from, to string
	trust    *tls.Config // the certificates of the system, unless a test replaces them
}

// mailTarget returns the target of a mail address.
func mailTarget(p *project.Project, r config.Notify) (Target, error) {
	m := &mailer{settings: p.Config.SMTP, trust: &tls.Config{MinVersion: tls.VersionTLS12}}
	m.to = strings.TrimPrefix(r.To, "mailto:")
	var err error
	switch s := &m.settings; {
	case s.Host == "" || s.From == "":
		return Target{}, errors.New("mail needs smtp.host and smtp.from in your configuration")
	case s.TLS == "none" && !config.IsLoopback(s.Host):
		return Target{}, errors.New(`smtp.tls = "none" is for a server on this machine alone`)
	case s.User != "":
		if m.password, err = s.Secret.Read(p.Dirs, "smtp.secret", getenv(p.Environ)); err != nil {
			return Target{}, fmt.Errorf("the password of smtp: %w", err)
		}
	}
	from, err := mail.ParseAddress(m.settings.From)
	if err != nil {
		return Target{}, errors.New("smtp.from is not a mail address")
	}
	m.from = from.Address
	return Target{Name: "mail " + oneLine(m.to, maxName), send: m.send}, nil
}

// send delivers one mail. An error before the last byte of the text means that nothing was sent. Without the server's
// reply to the whole text, the result is unknown.
func (m *mailer) send(ctx context.Context, n note) (reply string, err error) {
	unsent := func(step string, err error) (string, error) {
		var code *textproto.Error
		if errors.As(err, &code) && code.Code >= 500 {
			return "", &channel.RejectedError{Why: oneLine(step+": "+err.Error(), maxError)}
		}
		return "", fmt.Errorf("%w: %s: %w", channel.ErrNotSent, step, err)
	}
	conn, err := m.dial(ctx)
	if err != nil {
		return unsent("connecting", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the end of ctx ends each step
	c, err := smtp.NewClient(conn, m.settings.Host)
	if err != nil {
		_ = conn.Close() // nothing was sent
		return unsent("greeting", err)
	}
	defer func() { _ = c.Close() }() // an error does not matter, because the result is known
	if m.settings.TLS == "starttls" {
		if err := c.StartTLS(m.tls()); err != nil {
			return unsent("STARTTLS", err)
		}
	}
	if m.settings.User != "" {
		if err := m.login(c); err != nil {
			return unsent("login", err)
		}
	}
	if err := c.Mail("<" + m.from + ">"); err != nil {
		return unsent("sender", err)
	}
	if err := c.Rcpt("<" + m.to + ">"); err != nil {
		return unsent("recipient", err)
	}
	w, err := c.Data()
	if err != nil {
		return unsent("text", err)
	}
	if _, err := w.Write(m.compose(n, time.Now())); err != nil {
		return unsent("text", err)
	}
	if err := w.Close(); err != nil {
		var code *textproto.Error
		if errors.As(err, &code) { // the server has replied, so it did not accept the mail
			return unsent("text", err)
		}
		return "", err
	}
	_ = c.Quit() // an error does not matter, because the server has the mail
	if said, ok := w.(interface{ ServerResponse() string }); ok {
		reply = oneLine(said.ServerResponse(), replyShown)
	}
	return reply, nil
}

func (m *mailer) tls() *tls.Config {
	c := m.trust.Clone()
	c.ServerName = m.settings.Host
	return c
}

func (m *mailer) dial(ctx context.Context) (net.Conn, error) {
	port := m.settings.Port
	if port == 0 {
		port = map[string]int{"implicit": 465, "starttls": 587, "none": 25}[m.settings.TLS]
	}
	addr := net.JoinHostPort(m.settings.Host, strconv.Itoa(port))
	if m.settings.TLS == "implicit" {
		return (&tls.Dialer{Config: m.tls()}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// login proves the identity with the strongest method that the server offers. The methods PLAIN and LOGIN send the
// password only with TLS, or to this machine.
func (m *mailer) login(c *smtp.Client) error {
	_, offered := c.Extension("AUTH")
	methods := strings.Fields(strings.ToUpper(offered))
	_, encrypted := c.TLSConnectionState()
	plain := encrypted || config.IsLoopback(m.settings.Host)
	switch s := m.settings; {
	case slices.Contains(methods, "SCRAM-SHA-256"):
		return c.Auth(smtp.ScramSHA256Auth(s.User, m.password))
	case slices.Contains(methods, "PLAIN") && plain:
		return c.Auth(smtp.PlainAuth("", s.User, m.password, s.Host, true))
	case slices.Contains(methods, "LOGIN") && plain:
		return c.Auth(smtp.LoginAuth(s.User, m.password, s.Host, true))
	}
	return &textproto.Error{Code: 534, Msg: "the server offers no way to log in that is safe here: " + offered}
}

// compose returns the mail. Its only variable headers are an encoded title, two parsed addresses and ids.
func (m *mailer) compose(n note, now time.Time) []byte {
	var b bytes.Buffer
	_, host, _ := strings.Cut(m.from, "@")
	for _, h := range [][2]string{
		{"From", (&mail.Address{Name: "Perlica", Address: m.from}).String()},
		{"To", (&mail.Address{Address: m.to}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", n.Title)},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", "<" + n.Key + "@" + host + ">"},
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	text := n.body()
	if n.URL != "" {
		text += "\n" + n.URL
	}
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")) // a buffer has no errors
	_ = w.Close()
	return b.Bytes()
}
