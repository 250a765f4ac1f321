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
	"github.com/perlica/perlica/eventlog/message"
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
	KeyDir     string // folder of the keys that sign checkpoints; empty means no signatures
	Runtime    string // folder for sockets; empty means that no other process can answer
	Version    string // the version of Perlica, for agents
	Rules      []policy.Rule
	Own        []string           // Perlica's own folders, which no agent may write to
	Vouchers   approvals.Vouchers // the user's own record of standing approvals
	ViewKey    []byte             // the key of the views' seals; nil in a folder that only the user can write to
	Known      logtrust.Store     // the known logs; its Keys are those in KeyDir
	StreamSync bool               // the agent's output is on disk before it is shown
	Environ    []string           // the variables from which agents' environments are chosen
	Redactor   *redact.Redactor   // masks the agent's words in errors; nil masks text that looks like a secret
	RedactLog  bool               // the Redactor masks every payload before it is hashed
	Trail      *slog.Logger       // the debug trail, or nil
	TrailLost  func() int64       // the number of lost lines of the trail, or nil
	Now        func() time.Time

	// FreeSpace returns the number of bytes that may still be written to a folder. nil asks the system.
	FreeSpace func(dir string) (uint64, error)
}

// Runner is one open context of a workspace. Only a Runner makes calls. Its methods may be called from several
// goroutines. The caller must Close it.
type Runner struct {
	log       *eventlog.Log
	questions *interaction.Coordinator
	policy    *policy.Policy
	opt       Options
	keys      *evidence.Keys // nil means that checkpoints are not signed
	repairing sync.Mutex     // held while a failed log is opened again
	epoch     atomic.Int64   // the number of attempts to open a failed log
	looks     sync.RWMutex   // held for reading during lookAtLog

	mu       sync.Mutex // guards the fields below
	standing *approvals.Standing
	live     map[event.RunID]*run
	changes  map[event.SessionID]*changes
	looking  *time.Timer // runs while live is not empty
}

// lookEvery is the interval at which a process with a turn looks at the log for answers and stops of other
// processes. Usually the other process wakes this one and nothing waits for the interval. It is for processes
// that died before the wake-up or cannot reach this one.
const lookEvery = time.Second

// A line for which no caller waits is written after this delay at the latest. With stream_sync such lines
// belong to the agent's set-up, or say that the prompt is about to leave, which helps after a crash. Without
// stream_sync, the log may be late by this delay, compared with the shown output.
const (
	streamLazy = 20 * time.Millisecond
	setupLazy  = 100 * time.Millisecond
)

// Open opens the context's log, and creates it if necessary. Its folders must exist. The errors are those of
// eventlog.Open, and a *logtrust.UnknownError for an unknown log, which Open neither uses nor changes.
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
		opt.Trail.Warn("the log could not be added to the known logs", "error", kept.Error())
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

// enterRun adds a run to the runs that are under way.
func (r *Runner) enterRun(run *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[run.refs.Run] = run
	if r.looking == nil {
		r.looking = time.AfterFunc(lookEvery, r.lookAtLog)
	}
}

func (r *Runner) leaveRun(run *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, run.refs.Run)
	if len(r.live) == 0 && r.looking != nil {
		r.looking.Stop()
		r.looking = nil
	}
}

func (r *Runner) lookAtLog() {
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

// Log returns the context's event log.
func (r *Runner) Log() *eventlog.Log { return r.log }

// Questions takes answers to questions of this process and of others.
func (r *Runner) Questions() *interaction.Coordinator { return r.questions }

// Trail returns the debug trail.
func (r *Runner) Trail() *slog.Logger { return r.opt.Trail }

// Vouchers returns the user's own record of decisions, which the project's log cannot change.
func (r *Runner) Vouchers() approvals.Vouchers { return r.opt.Vouchers }

// Approvals returns the standing approvals that count on this machine.
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

// approvals returns the standing approvals for a decision. After an error a person is asked.
func (r *Runner) approvals() ([]policy.Approval, error) {
	list, err := r.Approvals(context.Background())
	if err != nil {
		r.opt.Trail.Warn("standing approvals", "error", err.Error())
	}
	return list, err
}

// rememberApproval records a standing approval, before the answer with it takes effect.
func (r *Runner) rememberApproval(ctx context.Context, a policy.Approval, by string, refs event.Refs) error {
	a.ID, a.By, a.Made = uuid.Must(uuid.NewV7()).String(), by, r.opt.Now().UTC()
	if _, err := r.log.Append(ctx, event.NewFact(event.ApprovalRemembered, "user", refs, a)); err != nil {
		return err
	}
	// If we die here, the approval does not count, and a person is asked again.
	if err := r.opt.Vouchers.Add(ctx, a); err != nil {
		r.opt.Trail.Warn("the approval will not count", "error", err.Error())
	}
	return nil
}

// Close writes the recorded events and closes the log. No run may be under way.
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
	if err == nil { // the end of a failed log is not known
		r.opt.Known.Seen(r.log.Path(), r.log.Newest())
	}
	return err
}

// warnOfAnchor warns if the run's checkpoint is not signed or not in the anchor. The checkpoint was written
// while the agent ended. The outcome is on disk in any case.
func (run *run) warnOfAnchor() {
	if subtype, err := run.r.anchorFault(); err != nil {
		run.client.warnLate(subtype, message.Of(err))
	}
}

// anchorFault returns the fault of the last checkpoint, and the subtype of the warning. It waits for all
// events that are recorded.
func (r *Runner) anchorFault() (subtype string, err error) {
	err = r.log.Anchored()
	switch {
	case err == nil, r.log.Err() != nil: // the error of a dead log is reported elsewhere
	case !errors.Is(err, evidence.ErrKey):
		return "checkpoint_not_anchored",
			fmt.Errorf("%w. The answer is on record; after you free space, run 'perlica log checkpoint'", err)
	case r.keys != nil:
		return "checkpoint_not_signed", err
	}
	return "", nil
}

// LowSpace is the free space, in bytes, below which a run warns. Perlica ends a run that it cannot record.
const LowSpace = 100 << 20

// warnOfSpace warns before the disk is full. It is silent if the free space cannot be measured.
func (run *run) warnOfSpace() {
	dir := run.r.opt.Paths.Dir
	if free, err := run.r.opt.FreeSpace(dir); err == nil && free < LowSpace {
		run.client.warn("disk_low", diskLow.With(humanize.IBytes(free), dir))
	}
}

// RevokeApprovals ends standing approvals, all or none. After a nil error they answer nothing, even in runs
// that are under way.
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
