package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/push/pushtest"
)

// withPush replaces the browsers' push services by a stand-in.
func withPush(t *testing.T) (*pushtest.Service, func(*Options)) {
	service := pushtest.New()
	t.Cleanup(service.Close)
	return service, func(o *Options) { o.Push, o.Foreground = service.Transport(), time.Hour }
}

// woken waits for a message.
func woken(t *testing.T, service *pushtest.Service) {
	t.Helper()
	select {
	case m := <-service.Messages:
		if m.Text != "a question waits" {
			t.Errorf("the message says %q", m.Text)
		}
	case err := <-service.Wrong:
		t.Fatal(err)
	case <-time.After(longest):
		t.Fatal("no message")
	}
}

// TestPush checks that a question of any process wakes a device with the right approve. A device
// that shows the question is not woken. The subscription of a revoked device is removed.
func TestPush(t *testing.T) {
	t.Parallel()
	service, option := withPush(t)
	w := newWorld(t, 2, option)
	phone, desk := w.newToken("phone", access.Read, access.Approve), w.newToken("desk", access.Read, access.Approve)
	w.do("POST", "/v1/push/subscribe", service.Subscribe(), bearer(w.newToken("reader", access.Read, access.Ask))).problem(
		forbidden)
	private := service.Subscribe()
	private.Endpoint = "https://127.0.0.1/x"
	w.do("POST", "/v1/push/subscribe", private, bearer(phone)).problem(unfit)
	for _, token := range []string{phone, desk} {
		if o := w.do("POST", "/v1/push/subscribe", service.Subscribe(), bearer(token)).want(200).
			object(); o["subscribed"] != true {
			t.Errorf("%v", o)
		}
	}
	dir := w.opt.Dirs.PushDir()
	if files, err := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != 2 || err != nil {
		t.Fatalf("%v, %v", files, err)
	}
	// The page of the second device is visible: it has a stream and asks for the questions when the stream reports one.
	events := w.follow("/v1/events?type=question", "", bearer(desk))
	defer events.close()
	w.do("POST", "/v1/inputs", object{"project": w.dirs[1], "text": `@ask execute "Build it" command=make`}).want(202)
	events.until("question")
	w.do("GET", "/v1/questions", nil, bearer(desk)).want(200)
	woken(t, service)
	if o := w.do("POST", "/v1/push/unsubscribe", object{}, bearer(desk)).want(200).object(); o["subscribed"] != false {
		t.Errorf("%v", o)
	}
	if _, err := w.devices.Revoke(t.Context(), "phone", "test"); err != nil {
		t.Fatal(err)
	}
	late := time.After(longest)
	for tick := time.Tick(20 * time.Millisecond); ; {
		if files, err := filepath.Glob(filepath.Join(dir, "*.json")); len(files) == 0 && err == nil {
			break
		}
		select {
		case <-tick:
		case <-late:
			t.Fatal("the revoked device is still subscribed")
		}
	}
	stop(t, w.server, w.http)
	if n := len(service.Messages) + len(service.Wrong); n != 0 {
		t.Errorf("%d messages more: the page that shows the question has none", n)
	}
}

// TestPushOfNotifications checks that a question wakes a device once if a table of the project names the subscribed
// browsers. The notification then replaces the other message.
func TestPushOfNotifications(t *testing.T) {
	t.Parallel()
	service, option := withPush(t)
	w := newWorld(t, 2, option, func(o *Options) { o.Environ = append(o.Environ, "PERLICA_TRUST_PROJECT=1") })
	table := "[[notify]]\nwhen = [\"question\"]\nto = \"push\"\n"
	check(t, os.WriteFile(filepath.Join(w.dirs[0], ".perlica_config", "config.toml"), []byte(table), 0o600))
	w.do("POST", "/v1/push/subscribe", service.Subscribe()).want(200)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": `@ask execute "Build it" command=make`}).want(202)
	select {
	case m := <-service.Messages:
		if !strings.Contains(m.Text, `"title":"A question waits in project-0"`) {
			t.Errorf("the message says %q", m.Text)
		}
	case err := <-service.Wrong:
		t.Fatal(err)
	case <-time.After(longest):
		t.Fatal("no message")
	}
	if open := w.server.openQuestions(t.Context()); len(open) != 0 {
		t.Errorf("the device is also woken for %+v", open)
	}
	w.do("POST", "/v1/inputs", object{"project": w.dirs[1], "text": `@ask execute "Build it" command=make`}).want(202)
	woken(t, service)
}

// TestPushAfterRestart checks that a subscription survives the server and that a question of
// another process wakes the device. A page with a stream that does not ask for the questions counts
// as hidden.
func TestPushAfterRestart(t *testing.T) {
	t.Parallel()
	service, option := withPush(t)
	w := newWorld(t, 1, option, func(o *Options) { o.Foreground = time.Millisecond })
	w.do("POST", "/v1/push/subscribe", service.Subscribe()).want(200)
	stop(t, w.server, w.http)
	w.start()
	defer w.follow("/v1/events?type=question", "").close()
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": `@ask execute "Build it" command=make`}).want(202)
	woken(t, service)
	key, err := os.ReadFile(filepath.Join(w.opt.Dirs.PushDir(), "key"))
	check(t, err)
	if len(key) != 44 {
		t.Errorf("the key has %d bytes", len(key))
	}
}
