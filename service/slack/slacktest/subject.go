package slacktest

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/slack"
)

// Subject returns Slack for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "slack", Secrets: []string{AppToken, BotToken, "secret-ticket"},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{Server: New(t)}
			p.Fault, p.SocketFault = p.fault, p.socketFault
			return p
		},
		Dial: func(address, files string) (channel.Channel, error) {
			return slack.New(slack.Options{AppToken: AppToken, BotToken: BotToken, BaseURL: address, Files: files,
				PollFor: time.Second, Timeout: time.Minute,
				Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Clocks: "Slack's own clock numbers all messages",
		},
	}
}

// platform is the server as a channeltest.Platform.
type platform struct {
	*Server
	channeltest.Faults

	mine   sync.Mutex // guards the fields below
	people int
	held   []*Envelope
	holds  bool
	// threads has the times of the first messages of the group's threads by their names.
	threads map[string]string
}

// operation returns the operation of a method.
func operation(method string) channeltest.Operation {
	switch method {
	case "apps.connections.open":
		return channeltest.Receiving
	case "files.info", "file":
		return channeltest.Fetching
	case "chat.postMessage", "chat.update", "files.completeUploadExternal":
		return channeltest.Sending
	}
	return ""
}

// opens reports whether a fault concerns the method that opens a socket.
func opens(f channeltest.Fault) bool {
	return f == channeltest.RateLimit || f == channeltest.ServerError || f == channeltest.LateServerError
}

// fault returns the next fault of a call.
func (p *platform) fault(method string) (f Fault) {
	on := operation(method)
	switch p.Next(on, func(f channeltest.Fault) bool { return on != channeltest.Receiving || opens(f) }) {
	case channeltest.RateLimit:
		f.Status, f.RetryAfter, f.Say = http.StatusTooManyRequests, channeltest.Pause, `{"ok":false,"error":"ratelimited"}`
	case channeltest.ServerError:
		f.Status, f.Say = http.StatusBadGateway, "<html>"+BotToken
	case channeltest.LateServerError:
		f.Status, f.Say, f.Late = http.StatusInternalServerError, `{"ok":false,"error":"fatal_error"}`, true
	case channeltest.Half:
		f.Half = true
	case channeltest.Drop:
		f.Drop = true
	case channeltest.LateDrop:
		f.Lose = true
	}
	return f
}

// socketFault returns the next fault of an envelope.
func (p *platform) socketFault() SocketFault {
	switch p.Next(channeltest.Receiving, func(f channeltest.Fault) bool { return !opens(f) }) {
	case channeltest.Drop:
		return cutBefore
	case channeltest.Half:
		return cutAmid
	case channeltest.LateDrop:
		return cutAfter
	}
	return ""
}

func (p *platform) Address() string { return p.URL }

func (p *platform) Join(name string) channeltest.Person {
	p.mine.Lock()
	p.people++
	n := p.people
	p.mine.Unlock()
	id := fmt.Sprint("U0PERSON", n)
	p.Server.Join(id, name)
	return channeltest.Person{Name: name, Contact: id, Chat: fmt.Sprint("D0PERSON", n)}
}

// group is the channel with threads.
const group = "C0GROUP"

func (p *platform) Thread(name string, of channeltest.Person) channeltest.Person {
	p.mine.Lock()
	defer p.mine.Unlock()
	if p.threads == nil {
		p.threads = map[string]string{}
	}
	if p.threads[name] == "" {
		p.threads[name] = p.Now()
	}
	of.Chat = group + "/" + p.threads[name]
	return of
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	members := map[string]any{}
	place, thread, shared := strings.Cut(from.Chat, "/")
	if shared {
		members["type"], members["channel_type"], members["thread_ts"] = "app_mention", nil, thread
	}
	if _, ts, ok := strings.Cut(m.ReplyTo, ":"); ok {
		members["thread_ts"], members["parent_user_id"] = ts, BotUser
	}
	p.mine.Lock()
	defer p.mine.Unlock()
	if m.File != nil {
		ts := p.Now()
		f := &File{ID: "F0" + strings.ReplaceAll(ts, ".", ""), Name: m.File.Name, Data: m.File.Data}
		p.AddFile(f)
		members["subtype"], members["files"] = "file_share", []any{map[string]any{"id": f.ID, "name": f.Name,
			"size": len(f.Data), "mimetype": "text/plain"}}
	}
	ts := p.Now()
	// Slack marks the words of people in this way.
	words := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(m.Text)
	if shared {
		words = "<@" + BotUser + "> " + words
	}
	members["text"] = channeltest.JSON(words)
	e := Said(place, from.Contact, "", ts, members)
	if p.holds {
		p.held = append(p.held, e)
	} else {
		p.Deliver(e)
	}
	return place + ":" + ts
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	place, ts, _ := strings.Cut(sent, ":")
	p.Server.Press(from.Contact, place, ts, data)
}

