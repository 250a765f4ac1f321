package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/push"
	"github.com/perlica/perlica/service/web/push/pushtest"
)

const toPush = "[[notify]]\nwhen = [\"question\", \"finished\"]\nto = \"push\"\n"

// devices calls the function "f" with the devices of the user's own log.
func (w *world) devices(f func(d *device.Devices)) {
	w.Helper()
	user, err := project.User(w.dir, w.environ, nil)
	if err != nil {
		w.Fatal(err)
	}
	r, done, err := user.Open(w.Context(), "test")
	if err != nil {
		w.Fatal(err)
	}
	d, err := device.Open(w.Context(), r.Log(), device.Options{})
	if err != nil {
		w.Fatal(err)
	}
	f(d)
	for _, end := range []func() error{d.Close, done} {
		if err := end(); err != nil {
			w.Error(err)
		}
	}
}

// subscribe pairs and subscribes a device, and returns its id.
func (w *world) subscribe(service *pushtest.Service, name string, rights ...access.Right) (id string) {
	w.Helper()
	w.devices(func(d *device.Devices) {
		_, dev, err := d.NewToken(w.Context(), name, append(access.Rights{access.Approve}, rights...), "test")
		if err != nil {
			w.Fatal(err)
		}
		id = dev.ID
	})
	if err := w.sender().Subscribe(id, service.Subscribe()); err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) sender() *push.Sender { return push.New(push.Options{Dir: w.project.Dirs.PushDir()}) }

// newPush returns a push service, and makes it the one of the processes of the world.
func (w *world) newPush() *pushtest.Service {
	service := pushtest.New()
	w.Cleanup(service.Close)
	w.environ = append(w.environ, pushVar+"="+service.Address())
	return service
}

// received waits for a message and decodes it.
func received(t *testing.T, service *pushtest.Service) (m pushMessage, raw pushtest.Message) {
	t.Helper()
	select {
	case raw = <-service.Messages:
	case err := <-service.Wrong:
		t.Fatal(err)
	case <-t.Context().Done():
		t.Fatal("no message")
	}
	if err := json.Unmarshal([]byte(raw.Text), &m); err != nil {
		t.Fatalf("%v in %q", err, raw.Text)
	}
	return m, raw
}

// TestBrowsers checks that each subscribed browser gets each cause once, over restarts. A browser that subscribes later
// gets only later causes. A revoked browser and a browser that is unknown to its push service lose their subscriptions.
func TestBrowsers(t *testing.T) {
	w := newWorld(t, toPush)
	service := w.newPush()
	w.subscribe(service, "phone", access.Read)
	started := func(f func()) {
		t.Helper()
		_, end := w.child()
		f()
		end()
	}
	started(func() {
		w.finish("the answer", 0)
		first, raw := received(t, service)
		if first.Title != "A turn is finished in shop" || !strings.HasPrefix(first.Page, "#/run/run-") ||
			strings.Contains(raw.Text, "the answer") || raw.Urgency != "normal" || raw.TTL != "3600" ||
			raw.Topic != strings.ReplaceAll(first.Tag, "-", "") {
			t.Errorf("%+v", raw)
		}
		tablet := w.subscribe(service, "tablet", access.Read)
		w.ask("Delete it?", "rm -rf /")
		for range 2 {
			m, raw := received(t, service)
			if m.Title != "A question waits in shop" || strings.Contains(raw.Text, "elete") || raw.Urgency != "high" {
				t.Errorf("%+v", raw)
			}
		}
		w.await(3)
		w.devices(func(d *device.Devices) {
			if _, err := d.Revoke(w.Context(), tablet, "test"); err != nil {
				t.Error(err)
			}
		})
		w.finish("again", 0)
		received(t, service)
		w.await(5)
		if list, err := w.sender().Subscribed(); len(list) != 1 || slices.Contains(list, tablet) || err != nil {
			t.Errorf("subscribed are %v, %v", list, err)
		}
	})
	service.SetAnswer(func(*http.Request) int { return http.StatusGone })
	started(func() {
		w.finish("gone", 0)
		w.await(6)
	})
	started(func() { w.finish("nobody is subscribed", 0) })
	if list, err := w.sender().Subscribed(); len(list) > 0 || err != nil {
		t.Errorf("subscribed are %v, %v", list, err)
	}
	got := w.history()
	for word, n := range map[string]int{"started": 6, "sent": 4, "failed final": 2, "unknown": 0} {
		if strings.Count(got, word) != n {
			t.Errorf("%d times %s: %s", n, word, got)
		}
	}
	if len(service.Messages) > 0 {
		t.Errorf("%d messages more", len(service.Messages))
	}
}

