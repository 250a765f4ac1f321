package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/web/push"
)

// Target is a place for notifications. Several tables of the configuration may name it.
type Target struct {
	// Name names the target without secrets, such as "ntfy ntfy.sh".
	Name string
	// Digest identifies the target in events.
	Digest string
	// Dedupes means that the target recognises the key of a note, so that a repetition makes no second notification.
	Dedupes bool
	// Elsewhere says which process delivers to this target. It is empty if this process does.
	Elsewhere string

	// Contact is the name of the contact that the target is, or "".
	Contact string
	// browser is the id of the device whose browser is the target. It is "" for other targets.
	browser string
	// since is the time of subscription: earlier events make no notification. Zero means that there is no such time.
	since time.Time
	// Rules are the tables that name the target.
	Rules []config.Notify

	// send makes one attempt and returns the target's reply. Its errors have the kinds of channel.Channel.
	send func(ctx context.Context, n note) (reply string, err error)
	// queue is set for a contact, instead of send. It records the message for the contact and the event "sent" in one
	// commit.
	queue func(ctx context.Context, n note, sent event.Event) error
}

// Targets returns the targets of the project's configuration. The errors name the tables that cannot be used.
func Targets(ctx context.Context, p *project.Project, opt Options) (list []Target, errs []error) {
	for _, r := range p.Config.Notify {
		if r.To == toBrowsers {
			continue
		}
		digest := digestOf(r.To)
		if i := slices.IndexFunc(list, func(t Target) bool { return t.Digest == digest }); i >= 0 {
			list[i].Rules = append(list[i].Rules, r)
			continue
		}
		t, err := targetOf(p, r, opt)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Origin, err))
			continue
		}
		t.Digest, t.Rules = digest, []config.Notify{r}
		list = append(list, t)
	}
	rules := browserRules(p)
	if len(rules) == 0 {
		return list, errs
	}
	b := browsers{p, push.New(push.Options{Dir: p.Dirs.PushDir(), Transport: opt.Push})}
	found, err := b.targets(ctx)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", rules[0].Origin, err))
	}
	return append(list, found...), errs
}

// digestOf returns the digest of an address. An address may contain a secret.
func digestOf(to string) string {
	sum := sha256.Sum256([]byte("perlica notify " + to))
	return hex.EncodeToString(sum[:8])
}

// targetOf returns the target of a table, without its digest and its rules. The package config has checked the table.
func targetOf(p *project.Project, r config.Notify, opt Options) (Target, error) {
	switch {
	case r.To == "desktop":
		return desktopTarget(p.Environ, opt), nil
	case strings.HasPrefix(r.To, "contact:"):
		return contactTarget(strings.TrimPrefix(r.To, "contact:"), opt), nil
	case strings.HasPrefix(r.To, "mailto:"):
		return mailTarget(p, r)
	}
	u, err := url.Parse(r.To)
	if err != nil {
		return Target{}, errors.New("it is not an address") // cannot happen; the error's text may contain a secret
	}
	kind, scheme, ok := strings.Cut(u.Scheme, "+")
	if !ok {
		kind, scheme = "", u.Scheme
	}
	u.Scheme = scheme
	secret := ""
	if r.Secret != (config.Secret{}) {
		if secret, err = r.Secret.Read(p.Dirs, "", getenv(p.Environ)); err != nil {
			return Target{}, fmt.Errorf("the secret: %w", err)
		}
	}
	h := httpTarget{client: channel.Client(opt.Client), url: u, secret: secret}
	return h.target(kind)
}

// contactTarget returns the target for a contact of the bridge.
func contactTarget(name string, opt Options) Target {
	t := Target{Name: "contact " + oneLine(name, maxName), Contact: name, Elsewhere: "'perlica service' delivers it"}
	if opt.Contact == nil {
		return t
	}
	t.Elsewhere = ""
	t.send = func(context.Context, note) (string, error) {
		return "", &channel.RejectedError{Why: "a message to a contact is queued"}
	}
	t.queue = func(ctx context.Context, n note, sent event.Event) error {
		return opt.Contact(ctx, name, n.Title+"\n"+n.body(), sent)
	}
	return t
}

// getenv returns a function that looks up a variable in an environment.
func getenv(environ []string) func(string) string {
	return func(name string) string {
		for _, kv := range slices.Backward(environ) {
			if n, v, _ := strings.Cut(kv, "="); n == name {
				return v
			}
		}
		return ""
	}
}
