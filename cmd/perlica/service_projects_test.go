//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// onePoller is a server for the Bot API. It counts the clients that ask for updates at the same time.
type onePoller struct {
	next http.Handler

	mu   sync.Mutex // guards the fields below
	open map[*http.Request]bool
	most int
}

func (o *onePoller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/getUpdates") {
		o.mu.Lock()
		for other := range o.open {
			if other.Context().Err() != nil { // The client of the other request was killed.
				delete(o.open, other)
			}
		}
		o.open[r] = true
		o.most = max(o.most, len(o.open))
		o.mu.Unlock()
		defer func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.open, r)
		}()
	}
	o.next.ServeHTTP(w, r)
}

// TestTelegramProjects uses one bot that serves two projects to two people. They change between the projects, and
// the bridge is killed at times. Only one client may ask the bot for updates. Each message is called at most once,
// in its sender's project, and each question is answered in its own project.
func TestTelegramProjects(t *testing.T) {
	w := newWorld(t)
	b := w.bot()
	poller := &onePoller{next: b.Server, open: map[*http.Request]bool{}}
	server := httptest.NewServer(poller)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.config(fmt.Sprintf(
		"service.channels = { local = false, telegram = true }\nservice.telegram = { base_url = %q, token_env = 'BOT' }\n",
		server.URL))
	w.env = append(w.env, "BOT="+botToken)
	shop := filepath.Join(filepath.Dir(w.project), "shop")
	if err := os.Mkdir(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	w.run("service", "add", shop).exits(0)
	pair := func(dir string, contact int64, name string) {
		t.Helper()
		n := len(b.Messages())
		cmd := w.command("service", "pair")
		cmd.Dir = dir
		j := w.startCmd(cmd)
		j.exits(0)
		b.Say(contact, contact, name, strings.TrimSpace(j.stdout.String()))
		b.sent(n, "You are paired")
	}
	bridge := w.bridge()
	pair(w.project, 7, "Ada")
	pair(shop, 7, "Ada")
	pair(shop, 8, "Bob")

	// She answers a question of each project by its buttons, while the other project is selected.
	n := len(b.Messages())
	b.say(`@ask execute "Of the shop" command="make"`)
	first := b.sent(n, `^(?s)📁 <b>shop</b>.*Of the shop`)
	b.say("/project project")
	b.sent(n, "You are in <b>project</b> now")
	bob := func(text string) { b.SayMore(8, 8, "Bob", map[string]any{"text": text, "date": time.Now().Unix()}) }
	bob(`@ask execute "Of Bob" command="make"`)
	second := b.sent(n, `^(?s)📁 <b>shop</b>.*Of Bob`)
	b.say("/project shop")
	for _, card := range []struct {
		contact int64
		name    string
		id      int64
	}{{7, "Ada", first.ID}, {8, "Bob", second.ID}} {
		for _, m := range b.Messages() {
			if m.ID != card.id || m.Chat != card.contact {
				continue
			}
			for _, button := range m.Buttons {
				if strings.HasSuffix(button.Text, "“Allow once”") {
					b.Press(card.contact, card.name, m.ID, button.Data)
				}
			}
		}
	}
	b.sent(n, "permission: allow-once")

	dirs := map[string]string{"project": w.project, "shop": shop}
	begun, err := recordedIn(dirs)
	if err != nil {
		t.Fatal(err)
	}
	rng, at := rand.New(rand.NewPCG(7, 8)), "shop"
	written := map[string]string{} // the project for each text that was sent
	for i := range 40 {
		if rng.IntN(3) == 0 {
			at = []string{"project", "shop"}[rng.IntN(2)]
			b.say("/project " + at)
		}
		text := fmt.Sprintf("ada %02d.", i)
		written[text] = at
		b.say(text)
		if i%4 == 0 {
			text = fmt.Sprintf("bob %02d.", i)
			written[text] = "shop"
			bob(text)
		}
		if i%10 == 9 {
			// The bridge must have recorded something before it is killed.
			few := begun + 1 + rng.IntN(40)
			w.eventually("the bridge has recorded some events", func() error {
				n, err := recordedIn(dirs)
				if err == nil && n < few {
					err = fmt.Errorf("got %d events, want %d", n, few)
				}
				return err
			})
			bridge.signal(syscall.SIGKILL)
			bridge.wait()
			bridge = w.bridge()
			if begun, err = recordedIn(dirs); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.eventually("every message has an outcome", func() error {
		done := 0
		for _, dir := range dirs {
			events, err := readLog(logFile(dir))
			if err != nil {
				return err
			}
			ours := map[event.InputID]bool{}
			for _, e := range events {
				if e.Type == event.BridgeReceived && textOf(e, written) != "" {
					ours[e.Input] = true
				}
				if e.Type == event.BridgeFinished && ours[e.Input] {
					done++
				}
			}
		}
		if done != len(written) {
			return fmt.Errorf("%d of %d", done, len(written))
		}
		return nil
	})
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	called := map[event.InputID]int{}
	for name, dir := range dirs {
		events, err := readLog(logFile(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch {
			case e.Type == event.Requested:
				if called[e.Input]++; called[e.Input] > 1 {
					t.Errorf("%s was called more than once", e.Input)
				}
			case e.Type == event.BridgeReceived:
				if text := textOf(e, written); text != "" && written[text] != name {
					t.Errorf("%q went to %s", text, name)
				} else if text != "" {
					delete(written, text)
				}
			}
		}
		if err := auditLog(logFile(dir)); err != nil {
			t.Error(err)
		}
	}
	if len(written) > 0 {
		t.Errorf("lost: %v", written)
	}
	if poller.most != 1 {
		t.Errorf("%d clients asked for updates at a time", poller.most)
	}
	w.gone()
}

// recordedIn returns the number of events in the logs of the given projects.
func recordedIn(dirs map[string]string) (n int, err error) {
	for _, dir := range dirs {
		events, err := readLog(logFile(dir))
		if err != nil {
			return 0, err
		}
		n += len(events)
	}
	return n, nil
}

// textOf returns the text of a received message if this text is a key of the given map. Otherwise it returns "".
func textOf(e event.Event, of map[string]string) string {
	var f struct{ Text string }
	if e.Decode(&f) != nil {
		return ""
	}
	if _, ok := of[f.Text]; !ok {
		return ""
	}
	return f.Text
}
