package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// Bridge is the messaging bridge of a project. The caller must Close it, before the Runner.
type Bridge struct {
	opt       Options
	channels  map[string]channel.Channel
	records   *Records
	lock      *flock.Flock
	lanes     sync.WaitGroup
	desks     sync.WaitGroup
	slots     *slots
	strangers access.Refusals
	projects  *Projects // nil: its bot serves this one alone; does not change once it runs
	served    *served   // as which of them; likewise

	// Set by Run before anything else happens.
	turning context.Context // ends when no new turn may begin
	hard    context.Context // ends when turns under way are given up
	sending context.Context // ends when nothing more may be sent
	fail    context.CancelCauseFunc

	mu         sync.Mutex // guards what follows; never held during I/O
	settings   Settings
	desk       map[fact.Peer]*desk
	lane       map[laneKey]*lane
	asked      map[event.InteractionID]*asked
	spoken     map[fact.Peer]language.Language // to contacts, as far as it is known; empty: as configured
	watching   bool                            // what happens elsewhere is read
	faults     map[string]fault                // of channels
	revived    map[string]chan struct{}        // by channel; see answers
	lastErrors []string
	closed     bool
}

// AutoAck is the acknowledgement that each platform and language has by itself.
const AutoAck = "auto"

// ErrClosed says that the bridge was closed.
var ErrClosed = errors.New("the bridge is closed")

// Open takes the project's lock and brings the view up to date. It fails with a *HeldError if
// another bridge runs.
func Open(ctx context.Context, opt Options) (*Bridge, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	opt.Backoff = cmp.Or(opt.Backoff, time.Second)
	opt.Settings.Agents = max(opt.Settings.Agents, 1)
	held, err := lock(opt.Lock, opt.Context, opt.Now())
	if err != nil {
		return nil, err
	}
	records, err := OpenRecords(ctx, &opt.Runner.Log().Reader, opt.View, opt.Runner.Vouchers())
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	b := &Bridge{
		opt: opt, channels: map[string]channel.Channel{}, records: records, lock: held, settings: opt.Settings,
		slots: newSlots(opt.Settings.Agents),
		desk:  map[fact.Peer]*desk{}, lane: map[laneKey]*lane{}, asked: map[event.InteractionID]*asked{},
		spoken: map[fact.Peer]language.Language{},
		faults: map[string]fault{}, revived: map[string]chan struct{}{},
	}
	for _, c := range opt.Channels {
		b.channels[c.Name()] = c
	}
	return b, nil
}

func (b *Bridge) log() *eventlog.Log { return b.opt.Runner.Log() }

// Records is what the bridge knows.
func (b *Bridge) Records() *Records { return b.records }

// Set replaces the settings. How many agents live at a time stays until the next start.
func (b *Bridge) Set(s Settings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Agents = b.settings.Agents
	b.settings = s
}

func (b *Bridge) set() Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings
}

// info reports what happened to the log of the bridge.
func (b *Bridge) info(what string, args ...any) { b.opt.Log.Info(what, args...) }

