package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/policy"
)

// Options of Open.
type Options struct {
	Paths      config.ContextPaths
	Context    string // the context's name
	KeyDir     string // folder of the keys that sign checkpoints; empty: none is signed
	Runtime    string // folder for sockets; empty: no other process can answer
	Version    string // of Perlica, for agents
	Rules      []policy.Rule
	Own        []string           // Perlica's own folders, which no agent may write to
	Vouchers   approvals.Vouchers // says which standing approvals were given here
	ViewKey    []byte             // seals the views; nil: they lie where only the user writes
	Known      logtrust.Store     // says which logs may be used; its Keys are those in KeyDir
	StreamSync bool               // what an agent says is on disk before it is shown
	Environ    []string           // what agents' environments are chosen from
	Redactor   *redact.Redactor   // what is masked in what agents say of errors; nil: what looks like a secret
	RedactLog  bool               // the Redactor masks every payload before it is hashed
	Trail      *slog.Logger       // the debug trail; nil: none
	TrailLost  func() int64       // how many of its lines were lost; nil: none
	Now        func() time.Time

	// FreeSpace says how many bytes may still be written where a folder lies; nil asks the
	// system.
	FreeSpace func(dir string) (uint64, error)
}

// Runner is one context of one workspace, open for work: the only thing that makes
// calls. Its methods may be called from several goroutines. The caller must Close it.
type Runner struct {
	log       *eventlog.Log
	questions *interaction.Coordinator
	policy    *policy.Policy
	opt       Options
	keys      *evidence.Keys // nil: checkpoints are not signed
	repairing sync.Mutex     // held while a log that failed is opened again
	epoch     atomic.Int64   // how often that was tried
	looks     sync.RWMutex   // held while the log is looked at

	mu       sync.Mutex // guards what follows
	standing *approvals.Standing
	live     map[event.RunID]*run
	changes  map[event.SessionID]*changes
	looking  *time.Timer // runs while live is not empty
}

// lookEvery is how often a process with a turn under way looks at the log for what others have
// put there: an answer, or a stop. It is for those who were killed before they could wake this
// process and for those who cannot reach it; the others do not wait for it.
const lookEvery = time.Second

// How long a line may wait to be written where no caller waits for it. With stream_sync what
// is shown is waited for, and what is not is the agent's set-up, and that the prompt was about to
// leave, which is worth knowing after a crash; without, this is how far the log may be behind
// what was shown.
const (
	streamLazy = 20 * time.Millisecond
	setupLazy  = 100 * time.Millisecond
)

// Open opens the context's log, creating it if need be. Its folders must exist. It fails
// with the errors of eventlog.Open, and with a *logtrust.UnknownError if the log is not known here:
// then nothing of it was used or changed.
func Open(ctx context.Context, opt Options) (*Runner, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Trail == nil {
		opt.Trail = slog.New(slog.DiscardHandler)
	}
	if opt.TrailLost == nil {
		opt.TrailLost = func() int64 { return 0 }
	}
	if opt.FreeSpace == nil {
		opt.FreeSpace = disk.FreeSpace
	}
	lazy := streamLazy
	if opt.StreamSync {
		lazy = setupLazy
	}
	logged := eventlog.Options{Context: opt.Context, Now: opt.Now, Lazy: lazy}
	if opt.KeyDir != "" {
		logged.Keys = evidence.UseKeys(opt.KeyDir)
	}
	if opt.RedactLog {
		logged.Redact = opt.Redactor.Payload
	}
	opt.Known.Keys = logged.Keys
	log, kept, err := opt.Known.Open(ctx, opt.Paths.EventLog, logged)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		opt.Trail.Warn("the log could not be put among those that are known", "error", kept.Error())
	}
	r := &Runner{
		log:       log,
		questions: interaction.New(log, opt.Runtime, opt.Now),
		opt:       opt,
		keys:      logged.Keys,
		live:      map[event.RunID]*run{},
		changes:   map[event.SessionID]*changes{},
	}
	r.questions.OnWake(r.lookForStops)
	r.policy, err = policy.New(opt.Rules, r.approvals, opt.Now)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return r, nil
}

// enter and leave keep the runs that are under way. The caller of leave may have entered nothing.
func (r *Runner) enter(run *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[run.refs.Run] = run
	if r.looking == nil {
		r.looking = time.AfterFunc(lookEvery, r.look)
	}
}

func (r *Runner) leave(run *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, run.refs.Run)
	if len(r.live) == 0 && r.looking != nil {
		r.looking.Stop()
		r.looking = nil
	}
}

