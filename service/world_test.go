package service_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/predictable"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// roleVar names a further role of the test binary: an agent that counts its prompts, or a bridge or
// a platform for a test to kill. countVar names the file of the counts.
const roleVar, countVar = "PERLICA_SERVICE_ROLE", "PERLICA_SERVICE_COUNT"

// scenarioVar has the scenario of the agents.
const scenarioVar = "PERLICA_SERVICE_SCENARIO"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "agent":
		os.Exit(countingAgent())
	case "bridge":
		os.Exit(bridgeProcess())
	case "bot":
		os.Exit(botProcess())
	case "platform":
		os.Exit(platformProcess())
	}
	if len(os.Args) > 2 && os.Args[1] == "agent" { // the built-in agent of a team's worker
		if predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, predictable.Options{}) != nil {
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	afterTests()
	os.Exit(code)
}

// afterTests removes resources that all tests share.
var afterTests = func() {}

// countingAgent is the predictable agent. It writes each prompt to a file before it handles it.
func countingAgent() int {
	count, err := os.OpenFile(os.Getenv(countVar), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	dieSomeTime()
	r, w := io.Pipe()
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if strings.Contains(line, `"session/prompt"`) {
				_, _ = count.WriteString(line)
				if os.Getenv(dieVar) == "prompt" {
					killParent()
				}
			}
			if _, werr := io.WriteString(w, line); err != nil || werr != nil {
				_ = w.Close()
				return
			}
		}
	}()
	if predictable.Serve(context.Background(), r, os.Stdout, os.Stderr,
		predictable.Options{State: os.Getenv(countVar) + ".state", Scenario: os.Getenv(scenarioVar)}) != nil {
		return 1
	}
	return 0
}

// world is a project on disk.
type world struct {
	t      testing.TB
	dir    string
	leaves []func() // the functions by which its phones leave
	// scenario is the scenario of the agents. Empty means that they only obey their prompts.
	scenario string
	ahead    atomic.Int64 // offset of the bridges' clock to the system's, in nanoseconds
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "bridge") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir}
	t.Cleanup(func() {
		for _, leave := range w.leaves { // after the bridges, because their last messages wait for the phones
			leave()
		}
		_ = os.RemoveAll(dir)
	})
	for _, d := range []string{"locks", "files", "run", "agent"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// now returns the time of the world's bridges.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// reads lets the time pass that a person needs to read a new card.
func (w *world) reads() { w.ahead.Add(int64(interaction.ReadTime)) }

// path returns the path of a file of the world.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// socket returns the path of the socket of the phones.
func (w *world) socket() string { return w.path("run/phone.sock") }

// openRunner opens the world's log for work, with an agent that counts its prompts.
func (w *world) openRunner(ctx context.Context) (*kernel.Runner, error) {
	return kernel.Open(ctx, kernel.Options{
		Paths: config.ContextPaths{
			Dir: w.dir, EventLog: w.path("eventlog.db"), Sessions: w.path("sessions.db"), Approvals: w.path("approvals.db"),
			Locks: w.path("locks"),
		},
		Context: "default", Vouchers: approvals.NewVouchers(config.Dirs{State: w.path("state")}), Runtime: w.path("run"),
		Environ: append(os.Environ(), roleVar+"=agent", countVar+"="+w.path("prompts"), scenarioVar+"="+w.scenario,
			"GORACE=atexit_sleep_ms=0"),
	})
}

// options returns the options of a bridge of this world.
func (w *world) options(r *kernel.Runner, channels ...channel.Channel) service.Options {
	self, _ := os.Executable() // always known for a running process
	return service.Options{
		Runner: r, Context: "default", View: w.path("service_bridge.db"), Lock: w.path("service.lock"),
		Files:    w.path("files"),
		Channels: channels, Backoff: 20 * time.Millisecond, Now: w.now,
		Settings: service.Settings{
			Ack: "ACK", Agents: 4, MaxAge: time.Hour, Grace: 10 * time.Second, AnswerIn: 10 * time.Minute, Permissions: "ask",
		},
		Setup: func(session event.SessionID, _ string) (kernel.Setup, error) {
			return kernel.Setup{
				Forms: true,
				Agent: agents.Agent{
					Agent: provider.Agent{ID: "test", Command: []string{self},
						Env: []string{roleVar, countVar, scenarioVar, seedVar, dieVar, "GORACE"}},
					ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
				},
				Session: session, Dir: w.path("agent"), Budget: 10_000,
			}, nil
		},
	}
}

// serving is a bridge of this process.
type serving struct {
	*service.Bridge
	r       *kernel.Runner
	channel *local.Channel
	stop    func() error
}

// serve runs a bridge until the test ends or stop is called.
func (w *world) serve(limits channel.Limits, change ...func(*service.Options)) *serving {
	t := w.t
	t.Helper()
	r, err := w.openRunner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := local.Listen(w.socket(), limits)
	if err != nil {
		t.Fatal(err)
	}
	opt := w.options(r, ch)
	opt.Host.Runner = r
	for _, f := range change {
		f(&opt)
	}
	b, err := service.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	s := &serving{Bridge: b, r: r, channel: ch}
	s.stop = sync.OnceValue(func() error {
		cancel()
		err := <-done
		for _, close := range []func() error{func() error { return b.Close(context.Background()) }, ch.Close} {
			if cerr := close(); err == nil {
				err = cerr
			}
		}
		if rep, verr := verify.Log(context.Background(), &r.Log().Reader, verify.Options{}); verr != nil || !rep.OK() {
			t.Errorf("the log: %+v, %v", rep, verr)
		}
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		return err
	})
	t.Cleanup(func() {
		opt.Settings.Grace = time.Millisecond // the remaining turns do not matter to the test
		b.Set(opt.Settings)
		if err := s.stop(); err != nil {
			t.Errorf("the bridge: %v", err)
		}
	})
	return s
}

// person is a person with a phone.
type person struct {
	*local.Phone
	Contact string // the person's id for the bridge
	t       testing.TB

	mu      sync.Mutex
	arrived []local.Arrived
	at      []time.Time
	change  chan struct{}
	read    int
	also    func(local.Arrived) // called for each arrived message

	deliver func(local.Message) string // Say, or a replacement on another channel
}

// phone gives a person a phone.
func (w *world) phone(name string) *person {
	p := newPerson(w.t, w.socket(), name)
	w.run(p)
	return p
}

// run keeps a phone connected until the test's bridges have ended or the function "leave" is called.
func (w *world) run(p *person) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	leave = func() { cancel(); wg.Wait() }
	w.leaves = append(w.leaves, leave)
	return leave
}

