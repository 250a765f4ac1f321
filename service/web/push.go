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
	"github.com/perlica/perlica/service/notify"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/web/push"
)

// pushState serves the key with which a browser subscribes.
func (s *Server) pushState(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
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
		return unfit.wrap(err)
	}
	if err != nil {
		return err
	}
	select {
	case s.subscribed <- struct{}{}:
	default:
		// A check is already due.
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

// watchQuestions checks for new questions every two seconds while a device is subscribed. It wakes the subscribed
// devices when a question was added. This costs less than a follower on every log.
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
			// No check is due until a device subscribes.
			next = nil
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

// watchTeam watches the open questions of a team's workers until the caller calls the function "stop". Only the
// goroutine of watchTeam waits for the hub, so a slow hub delays no other notification.
func (s *Server) watchTeam() (stop func()) {
	ctx, cancel := context.WithCancel(s.hard)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.logs.hub.Watch(ctx, s.atWorkers.noteOpen, func(err error) {
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

// atWorkers holds the known open questions of a team's workers.
type atWorkers struct {
	// mu guards the fields below.
	mu   sync.Mutex
	list []pendingQuestion
}

// noteOpen stores the open questions that this machine may answer. The time of a question is taken
// from this machine's clock, because it is compared with the time of a page's request.
func (w *atWorkers) noteOpen(_ context.Context, t *team.Team, open []team.OpenQuestion) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.list
	w.list = nil
	if err := t.May(access.Approve); err != nil {
		return err
	}
	for _, q := range open {
		a := pendingQuestion{q.Question, &q.There}
		a.ID, a.Asked = q.Name(), time.Now()
		if i := slices.IndexFunc(before, func(o pendingQuestion) bool { return o.ID == a.ID }); i >= 0 {
			a.Asked = before[i].Asked
		}
		w.list = append(w.list, a)
	}
	return nil
}

func (w *atWorkers) open() []pendingQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// oneMore reports whether an open question is missing in the map "known". It then replaces this map with the open
// questions.
func (s *Server) oneMore(known map[event.InteractionID]bool) (more bool) {
	before := maps.Clone(known)
	clear(known)
	for _, q := range s.openQuestions(s.hard) {
		known[q.ID] = true
		more = more || !before[q.ID]
	}
	return more
}

// toWake returns the subscribed devices. It removes the subscriptions of unpaired devices.
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

// due reports whether a device must be woken now. It is false if the device may not answer questions or if its page
// already shows them. The duration is the time until the last open question expires.
func (s *Server) due(ctx context.Context, id string) (time.Duration, bool) {
	dev, ok := s.opt.Devices.Find(id)
	if !ok || !dev.Rights.Has(access.Approve) {
		return 0, false
	}
	newest, _ := span(s.openQuestions(ctx))
	if newest.IsZero() || s.present.awaitRequest(ctx, id, newest, s.opt.Foreground) {
		return 0, false
	}
	// The question may have been answered during the wait, so look for the open questions again.
	newest, until := span(s.openQuestions(ctx))
	return time.Until(until), !newest.IsZero()
}

// openQuestions returns the open questions of all readable logs and of a team's workers. It leaves out the questions of
// a project whose notifications name the subscribed browsers, so that a question wakes a device once.
func (s *Server) openQuestions(ctx context.Context) []pendingQuestion {
	list, err := s.logs.list(ctx, place{})
	if err != nil {
		s.opt.Trail.Warn("push", "err", err)
		return s.atWorkers.open()
	}
	of, _ := together(ctx, list, func(ctx context.Context, l *eventLog, log logReader) ([]pendingQuestion, error) {
		open, err := l.pending(ctx, log)
		if len(open) > 0 && err == nil {
			if p, perr := l.findProject(); perr == nil && notify.SendsQuestions(p) {
				return nil, nil
			}
		}
		return open, err
	})
	return append(slices.Concat(slices.Collect(maps.Values(of))...), s.atWorkers.open()...)
}

// span returns the time of the newest question and the latest end of all questions.
func span(open []pendingQuestion) (newest, until time.Time) {
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

// present records which devices show a page. A visible page has a stream, and a hidden page closes its stream. But the
// stream of a phone without a network stays open for long. A request for the questions is the reliable sign: a visible
// page sends it when the stream reports a question.
type present struct {
	// mu guards the fields below.
	mu      *sync.Mutex
	streams map[string]int
	last    map[string]time.Time // time of a device's last request for the questions
	changed map[string]chan struct{}
}

func newPresent() present {
	return present{&sync.Mutex{}, map[string]int{}, map[string]time.Time{}, map[string]chan struct{}{}}
}

// addStream records a stream of a device until the caller calls the function "leave".
func (p *present) addStream(id string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[id]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.streams[id]--; p.streams[id] == 0 {
			delete(p.streams, id)
			p.wakeWaiters(id)
		}
	}
}

// noteRequest records that a device has asked for the questions.
func (p *present) noteRequest(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[id] = time.Now()
	p.wakeWaiters(id)
}

// wakeWaiters wakes the goroutines that wait for a device. The caller holds mu.
func (p *present) wakeWaiters(id string) {
	if c := p.changed[id]; c != nil {
		close(c)
		delete(p.changed, id)
	}
}

// awaitRequest reports whether a device has asked for the questions after the time "since". If the device has an open
// stream, awaitRequest waits for such a request, for at most the duration in the parameter "within".
func (p *present) awaitRequest(ctx context.Context, id string, since time.Time, within time.Duration) bool {
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