// TestBrowserHangs checks that a push service without an answer delays only its own browser. The other browser gets the
// next cause while the first attempt still hangs. Each browser gets each cause once.
func TestBrowserHangs(t *testing.T) {
	w := newWorld(t, toPush)
	service := w.newPush()
	var slow atomic.Value // the path of the browser that is asked first
	held, release := make(chan bool), make(chan bool)
	service.SetAnswer(func(r *http.Request) int {
		if !slow.CompareAndSwap(nil, r.URL.Path) {
			return 0
		}
		close(held)
		<-release
		return http.StatusInternalServerError
	})
	w.subscribe(service, "phone", access.Read)
	w.subscribe(service, "tablet", access.Read)
	_, end := w.child()
	w.finish("one", 0)
	<-held
	first, _ := received(t, service)
	w.finish("two", 0)
	second, _ := received(t, service)
	if got := w.history(); first.Tag == second.Tag || strings.Contains(got, "failed") {
		t.Errorf("the second message came after the hanging attempt: %s", got)
	}
	close(release)
	w.await(4)
	end()
	got := w.history()
	for word, n := range map[string]int{"started": 4, "sent": 3, "failed unknown final": 1} {
		if strings.Count(got, word) != n {
			t.Errorf("not %d times %s: %s", n, word, got)
		}
	}
	if m, _ := received(t, service); m.Tag != second.Tag || len(service.Messages) > 0 {
		t.Errorf("%+v, and %d messages more", m, len(service.Messages))
	}
}

// TestBrowserKilled checks a process that is killed while it sends to a browser. No second message follows.
func TestBrowserKilled(t *testing.T) {
	w := newWorld(t, toPush)
	service := w.newPush()
	arrived := make(chan bool, 10)
	var answers atomic.Bool
	service.SetAnswer(func(r *http.Request) int {
		if answers.Load() {
			return 0
		}
		_, _ = io.Copy(io.Discard, r.Body) // then the server notices the end of the connection
		arrived <- true
		<-r.Context().Done()
		return http.StatusInternalServerError
	})
	w.subscribe(service, "phone", access.Read)
	kill, _ := w.child()
	w.finish("hello", 0)
	<-arrived
	kill()
	answers.Store(true)
	_, end := w.child()
	w.await(1)
	w.finish("later", 0)
	received(t, service)
	end()
	if got := w.history(); got != "started, failed unknown final, started, sent" || len(service.Messages) > 0 {
		t.Errorf("%d messages more; %s", len(service.Messages), got)
	}
}

// TestBrowserContent checks that a message with content has the redacted words, and is short enough for a push service.
func TestBrowserContent(t *testing.T) {
	w := newWorld(t, toPush+"content = true\n")
	service := w.newPush()
	w.subscribe(service, "phone", access.Read)
	w.finish("sk-ant-api03-"+strings.Repeat("a", 93)+"AA "+"one\ntwo"+strings.Repeat("\U0001f600", 1200), 0)
	clock := time.Now()
	d := w.delivery(Options{Push: service.Transport()}, &clock)
	if got := w.deliver(t.Context(), d); got != "started, sent" {
		t.Fatal(got)
	}
	m, raw := received(t, service)
	if len(raw.Text) > push.MaxText || strings.Contains(raw.Text, "aaaa") ||
		!strings.Contains(m.Body, "one\ntwo\U0001f600") ||
		!strings.Contains(m.Body, "\U0001f600…\n\nSession: session-\nTo see it: perlica log show ") {
		t.Errorf("%d bytes: %.200q", len(raw.Text), raw.Text)
	}
	reply, err := Test(t.Context(), w.project, d.target)
	if m, _ := received(t, service); err != nil || reply != "201 Created" ||
		m.Title != "A test of the notifications of shop" {
		t.Errorf("%q, %v, %+v", reply, err, m)
	}
}

// TestBrowserWithoutRead checks that a device that may only answer questions gets no message about the end of a run.
func TestBrowserWithoutRead(t *testing.T) {
	w := newWorld(t, toPush+"content = true\n")
	service := w.newPush()
	w.subscribe(service, "desk")
	w.finish("the answer", 0)
	clock := time.Now()
	d := w.delivery(Options{Push: service.Transport()}, &clock)
	if got := w.deliver(t.Context(), d); got != "started, sent" {
		t.Fatal(got)
	}
	select {
	case m := <-service.Messages:
		t.Errorf("it got %q", m.Text)
	default:
	}
}