func (p *platform) Sent() (list []channeltest.Sent) {
	for _, m := range p.Messages() {
		s := channeltest.Sent{ID: m.Channel + ":" + m.TS, Chat: m.Channel, Text: m.Text, Shown: shown(m.Text, !m.Plain),
			Mentions: len(mention.FindAllString(m.Text, -1)), ReplyTo: m.ReplyTo, Edited: m.Edited, Removed: m.Removed}
		if m.Thread != "" {
			s.Chat += "/" + m.Thread
		}
		for _, b := range m.Buttons {
			s.Buttons = append(s.Buttons, channel.Button{Label: b.Label, Data: b.Value})
		}
		if m.File != nil {
			s.File = &channeltest.File{Name: m.File.Name, Data: m.File.Data,
				Picture: strings.HasPrefix(http.DetectContentType(m.File.Data), "image/")}
		}
		list = append(list, s)
	}
	return list
}

func (p *platform) Fail(on channeltest.Operation, faults ...channeltest.Fault) {
	p.Faults.Fail(on, faults...)
	if on == channeltest.Receiving && slices.ContainsFunc(faults, opens) {
		p.Cut() // the app must open a new socket
	}
}

func (p *platform) Echo() {
	list := p.Messages()
	m := list[len(list)-1]
	p.Deliver(Said(m.Channel, BotUser, m.Text, m.TS, map[string]any{"bot_id": BotID}))
}

func (p *platform) Reverse(write func()) {
	p.mine.Lock()
	p.holds = true
	p.mine.Unlock()
	write()
	p.mine.Lock()
	defer p.mine.Unlock()
	slices.Reverse(p.held)
	p.Deliver(p.held...)
	p.held, p.holds = nil, false
}

func (p *platform) Skew(time.Duration) {}

func (p *platform) Delete(of channeltest.Person) { p.Archive(of.Chat) }

var _ channeltest.Platform = (*platform)(nil)

var (
	mention  = regexp.MustCompile(`<(@[UW]|!channel|!here|!everyone|!subteam)[^<>]*>`)
	object   = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)
	codeMark = regexp.MustCompile("(?s)```\n?(.*?)\n?```|`([^`\n]+)`")
	// A mark has a space or punctuation outside, and none inside.
	marked = regexp.MustCompile(`(^|[\s(\[\x{200b}])(?:\*(\S|\S[^*\n]*\S)\*|_(\S|\S[^_\n]*\S)_|~(\S|\S[^~\n]*\S)~)` +
		`($|[\s.,;:!?)\]\x{200b}])`)
)

// shown returns a text of Slack's notation as a person reads it. Without marks only objects and entities are
// translated.
func shown(text string, marks bool) string {
	text = object.ReplaceAllStringFunc(text, func(s string) string {
		m := object.FindStringSubmatch(s)
		if m[2] != "" {
			return m[2]
		}
		return m[1]
	})
	if marks {
		var b strings.Builder
		at := 0
		for _, m := range codeMark.FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(withoutMarks(text[at:m[0]]))
			if m[2] >= 0 {
				b.WriteString(text[m[2]:m[3]])
			} else {
				b.WriteString(text[m[4]:m[5]])
			}
			at = m[1]
		}
		b.WriteString(withoutMarks(text[at:]))
		text = b.String()
	}
	return html.UnescapeString(strings.ReplaceAll(text, "\u200b", ""))
}

// withoutMarks removes the marks of a text without code.
func withoutMarks(text string) string {
	for {
		next := marked.ReplaceAllString(text, "$1$2$3$4$5")
		if next == text {
			return text
		}
		text = next
	}
}
