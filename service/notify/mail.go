package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/email"
)

// mailer sends mail through the user's server.
type mailer struct {
	server   email.Server
	from, to string
}

// mailTarget returns the target of a mail address.
func mailTarget(p *project.Project, r config.Notify) (Target, error) {
	m := &mailer{to: strings.TrimPrefix(r.To, "mailto:")}
	s := p.Config.SMTP
	m.server = email.Server{Host: s.Host, Port: s.Port, Encryption: email.Encryption(s.TLS), User: s.User}
	switch {
	case s.Host == "" || s.From == "":
		return Target{}, errors.New("mail needs smtp.host and smtp.from in your configuration")
	case s.TLS == "none" && !config.IsLoopback(s.Host):
		return Target{}, errors.New(`smtp.tls = "none" is for a server on this machine alone`)
	case s.User != "":
		password, err := s.Secret.Read(p.Dirs, "smtp.secret", getenv(p.Environ))
		if err != nil {
			return Target{}, fmt.Errorf("the password of smtp: %w", err)
		}
		m.server.Password = channel.Secret(password)
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return Target{}, errors.New("smtp.from is not a mail address")
	}
	m.from = from.Address
	return Target{Name: "mail " + oneLine(m.to, maxName), send: m.send}, nil
}

// send delivers one mail. A session that the server refuses is final, because a person must change the settings.
func (m *mailer) send(ctx context.Context, n note) (reply string, err error) {
	reply, err = m.server.Send(ctx, m.from, m.to, m.compose(n, time.Now()))
	if errors.Is(err, email.ErrRefused) {
		return "", &channel.RejectedError{Why: oneLine(err.Error(), maxError)}
	}
	return oneLine(reply, replyShown), err
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
