package discordtest

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/discord"
)

// subjectSecret is the secret part of the token of the bot of [Subject].
const subjectSecret = "mZk3Qw8vLs0TgYh5NrXc2Bd7PfJa"

var subjectToken = base64.RawURLEncoding.EncodeToString([]byte(Self)) + ".Ga1b2c." + subjectSecret

// Subject returns Discord for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "discord", Secrets: []string{subjectSecret},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{Server: New(subjectToken)}
			p.Early, p.Fault = true, p.fault
			h := httptest.NewServer(p.Server)
			t.Cleanup(func() { // a killed bridge may have left a connection
				p.Drop()
				h.CloseClientConnections()
				h.Close()
			})
			p.url = h.URL
			return p
		},
		Dial: func(address, files string) (channel.Channel, error) {
			return discord.New(discord.Options{Token: channel.Secret(subjectToken), BaseURL: address + "/api/v10", Files: files,
				Pause: time.Millisecond, Timeout: time.Minute,
				Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
	}
}

// platform is the server as a channeltest.Platform.
type platform struct {
	*Server
	channeltest.Faults
	url string

	mine   sync.Mutex // guards the fields below
	people int
	files  int
	// threads has the ids of the group's threads by their names.
	threads map[string]string
}

// operation returns the operation of a route. A connection to the gateway begins with two calls, and the history
// follows a lost session.
func operation(route string) channeltest.Operation {
	switch route {
	case "GET /gateway/bot", "GET /applications/@me", "GET /channels/{}/messages":
		return channeltest.Receiving
	case "GET /channels/{}/messages/{}":
		return channeltest.Fetching
	case "POST /channels/{}/messages", "PATCH /channels/{}/messages/{}":
		return channeltest.Sending
	}
	return ""
}

// fault returns the next fault of a call.
func (p *platform) fault(route string, _ int) (f Fault) {
	switch next := p.Next(operation(route), nil); next {
	case channeltest.RateLimit:
		f.Status, f.Say, f.RetryAfter = http.StatusTooManyRequests, "You are being rate limited.", channeltest.Pause.Seconds()
	case channeltest.ServerError, channeltest.LateServerError:
		f.Status, f.Say = http.StatusInternalServerError, "500: Internal Server Error "+subjectToken
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
	return channeltest.Person{Name: name, Contact: fmt.Sprint(7100000000000000000 + p.people),
		Chat: fmt.Sprint(4100000000000000000 + p.people)}
}

func (p *platform) Thread(name string, of channeltest.Person) channeltest.Person {
	p.mine.Lock()
	defer p.mine.Unlock()
	if p.threads == nil {
		p.threads = map[string]string{}
	}
	if p.threads[name] == "" {
		p.threads[name] = fmt.Sprint(4300000000000000000 + len(p.threads))
		p.AddChannel(p.threads[name], Thread)
	}
	of.Chat = p.threads[name]
	return of
}

// shared reports whether a channel belongs to a guild.
func (p *platform) shared(id string) (shared bool) {
	p.update(func() { shared = p.Server.place(id).guild != "" })
	return shared
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	members := map[string]any{"content": channeltest.JSON(m.Text)}
	if p.shared(from.Chat) {
		members = Mention(m.Text)
	}
	if m.ReplyTo != "" {
		members["type"] = 19
		members["message_reference"] = map[string]any{"message_id": last(m.ReplyTo), "channel_id": from.Chat}
	}
	if m.File != nil {
		p.mine.Lock()
		p.files++
		id := fmt.Sprint(5100000000000000000 + p.files)
		p.mine.Unlock()
		members["attachments"] = []any{p.AddFile(id, File{Name: m.File.Name, Data: m.File.Data})}
	}
	return from.Chat + ":" + p.SayMore(from.Chat, from.Contact, from.Name, members)
}

// last returns the last part of an id.
func last(id string) string { return id[strings.LastIndexByte(id, ':')+1:] }

func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.Server.Press(from.Chat, from.Contact, from.Name, last(sent), data, time.Minute)
}

func (p *platform) Sent() (list []channeltest.Sent) {
	for _, m := range p.Messages() {
		s := channeltest.Sent{ID: m.Channel + ":" + m.ID, Chat: m.Channel, Text: m.Text, Shown: shown(m.Text),
			Mentions: m.Pings, Edited: len(m.Edits) > 0, Removed: m.Removed}
		if m.ReplyTo != "" {
			s.ReplyTo = m.Channel + ":" + m.ReplyTo
		}
		for _, b := range m.Buttons {
			s.Buttons = append(s.Buttons, channel.Button{Label: b.Label, Data: b.Data})
		}
		if m.File != nil {
			s.File = &channeltest.File{Name: m.File.Name, Data: m.File.Data,
				Picture: strings.HasPrefix(mime.TypeByExtension(path.Ext(m.File.Name)), "image/")}
		}
		list = append(list, s)
	}
	return list
}

// Fail also gives up all sessions before a fault of receiving, because a working connection makes no calls.
func (p *platform) Fail(on channeltest.Operation, faults ...channeltest.Fault) {
	p.Faults.Fail(on, faults...)
	if on == channeltest.Receiving {
		p.Forget()
	}
}

func (p *platform) Echo() {
	list := p.Messages()
	p.Again(list[len(list)-1].Channel, list[len(list)-1].ID)
}

func (p *platform) Redeliver() {
	p.update(func() {
		for _, m := range p.written {
			p.dispatchMessage("MESSAGE_CREATE", m)
		}
		for _, i := range p.clicks {
			p.dispatch("INTERACTION_CREATE", i)
		}
	})
}

func (p *platform) Reverse(write func()) {
	p.update(func() { p.holds = true })
	write()
	p.update(func() {
		for _, m := range slices.Backward(p.held) {
			p.dispatchMessage("MESSAGE_CREATE", m)
		}
		p.held, p.holds = nil, false
	})
}

func (p *platform) Skew(d time.Duration) { p.update(func() { p.skew += d }) }

func (p *platform) Delete(of channeltest.Person) { p.Deny(of.Chat, 10003) }

var _ channeltest.Platform = (*platform)(nil)

// marked matches each notation of Discord's Markdown. Its groups are the shown texts.
var marked = regexp.MustCompile("(?s)" + strings.Join([]string{
	"```(?:[A-Za-z0-9_+.#-]*\n)?(.*?)\n?```", // a block of code
	"``+ (.+?) ``+", "`([^`]+)`",             // code within a line
	`\\([!-/:-@\[-\x60{-~])`,            // an escaped character
	`(https?://[^\s<]+[^\s<.,:;"')\]])`, // an address
	`\[([^\[\]]+)\]\([^()\s]+\)`,        // a link
	`\|\|.+?()\|\|`,                     // hidden text
	`<[@#:t][^<>]*()>`,                  // a mention, an emoji, or a time
	`\*\*()`, `\*()`, `__()`, `~~()`,    // emphasis
}, "|"))

// shown returns a text as a person reads it. Hidden texts and mentions are removed.
func shown(text string) string {
	return marked.ReplaceAllStringFunc(text, func(s string) string {
		for _, group := range marked.FindStringSubmatch(s)[1:] {
			if group != "" {
				if strings.HasPrefix(s, "[") {
					return shown(group)
				}
				return group
			}
		}
		return ""
	})
}
