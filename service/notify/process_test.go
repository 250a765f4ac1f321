package notify

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/access"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/web/push/pushtest"
	"github.com/perlica/perlica/service/webhook"
)

// childVar is the variable with the project's folder. A process with it delivers notifications until it is killed, or
// until its standard input ends.
const childVar = "PERLICA_NOTIFY_CHILD"

// pushVar is the variable with the address of the push service.
const pushVar = "PERLICA_NOTIFY_PUSH"

func TestMain(m *testing.M) {
	dir := os.Getenv(childVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	p, err := project.Find(dir, os.Environ(), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	opt := Options{Version: "test"}
	if address := os.Getenv(pushVar); address != "" {
		opt.Push = pushtest.Transport(address)
	}
	stop := Start(p, opt)
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends it
	stop()
}

// child starts a process that delivers the notifications of the project.
func (w *world) child() (kill, end func()) {
	w.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(w.environ, childVar+"="+w.dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		w.Fatalf("the process says %q", line)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() } // the process cannot refuse
	end = func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			w.Error(err)
		}
	}
	return kill, end
}

// counter is an HTTP server that counts the notifications by their path and key.
type counter struct {
	*httptest.Server
	mu   sync.Mutex // guards keys
	keys map[string]map[string]int
}

// newCounter returns a server that handles each counted request with the function "then".
func newCounter(t *testing.T, then func(r *http.Request)) *counter {
	c := &counter{keys: map[string]map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a broken body would be counted as another key
		key := r.Header.Get(webhook.KeyHeader)
		if key == "" {
			_, key, _ = strings.Cut(string(body), "perlica log show ")
		}
		c.mu.Lock()
		if c.keys[r.URL.Path] == nil {
			c.keys[r.URL.Path] = map[string]int{}
		}
		c.keys[r.URL.Path][key]++
		c.mu.Unlock()
		then(r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) tables() string {
	return table("ntfy+"+c.URL+"/topic", "") + table(c.URL+"/hook", `secret_env = "SIGNING"`)
}

// check checks the number of keys, and that no key came more often than the parameter "most" says.
func (c *counter) check(t *testing.T, path string, keys, most int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys[path]) != keys {
		t.Errorf("%s: %d causes, want %d", path, len(c.keys[path]), keys)
	}
	for key, n := range c.keys[path] {
		if n > most {
			t.Errorf("%s: %q came %d times", path, key, n)
		}
	}
}

// await waits until the log has this many results.
func (w *world) await(results int) {
	w.Helper()
	changes, err := w.r.Log().Changes(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer changes.Close()
	for {
		n, err := w.r.Log().Count(w.Context(), event.Query{Types: []event.Type{event.NotifySent, event.NotifyFailed}})
		if err != nil {
			w.Fatal(err)
		}
		if n >= results {
			return
		}
		if _, err := changes.Wait(w.Context(), time.Second); err != nil {
			w.Fatal(err)
		}
	}
}

// TestTwoProcesses checks that three processes deliver each cause once to each target. They need the lock, and must
// read the log again under it.
func TestTwoProcesses(t *testing.T) {
	c := newCounter(t, func(*http.Request) {})
	w := newWorld(t, c.tables())
	_, endA := w.child()
	_, endB := w.child()
	stop := Start(w.project, Options{Version: "test"})
	const causes = 20
	for range causes {
		w.finish("hello", 0)
	}
	w.await(2 * causes)
	endA()
	endB()
	stop()
	c.check(t, "/", causes, 1)
	c.check(t, "/hook", causes, 1)
	if got := strings.Count(w.history(), "sent"); got != 2*causes {
		t.Errorf("%d are recorded as sent, want %d", got, 2*causes)
	}
}

// TestKilled checks a process that is killed during an attempt. No second notification follows, except at a target that
// knows the key, because each attempt is recorded before it is made.
func TestKilled(t *testing.T) {
	arrived := make(chan string, 10)
	var alive sync.Map // the paths whose requests are answered
	c := newCounter(t, func(r *http.Request) {
		arrived <- r.URL.Path
		if _, ok := alive.Load("all"); !ok {
			<-r.Context().Done()
		}
	})
	w := newWorld(t, c.tables())
	kill, _ := w.child()
	w.finish("hello", 0)
	<-arrived
	<-arrived
	kill()
	alive.Store("all", true)
	_, end := w.child()
	w.await(2)
	w.finish("later", 0)
	w.await(4)
	end()
	c.check(t, "/", 2, 1)
	c.check(t, "/hook", 2, 2)
	got := strings.Split(w.history(), ", ")
	if n := strings.Count(strings.Join(got, ","), "failed unknown final"); n != 1 {
		t.Errorf("%d are given up: %v", n, got)
	}
}

// TestDied checks for each kind of target a process that died between the record of an attempt and the record of its
// result. Only a signed webhook gets the notification again, because it knows the key.
func TestDied(t *testing.T) {
	shown := filepath.Join(t.TempDir(), "shown")
	for to, again := range map[string]bool{
		"https://ntfy.sh/topic": false, "https://hooks.slack.com/services/x": false,
		"https://discord.com/api/webhooks/x": false, "mailto:me@localhost": false, "desktop": false, "push": false,
		"https://example.org/hook": true,
	} {
		t.Run(to, func(t *testing.T) {
			rc := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
			w := newWorld(t, table(to, `secret_env = "SIGNING"`)+
				"[smtp]\nhost = \"localhost\"\nport = 1\nfrom = \"p@x.example\"\n")
			w.subscribe(w.newPush(), "phone", access.Read)
			screen, err := os.Create(shown)
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			cause := w.finish("hello", 0)
			clock := time.Now()
			d := w.delivery(Options{Client: rc.client, Push: rc.client.Transport, Terminal: screen}, &clock)
			w.add(event.NotifyStarted, event.Refs{},
				fact.Notified{Cause: cause, Kind: finished, Target: d.target.Digest, Attempt: 1})
			want := "started, failed unknown final"
			if again {
				want = "started, started, sent"
			}
			got := w.deliver(t.Context(), d)
			info, err := screen.Stat()
			if got != want || len(rc.requests()) > 0 != again || err != nil || info.Size() > 0 {
				t.Errorf("%s; %d requests, %v, %v", got, len(rc.requests()), info, err)
			}
		})
	}
}

// TestStopDelivers checks that a process that ends delivers the causes of its last moment.
func TestStopDelivers(t *testing.T) {
	c := newCounter(t, func(*http.Request) {})
	w := newWorld(t, c.tables())
	for range 5 {
		stop := Start(w.project, Options{Version: "test"})
		w.finish("hello", 0)
		stop()
	}
	c.check(t, "/", 5, 1)
	c.check(t, "/hook", 5, 1)
}
