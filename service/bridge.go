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
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// Bridge is the messaging bridge of a project. The caller must Close it before the Runner.
type Bridge struct {
	opt       Options
	channels  map[string]channel.Channel
	records   *Records
	lock      *flock.Flock
	outboxWG  sync.WaitGroup
	inboxWG   sync.WaitGroup
	slots     *slots
	strangers access.Refusals
	projects  *Projects // nil means that the bot serves one project; fixed before Run
	served    *served   // this bridge's entry in projects; fixed before Run

	serving chan struct{} // closed when Run has taken over the state of an earlier bridge

	// Run sets the fields turning, hard, sending and fail before it does anything else.
	turning context.Context // ends when no new turn may begin
	hard    context.Context // ends when running turns are given up
	sending context.Context // ends when no further message may be sent
	fail    context.CancelCauseFunc

	mu            sync.Mutex // guards the fields below; never held during I/O
	current       Settings
	inboxByPeer   map[fact.Peer]*inbox
	outboxByPeer  map[outboxKey]*outbox
	openQuestions map[event.InteractionID]*openQuestion
	// spoken holds the languages of the known contacts. Empty means the configured language.
	spoken     map[fact.Peer]language.Language
	watching   bool                     // the bridge reads the turns of other front ends
	faults     map[string]fault         // by channel
	revived    map[string]chan struct{} // by channel; closed when the platform works again
	lastErrors []string
	closed     bool
}

// AutoAck selects the standard acknowledgement of each platform and language.
const AutoAck = "auto"

// errClosed says that the bridge was closed.
var errClosed = errors.New("the bridge is closed")

// bridgeStops is the reason with which an ending bridge stops its turns.
var bridgeStops = message.New("service.bridge-stops", "the bridge was told to stop")

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
	held, err := lockProject(opt.Lock, opt.Context, opt.Now())
	if err != nil {
		return nil, err
	}
	records, err := OpenRecords(ctx, &opt.Runner.Log().Reader, opt.View, opt.Runner.Vouchers())
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	b := &Bridge{
		opt: opt, channels: map[string]channel.Channel{}, records: records, lock: held, current: opt.Settings,
		slots: newSlots(opt.Settings.Agents), serving: make(chan struct{}),
		inboxByPeer: map[fact.Peer]*inbox{}, outboxByPeer: map[outboxKey]*outbox{},
		openQuestions: map[event.InteractionID]*openQuestion{},
		spoken:        map[fact.Peer]language.Language{},
		faults:        map[string]fault{}, revived: map[string]chan struct{}{},
	}
	for _, c := range opt.Channels {
		b.channels[c.Name()] = c
	}
	return b, nil
}

func (b *Bridge) log() *eventlog.Log { return b.opt.Runner.Log() }

// Records returns the bridge's view of its records.
func (b *Bridge) Records() *Records { return b.records }

// Set replaces the settings. A new value of Settings.Agents takes effect at the next start.
func (b *Bridge) Set(s Settings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Agents = b.current.Agents
	b.current = s
}

func (b *Bridge) settings() Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current
}

// info writes an event of the bridge to the operator's log.
func (b *Bridge) info(what string, args ...any) { b.opt.Log.Info(what, args...) }

// warn writes a fault to the operator's log. Live returns the latest faults.
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

// Run serves until ctx ends. Running turns may then continue for the time Settings.Grace, and are cancelled after it.
// Waiting messages are answered after the next start. Run returns nil after a normal end. Otherwise it returns the
// error of the log, which ended the bridge.
func (b *Bridge) Run(ctx context.Context) error {
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	hard, give := context.WithCancelCause(context.WithoutCancel(ctx))
	defer give(nil)
	sending, mute := context.WithCancel(context.WithoutCancel(ctx))
	defer mute()
	b.turning, b.hard, b.sending, b.fail = work, hard, sending, fail

	if err := b.startUp(context.WithoutCancel(ctx)); err != nil {
		mute()
		fail(err)
		b.inboxWG.Wait()
		b.outboxWG.Wait()
		return err
	}
	var polls sync.WaitGroup
	for _, c := range b.polled() {
		polls.Go(func() { b.pollChannel(work, c) })
		polls.Go(func() { b.menus(work, c) })
	}
	if b.opt.Team != nil {
		polls.Go(func() { b.watchTeam(work) })
	}
	close(b.serving)
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
	b.drainTurns(give)
	b.flushOutboxes(mute)
	if err == nil {
		_, err = b.log().Append(context.WithoutCancel(ctx), event.NewFact(event.ServiceStopped, "perlica", event.Refs{},
			fact.ServiceStopped{Why: "stopped in order"}))
	}
	return err
}

