package email

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"mime"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-message"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// letter is the header of a mail that a person has written.
type letter struct {
	id, from, name string // id is empty without a usable Message-ID
	subject        string
	date           string
	refs           []string // the mails before this one in its thread, oldest first
	replyTo        string
	thread         string   // readLetter leaves it empty
	tags           []string // the secrets of the mailbox's own addresses
	// These fields have the data of a chosen option. They are read from the subject and prove nothing.
	answer, answered, label string
}

const (
	maxID   = 250 // bytes of a message id
	maxFrom = 254 // bytes of a sender's address, by RFC 5321
	maxRefs = 50
	maxRead = 4_000_000 // bytes of a text; the page has the same limit
	// maxSubject is the number of characters of a subject in answers. A longer line of a header is refused by servers.
	maxSubject = 60
)

// readLetter reads the header of a mail. ok is false if no person has written the mail.
func (c *Channel) readLetter(h message.Header) (l letter, ok bool) {
	from, ok := sender(h)
	if !ok || isAutomatic(h, from.Address) || from.Address == c.address() {
		return l, false
	}
	l.from, l.name, l.subject = from.Address, from.Name, decodeWords(h.Get("Subject"))
	l.date = h.Get("Date")
	ids := idsOf(h.Get("Message-Id"))
	if len(ids) == 1 && len(ids[0]) <= maxID {
		l.id = ids[0]
	}
	answered := idsOf(h.Get("In-Reply-To"))
	l.refs = append(idsOf(h.Get("References")), answered...)
	if len(l.refs) > maxRefs {
		l.refs = l.refs[len(l.refs)-maxRefs:]
	}
	if len(answered) > 0 {
		l.replyTo = answered[0]
	}
	for _, field := range []string{"To", "Cc", "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To"} {
		for _, value := range h.Values(field) {
			l.tags = append(l.tags, c.tagsOf(addressesIn(value))...)
		}
	}
	if all := answerForm().FindAllStringSubmatchIndex(l.subject, -1); len(all) > 0 {
		found := all[len(all)-1] // an agent may have written the others in the label
		l.label = strings.TrimSpace(l.subject[:found[0]])
		l.answer, l.answered = l.subject[found[2]:found[3]], l.subject[found[4]:found[5]]+"@"+c.domain
	}
	return l, true
}

// answerForm matches the data of an option in a subject: the button's data, and the id of the question's mail without
// its domain.
var answerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[([!-Z\\^-~]{1,64}) ([a-z2-7]{16}\.[a-z2-7]{12})\]`)
})

// sender returns the only sender of a mail, with an address in small letters.
func sender(h message.Header) (*mail.Address, bool) {
	if len(h.Values("From")) != 1 {
		return nil, false
	}
	list, err := (&mail.AddressParser{WordDecoder: words()}).ParseList(h.Get("From"))
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Address, "@") {
		return nil, false
	}
	list[0].Address = strings.ToLower(list[0].Address)
	// A chat contains the address, and a mail is sent to it.
	if len(list[0].Address) > maxFrom || strings.ContainsAny(list[0].Address, " <>\"\r\n\t") {
		return nil, false
	}
	return list[0], true
}

// isAutomatic reports whether a program has sent a mail: an automatic reply (RFC 3834), a bounce, or a mailing list.
func isAutomatic(h message.Header, from string) bool {
	if s := strings.ToLower(strings.TrimSpace(h.Get("Auto-Submitted"))); s != "" && s != "no" {
		return true
	}
	for _, field := range []string{"List-Id", "List-Post", "List-Unsubscribe", "List-Help", "X-Autoreply",
		"X-Autorespond"} {
		if h.Has(field) {
			return true
		}
	}
	precedence := strings.ToLower(strings.TrimSpace(h.Get("Precedence")))
	kind, _, _ := h.ContentType() // a malformed type is not one of a report
	local, _, _ := strings.Cut(from, "@")
	return slices.Contains([]string{"bulk", "list", "junk", "auto_reply"}, precedence) || kind == "multipart/report" ||
		strings.TrimSpace(h.Get("Return-Path")) == "<>" || local == "mailer-daemon" || local == "postmaster"
}

// threadIn returns the thread of a mail: the thread of the newest mail of this channel to which it refers, otherwise
// the thread that begins with its oldest reference.
func (c *Channel) threadIn(id string, refs []string) string {
	for _, r := range slices.Backward(refs) {
		if thread := c.threadOfOwn(r); thread != "" {
			return thread
		}
	}
	return threadOf(append(refs, id)[0])
}

// threadOfOwn returns the thread in a message id of this channel, or "".
func (c *Channel) threadOfOwn(id string) string {
	key, ok := strings.CutSuffix(id, "@"+c.domain)
	if _, thread, dot := strings.Cut(key, "."); ok && dot && isThread(thread) {
		return thread
	}
	return ""
}

// idsOf returns the message ids in a field, without their brackets.
func idsOf(field string) (ids []string) {
	for _, m := range idForm().FindAllStringSubmatch(field, maxRefs) {
		ids = append(ids, m[1])
	}
	return ids
}

var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([!-;=?-~]+)>`) })

