package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// Send sends one mail and returns its message id. An option becomes a link that opens a mail to its secret address.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	contact, thread, ok := placeOf(m.Chat)
	if !ok {
		return "", &channel.RejectedError{Why: fmt.Sprintf("%.80q is no chat of this channel", m.Chat)}
	}
	if channel.Units(m.Text) > maxText {
		return "", &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", maxText)}
	}
	limit := c.opt.Timeout
	if m.File != nil {
		limit *= fileTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id := c.idOf(m.Key, thread)
	text, err := c.compose(m, contact, thread, id)
	if err != nil {
		return "", err
	}
	if _, err := c.opt.SMTP.Send(ctx, c.address(), contact, text); err != nil {
		return "", fmt.Errorf("email: %s: %w", c.opt.SMTP.Host, err)
	}
	c.mu.Lock()
	c.newest.Put(thread, id)
	c.mu.Unlock()
	return id, nil
}

// idOf returns the message id of a sent mail. It is the same for each attempt, so that many mailboxes show only one
// mail. It contains the thread, so that a reply names its thread.
func (c *Channel) idOf(key, thread string) string {
	sum := sha256.Sum256([]byte(key))
	return base32Lower.EncodeToString(sum[:keyBytes]) + "." + thread + "@" + c.domain
}

// keyBytes is the number of bytes of a hashed key in a message id. They give 16 characters.
const keyBytes = 10

// compose returns the mail with its header.
func (c *Channel) compose(m channel.Outbound, contact, thread, id string) ([]byte, error) {
	var content bytes.Buffer
	mixed := multipart.NewWriter(&content)
	if err := c.addText(mixed, m, contact, id); err != nil {
		return nil, fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	if m.File != nil {
		if err := c.addFile(mixed, m.File); err != nil {
			return nil, err
		}
	}
	if err := mixed.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	c.mu.Lock()
	subject, known := c.subjects.Get(thread)
	last, _ := c.newest.Get(thread)
	c.mu.Unlock()
	if !known {
		subject = "Perlica"
	}
	if !strings.HasPrefix(strings.ToLower(subject), "re:") {
		subject = "Re: " + subject
	}
	answered := ""
	if isID(m.ReplyTo) {
		last, answered = m.ReplyTo, "<"+m.ReplyTo+">"
	}
	// The first reference names the thread in each mail, also if the beginning of the thread is not known any more.
	refs := "<thread." + thread + "@" + c.domain + ">"
	if last != "" {
		refs += " <" + last + ">"
	}
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", (&mail.Address{Name: "Perlica", Address: c.address()}).String()},
		{"Reply-To", (&mail.Address{Name: "Perlica", Address: c.contactAddress(contact)}).String()},
		{"To", (&mail.Address{Address: contact}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", subject)},
		{"Date", c.now().Format(time.RFC1123Z)},
		{"Message-ID", "<" + id + ">"},
		{"In-Reply-To", answered},
		{"References", refs},
		{"Auto-Submitted", "auto-replied"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "multipart/mixed; boundary=" + mixed.Boundary()},
	} {
		if h[1] != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
		}
	}
	b.WriteString("\r\n")
	b.Write(content.Bytes())
	return b.Bytes(), nil
}

// isID reports whether a text has the form of a message id.
func isID(text string) bool {
	ids := idsOf("<" + text + ">")
	return len(ids) == 1 && ids[0] == text && strings.Contains(text, "@")
}

// addText adds the text as plain text and as HTML. Only the HTML has the links of the options.
func (c *Channel) addText(mixed *multipart.Writer, m channel.Outbound, contact, id string) error {
	plain, rich := channel.Unformatted(m.Text, channel.HTML), m.Text
	if m.Plain {
		plain, rich = m.Text, html.EscapeString(m.Text)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "<html><body><div style=\"white-space: pre-wrap\">%s</div>\n", rich)
	for _, b := range m.Buttons {
		to := c.secret(c.tag(answerTag, contact, id, b.Data))
		link := mailto(to, fmt.Sprintf("%s [%s %s]", b.Label, b.Data, strings.TrimSuffix(id, "@"+c.domain)), "")
		fmt.Fprintf(&page, "<p><a href=\"%s\">%s</a></p>\n", html.EscapeString(link), html.EscapeString(b.Label))
	}
	page.WriteString("</body></html>")
	var both bytes.Buffer
	alternative := multipart.NewWriter(&both)
	for _, p := range [][2]string{{"text/plain; charset=utf-8", plain}, {"text/html; charset=utf-8", page.String()}} {
		w, err := alternative.CreatePart(textproto.MIMEHeader{"Content-Type": {p[0]},
			"Content-Transfer-Encoding": {"quoted-printable"}})
		if err != nil {
			return err
		}
		q := quotedprintable.NewWriter(w)
		if _, err := q.Write([]byte(strings.ReplaceAll(p[1], "\n", "\r\n") + "\r\n")); err != nil {
			return err
		}
		if err := q.Close(); err != nil {
			return err
		}
	}
	if err := alternative.Close(); err != nil {
		return err
	}
	w, err := mixed.CreatePart(textproto.MIMEHeader{"Content-Type": {"multipart/alternative; boundary=" +
		alternative.Boundary()}})
	if err == nil {
		_, err = w.Write(both.Bytes())
	}
	return err
}

// addFile adds a file.
func (c *Channel) addFile(mixed *multipart.Writer, f *channel.File) error {
	info, err := os.Stat(f.Path)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return &channel.RejectedError{Why: "its file is not a regular file"}
	case info.Size() > c.opt.MaxFile:
		return &channel.RejectedError{Why: "its file is too large"}
	}
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	kind := f.MIME
	if _, _, err := mime.ParseMediaType(kind); err != nil || strings.HasPrefix(kind, "multipart/") ||
		strings.HasPrefix(kind, "message/") || strings.ContainsAny(kind, "\r\n") {
		kind = "application/octet-stream"
	}
	w, err := mixed.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}, "Content-Transfer-Encoding": {"base64"},
		"Content-Disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": attachment.Name(f.Name)})}})
	if err != nil {
		return fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	const line = 57 // bytes that give a line of 76 characters
	for len(data) > 0 && err == nil {
		n := min(line, len(data))
		_, err = w.Write([]byte(base64.StdEncoding.EncodeToString(data[:n]) + "\r\n"))
		data = data[n:]
	}
	if err != nil {
		return fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	return nil
}
