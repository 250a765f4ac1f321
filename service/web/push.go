package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/web/push"
)

// pushState is what a browser subscribes with.
func (s *Server) pushState(w http.ResponseWriter, r *request) error {
	if err := r.only(); err != nil {
		return err
	}
	key, err := s.push.Key()
	if err != nil {
		return err
	}
	list, err := s.push.Subscribed()
	if err != nil {
		return err
	}
	return s.pushAnswer(w, key, slices.Contains(list, r.visitor.ID))
}

func (s *Server) pushAnswer(w http.ResponseWriter, key string, subscribed bool) error {
	return reply(w, http.StatusOK, struct {
		Key        string `json:"key"`
		Subscribed bool   `json:"subscribed"`
	}{key, subscribed})
}

func (s *Server) subscribe(w http.ResponseWriter, r *request) error {
	var sub push.Subscription
	if err := r.decode(&sub); err != nil {
		return err
	}
	key, err := s.push.Key()
	if err != nil {
		return err
	}
	err = s.push.Subscribe(r.visitor.ID, sub)
	if errors.Is(err, push.ErrSubscription) {
		return unfit.of(err)
	}
	if err != nil {
		return err
	}
	select {
	case s.subscribed <- struct{}{}:
	default: // it is looked anyway
	}
	return s.pushAnswer(w, key, true)
}

func (s *Server) unsubscribe(w http.ResponseWriter, r *request) error {
	if err := r.decode(&struct{}{}); err != nil {
		return err
	}
	key, err := s.push.Key()
	if err == nil {
		err = s.push.Unsubscribe(r.visitor.ID)
	}
	if err != nil {
		return err
	}
	return s.pushAnswer(w, key, false)
}

// watchQuestions looks every two seconds which questions are open, while there is a device to wake, and
// wakes it where there is one more. That costs less than to follow all logs for as long as a phone is
// subscribed.
func (s *Server) watchQuestions() {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	known := map[event.InteractionID]bool{}
	unwatch := func() {}
	defer func() { unwatch() }()
	for watched := false; ; {
		next, devices := tick.C, s.toWake()
		switch {
		case devices == nil:
			next = nil // until one subscribes
			unwatch()
			unwatch, watched = func() {}, false
		case s.opt.Team != nil && !watched:
			unwatch, watched = s.watchTeam(), true
		}
		if devices != nil && s.oneMore(known) {
			for _, id := range devices {
				s.push.Wake(id)
			}
		}
		select {
		case <-next:
		case <-s.subscribed:
		case <-s.stopping:
			return
		}
	}
}

// watchTeam sees what is open at a team's workers until it is told to stop. Nothing else waits for the hub.
func (s *Server) watchTeam() (stop func()) {
	ctx, cancel := context.WithCancel(s.hard)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.logs.hub.Watch(ctx, s.atWorkers.see, func(err error) {
			if err != nil {
				s.opt.Trail.Warn("push: the questions of the team", "err", err)
			}
		})
	}()
	return func() {
		cancel()
		<-over
	}
}

// atWorkers are the questions that were seen to be open at a team's workers.
type atWorkers struct {
	mu   sync.Mutex // guards what follows
	list []asked
}

// see takes in what is open, if this machine may answer it. When a question was asked is said by this machine's clock: it is
// compared with when a page asked for it.
func (w *atWorkers) see(_ context.Context, t *team.Team, open []team.OpenQuestion) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.list
	w.list = nil
	if err := t.May(team.Approve); err != nil {
		return err
	}
	for _, q := range open {
		a := asked{q.Question, &q.There}
		a.ID, a.Asked = q.Name(), time.Now()
		if i := slices.IndexFunc(before, func(o asked) bool { return o.ID == a.ID }); i >= 0 {
			a.Asked = before[i].Asked
		}
		w.list = append(w.list, a)
	}
	return nil
}

