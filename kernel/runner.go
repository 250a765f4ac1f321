package kernel

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/policy"
)

// Options of Open.
type Options struct {
	Paths      config.ContextPaths
	Context    string // the context's name
	Runtime    string // folder for sockets; empty: no other process can answer
	Version    string // of Perlica, told to agents
	Rules      []policy.Rule
	Vouchers   Vouchers     // says which standing approvals were given here
	StreamSync bool         // what an agent says is on disk before it is shown
	Environ    []string     // what agents' environments are chosen from
	Trail      *slog.Logger // the debug trail; nil: none
	TrailLost  func() int64 // how many of its lines were lost; nil: none
	Now        func() time.Time
}

// Runner is one context of one workspace, open for work: the only thing that spends
// calls. Its methods may be called from several goroutines. The caller must Close it.
type Runner struct {
	log       *eventlog.Log
	questions *interaction.Coordinator
	policy    *policy.Policy
	opt       Options

	mu       sync.Mutex // guards what follows
	standing *policy.Standing
}

// How long a line may wait to be written where nobody waits for it. With stream_sync what
// is shown is waited for, and what is not is the agent's set-up; without, this is how far
// the log may be behind what was shown.
const (
	streamLazy = 20 * time.Millisecond
	promptLazy = 100 * time.Millisecond
	setupLazy  = 200 * time.Millisecond
)

// Open opens the context's log, creating it if need be. Its folders must exist. It fails
// with the errors of eventlog.Open.
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
	lazy := streamLazy
	if opt.StreamSync {
		lazy = setupLazy
	}
	log, err := eventlog.Open(ctx, opt.Paths.EventLog, eventlog.Options{Context: opt.Context, Now: opt.Now, Lazy: lazy})
	if err != nil {
		return nil, err
	}
	r := &Runner{
		log:       log,
		questions: interaction.New(log, opt.Runtime, opt.Now),
		opt:       opt,
	}
	r.policy, err = policy.New(opt.Rules, r.approvals, opt.Now)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return r, nil
}

// Log is the context's event log.
func (r *Runner) Log() *eventlog.Log { return r.log }

// Questions takes answers to questions, of this process and of others.
func (r *Runner) Questions() *interaction.Coordinator { return r.questions }

// approvals returns the standing approvals. Where the view cannot be read there are none,
// and a person is asked.
func (r *Runner) approvals() []policy.Approval {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx := context.Background()
	if r.standing == nil {
		s, err := policy.OpenStanding(ctx, &r.log.Reader, r.opt.Paths.Approvals)
		if err != nil {
			r.opt.Trail.Warn("standing approvals", "error", err.Error())
			return nil
		}
		r.standing = s
	}
	list, err := r.standing.List(ctx)
	if err == nil {
		list, err = r.opt.Vouchers.Filter(list)
	}
	if err != nil {
		r.opt.Trail.Warn("standing approvals", "error", err.Error())
	}
	return list
}

// remember puts a standing approval on record, before the answer that it came with is
// acted upon.
func (r *Runner) remember(ctx context.Context, a policy.Approval, by string, refs eventlog.Refs) error {
	a.ID, a.By, a.Made = uuid.Must(uuid.NewV7()).String(), by, r.opt.Now().UTC()
	if _, err := r.log.Append(ctx, eventlog.NewFact(eventlog.ApprovalRemembered, "user", refs, a)); err != nil {
		return err
	}
	// If we die here the approval does not count, and a person is asked again.
	if err := r.opt.Vouchers.Add(a); err != nil {
		r.opt.Trail.Warn("the approval will not count", "error", err.Error())
	}
	return nil
}

// Close writes what is recorded and closes the log. No run may be under way.
func (r *Runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.standing != nil {
		err = r.standing.Close()
	}
	return errors.Join(r.questions.Close(), err, r.log.Close())
}
