package email

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/service/channel"
)

// Encryption says when a connection is encrypted.
type Encryption string

// These are the kinds of encryption.
const (
	Implicit Encryption = "implicit" // from the first byte
	StartTLS Encryption = "starttls" // after the command STARTTLS; otherwise the connection ends
	None     Encryption = "none"     // on this machine only
)

// Server is a mail server with an account.
type Server struct {
	Host       string
	Port       int // 0 means the usual port of the encryption
	Encryption Encryption
	User       string // empty means no login
	Password   channel.Secret
	TLS        *tls.Config // nil means the certificates of the system
}

// errPlain says that the connection to another machine would not be encrypted.
var errPlain = errors.New("a connection without TLS is for a server on this machine alone")

// dial connects to the server. The encryption StartTLS begins later. The parameter "ports" has the usual ports.
func (s Server) dial(ctx context.Context, ports map[Encryption]int) (net.Conn, error) {
	if s.Encryption != Implicit && s.Encryption != StartTLS && !config.IsLoopback(s.Host) {
		return nil, errPlain
	}
	port := s.Port
	if port == 0 {
		port = ports[s.Encryption]
	}
	addr := net.JoinHostPort(s.Host, strconv.Itoa(port))
	if s.Encryption == Implicit {
		return (&tls.Dialer{Config: s.tls()}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

func (s Server) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		c = s.TLS.Clone()
	}
	c.ServerName = s.Host
	return c
}

// ErrRefused says that the server refuses the session for good, before it knows the mail. Such an error is also a
// [channel.ErrNotSent], because another password or another setting is a remedy.
var ErrRefused = errors.New("the server refuses the session")

// slowDown is the pause after a server has said that it gets too many mails. SMTP names no time.
const slowDown = time.Minute

// notAccepted returns the error of a step before the server has accepted the mail. A reply with a code from 500 on
// refuses the mail for good. RFC 5321 says that a server has not accepted a mail if it replies with a code from 400 to
// 499, also after the text. The mail may then be sent again.
func notAccepted(step string, err error) error {
	before := step == "greeting" || step == "STARTTLS" || step == "login"
	var code *textproto.Error
	if errors.As(err, &code) {
		switch text := strings.TrimSpace(code.Msg); {
		case code.Code >= 500 && before:
			return fmt.Errorf("%w: %w: %s: %s", channel.ErrNotSent, ErrRefused, step, short(err.Error()))
		case code.Code >= 500:
			return &channel.RejectedError{Why: short(step + ": " + err.Error())}
		case code.Code == 421, code.Code >= 400 && code.Code < 500 && strings.HasPrefix(text, "4.7."):
			return fmt.Errorf("%s: %s: %w", step, short(err.Error()), &channel.RateLimitError{After: slowDown})
		}
		return fmt.Errorf("%w: %s: %s", channel.ErrNotSent, step, short(err.Error()))
	}
	return fmt.Errorf("%w: %s: %w", channel.ErrNotSent, step, err)
}

// short cuts a server's words.
func short(text string) string {
	const most = 300
	return fmt.Sprintf("%.*s", most, strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "))
}

// Send delivers one mail and returns the server's last reply. Its errors have the kinds of [channel.Channel]. If the
// server's reply to the whole text is missing, the result is unknown.
func (s Server) Send(ctx context.Context, from, to string, text []byte) (reply string, err error) {
	c, done, err := s.login(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if err := c.Mail("<" + from + ">"); err != nil {
		return "", notAccepted("sender", err)
	}
	if err := c.Rcpt("<" + to + ">"); err != nil {
		return "", notAccepted("recipient", err)
	}
	w, err := c.Data()
	if err != nil {
		return "", notAccepted("text", err)
	}
	if _, err := w.Write(text); err != nil {
		return "", notAccepted("text", err)
	}
	if err := w.Close(); err != nil {
		var code *textproto.Error
		if errors.As(err, &code) { // the server has replied, so it did not accept the mail
			return "", notAccepted("text", err)
		}
		return "", err
	}
	_ = c.Quit() // an error does not matter, because the server has the mail
	if said, ok := w.(interface{ ServerResponse() string }); ok {
		reply = said.ServerResponse()
	}
	return reply, nil
}

// login opens a session with the server. The end of ctx ends each step. The caller calls done at the end.
func (s Server) login(ctx context.Context) (c *smtp.Client, done func(), err error) {
	conn, err := s.dial(ctx, map[Encryption]int{Implicit: 465, StartTLS: 587, None: 25})
	if err != nil {
		return nil, nil, notAccepted("connecting", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	done = func() {
		stop()
		_ = conn.Close() // an error does not matter, because the result is known
	}
	step := "greeting"
	if c, err = smtp.NewClient(conn, s.Host); err == nil && s.Encryption == StartTLS {
		step = "STARTTLS"
		err = c.StartTLS(s.tls())
	}
	if err == nil && s.User != "" {
		step = "login"
		err = s.authenticate(c)
	}
	if err != nil {
		done()
		return nil, nil, notAccepted(step, s.withoutPassword(err))
	}
	return c, done, nil
}

// withoutPassword returns an error of a server without the password, which a server may repeat.
func (s Server) withoutPassword(err error) error {
	var code *textproto.Error
	if errors.As(err, &code) {
		return &textproto.Error{Code: code.Code, Msg: s.hidePassword(code.Msg)}
	}
	return err
}

// hidePassword replaces the password in a text, also in the forms of the methods PLAIN and LOGIN.
func (s Server) hidePassword(text string) string {
	if s.Password == "" {
		return text
	}
	for _, form := range []string{"\x00" + s.User + "\x00" + string(s.Password), string(s.Password)} {
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte(form)), "(password)")
	}
	return strings.ReplaceAll(text, string(s.Password), "(password)")
}

// authenticate proves the identity with the strongest method that the server offers. The methods PLAIN and LOGIN send
// the password only with TLS, or to this machine.
func (s Server) authenticate(c *smtp.Client) error {
	_, offered := c.Extension("AUTH")
	methods := strings.Fields(strings.ToUpper(offered))
	_, encrypted := c.TLSConnectionState()
	plain := encrypted || config.IsLoopback(s.Host)
	switch {
	case slices.Contains(methods, "SCRAM-SHA-256"):
		return c.Auth(smtp.ScramSHA256Auth(s.User, string(s.Password)))
	case slices.Contains(methods, "PLAIN") && plain:
		return c.Auth(smtp.PlainAuth("", s.User, string(s.Password), s.Host, true))
	case slices.Contains(methods, "LOGIN") && plain:
		return c.Auth(smtp.LoginAuth(s.User, string(s.Password), s.Host, true))
	}
	return &textproto.Error{Code: 534, Msg: "the server offers no way to log in that is safe here: " + offered}
}
