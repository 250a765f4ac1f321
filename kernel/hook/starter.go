package hook

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/provider/descent"
	"github.com/perlica/perlica/provider/process"
)

// A Starter starts the process that delivers events to hooks when this process has written such an event. The other
// process outlives this one, so nobody waits for a hook.
type Starter struct {
	// Argv is the command of the delivering process. The Starter adds the number of the event before the first new one.
	Argv    []string
	Dir     string
	Environ []string
	Locks   string
	Hooks   []Hook
	Positions
	Trail *slog.Logger

	types   map[event.Type]bool
	first   atomic.Int64  // number of the first event for a hook, or 0
	wake    chan struct{} // capacity 1
	close   chan struct{}
	loop    sync.WaitGroup
	looking sync.WaitGroup // the goroutine that reads the log
	stop    context.CancelFunc
}

// NewStarter sets the remaining fields of a Starter, and returns it. After that, the Starter's function Committed may
// be given to a log.
func NewStarter(s *Starter) *Starter {
	s.types = map[event.Type]bool{}
	for _, h := range s.Hooks {
		for _, t := range h.On {
			s.types[t] = true
		}
	}
	s.wake, s.close = make(chan struct{}, 1), make(chan struct{})
	return s
}

// Run starts the goroutines of the Starter. One looks for events that an earlier process left. The caller calls
// StopLooking, closes the log, and calls Close.
func (s *Starter) Run(ctx context.Context, log event.Reader) {
	ctx, s.stop = context.WithCancel(ctx)
	s.looking.Go(func() {
		left, err := s.Left(ctx, log, s.Hooks)
		if err != nil && ctx.Err() == nil {
			s.Trail.Warn("the hooks' positions", "error", err.Error())
		}
		if left {
			s.awake()
		}
	})
	s.loop.Go(s.watch)
}

// StopLooking ends the reading of the log.
func (s *Starter) StopLooking() {
	s.stop()
	s.looking.Wait()
}

// Committed tells the Starter that these events are on disk. It does not block.
func (s *Starter) Committed(events []event.Event) {
	for i := range events {
		if s.types[events[i].Type] && events[i].Seq > 0 {
			s.first.CompareAndSwap(0, int64(events[i].Seq))
			s.awake()
		}
	}
}

// awake records that an event waits for a hook. It never blocks: one waiting wake-up stands for all events.
func (s *Starter) awake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the Starter. If hooks still wait for events, it first starts the delivering process. The caller must have
// closed the log.
func (s *Starter) Close() {
	close(s.close)
	s.loop.Wait()
}

// startup is the longest time in which a delivering process takes its locks.
const (
	startup = time.Second
	looks   = 10 * time.Millisecond
)

func (s *Starter) watch() {
	for {
		select {
		case <-s.wake:
			s.begin()
			if s.isDelivered() {
				continue
			}
			if ended := s.start(); ended != nil {
				s.awaitLocks(ended)
			}
		case <-s.close:
			select {
			case <-s.wake:
				s.begin()
				if !s.isDelivered() {
					s.start()
				}
			default:
			}
			return
		}
	}
}

// begin writes the first position of each hook that has none, so that the hook gets the first events of a log. The
// process that the function start starts ignores PERLICA_TRUST_PROJECT, so it may not know the hook. With the position
// on disk, 'perlica hook deliver' delivers the first events, too.
func (s *Starter) begin() {
	first := event.Seq(s.first.Load())
	for _, h := range s.Hooks {
		if _, known, err := s.read(h); known || err != nil || first == 0 {
			continue
		}
		lock, err := filelock.Acquire(h.lock(s.Locks))
		if err != nil {
			continue // the process that has the lock writes the position
		}
		if _, known, err := s.read(h); !known && err == nil {
			err = s.write(h, first-1)
			if err != nil {
				s.Trail.Warn("the position of a hook", "error", err.Error())
			}
		}
		lock.Release()
	}
}

// isDelivered reports whether a process delivers to each hook. That process looks for new events after it has released
// its lock, so it sees every event that was on disk before this call.
func (s *Starter) isDelivered() bool {
	for _, h := range s.Hooks {
		if held, err := filelock.Held(h.lock(s.Locks)); err != nil || !held {
			return false
		}
	}
	return true
}

// awaitLocks waits until the new process has its locks or has ended. Each further event would otherwise start one more.
func (s *Starter) awaitLocks(ended <-chan struct{}) {
	limit := time.NewTimer(startup)
	defer limit.Stop()
	tick := time.NewTicker(looks)
	defer tick.Stop()
	for !s.isDelivered() {
		select {
		case <-tick.C:
		case <-ended:
			return
		case <-limit.C:
			return
		case <-s.close:
			return
		}
	}
}

// start starts the delivering process. The channel "ended" is closed when that process has ended. It is nil if the
// process could not be started.
func (s *Starter) start() (ended <-chan struct{}) {
	argv := append(s.Argv[:len(s.Argv):len(s.Argv)], "--after", strconv.FormatInt(s.first.Load()-1, 10))
	// The variable tells this process that the other one is not an orphan of an agent.
	env := append(s.Environ[:len(s.Environ):len(s.Environ)], descent.PersonVariable+"=yes")
	ended, err := process.StartDetached(argv, s.Dir, env, nil)
	if err != nil {
		s.Trail.Warn("the hooks get their events later", "error", err.Error())
	}
	return ended
}
