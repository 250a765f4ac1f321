package feishutest

import (
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
	"github.com/perlica/perlica/service/feishu"
)

// Subject returns Feishu for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "feishu", Secrets: []string{Secret, "t-secret-token-", "secret-ticket"},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{Server: New(t)}
			p.Fault, p.SocketFault = p.fault, p.socketFault
			return p
		},
		Dial: func(address, files string) (channel.Channel, error) {
			return feishu.New(feishu.Options{AppID: AppID, Secret: Secret, BaseURL: address, Files: files,
				PollFor: time.Second, Timeout: time.Minute,
				Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Orders:   "Feishu numbers no messages",
			channeltest.Captions: "a message of Feishu is a text or a file",
		},
	}
}

// platform is the server as a channeltest.Platform.
type platform struct {
	*Server
	channeltest.Faults

	mine  sync.Mutex // guards the fields below
	held  []*Event
	holds bool
}

// operation returns the operation of a call.
func operation(call string) channeltest.Operation {
	switch call {
	case "endpoint":
		return channeltest.Receiving
	case "resource":
		return channeltest.Fetching
	case "send", "edit":
		return channeltest.Sending
	}
	return ""
}

// opens reports whether a fault concerns the call before a socket is opened.
func opens(f channeltest.Fault) bool {
	return f == channeltest.RateLimit || f == channeltest.ServerError || f == channeltest.LateServerError
}

// fault returns the next fault of a call.
func (p *platform) fault(call string) (f Fault) {
	on := operation(call)
	switch p.Next(on, func(f channeltest.Fault) bool { return on != channeltest.Receiving || opens(f) }) {
	case channeltest.RateLimit:
		f.Status, f.Reset = http.StatusTooManyRequests, channeltest.Pause
		f.Say = `{"code":99991400,"msg":"request trigger frequency limit"}`
	case channeltest.ServerError:
		f.Status, f.Say = http.StatusBadGateway, "<html>"+Secret
	case channeltest.LateServerError:
		f.Status, f.Say, f.Late = http.StatusInternalServerError, `{"code":2200,"msg":"Internal Error"}`, true
	case channeltest.Half:
		f.Half = true
	case channeltest.Drop:
		f.Drop = true
	case channeltest.LateDrop:
		f.Lose = true
	}
	return f
}

// socketFault returns the next fault of an event.
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
	id := p.NewID("ou_person")
	p.Server.Join(id, name)
	return channeltest.Person{Name: name, Contact: id, Chat: id}
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	members := map[string]any{}
	if m.ReplyTo != "" {
		members["parent_id"], members["root_id"] = m.ReplyTo, m.ReplyTo
	}
	kind, content := "text", map[string]any{"text": channeltest.JSON(m.Text)}
	if m.File != nil {
		f := &File{Key: p.NewID("file_v3_"), Name: m.File.Name, Data: m.File.Data}
		p.AddFile(f)
		kind, content = "file", map[string]any{"file_key": f.Key, "file_name": f.Name}
	}
	p.mine.Lock()
	defer p.mine.Unlock()
	e, id := p.Said(from.Contact, from.Contact, kind, content, members)
	if p.holds {
		p.held = append(p.held, e)
	} else {
		p.Deliver(e)
	}
	return id
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.Server.Press(from.Contact, from.Contact, sent, data)
}

func (p *platform) Sent() (list []channeltest.Sent) {
	for _, m := range p.Messages() {
		s := channeltest.Sent{ID: m.ID, Chat: m.Chat, Text: m.Text, Shown: m.Text, ReplyTo: m.ReplyTo, Edited: m.Edited,
			Removed: m.Removed}
		if !m.Plain {
			s.Shown, s.Mentions = shown(m.Text), len(notice.FindAllString(m.Text, -1))
		}
		for _, b := range m.Buttons {
			s.Buttons = append(s.Buttons, channel.Button{Label: b.Label, Data: b.Value["data"]})
		}
		if m.File != nil {
			s.File = &channeltest.File{Name: m.File.Name, Data: m.File.Data, Picture: m.File.Image}
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

// Echo delivers the bot's last message as Feishu's lists of messages show it. Feishu sends no such event.
func (p *platform) Echo() {
	list := p.Messages()
	m := list[len(list)-1]
	e, _ := p.Said(m.Chat, m.Chat, "text", map[string]string{"text": m.Text}, map[string]any{"message_id": m.ID})
	e.Body.(map[string]any)["sender"] = map[string]any{"sender_id": map[string]any{"open_id": Bot}, "sender_type": "app"}
	p.Deliver(e)
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

func (p *platform) Delete(of channeltest.Person) { p.Dissolve(of.Contact) }

var _ channeltest.Platform = (*platform)(nil)

var (
	notice   = regexp.MustCompile(`(?i)<(at|person)\b`)
	codeMark = regexp.MustCompile("(?s)```[^\n]*\n(.*?)\n```|``( .+? )``|`([^`\n]+)`")
	bold     = regexp.MustCompile(`\*\*(\S|\S.*?\S)\*\*`)
	thin     = regexp.MustCompile(`\*(\S|\S.*?\S)\*`)
	link     = regexp.MustCompile(`\[([^\[\]]*)\]\([^()]*\)`)
)

// shown returns a text of Feishu's Markdown as a person reads it.
func shown(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range codeMark.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(withoutMarks(text[at:m[0]]))
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				b.WriteString(text[m[i]:m[i+1]])
			}
		}
		at = m[1]
	}
	b.WriteString(withoutMarks(text[at:]))
	return strings.ReplaceAll(b.String(), "\u200b", "")
}

// withoutMarks removes the marks of a text without code.
func withoutMarks(text string) string {
	for _, r := range []*regexp.Regexp{link, bold, thin} {
		text = r.ReplaceAllString(text, "$1")
	}
	return html.UnescapeString(text)
}
