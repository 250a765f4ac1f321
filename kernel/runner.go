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
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/policy"
)

// Options are the options of Open.
type Options struct {
	Paths      config.ContextPaths
	Context    string // the name of the context
	KeyDir     string // folder of the keys that sign checkpoints; empty means no signatures
	Runtime    string // folder for sockets; empty means that other processes cannot answer questions
	Version    string // the version of Perlica that agents get
	Rules      []policy.Rule
	Judges     hook.Judges         // the policy programs
	Own        []string            // Perlica's own folders, which no agent may write to
	Vouchers   approvals.Vouchers  // the user's vouchers for standing approvals
	ViewKey    []byte              // the key that seals the views; nil if only the user can write to the folder
	Known      logtrust.Store      // the known logs; Open sets its Keys to those in KeyDir
	StreamSync bool                // the agent's output is on disk before it is shown
	Committed  func([]event.Event) // see eventlog.Options; may be nil
	Environ    []string            // the environment from which agents' variables are selected
	Redactor   *redact.Redactor    // masks the agent's words in errors; nil masks texts that look like secrets
	RedactLog  bool                // the Redactor also masks every payload before it is hashed
	Budgets    []config.Budget     // the budgets that every call is checked against
	BudgetDir  string              // the user's folder for the amounts that budgets have used
	// ObserveTree means that the state of the git work tree is recorded before and after each turn.
	ObserveTree bool
	Trail       *slog.Logger // the debug trail, or nil
	TrailLost   func() int64 // returns the number of lost lines of the debug trail; may be nil
	Now         func() time.Time

	// FreeSpace returns the number of free bytes on the disk of a folder. Nil means that the system is asked.
	FreeSpace func(dir string) (uint64, error)
}

// Runner is one open context of a workspace. Only a Runner makes calls. Several goroutines may call its methods. The
// caller must close it.
type Runner struct {
	log       *eventlog.Log
	questions *interaction.Coordinator
	policy    *policy.Policy
	budgets   *budget.Guard // nil without a budget
	opt       Options
	keys      *evidence.Keys // nil means that checkpoints are not signed
	repairing sync.Mutex     // held while a failed log is opened again
	epoch     atomic.Int64   // the number of attempts to open a failed log
	looks     sync.RWMutex   // held for reading while lookAtLog runs
	turns     atomic.Int64   // the number of turns whose work trees are observed
	observing sync.WaitGroup // the observations of work trees

	mu       sync.Mutex // guards the fields below
	standing *approvals.Standing
	live     map[event.RunID]*run
	changes  map[event.SessionID]*changes
	looking  *time.Timer // calls lookAtLog; nil while live is empty
}

// lookEvery is the interval at which a process with a turn reads the log, to find answers and stops of other processes.
// Usually the other process wakes this one at once. The interval matters only if the other process died before it could
// wake this process, or cannot reach it.
const lookEvery = time.Second

// A recorded line is written to disk when a caller waits for it, or after this delay at the latest. With stream_sync,
// the lines without a waiting caller belong to the agent's set-up, or say that the prompt is about to be sent. Without
// stream_sync, the output may be shown up to this delay before the log has it.
const (
	streamLazy = 20 * time.Millisecond
	setupLazy  = 100 * time.Millisecond
)

// Open opens the context's log, and creates it if necessary. The folders must exist. It returns the errors of
// eventlog.Open. For an unknown log the error is a *logtrust.UnknownError, and Open neither uses nor changes that log.
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
	logged := eventlog.Options{Context: opt.Context, Now: opt.Now, Lazy: lazy, Committed: opt.Committed}
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
	if err == nil {
		r.budgets, err = budget.New(budget.Options{Budgets: opt.Budgets, Locks: opt.Paths.Locks, Dir: opt.BudgetDir,
			Known: opt.Known, Now: opt.Now})
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return r, nil
}

// enterRun adds a run to the running runs.
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
	r.looks.RLock() // Close waits for this lock
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

// Questions returns the coordinator, which accepts answers to questions of this and of other processes.
func (r *Runner) Questions() *interaction.Coordinator { return r.questions }

// Trail returns the debug trail.
func (r *Runner) Trail() *slog.Logger { return r.opt.Trail }

// Vouchers returns the user's vouchers for decisions. The project's log cannot change them.
func (r *Runner) Vouchers() approvals.Vouchers { return r.opt.Vouchers }

// Approvals returns the standing approvals that are valid on this machine.
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

// approvals returns the standing approvals for a decision. After an error, policy asks a person.
func (r *Runner) approvals() ([]policy.Approval, error) {
	list, err := r.Approvals(context.Background())
	if err != nil {
		r.opt.Trail.Warn("standing approvals", "error", err.Error())
	}
	return list, err
}

// rememberApproval records a standing approval, before the answer that created it is sent.
func (r *Runner) rememberApproval(ctx context.Context, a policy.Approval, by string, refs event.Refs) error {
	a.ID, a.By, a.Made = uuid.Must(uuid.NewV7()).String(), by, r.opt.Now().UTC()
	if _, err := r.log.Append(ctx, event.NewFact(event.ApprovalRemembered, "user", refs, a)); err != nil {
		return err
	}
	// If the process dies here, the approval is not valid, and a person is asked again.
	if err := r.opt.Vouchers.Add(ctx, a); err != nil {
		r.opt.Trail.Warn("the approval will not count", "error", err.Error())
	}
	return nil
}

// Close writes all recorded events to disk and closes the log. No run may be running.
func (r *Runner) Close() error {
	r.observing.Wait()
	r.looks.Lock()
	defer r.looks.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.standing != nil {
		err = r.standing.Close()
	}
	err = errors.Join(r.questions.Close(), err, r.budgets.Close(), r.log.Close())
	if err == nil { // the newest event of a failed log is not known
		r.opt.Known.Seen(r.log.Path(), r.log.Newest())
	}
	return err
}

// warnOfAnchor warns if the run's checkpoint is not signed or not in the anchor file. The outcome itself is on disk in
// any case.
func (run *run) warnOfAnchor() {
	if subtype, err := run.r.anchorFault(); err != nil {
		run.client.warnLate(subtype, message.Of(err))
	}
}

// anchorFault returns the error of the newest checkpoint, and the subtype for the warning. It waits until all recorded
// events are on disk.
func (r *Runner) anchorFault() (subtype string, err error) {
	err = r.log.Anchored()
	switch {
	case err == nil, r.log.Err() != nil: // the error of a failed log is reported elsewhere
	case !errors.Is(err, evidence.ErrKey):
		return "checkpoint_not_anchored",
			fmt.Errorf("%w. The answer is on record; after you free space, run 'perlica log checkpoint'", err)
	case r.keys != nil:
		return "checkpoint_not_signed", err
	}
	return "", nil
}

// LowSpace is the free space, in bytes, below which a run warns. When the disk is full, Perlica ends the run because it
// cannot record it.
const LowSpace = 100 << 20

// warnOfSpace warns if the disk is almost full. If the free space is unknown, it does nothing.
func (run *run) warnOfSpace() {
	dir := run.r.opt.Paths.Dir
	if free, err := run.r.opt.FreeSpace(dir); err == nil && free < LowSpace {
		run.client.warn("disk_low", diskLow.With(humanize.IBytes(free), dir))
	}
}

// RevokeApprovals revokes all given standing approvals, or none after an error. After that they answer no question,
// even in running runs.
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