// warn is note for what went wrong; the last ones are shown in the state.
func (b *Bridge) warn(what string, args ...any) {
	b.opt.Log.Warn(what, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.opt.Now().Local().Format(time.TimeOnly) + " " + what
	for i := 1; i < len(args); i += 2 {
		line += fmt.Sprintf(" %v", args[i])
	}
	if b.lastErrors = append(b.lastErrors, line); len(b.lastErrors) > 5 {
		b.lastErrors = b.lastErrors[1:]
	}
}

// Run serves until ctx ends, then drains: turns under way may go on for the grace, then they
// are cancelled; what waits is answered after the next start. It returns nil if it ended in
// order, and the error that made it give up otherwise: the log could not be written.
func (b *Bridge) Run(ctx context.Context) error {
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	hard, give := context.WithCancelCause(context.WithoutCancel(ctx))
	defer give(nil)
	sending, mute := context.WithCancel(context.WithoutCancel(ctx))
	defer mute()
	b.turning, b.hard, b.sending, b.fail = work, hard, sending, fail

	if err := b.start(context.WithoutCancel(ctx)); err != nil {
		mute()
		fail(err)
		b.desks.Wait()
		b.lanes.Wait()
		return err
	}
	var polls sync.WaitGroup
	for _, c := range b.polled() {
		polls.Go(func() { b.poll(work, c) })
		polls.Go(func() { b.menus(work, c) })
	}
	if b.opt.Team != nil {
		polls.Go(func() { b.attend(work) })
	}
	b.info("serving", "channels", len(b.opt.Channels))
	if b.opt.Serving != nil {
		b.opt.Serving()
	}
	<-work.Done()
	err := context.Cause(work)
	if ctx.Err() != nil {
		err = nil
	}
	polls.Wait()
	if b.projects != nil {
		b.projects.unpolled(b)
	}
	b.drain(give)
	b.flush(mute)
	if err == nil {
		_, err = b.log().Append(context.WithoutCancel(ctx), event.NewFact(event.ServiceStopped, "perlica", event.Refs{}, fact.ServiceStopped{Why: "stopped in order"}))
	}
	return err
}

// start takes up what an earlier bridge left.
func (b *Bridge) start(ctx context.Context) error {
	names := []string{}
	for _, c := range b.opt.Channels {
		names = append(names, c.Name())
	}
	f := fact.ServiceStarted{PID: os.Getpid(), Version: b.opt.Version, Channels: names}
	events := []event.Event{event.NewFact(event.ServiceStarted, "perlica", event.Refs{}, f)}
	for _, left := range b.opt.LeftOut {
		b.warn("a channel is not served", "channel", left.Name, "error", left.Error)
		events = append(events, event.NewFact(event.ChannelFailed, "perlica", event.Refs{}, fact.ChannelState{Channel: left.Name, Error: left.Error}))
	}
	if _, err := b.log().Append(ctx, events...); err != nil {
		return err
	}
	// Before anything may be called: what an earlier process called gets its outcome.
	recovered, err := b.opt.Runner.Recover(ctx)
	if err != nil {
		return err
	}
	for _, res := range recovered {
		b.warn("the outcome of an earlier run is unknown", "run", string(res.Run))
	}
	unconfirmed, err := b.records.Unconfirmed(ctx)
	if err != nil {
		return err
	}
	for _, c := range unconfirmed {
		b.warn("the log names a contact that was not paired by you here, or by an earlier version: it has no rights", "contact", c.Label(), "hint", Confirming(c))
	}
	if err := errors.Join(b.takeUpCards(ctx), b.closeOrphans(ctx)); err != nil {
		return err
	}
	ends, err := b.endSigns(ctx)
	if err == nil && len(ends) > 0 {
		_, err = b.log().Append(ctx, ends...)
	}
	if err != nil {
		return err
	}
	unsent, err := b.records.unsent(ctx)
	if err != nil {
		return err
	}
	for _, q := range unsent {
		if b.channels[q.Channel] != nil { // else it stays for a bridge that serves it
			b.send(q)
		}
	}
	if followers, err := b.followers(ctx); err != nil || len(followers) == 0 {
		return errors.Join(err, b.takeUp(ctx))
	}
	return errors.Join(b.watch(ctx), b.takeUp(ctx))
}

// takeUp puts the messages that wait into their lines.
func (b *Bridge) takeUp(ctx context.Context) error {
	waiting, err := b.records.waiting(ctx)
	if err != nil {
		return err
	}
	for _, m := range waiting {
		if b.channels[m.Channel] == nil {
			continue
		}
		_, paired, err := b.records.contact(ctx, m.Channel, m.Contact)
		switch {
		case err != nil:
			return err
		case m.Held && !paired: // else no one finds that out
			b.deskOf(m.Peer).do(m)
		default:
			b.deskOf(m.Peer).take(m)
		}
	}
	return nil
}

// drain lets the turns under way end, then asks them to, then ends their agents.
func (b *Bridge) drain(give context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { // ends with the desks
		b.desks.Wait()
		close(done)
	}()
	stop := kernel.Stop{By: "terminated", Why: "the bridge was told to stop"}
	for i, grace := range []time.Duration{b.set().Grace, cancelGrace} {
		select {
		case <-done:
			return
		case <-time.After(grace):
		}
		if i == 0 {
			b.mu.Lock()
			for _, d := range b.desk {
				d.stopTurn(stop)
			}
			b.mu.Unlock()
		}
	}
	give(&kernel.StoppedError{Stop: stop})
	<-done
}

// cancelGrace is how long a cancelled turn may take to end.
const cancelGrace = 20 * time.Second

// flushTime is how long the last messages may take to be sent when the bridge stops.
const flushTime = 5 * time.Second

// flush waits until what is queued has been sent, for a while. The rest is sent after the
// next start.
func (b *Bridge) flush(mute context.CancelFunc) {
	ctx, cancel := context.WithTimeout(b.sending, flushTime)
	defer cancel()
	for b.unsentNow() && channel.Wait(ctx, 20*time.Millisecond) {
	}
	mute()
	b.lanes.Wait()
}

// Close ends the agents and gives up the project. Run must have returned. Later calls return
// ErrClosed.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.closed = true
	var desks []*desk
	for _, d := range b.desk {
		desks = append(desks, d)
	}
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, d := range desks {
		wg.Go(func() { d.close(ctx) })
	}
	wg.Wait()
	_ = b.records.view.CatchUp(ctx) // anyone who opens it next does it otherwise
	return errors.Join(b.records.Close(), b.lock.Close())
}

// A HeldError says that another bridge serves the project. Its fields are what is known of it.
type HeldError struct {
	PID     int       `json:"pid"`
	Context string    `json:"context"`
	Since   time.Time `json:"since"`
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "another bridge serves this project"
	}
	return fmt.Sprintf("another bridge serves this project: process %d, since %s, in the context %q",
		e.PID, e.Since.Local().Format(time.DateTime), e.Context)
}

// lock takes the lock of the project's one bridge, or fails with a *HeldError. The file stays
// when it is given up: it only says who holds it while somebody does.
func lock(path, context string, now time.Time) (*flock.Flock, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, errors.Join(held(path), f.Close())
	}
	if b, err := json.Marshal(HeldError{os.Getpid(), context, now.UTC()}); err == nil {
		_ = os.WriteFile(path, b, 0o600) // it holds all the same
	}
	return f, nil
}

// Holder says which bridge serves a project; nil: none. It neither makes nor keeps the lock.
func Holder(path string) (*HeldError, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := f.TryRLock()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if free {
		return nil, nil
	}
	return held(path), nil
}

// held is what the file of the lock says.
func held(path string) *HeldError {
	e := &HeldError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &HeldError{}
	}
	return e
}
