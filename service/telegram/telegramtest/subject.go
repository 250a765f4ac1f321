package telegramtest

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/telegram"
)

// subjectToken is the token of the bot of [Subject].
const subjectToken = "4711:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

// Subject returns Telegram for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "telegram", Secrets: []string{strings.TrimPrefix(subjectToken, "4711:")},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{Server: New(subjectToken)}
			p.Fault = p.fault
			h := httptest.NewServer(p.Server)
			t.Cleanup(h.Close)
			t.Cleanup(h.CloseClientConnections) // a killed bridge may have left a poll
			p.url = h.URL
			return p
		},
		Dial: func(address, files string) (channel.Channel, error) {
			return telegram.New(telegram.Options{Token: subjectToken, BaseURL: address, Files: files, PollFor: time.Second,
				Timeout: time.Minute, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
	}
}

// platform is the server as a channeltest.Platform.
type platform struct {
	*Server
	channeltest.Faults
	url string

	mine    sync.Mutex // guards the fields below
	people  int64
	skew    time.Duration
	revoked bool
	forget  bool
	held    []map[string]any // messages for the reverse order
	holds   bool
}

// operation returns the operation of a method.
func operation(method string) channeltest.Operation {
	switch method {
	case "getUpdates":
		return channeltest.Receiving
	case "getFile", "file":
		return channeltest.Fetching
	case "sendMessage", "sendDocument", "sendPhoto", "editMessageText":
		return channeltest.Sending
	}
	return ""
}

// fault returns the next fault of a call.
func (p *platform) fault(method string, _ int) (f Fault) {
	p.mine.Lock()
	defer p.mine.Unlock()
	if p.revoked {
		return Fault{Status: http.StatusUnauthorized, Say: "Unauthorized"}
	}
	if method == "getUpdates" && p.forget {
		p.forget = false
		f.Forget = true
	}
	switch next := p.Next(operation(method), nil); next {
	case channeltest.RateLimit:
		f.Status, f.Say, f.RetryAfter = http.StatusTooManyRequests, "Too Many Requests", int(channeltest.Pause/time.Second)
	case channeltest.ServerError, channeltest.LateServerError:
		f.Status, f.Say = http.StatusInternalServerError, "Internal Server Error "+subjectToken
		f.Late = next == channeltest.LateServerError
	case channeltest.Half:
		f.Half = true
	case channeltest.Drop:
		f.Drop = true
	case channeltest.LateDrop:
		f.Lose = true
	}
	return f
}

func (p *platform) Address() string { return p.url }

func (p *platform) Join(name string) channeltest.Person {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.people++
	id := strconv.FormatInt(100+p.people, 10)
	return channeltest.Person{Name: name, Contact: id, Chat: id}
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	chat := number(from.Chat)
	p.mine.Lock()
	defer p.mine.Unlock()
	members := map[string]any{"date": time.Now().Add(p.skew).Unix()}
	if m.ReplyTo != "" {
		members["reply_to_message"] = map[string]any{"message_id": number(m.ReplyTo), "chat": map[string]any{"id": chat}}
	}
	if m.File == nil {
		members["text"] = channeltest.JSON(m.Text)
	} else {
		p.Server.mu.Lock()
		id := fmt.Sprint("file", len(p.Files))
		p.Server.mu.Unlock()
		p.AddFile(id, File{Name: m.File.Name, Data: m.File.Data})
		members["document"] = map[string]any{"file_id": id, "file_name": m.File.Name, "file_size": len(m.File.Data)}
		members["caption"] = m.Text
	}
	if p.holds {
		p.Server.mu.Lock()
		members["message_id"] = p.Last + 1 + int64(len(p.held))
		p.Server.mu.Unlock()
		members["from"] = map[string]any{"id": number(from.Contact), "first_name": from.Name}
		members["chat"] = map[string]any{"id": chat, "type": "private"}
		p.held = append(p.held, members)
		return fmt.Sprintf("%d:%d", chat, members["message_id"])
	}
	return fmt.Sprintf("%d:%d", chat, p.SayMore(chat, number(from.Contact), from.Name, members))
}

// number returns the last number of an id.
func number(id string) int64 {
	n, err := strconv.ParseInt(id[strings.LastIndexByte(id, ':')+1:], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.Server.Press(number(from.Contact), from.Name, number(sent), data)
}

var anyTag = regexp.MustCompile(`<[^<>]*>`)

func (p *platform) Sent() (list []channeltest.Sent) {
	for _, m := range p.Messages() {
		s := channeltest.Sent{ID: fmt.Sprintf("%d:%d", m.Chat, m.ID), Chat: fmt.Sprint(m.Chat), Text: m.Text, Shown: m.Text,
			Edited: len(m.Edits) > 0, Removed: m.Removed}
		if m.ParseMode != "" {
			s.Shown = html.UnescapeString(anyTag.ReplaceAllString(m.Text, ""))
		}
		if m.ReplyTo != 0 {
			s.ReplyTo = fmt.Sprintf("%d:%d", m.Chat, m.ReplyTo)
		}
		for _, b := range m.Buttons {
			s.Buttons = append(s.Buttons, channel.Button{Label: b.Text, Data: b.Data})
		}
		if m.File != nil {
			s.File = &channeltest.File{Name: m.File.Name, Data: m.File.Data, Picture: m.File.Photo}
		}
		list = append(list, s)
	}
	return list
}

func (p *platform) Echo() {
	list := p.Messages()
	m := list[len(list)-1]
	p.SayMore(m.Chat, 4711, "bot", map[string]any{"text": m.Text, "message_id": m.ID})
}

func (p *platform) Redeliver() {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.forget = true
}

func (p *platform) Reverse(write func()) {
	p.mine.Lock()
	p.holds = true
	p.mine.Unlock()
	write()
	p.mine.Lock()
	defer p.mine.Unlock()
	for _, m := range slices.Backward(p.held) {
		p.SayMore(0, 0, "", m)
	}
	p.held, p.holds = nil, false
}

func (p *platform) Skew(d time.Duration) {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.skew += d
}

func (p *platform) Revoke() {
	p.mine.Lock()
	defer p.mine.Unlock()
	p.revoked = true
}

func (p *platform) Delete(of channeltest.Person) {
	p.Server.mu.Lock()
	defer p.Server.mu.Unlock()
	p.Server.gone = append(p.Server.gone, number(of.Chat))
}

var _ channeltest.Platform = (*platform)(nil)