// startUp takes over the state that an earlier bridge left.
func (b *Bridge) startUp(ctx context.Context) error {
	names := []string{}
	for _, c := range b.opt.Channels {
		names = append(names, c.Name())
	}
	f := fact.ServiceStarted{PID: os.Getpid(), Version: b.opt.Version, Channels: names}
	events := []event.Event{event.NewFact(event.ServiceStarted, "perlica", event.Refs{}, f)}
	for _, left := range b.opt.LeftOut {
		b.warn("a channel is not served", "channel", left.Name, "error", left.Error)
		events = append(events, event.NewFact(event.ChannelFailed, "perlica", event.Refs{},
			fact.ChannelState{Channel: left.Name, Error: left.Error}))
	}
	if _, err := b.log().Append(ctx, events...); err != nil {
		return err
	}
	// The calls of an earlier process get their outcomes first, so that no input is called twice.
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
		b.warn("the log names a contact that was not paired by you here: it has no rights",
			"contact", c.Label(), "hint", Confirming(c))
	}
	if err := errors.Join(b.takeUpCards(ctx), b.closeOrphans(ctx)); err != nil {
		return err
	}
	ends, err := b.endStatuses(ctx)
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
		if b.channels[q.Channel] != nil { // otherwise the message waits for a bridge that serves its channel
			b.queueMessage(q)
		}
	}
	if followers, err := b.followers(ctx); err != nil || len(followers) == 0 {
		return errors.Join(err, b.takeUp(ctx))
	}
	return errors.Join(b.watchLog(ctx), b.takeUp(ctx))
}

// takeUp puts the waiting messages into their inboxes.
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
		case m.Held && !paired: // finish it now, because its queue skips held messages
			b.inboxOf(m.Peer).handleMessage(m)
		default:
			b.inboxOf(m.Peer).addMessage(m)
		}
	}
	return nil
}

// drainTurns lets the running turns end, then stops them, then ends their agents.
func (b *Bridge) drainTurns(give context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { // ends with the inboxes
		b.inboxWG.Wait()
		close(done)
	}()
	stop := fact.NewStop("terminated", bridgeStops)
	for i, grace := range []time.Duration{b.settings().Grace, cancelGrace} {
		select {
		case <-done:
			return
		case <-time.After(grace):
		}
		if i == 0 {
			b.mu.Lock()
			for _, ib := range b.inboxByPeer {
				ib.stopTurn(stop)
			}
			b.mu.Unlock()
		}
	}
	give(&kernel.StoppedError{Stop: stop})
	<-done
}

// cancelGrace is the time in which a cancelled turn must end.
const cancelGrace = 20 * time.Second

// flushTime is the time for sending the last messages when the bridge stops.
const flushTime = 5 * time.Second

// flushOutboxes waits a limited time until all queued messages are sent. The next start sends the
// rest.
func (b *Bridge) flushOutboxes(mute context.CancelFunc) {
	ctx, cancel := context.WithTimeout(b.sending, flushTime)
	defer cancel()
	for b.unsentNow() && channel.Wait(ctx, 20*time.Millisecond) {
	}
	mute()
	b.outboxWG.Wait()
}

// Close ends the agents and releases the project. Run must have returned. Later calls return
// errClosed.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	b.closed = true
	var desks []*inbox
	for _, ib := range b.inboxByPeer {
		desks = append(desks, ib)
	}
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, ib := range desks {
		wg.Go(func() { ib.closeConversations(ctx) })
	}
	wg.Wait()
	_ = b.records.view.CatchUp(ctx) // after an error, the next process brings the view up to date
	return errors.Join(b.records.Close(), b.lock.Close())
}

// A HeldError says that another bridge serves the project. Its fields describe the other bridge as far as it is known.
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

// lockProject takes the lock of the project's bridge or fails with a *HeldError. The file stays
// after the release. Its content describes the holder only while the lock is held.
func lockProject(path, context string, now time.Time) (*flock.Flock, error) {
	if err := disk.Check(path); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, errors.Join(readHolder(path), f.Close())
	}
	if b, err := json.Marshal(HeldError{os.Getpid(), context, now.UTC()}); err == nil {
		_ = os.WriteFile(path, b, 0o600) // the text only describes the holder, so the lock works without it
	}
	return f, nil
}

// Holder returns the bridge that serves a project, or nil. It does not make the lock's file, and it does not keep the
// lock.
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
	defer func() { _ = f.Close() }() // the file was not written
	if free {
		return nil, nil
	}
	return readHolder(path), nil
}

// readHolder returns the content of the lock's file.
func readHolder(path string) *HeldError {
	e := &HeldError{}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, e) != nil {
		return &HeldError{}
	}
	return e
}