func (r *Runner) look() {
	r.looks.RLock() // Close waits for it
	defer r.looks.RUnlock()
	r.mu.Lock()
	under := r.looking != nil
	r.mu.Unlock()
	if !under {
		return
	}
	r.questions.Look(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking != nil {
		r.looking.Reset(lookEvery)
	}
}

// Log is the context's event log.
func (r *Runner) Log() *eventlog.Log { return r.log }

// Questions takes answers to questions, of this process and of others.
func (r *Runner) Questions() *interaction.Coordinator { return r.questions }

// Trail is the debug trail.
func (r *Runner) Trail() *slog.Logger { return r.opt.Trail }

// Vouchers say what was decided here, whatever the log says.
func (r *Runner) Vouchers() approvals.Vouchers { return r.opt.Vouchers }

// Approvals returns the standing approvals that count here.
func (r *Runner) Approvals(ctx context.Context) ([]policy.Approval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.standing == nil {
		s, err := approvals.OpenStanding(ctx, &r.log.Reader, r.opt.Paths.Approvals, r.opt.ViewKey)
		if err != nil {
			return nil, err
		}
		r.standing = s
	}
	list, err := r.standing.List(ctx)
	if err != nil {
		return nil, err
	}
	return r.opt.Vouchers.Filter(ctx, list)
}

// approvals is Approvals for decisions. With an error a person is asked.
func (r *Runner) approvals() ([]policy.Approval, error) {
	list, err := r.Approvals(context.Background())
	if err != nil {
		r.opt.Trail.Warn("standing approvals", "error", err.Error())
	}
	return list, err
}

// remember puts a standing approval on record, before the answer that it came with is
// acted upon.
func (r *Runner) remember(ctx context.Context, a policy.Approval, by string, refs event.Refs) error {
	a.ID, a.By, a.Made = uuid.Must(uuid.NewV7()).String(), by, r.opt.Now().UTC()
	if _, err := r.log.Append(ctx, event.NewFact(event.ApprovalRemembered, "user", refs, a)); err != nil {
		return err
	}
	// If we die here the approval does not count, and a person is asked again.
	if err := r.opt.Vouchers.Add(ctx, a); err != nil {
		r.opt.Trail.Warn("the approval will not count", "error", err.Error())
	}
	return nil
}

// Close writes what is recorded and closes the log. No run may be under way.
func (r *Runner) Close() error {
	r.looks.Lock()
	defer r.looks.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.standing != nil {
		err = r.standing.Close()
	}
	err = errors.Join(r.questions.Close(), err, r.log.Close())
	if err == nil { // of a log that failed it is not known what is in it
		r.opt.Known.Seen(r.log.Path(), r.log.Newest())
	}
	return err
}

// warnOfAnchor warns where the checkpoint of the run is not signed, or not in the anchor. It was
// written while the agent was ended; the outcome is on disk in any case.
func (run *run) warnOfAnchor() {
	if subtype, err := run.r.anchorFault(); err != nil {
		run.client.warnLate(subtype, err.Error())
	}
}

// anchorFault returns why the last checkpoint is not signed, or not in the anchor, and the
// warning's subtype.
func (r *Runner) anchorFault() (subtype string, err error) {
	err = r.log.Anchored()
	switch {
	case err == nil, r.log.Err() != nil: // of a dead log there is more to say, and it is said
	case !errors.Is(err, evidence.ErrKey):
		return "checkpoint_not_anchored", fmt.Errorf("%w. The answer is on record; when there is room, 'perlica log checkpoint' makes up for it", err)
	case r.keys != nil:
		return "checkpoint_not_signed", err
	}
	return "", nil
}

// LowSpace is how much free space, in bytes, is worth a warning: a long run writes some of it, and one
// that cannot be recorded is ended.
const LowSpace = 100 << 20

// warnOfSpace says that the disk will soon be full, while there is time to do something. What
// cannot be measured is not: the log says when it cannot be written.
func (run *run) warnOfSpace() {
	dir := run.r.opt.Paths.Dir
	if free, err := run.r.opt.FreeSpace(dir); err == nil && free < LowSpace {
		run.client.warn("disk_low", "only "+humanize.IBytes(free)+" free at "+dir+": a run ends when its log cannot be written")
	}
}

// RevokeApprovals ends standing approvals, all or none. When it returns nil they answer
// nothing any more, in runs that are under way, too.
func (r *Runner) RevokeApprovals(ctx context.Context, list []policy.Approval, by string) error {
	var events []event.Event
	for _, a := range list {
		refs := event.Refs{Session: event.SessionID(a.Session)}
		events = append(events, event.NewFact(event.ApprovalRevoked, "user", refs, policy.Revocation{
			ID: a.ID, By: by, At: r.opt.Now().UTC(),
		}))
	}
	if len(events) == 0 {
		return nil
	}
	_, err := r.log.Append(ctx, events...)
	return err
}