// copyAll copies the files of a world to another one. If "own" is true, copyAll also copies the user's own state.
func copyAll(t *testing.T, from, to *world, own bool) {
	t.Helper()
	for _, name := range []string{"eventlog.db", "service_bridge.db"} {
		b, err := os.ReadFile(from.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to.path(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if own {
		if err := os.CopyFS(to.path("state"), os.DirFS(from.path("state"))); err != nil {
			t.Fatal(err)
		}
	}
}

// tokenOf returns the token of a person's phone.
func tokenOf(name string) string { return "0123456789ABCDEF-token-of-" + name }

func contactOf(name string) string { return local.ContactID(strings.ToUpper(name), tokenOf(name)) }

func newPerson(t testing.TB, socket, name string) *person {
	p := &person{Contact: contactOf(name), t: t, change: make(chan struct{})}
	p.Phone = &local.Phone{Path: socket, Name: strings.ToUpper(name), Token: tokenOf(name), Show: func(a local.Arrived) {
		p.mu.Lock()
		p.arrived = append(p.arrived, a)
		p.at = append(p.at, time.Now())
		close(p.change)
		p.change = make(chan struct{})
		also := p.also
		p.mu.Unlock()
		if also != nil {
			also(a)
		}
	}}
	p.deliver = p.Say
	return p
}

func (p *person) say(text string) string { return p.deliver(local.Message{Text: text}) }

// isStatus reports whether a message only shows the progress of a long turn.
func isStatus(a local.Arrived) bool { return status.MatchString(a.Text) }

var status = regexp.MustCompile(`^(⏳|✓|✗)( 📁 \S+)? \d+ (of \d+ )?tool call`)

// tooSoon is the reply to a yes without a question's id just after the card.
const tooSoon = "only just before your message"

// answers sends a yes that may name no question. If the card had just arrived, answers sends the yes again. It returns
// the next message with the text.
func (p *person) answers(w interface{ reads() }, m local.Message, text string) local.Arrived {
	p.t.Helper()
	p.deliver(m)
	if a := p.expect(text, tooSoon, "not clear which question"); strings.Contains(a.Text, text) {
		return a
	}
	w.reads()
	p.deliver(m)
	return p.expect(text)
}

// expect waits for the next message with one of the texts and returns it.
func (p *person) expect(texts ...string) local.Arrived {
	p.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		p.mu.Lock()
		change := p.change
		for i := p.read; i < len(p.arrived); i++ {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(p.arrived[i].Text, text) }) &&
				!isStatus(p.arrived[i]) {
				p.read = i + 1
				a := p.arrived[i]
				p.mu.Unlock()
				return a
			}
		}
		got := fmt.Sprintf("%q", p.arrived)
		p.mu.Unlock()
		select {
		case <-change:
			timeout = time.After(2 * time.Minute) // many turns may come first
		case <-timeout:
			p.t.Fatalf("%s never got %q; got %s", p.Name, texts, got)
		}
	}
}

// count counts the arrived messages with the text.
func (p *person) count(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arrived {
		if strings.Contains(a.Text, text) {
			n++
		}
	}
	return n
}

// pair pairs a person.
func (w *world) pair(s *serving, p *person, rights ...access.Right) {
	w.t.Helper()
	if len(rights) == 0 {
		rights = service.DefaultRights()
	}
	code, err := service.OpenPairing(w.t.Context(), s.r.Log(), rights, "test", time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	p.say(code)
	p.expect("You are paired")
}

// prompts returns the texts that reached agents.
func (w *world) prompts() string {
	b, err := os.ReadFile(w.path("prompts"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// seeded returns a source of random numbers. The same seed gives the same numbers.
func seeded(t testing.TB, seed uint64) *rand.Rand {
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