// addressesIn returns the addresses in a field. A malformed field may contain addresses, too.
func addressesIn(field string) (list []string) {
	if found, err := mail.ParseAddressList(field); err == nil {
		for _, a := range found {
			list = append(list, a.Address)
		}
		return list
	}
	return strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(" ,;<>\"\t\r\n", r) })
}

// words returns a decoder of encoded words in headers.
func words() *mime.WordDecoder { return &mime.WordDecoder{CharsetReader: charsetReader} }

// decodeWords returns a field of a header in UTF-8, in one line.
func decodeWords(field string) string {
	text, err := words().DecodeHeader(field)
	if err != nil {
		text = field
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

// fill adds the text and the files of a mail to its message.
func (c *Channel) fill(m *channel.Inbound, l letter, b body) {
	if m.Unproven { // only a code counts; a mail program may have added other lines
		line, _, _ := strings.Cut(strings.TrimSpace(b.text), "\n")
		if m.Text = strings.TrimSpace(line); m.Text == "" {
			m.Text = l.subject
		}
		return
	}
	text, quoted := strings.TrimSpace(b.text), false
	if len(l.refs) > 0 {
		text = withoutQuote(text)
	}
	text, quoted = withoutSignature(text), hasQuote(text)
	m.Quoted = quoted
	var left []string
	if c.opt.Files != "" && (c.opt.Accept == nil || c.opt.Accept(m.Contact)) {
		m.Files, left = c.keepFiles(l.id, b.files)
	}
	// The subject of a new thread is part of the text. A command stands alone.
	if len(l.refs) == 0 && l.subject != "" && !strings.HasPrefix(text, "/") {
		text = strings.TrimSpace(l.subject + "\n\n" + text)
	}
	switch m.Text = text; {
	case len(text) > maxRead:
		m.Text, m.Unread = "", "a mail that is too large"
	case text == "" && len(m.Files) == 0:
		m.Unread = cmp.Or(b.unread, "an empty mail")
	}
	for _, name := range left {
		m.Text = strings.TrimSpace(fmt.Sprintf("%s\n\n[%s was left out]", m.Text, name))
	}
}

// keepFiles stores the files of a mail in the private folder. It returns the names of the files that it did not
// store.
func (c *Channel) keepFiles(id string, files []file) (kept []channel.File, left []string) {
	room := c.opt.MaxFile
	for i, f := range files {
		name := attachment.Name(f.name)
		if i >= maxFiles || int64(len(f.data)) > room {
			left = append(left, name)
			continue
		}
		// The file's place contains a hash of its content, because another mail with the same id must not replace it.
		place := fmt.Sprintf("%s\n%x", id, sha256.Sum256(f.data))
		path, err := attachment.Save(c.opt.Files, place, i, name, bytes.NewReader(f.data), room)
		if err != nil {
			left = append(left, name)
			continue
		}
		room -= int64(len(f.data))
		kept = append(kept, channel.File{Name: name, Path: path, MIME: f.mime})
	}
	return kept, left
}
