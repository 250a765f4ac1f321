package ntfytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/ntfy"
)

const (
	subjectTopic = "0c6f1d2e8a4475b3e09b"
	subjectToken = "tk_subject0123456789"
)

// Subject returns ntfy for the table of cases.
func Subject() channeltest.Subject {
	const onlyCodes = "the channel takes only codes and signed answers"
	const noReply = "ntfy knows no replies"
	return channeltest.Subject{
		Name: "ntfy", Secrets: []string{subjectTopic, subjectToken},
		Start: func(t testing.TB) channeltest.Platform {
			p := &platform{Server: New()}
			p.Token, p.Everyone, p.Server.Fault = subjectToken, []string{subjectTopic + "-answers"}, p.fault
			h := httptest.NewServer(p.Server)
			p.url = h.URL
			t.Cleanup(func() {
				h.CloseClientConnections()
				h.Close()
			})
			return p
		},
		Dial: func(address, _ string) (channel.Channel, error) {
			return ntfy.New(ntfy.Options{Server: address, Topic: subjectTopic, Token: subjectToken,
				Key: []byte("a key of this test, 32 bytes long"), PollFor: time.Second, Timeout: time.Minute,
				Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Texts: onlyCodes, channeltest.HalfPairs: onlyCodes, channeltest.TextAnswers: onlyCodes,
			channeltest.FilesIn: onlyCodes, channeltest.FilesOut: "a server may refuse files",
			channeltest.Edits: "a notification cannot be changed", channeltest.Replies: noReply,
			channeltest.Orders: noReply, channeltest.Names: "ntfy names no sender",
			channeltest.Echoes:       "the channel reads another topic than that of its own messages",
			channeltest.Redeliveries: "a stream begins after the last message",
			channeltest.Reversals:    "a topic is a list", channeltest.Clocks: "no message depends on the time",
			channeltest.RateLimits: "ntfy names no time for a pause",
			channeltest.Deletions:  "a topic exists as soon as somebody writes to it",
		},
	}
}

// platform is the server as a channeltest.Platform. All people share the topic.
type platform struct {
	*Server
	channeltest.Faults
	url string
}

// fault returns the next fault of a call.
func (p *platform) fault(call string) (f Fault) {
	on := map[string]channeltest.Operation{"publish": channeltest.Sending, "stream": channeltest.Receiving}[call]
	switch next := p.Next(on, nil); next {
	case channeltest.ServerError, channeltest.LateServerError:
		f.Status, f.Late = http.StatusInternalServerError, next == channeltest.LateServerError
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

// Join returns the only person. The channel makes the id of the person from the topic.
func (p *platform) Join(name string) channeltest.Person {
	sum := sha256.Sum256([]byte("perlica ntfy topic " + subjectTopic))
	id := "topic-" + hex.EncodeToString(sum[:6])
	return channeltest.Person{Name: name, Contact: id, Chat: id}
}

func (p *platform) Write(_ channeltest.Person, m channeltest.Message) string {
	return p.Publish(Message{Topic: subjectTopic + "-answers", Message: m.Text}).ID
}

func (p *platform) Press(_ channeltest.Person, sent, data string) {
	for _, m := range p.Messages(subjectTopic) {
		for _, a := range m.Actions {
			if m.ID == sent && button(a).Data == data {
				p.Publish(Message{Topic: subjectTopic + "-answers", Message: a.Body})
			}
		}
	}
}

// button returns the option of an action. The text of an answer has the option's data after the mark and the MAC.
func button(a Action) channel.Button {
	words := strings.SplitN(a.Body, " ", 4)
	return channel.Button{Label: a.Label, Data: words[2]}
}

func (p *platform) Sent() (list []channeltest.Sent) {
	contact := p.Join("").Contact
	for _, m := range p.Messages(subjectTopic) {
		s := channeltest.Sent{ID: m.ID, Chat: contact, Text: m.Message, Shown: m.Message}
		for _, a := range m.Actions {
			s.Buttons = append(s.Buttons, button(a))
		}
		list = append(list, s)
	}
	return list
}

func (p *platform) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, p.Changed, ok)
}

func (p *platform) Reverse(func()) {}

func (p *platform) Redeliver() {}

func (p *platform) Echo() {}

func (p *platform) Skew(time.Duration) {}

func (p *platform) Delete(channeltest.Person) {}

var _ channeltest.Platform = (*platform)(nil)
