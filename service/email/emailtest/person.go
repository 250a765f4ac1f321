package emailtest

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/mail"
	"net/url"
	"regexp"
	"strings"

	"github.com/emersion/go-message"
)

// Letter is a mail of the channel as a mail program shows it.
type Letter struct {
	Header  mail.Header
	ID      string // the message id without brackets
	ReplyTo string // the address for replies
	Subject string
	Plain   string
	HTML    string
	Links   []Link
	Files   map[string]string
	Types   map[string]string // the stated types of the files
}

// Link is a link that opens a new mail.
type Link struct{ Label, To, Subject, Body string }

var linkForm = regexp.MustCompile(`<a href="(mailto:[^"]*)">([^<]*)</a>`)

// Read reads a mail of the channel.
func Read(text string) (l Letter, err error) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return l, err
	}
	l.Header, l.Files, l.Types = m.Header, map[string]string{}, map[string]string{}
	l.ID = strings.Trim(m.Header.Get("Message-Id"), "<>")
	if a, err := mail.ParseAddress(m.Header.Get("Reply-To")); err == nil {
		l.ReplyTo = a.Address
	}
	e, err := message.Read(bytes.NewReader([]byte(text)))
	if err != nil {
		return l, err
	}
	if l.Subject, err = e.Header.Text("Subject"); err != nil {
		return l, err
	}
	err = e.Walk(func(_ []int, part *message.Entity, err error) error {
		kind, _, _ := part.Header.ContentType()
		if err != nil || strings.HasPrefix(kind, "multipart/") {
			return err
		}
		data, err := io.ReadAll(part.Body)
		_, params, _ := part.Header.ContentDisposition()
		switch {
		case params["filename"] != "":
			l.Files[params["filename"]], l.Types[params["filename"]] = string(data), kind
		case kind == "text/plain":
			l.Plain = string(data)
		case kind == "text/html":
			l.HTML = string(data)
		}
		return err
	})
	for _, found := range linkForm.FindAllStringSubmatch(l.HTML, -1) {
		u, err := url.Parse(html.UnescapeString(found[1]))
		if err != nil {
			return l, err
		}
		to, err := url.PathUnescape(u.Opaque)
		if err != nil {
			return l, err
		}
		l.Links = append(l.Links, Link{Label: html.UnescapeString(found[2]), To: to, Subject: u.Query().Get("subject"),
			Body: u.Query().Get("body")})
	}
	return l, err
}

// Write returns a simple mail. The parameter "more" has further header lines.
func Write(id, from, to, subject, text string, more ...string) string {
	return fmt.Sprintf("Message-ID: <%s>\nFrom: %s\nTo: %s\nSubject: %s\nDate: Fri, 27 Nov 2026 12:00:00 +0000\n%s\n%s\n",
		id, from, to, subject, strings.Join(append(more, ""), "\n"), text)
}