func (w *atWorkers) open() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// oneMore reports whether a question is open that is not known yet, and makes known which are open.
func (s *Server) oneMore(known map[event.InteractionID]bool) (more bool) {
	before := maps.Clone(known)
	clear(known)
	for _, q := range s.openQuestions(s.hard) {
		known[q.ID] = true
		more = more || !before[q.ID]
	}
	return more
}

// toWake are the devices that are subscribed. Subscriptions of those that are not paired any more are
// removed.
func (s *Server) toWake() (devices []string) {
	list, err := s.push.Subscribed()
	for _, id := range list {
		if _, ok := s.opt.Devices.Find(id); ok {
			devices = append(devices, id)
		} else {
			err = errors.Join(err, s.push.Unsubscribe(id))
		}
	}
	if err != nil {
		s.opt.Trail.Warn("push", "err", err)
	}
	return devices
}

// due says for how long a question waits for which a device is to be woken: one that it may answer and
// that none of its pages shows already.
func (s *Server) due(ctx context.Context, id string) (time.Duration, bool) {
	dev, ok := s.opt.Devices.Find(id)
	if !ok || !dev.Rights.Has(access.Approve) {
		return 0, false
	}
	newest, _ := span(s.openQuestions(ctx))
	if newest.IsZero() || s.present.looks(ctx, id, newest, s.opt.Foreground) {
		return 0, false
	}
	newest, until := span(s.openQuestions(ctx)) // it may be answered by now
	return time.Until(until), !newest.IsZero()
}

// openQuestions are the questions that are open in all logs that can be read, and at a team's workers.
func (s *Server) openQuestions(ctx context.Context) []asked {
	list, err := s.logs.list(ctx, place{})
	if err != nil {
		s.opt.Trail.Warn("push", "err", err)
		return s.atWorkers.open()
	}
	of, _ := together(ctx, list, func(ctx context.Context, l *eventLog, log logReader) ([]asked, error) {
		return l.pending(ctx, log)
	})
	return append(slices.Concat(slices.Collect(maps.Values(of))...), s.atWorkers.open()...)
}

// span says when the newest of some questions was asked, and until when one is open.
func span(open []asked) (newest, until time.Time) {
	for _, q := range open {
		if q.Asked.After(newest) {
			newest = q.Asked
		}
		if q.Expires.After(until) {
			until = q.Expires
		}
	}
	return newest, until
}

// present is which devices have a page that is shown. Such a page has a stream, which a hidden one
// closes; but a stream of a phone whose network is gone stays open for long. So it is one that asks for
// the questions, as it does as soon as it hears of one.
type present struct {
	mu      *sync.Mutex // guards what follows
	streams map[string]int
	last    map[string]time.Time // when a device asked for the questions
	changed map[string]chan struct{}
}

func newPresent() present {
	return present{&sync.Mutex{}, map[string]int{}, map[string]time.Time{}, map[string]chan struct{}{}}
}

// enter says that a device has a stream, until the function that it returns is called.
func (p *present) enter(id string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[id]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.streams[id]--; p.streams[id] == 0 {
			delete(p.streams, id)
			p.ring(id)
		}
	}
}

// looked says that a device has asked for the questions.
func (p *present) looked(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[id] = time.Now()
	p.ring(id)
}

// ring wakes who waits for a device. The caller holds mu.
func (p *present) ring(id string) {
	if c := p.changed[id]; c != nil {
		close(c)
		delete(p.changed, id)
	}
}

// looks reports whether a device has asked for the questions since a moment. One that has a stream gets
// some time to do so.
func (p *present) looks(ctx context.Context, id string, since time.Time, within time.Duration) bool {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		p.mu.Lock()
		looked, shown := p.last[id].After(since), p.streams[id] > 0
		c := p.changed[id]
		if c == nil {
			c = make(chan struct{})
			p.changed[id] = c
		}
		p.mu.Unlock()
		if looked || !shown {
			return looked
		}
		select {
		case <-c:
		case <-late.C:
			return false
		case <-ctx.Done():
			return true
		}
	}
}
