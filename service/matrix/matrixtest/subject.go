package matrixtest

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/matrix"
)

// subjectToken is the access token of the account of [Subject].
const subjectToken = "syt_cGVybGljYQ_hqTcvCHvGWJxfSeofSAs_0K5PAL"

// Subject returns Matrix for the table of cases.
func Subject() channeltest.Subject {
	return channeltest.Subject{
		Name: "matrix", Secrets: []string{subjectToken},
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
			return matrix.New(matrix.Options{Token: subjectToken, Server: address, Files: files, PollFor: time.Second,
				Timeout: time.Minute, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Buttons: "Matrix has reactions, and a reaction has a number",
		},
	}
}

// platform is the server as a channeltest.Platform.
type platform struct {
	*Server
	channeltest.Faults
	url string

	mine    sync.Mutex // guards the fields below
	skew    time.Duration
	revoked bool
	held    []func()
	holds   bool
}

// fault returns the next fault of a call.
func (p *platform) fault(call string) (f Fault) {
	p.mine.Lock()
	defer p.mine.Unlock()
	if p.revoked {
		return Fault{Status: http.StatusUnauthorized, Say: `{"errcode":"M_UNKNOWN_TOKEN","error":"` + subjectToken + `"}`}
	}
	on := map[string]channeltest.Operation{"send": channeltest.Sending, "sync": channeltest.Receiving,
		"download": channeltest.Fetching}[call]
	switch next := p.Next(on, nil); next {
	case channeltest.RateLimit:
		f.Status = http.StatusTooManyRequests
		f.Say = fmt.Sprintf(`{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":%d}`, channeltest.Pause.Milliseconds())
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
	person := "@" + strings.ToLower(name) + ":example.org"
	room := "!" + strings.ToLower(name) + ":example.org"
	p.Enter(room, person, name)
	p.Enter(room, Bot, "Perlica")
	p.SetState(room, person, "m.room.join_rules", "", Object{"join_rule": "invite"})
	return channeltest.Person{Name: name, Contact: person, Chat: room}
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	p.mine.Lock()
	defer p.mine.Unlock()
	content := Object{"msgtype": "m.text", "body": channeltest.JSON(m.Text)}
	if m.File != nil {
		content = Object{"msgtype": "m.file", "body": m.File.Name, "url": p.AddMedia("text/plain", m.File.Data),
			"info": Object{"size": len(m.File.Data), "mimetype": "text/plain"}}
		if m.Text != "" {
			content["filename"], content["body"] = m.File.Name, m.Text
		}
	}
	if m.ReplyTo != "" {
		content["m.relates_to"] = Object{"m.in_reply_to": Object{"event_id": eventOf(m.ReplyTo)}}
		content["body"] = "> <" + Bot + "> quoted words\n> more of them\n\n" + m.Text
	}
	p.Server.mu.Lock()
	id := fmt.Sprintf("$said%d_%d", len(p.events), len(p.held))
	p.Server.mu.Unlock()
	body := Object{"type": "m.room.message", "sender": from.Contact, "content": content, "event_id": id,
		"origin_server_ts": time.Now().Add(p.skew).UnixMilli()}
	add := func() {
		p.Server.mu.Lock()
		defer p.Server.mu.Unlock()
		p.add(from.Chat, body)
	}
	if p.holds {
		p.held = append(p.held, add)
	} else {
		add()
	}
	return from.Chat + "/" + id
}

func eventOf(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// Press reacts to a message. The data is the number of an option.
func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.Add(from.Chat, from.Contact, "m.reaction", Object{"m.relates_to": Object{"rel_type": "m.annotation",
		"event_id": eventOf(sent), "key": data}})
}

var anyTag = regexp.MustCompile(`<[^<>]*>`)

// shown returns a text as a client shows it.
func shown(content Object) string {
	formatted, ok := content["formatted_body"].(string)
	if !ok || content["format"] != "org.matrix.custom.html" {
		text, _ := content["body"].(string)
		return text
	}
	return html.UnescapeString(anyTag.ReplaceAllString(strings.ReplaceAll(formatted, "<br>", "\n"), ""))
}

func (p *platform) Sent() (list []channeltest.Sent) {
	for _, e := range p.Events() {
		content, _ := e.Body["content"].(Object)
		if e.Body["sender"] != Bot || e.Body["type"] != "m.room.message" {
			continue
		}
		relation, _ := content["m.relates_to"].(Object)
		if relation["rel_type"] == "m.replace" {
			i := slices.IndexFunc(list, func(m channeltest.Sent) bool { return eventOf(m.ID) == relation["event_id"] })
			content = content["m.new_content"].(Object)
			list[i].Text, list[i].Shown, list[i].Edited = fmt.Sprint(content["body"]), shown(content), true
			continue
		}
		m := channeltest.Sent{ID: e.Room + "/" + e.Body["event_id"].(string), Chat: e.Room,
			Text: fmt.Sprint(content["body"]), Shown: shown(content)}
		if _, told := content["m.mentions"]; !told {
			m.Mentions = strings.Count(m.Text, "@room")
		}
		if reply, ok := relation["m.in_reply_to"].(Object); ok {
			m.ReplyTo = e.Room + "/" + reply["event_id"].(string)
		}
		if address, ok := content["url"].(string); ok {
			m.File = &channeltest.File{Name: content["filename"].(string), Data: p.Media(address),
				Picture: content["msgtype"] == "m.image"}
		}
		if slices.ContainsFunc(list, func(old channeltest.Sent) bool { return old.ID == m.ID }) {
			continue // an echo
		}
		list = append(list, m)
	}
	return list
}

// Echo delivers the last message of the account again.
func (p *platform) Echo() {
	p.Server.mu.Lock()
	defer p.Server.mu.Unlock()
	for _, e := range slices.Backward(p.events) {
		if e.Body["sender"] == Bot && e.Body["type"] == "m.room.message" {
			p.add(e.Room, e.Body)
			return
		}
	}
}

func (p *platform) Redeliver() { p.Replay() }

func (p *platform) Reverse(write func()) {
	p.mine.Lock()
	p.holds = true
	p.mine.Unlock()
	write()
	p.mine.Lock()
	defer p.mine.Unlock()
	for _, add := range slices.Backward(p.held) {
		add()
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

// Delete removes the account from a room.
func (p *platform) Delete(of channeltest.Person) {
	p.SetState(of.Chat, of.Contact, "m.room.member", Bot, Object{"membership": "ban"})
}

var _ channeltest.Platform = (*platform)(nil)
