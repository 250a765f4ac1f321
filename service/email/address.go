package email

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"strings"
)

// tagLength is the length of a secret in an address. 20 characters of base32 have 100 bits.
const tagLength = 20

// threadLength is the length of the name of a thread.
const threadLength = 12

// These letters begin the part of an address after the plus sign.
const (
	contactTag = "c" // a contact writes to this address
	answerTag  = "a" // a mail to this address chooses an option
	checkTag   = "t" // a mail of this channel to itself tests the mailbox
)

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// tag returns the secret of an address. No two lists of parts have the same secret.
func (c *Channel) tag(kind string, parts ...string) string {
	mac := hmac.New(sha256.New, []byte(c.opt.Key))
	for _, p := range append([]string{"perlica mail", kind}, parts...) {
		sum := sha256.Sum256([]byte(p))
		mac.Write(sum[:]) // never fails
	}
	return kind + base32Lower.EncodeToString(mac.Sum(nil))[:tagLength]
}

// address returns the public address of the mailbox.
func (c *Channel) address() string { return c.local + "@" + c.domain }

// secret returns an address of the mailbox with a secret.
func (c *Channel) secret(tag string) string { return c.local + "+" + tag + "@" + c.domain }

// contactAddress returns the secret address of a contact.
func (c *Channel) contactAddress(contact string) string { return c.secret(c.tag(contactTag, contact)) }

// tagsOf returns the secrets of the mailbox's own addresses in a list of addresses.
func (c *Channel) tagsOf(addresses []string) (tags []string) {
	for _, a := range addresses {
		local, ok := strings.CutSuffix(strings.ToLower(a), "@"+c.domain)
		if tag, plus := strings.CutPrefix(local, c.local+"+"); ok && plus {
			tags = append(tags, tag)
		}
	}
	return tags
}

// has reports whether one of the secrets is the wanted one. The comparison takes the same time for each secret.
func has(tags []string, want string) (found bool) {
	for _, t := range tags {
		found = hmac.Equal([]byte(t), []byte(want)) || found
	}
	return found
}

// threadOf returns the name of a thread that begins with a mail.
func threadOf(message string) string {
	sum := sha256.Sum256([]byte(message))
	return base32Lower.EncodeToString(sum[:])[:threadLength]
}

// isThread reports whether a text has the form of a thread's name.
func isThread(s string) bool {
	return len(s) == threadLength && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// chatOf returns the chat for answers to a contact in a thread.
func chatOf(contact, thread string) string { return contact + "/" + thread }

// placeOf returns the contact and the thread of a chat. ok is false if the text is no chat of this channel.
func placeOf(chat string) (contact, thread string, ok bool) {
	at := strings.LastIndexByte(chat, '/')
	if at < 0 || !isThread(chat[at+1:]) || !strings.Contains(chat[:at], "@") {
		return "", "", false
	}
	return chat[:at], chat[at+1:], true
}

// mailto returns a link that opens a new mail.
func mailto(to, subject, body string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	return "mailto:" + strings.ReplaceAll(url.PathEscape(to), "+", "%2B") + "?subject=" + escape(subject) + "&body=" +
		escape(body)
}
