// Package notify sends notifications of a log's events.
//
// The causes are an open question, the end of a long turn or flow, an unknown outcome, a budget and a schedule. They
// follow from the events alone. Each cause makes at most one notification for each target, even if processes restart or
// several run: Perlica records each attempt before it sends, and a lock lets one process deliver to a target at a time.
// A failed attempt is repeated for one hour. An attempt with an unknown result is repeated only if the target knows the
// key of the notification. A notification has no words of the agent or of the user, unless the configuration asks for
// the content. The content is redacted. Nothing waits for a notification, and nothing of a run depends on one.
//
// Start runs one goroutine for each target. So a slow target delays no other one. For the browsers, a further goroutine
// starts one goroutine for each browser. The goroutine of a target owns its ledger, and stop joins all goroutines.
package notify

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/web/push"
)

// Options are the means of a process to deliver notifications.
type Options struct {
	Version string
	// Team is the name of the team whose log is followed. It is empty for the log of a project.
	Team string
	// Terminal is the terminal of a front end. Nil means that the process has none.
	Terminal io.Writer
	// Contact queues a message to a paired contact, together with the event sent, all or nothing. Nil means that the
	// process is not the bridge.
	Contact func(ctx context.Context, name, text string, sent event.Event) error
	// Client makes the HTTP requests. Nil means a new client.
	Client *http.Client
	// Push is the transport of the messages to push services. If it is nil, only public addresses are reached.
	Push http.RoundTripper
}

const (
	// maxAge is the age of a cause above which it makes no notification, and above which no attempt is repeated.
	maxAge = time.Hour
	// sendTime is the time limit of one attempt.
	sendTime = 15 * time.Second
	// lastTime is the time that stop gives to the notifications that are due.
	lastTime = 5 * time.Second
	// firstPause is the pause after the first failed attempt. Each later pause is three times longer, up to mostPause.
	firstPause = 5 * time.Second
	mostPause  = 10 * time.Minute
	// rest is the pause between two looks at a log that changes, and the pause while another process delivers.
	rest = 200 * time.Millisecond
	// logPause is the pause after a failure of the log.
	logPause = 10 * time.Second
)

// Start follows the log of the project and delivers its notifications. The log must exist. The function stop delivers
// the notifications that are due, for at most five seconds, and returns when everything is closed. Without a configured
// target, Start does nothing.
func Start(p *project.Project, opt Options) (stop func()) {
	if len(p.Config.Notify) == 0 {
		return func() {}
	}
	follow, end := context.WithCancel(context.Background())
	send, cut := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		deliverAll(follow, send, p, opt)
	}()
	return func() {
		end()
		late := time.AfterFunc(lastTime, cut)
		<-over
		late.Stop()
		cut()
	}
}

// deliverAll opens the log and delivers to all targets until the context "follow" ends and the remaining notifications
// are delivered. The end of the context "send" interrupts the deliveries.
func deliverAll(follow, send context.Context, p *project.Project, opt Options) {
	r, done, err := p.Open(send, opt.Version)
	if err != nil {
		return // the front end reports the same error about the same log
	}
	defer func() { _ = done() }() // an error loses nothing, because every event was synced
	targets, errs := Targets(send, p, opt)
	for _, err := range errs {
		r.Trail().Warn("notify", "error", err.Error())
	}
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return // cannot happen, because p.Open has opened this context
	}
	teller, err := tellerOf(p, opt.Team)
	if err != nil {
		return // cannot happen, because p.Open uses the same redactor
	}
	var all sync.WaitGroup
	start := func(follow context.Context, t Target) {
		d := &delivery{target: t, log: r.Log(), lock: filepath.Join(paths.Locks, "notify-"+t.Digest+".lock"),
			ledger: ledger{target: t.Digest, rules: t.Rules, since: t.since}, now: time.Now, teller: teller}
		f := follower{name: t.Name, log: r.Log(), trail: r.Trail(), deliver: d.deliver}
		all.Go(func() { f.run(follow, send) })
	}
	for _, t := range targets {
		if t.send == nil || t.browser != "" {
			continue // another process delivers to this target, or subscribed starts the goroutine of a browser
		}
		start(follow, t)
	}
	if len(browserRules(p)) > 0 {
		b := subscribed{browsers: browsers{p, push.New(push.Options{Dir: p.Dirs.PushDir(), Transport: opt.Push})},
			start: func(t Target) context.CancelFunc {
				subscribed, end := context.WithCancel(follow)
				start(subscribed, t)
				return end
			}, ends: map[string]context.CancelFunc{}}
		f := follower{name: toBrowsers, log: r.Log(), trail: r.Trail(), deliver: b.deliver}
		all.Go(func() { f.run(follow, send) })
	}
	all.Wait()
}

// follower follows a log and delivers its notifications when they are due. One goroutine uses it.
type follower struct {
	name  string // the target's name
	log   *eventlog.Log
	trail *slog.Logger
	// deliver delivers the notifications that are due. It returns the time until the next one is due. 0 means that there
	// is no next one.
	deliver func(ctx context.Context) (most time.Duration, err error)
}

// delivery delivers the notifications of a log to one target. One goroutine uses it.
type delivery struct {
	target Target
	log    *eventlog.Log
	lock   string // the path of the lock
	ledger ledger
	teller *teller
	now    func() time.Time
}

