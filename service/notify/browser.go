package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/push"
)

// toBrowsers is the value of "to" for the browsers that are subscribed on the page of 'perlica web'. Each browser is a
// separate Target.
const toBrowsers = "push"

// browserRules returns the [[notify]] tables with to = "push".
func browserRules(p *project.Project) (rules []config.Notify) {
	for _, r := range p.Config.Notify {
		if r.To == toBrowsers {
			rules = append(rules, r)
		}
	}
	return rules
}

// SendsQuestions reports whether an open question of the project makes notifications for the subscribed browsers.
func SendsQuestions(p *project.Project) bool {
	return slices.ContainsFunc(browserRules(p), func(r config.Notify) bool { return slices.Contains(r.When, question) })
}

// browsers are the subscribed browsers of a user.
type browsers struct {
	p      *project.Project
	sender *push.Sender
}

// targets returns a target for each subscribed browser that is still paired.
func (b browsers) targets(ctx context.Context) (list []Target, err error) {
	ids, err := b.sender.Subscribed()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		dev, err := b.find(ctx, id)
		if err != nil {
			return nil, err
		}
		since, err := b.sender.Since(id)
		if errors.Is(err, fs.ErrNotExist) || dev.ID == "" {
			continue // the browser has just unsubscribed, or its pairing was revoked
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Target{Name: "push " + oneLine(dev.Name, maxName), Digest: digestOf("push:" + id),
			Rules: browserRules(b.p), browser: id, since: since,
			send: func(ctx context.Context, n note) (string, error) { return b.send(ctx, id, n) }})
	}
	if len(list) == 0 {
		list = append(list, Target{Name: toBrowsers, Digest: digestOf(toBrowsers), Rules: browserRules(b.p),
			Elsewhere: "no browser is subscribed; see Device on the page of 'perlica web'"})
	}
	return list, nil
}

// find returns the paired device with this id, if it may answer questions. Otherwise it returns a device without id.
func (b browsers) find(ctx context.Context, id string) (device.Device, error) {
	user, err := project.User(b.p.Dir, b.p.Environ, nil)
	if err != nil {
		return device.Device{}, err
	}
	log, _, err := user.OpenReader(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return device.Device{}, nil
	}
	if err != nil {
		return device.Device{}, err
	}
	list, err := device.List(ctx, log)
	if err = errors.Join(err, log.Close()); err != nil {
		return device.Device{}, err
	}
	for _, dev := range list {
		if dev.ID == id && dev.Rights.Has(access.Approve) {
			return dev, nil
		}
	}
	return device.Device{}, nil
}

// send sends one message to a browser. It removes the subscription of a device that is not paired any longer.
func (b browsers) send(ctx context.Context, id string, n note) (reply string, err error) {
	dev, err := b.find(ctx, id)
	switch {
	case err != nil:
		return "", errors.Join(channel.ErrNotSent, err)
	case dev.ID == "":
		return "", errors.Join(&channel.RejectedError{Why: "the browser is not paired any longer"}, b.sender.Unsubscribe(id))
	}
	if !dev.Rights.Has(access.Read) { // The device may answer questions, and it may see nothing else.
		if n.Kind != question {
			return "not sent: the device has no right to read", nil
		}
		n.Content = ""
	}
	// A topic has at most 32 characters. A repeated attempt replaces the undelivered message with the same topic.
	topic := strings.ReplaceAll(n.Key, "-", "")
	return b.sender.Send(ctx, id, push.Message{Text: pushBody(n), Topic: topic[:min(len(topic), 32)], Kept: maxAge,
		Urgent: n.isUrgent()})
}

// pushMessage is the text of a message. The service worker of the page shows it.
type pushMessage struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Tag   string `json:"tag"`  // the same for each attempt
	Page  string `json:"page"` // the part of the page that a tap opens
}

// pushBody returns the text of a message. It shortens the content until the text fits.
func pushBody(n note) []byte {
	for most := maxContent; ; most -= 50 {
		if r := []rune(n.Content); len(r) > most {
			n.Content = string(r[:max(most, 0)]) + "…"
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(pushMessage{n.Title, n.body(), n.Key, n.Page}) // texts have no errors
		if b.Len() <= push.MaxText || most <= 0 {
			return b.Bytes()
		}
	}
}

// subscribed starts the delivery to each browser that is subscribed, and ends it when the browser unsubscribes.
type subscribed struct {
	browsers
	// start begins the delivery to a browser and returns the function that ends it.
	start func(Target) context.CancelFunc
	ends  map[string]context.CancelFunc // by the id of the device
}

// deliver is the function of a follower. It compares the deliveries with the browsers that are subscribed now. A
// browser that subscribes again gets later events only. deliver unsubscribes a new browser if it is not paired.
func (s *subscribed) deliver(ctx context.Context) (most time.Duration, err error) {
	ids, err := s.sender.Subscribed()
	if err != nil {
		return 0, err
	}
	for id, end := range s.ends {
		if !slices.Contains(ids, id) {
			end()
			delete(s.ends, id)
		}
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return s.ends[id] == nil }) {
		return 0, nil
	}
	targets, err := s.targets(ctx)
	if err != nil {
		return 0, err
	}
	for _, t := range targets {
		if t.browser != "" && s.ends[t.browser] == nil {
			s.ends[t.browser] = s.start(t)
		}
	}
	for _, id := range ids {
		if s.ends[id] == nil {
			err = errors.Join(err, s.sender.Unsubscribe(id))
		}
	}
	return 0, err
}
