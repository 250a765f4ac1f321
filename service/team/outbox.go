package team

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/service/team/hub"
)

// outbox sends reports to the hub, in order, and repeats each until the hub has it. The worker's
// log already has every report. If this process dies, a later look at the log sends the lost
// reports again.
type outbox struct {
	trouble func(error)

	mu     sync.Mutex // guards the fields below
	list   []func(context.Context) error
	change chan struct{} // capacity 1; signals a change of the field list or closed
	closed bool
	end    context.Context // set with closed; limits the remaining time
}

func newOutbox(trouble func(error)) *outbox {
	return &outbox{trouble: trouble, change: make(chan struct{}, 1)}
}

// addReport adds a report.
func (o *outbox) addReport(f func(context.Context) error) {
	o.mu.Lock()
	o.list = append(o.list, f)
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.change <- struct{}{}:
	default:
	}
}

// closeAfter ends sendReports when all reports are sent, or after the time limit.
func (o *outbox) closeAfter(limit time.Duration) {
	o.mu.Lock()
	o.closed = true
	var cancel context.CancelFunc
	o.end, cancel = context.WithTimeout(context.Background(), limit)
	context.AfterFunc(o.end, cancel)
	o.mu.Unlock()
	o.wake()
}

// nextReport returns the next report. The result "over" means that the outbox is closed and empty, or that its time is
// over.
func (o *outbox) nextReport() (f func(context.Context) error, end context.Context, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) > 0 {
		return o.list[0], o.end, o.end != nil && o.end.Err() != nil
	}
	return nil, o.end, o.closed
}

// sendReports sends reports until the outbox is closed. The end of ctx interrupts the current
// report when the process must end at once.
func (o *outbox) sendReports(ctx context.Context) {
	for {
		f, end, over := o.nextReport()
		if over {
			return
		}
		if f == nil {
			<-o.change
			continue
		}
		under := ctx
		if end != nil {
			under = end
		}
		err := f(under)
		if err == nil || errors.Is(err, hub.ErrNoClaim) || errors.Is(err, hub.ErrNotAllowed) {
			// Drop the report. It was sent, or this hub will never accept it: the hub is older than the claim, or this
			// worker has left the team.
			o.mu.Lock()
			o.list = o.list[1:]
			o.mu.Unlock()
			continue
		}
		o.trouble(err)
		select {
		case <-o.change:
		case <-time.After(pulseEvery):
		}
	}
}