// Test makes one attempt to deliver a note without a cause. It records nothing and returns the reply of the target.
func Test(ctx context.Context, p *project.Project, t Target) (reply string, err error) {
	teller, err := tellerOf(p, "")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return t.send(ctx, teller.plain(test, uuid.NewString()))
}

// run delivers until the context "follow" ends. It then delivers once more, for the last events.
func (f *follower) run(follow, send context.Context) {
	for {
		err := f.followLog(follow, send)
		if follow.Err() != nil {
			if _, err := f.deliver(send); err != nil {
				f.trail.Warn("notify", "target", f.name, "error", err.Error())
			}
			return
		}
		f.trail.Warn("notify", "target", f.name, "error", err.Error())
		if channel.Wait(follow, logPause) {
			_ = f.log.Reopen(follow) // the next attempt reports the error
		}
	}
}

// followLog delivers until the context "follow" ends or the log fails. Its error is never nil.
func (f *follower) followLog(follow, send context.Context) error {
	changes, err := f.log.Changes(follow)
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // nothing was written
	for {
		most, err := f.deliver(send)
		if err != nil {
			return err
		}
		if _, err := changes.Wait(follow, most); err != nil {
			return err
		}
		if !channel.Wait(follow, rest) {
			return follow.Err()
		}
	}
}

// deliver is the function of a follower for the target.
func (d *delivery) deliver(ctx context.Context) (most time.Duration, err error) {
	err = d.deliverDue(ctx)
	if next, ok := d.ledger.next(); ok {
		most = max(next.due.Sub(d.now()), rest)
	}
	return most, err
}

// deliverDue delivers the notifications that are due, unless another process holds the target's lock.
func (d *delivery) deliverDue(ctx context.Context) error {
	if err := d.ledger.read(ctx, &d.log.Reader, d.now()); err != nil {
		return err
	}
	if !d.isDue() {
		return nil
	}
	lock, err := filelock.Acquire(d.lock)
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	for ctx.Err() == nil {
		// The other process may have delivered since the last look.
		if err := d.ledger.read(ctx, &d.log.Reader, d.now()); err != nil {
			return err
		}
		if !d.isDue() {
			return nil
		}
		next, _ := d.ledger.next()
		if err := d.attempt(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

func (d *delivery) isDue() bool {
	next, ok := d.ledger.next()
	return ok && !next.due.After(d.now())
}

// attempt makes one attempt to deliver a notification, and records it. The caller holds the lock. So an attempt without
// a result is an attempt of a process that has died.
func (d *delivery) attempt(ctx context.Context, e *entry) error {
	f := fact.Notified{Cause: e.cause.Seq, Kind: e.cause.kinds[0], Target: d.target.Digest, To: d.target.Name,
		Attempt: e.attempts}
	switch {
	case e.started && (!d.target.Dedupes || e.over):
		f.Error, f.Unknown, f.Final = "the process ended while the notification was sent", true, true
		return d.record(event.NotifyFailed, e.cause, f)
	case d.now().After(e.first.Add(maxAge)):
		f.Error, f.Unknown, f.Final = e.err, e.started, true
		return d.record(event.NotifyFailed, e.cause, f)
	}
	f.Attempt++
	note, err := d.teller.note(ctx, &d.log.Reader, e)
	if err != nil {
		return err
	}
	if d.target.queue != nil { // the message and its record are one commit
		sent := event.NewFact(event.NotifySent, "perlica", refsOf(e.cause), f)
		if err = d.target.queue(ctx, note, sent); err == nil {
			return nil
		}
	} else {
		if err := d.record(event.NotifyStarted, e.cause, f); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, sendTime)
		_, err = d.target.send(limited, note)
		cancel()
	}
	if err == nil {
		return d.record(event.NotifySent, e.cause, f)
	}
	f.Error = oneLine(err.Error(), maxError)
	f.Unknown = !errors.Is(err, channel.ErrNotSent) && !isRejected(err)
	f.Final = isRejected(err) || f.Unknown && !d.target.Dedupes
	if !f.Final {
		f.Next = d.now().Add(pauseAfter(f.Attempt, err)).UTC()
		if end := e.first.Add(maxAge + time.Second).UTC(); f.Next.After(end) {
			f.Next = end // at this time the notification is given up
		}
	}
	return d.record(event.NotifyFailed, e.cause, f)
}

// record appends the result of an attempt. The result has happened, so the end of a context does not matter.
func (d *delivery) record(t event.Type, c cause, f fact.Notified) error {
	_, err := d.log.Append(context.Background(), event.NewFact(t, "perlica", refsOf(c), f))
	return err
}

// refsOf returns the references of an event about a notification. Such an event belongs to no run, because it may come
// after the run's last event.
func refsOf(c cause) event.Refs { return event.Refs{Session: c.Session} }

// pauseAfter returns the pause after a failed attempt. It is at least the pause that the target asked for.
func pauseAfter(attempt int, err error) time.Duration {
	pause := firstPause
	for range attempt - 1 {
		pause = min(3*pause, mostPause)
	}
	if limit := (*channel.RateLimitError)(nil); errors.As(err, &limit) {
		pause = max(pause, limit.After)
	}
	return pause
}

func isRejected(err error) bool {
	rejected := (*channel.RejectedError)(nil)
	return errors.As(err, &rejected)
}

// longestAfter returns the longest waiting time of the rules.
func longestAfter(rules []config.Notify) (longest time.Duration) {
	for _, r := range rules {
		longest = max(longest, r.After)
	}
	return longest
}
