package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/telegram"
	"github.com/perlica/perlica/service/telegram/telegramtest"
)

// dirVar and seedVar are the variables of the processes that the test kills: the folder of their
// world, and their seed.
const dirVar, seedVar = "PERLICA_SERVICE_DIR", "PERLICA_SERVICE_SEED"

const botToken = "4711:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

func processSeed() uint64 {
	seed, _ := strconv.ParseUint(os.Getenv(seedVar), 10, 64) // the test wrote this number
	return seed
}

// flaky is a channel of a bad platform: messages come twice and in another order. Sending is slow
// and fails before or after the platform has the message.
type flaky struct {
	full
	mu  sync.Mutex // guards the fields below
	rng *rand.Rand
	old []channel.Inbound
}

type full interface {
	channel.Channel
	channel.Editor
	channel.Typist
}

func (f *flaky) chance(percent int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(100) < percent
}

func (f *flaky) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	if f.chance(10) {
		return nil, "", errors.New("the platform is down")
	}
	list, next, err := f.full.Poll(ctx, cursor)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.old = append(f.old, list...)
	for _, m := range f.old {
		if f.rng.IntN(100) < 20 {
			at := f.rng.IntN(len(list) + 1)
			list = append(list[:at:at], append([]channel.Inbound{m}, list[at:]...)...)
		}
	}
	return list, next, err
}

func (f *flaky) Send(ctx context.Context, m channel.Outbound) (string, error) {
	switch {
	case f.chance(10):
		return "", errors.Join(channel.ErrNotSent, errors.New("no connection"))
	case f.chance(5):
		return "", &channel.RateLimitError{After: 10 * time.Millisecond}
	case f.chance(20):
		t := time.NewTimer(30 * time.Millisecond)
		<-t.C
	}
	id, err := f.full.Send(ctx, m)
	if err == nil && f.chance(10) {
		return "", errors.New("the connection was lost behind the request")
	}
	return id, err
}

// bridgeProcess runs a bridge that the test kills. It ends normally at the end of its standard
// input.
func bridgeProcess() int {
	err := (&world{dir: os.Getenv(dirVar)}).runBridge()
	for begin := time.Now(); err != nil && time.Since(begin) < time.Minute; { // as a supervisor does
		pause(20 * time.Millisecond)
		err = (&world{dir: os.Getenv(dirVar)}).runBridge()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
		return 1
	}
	return 0
}

// runBridge runs a bridge until its standard input ends.
func (w *world) runBridge() (err error) {
	r, err := w.openRunner(context.Background())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	// An error ends this process, and the caller tries again. A child of the killed bridge may still hold the socket
	// for a moment.
	ch, err := local.Listen(w.socket(), local.DefaultLimits())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ch.Close()) }()
	bot, err := w.bot()
	if err != nil {
		return err
	}
	guests, closeGuests, err := w.toSubject()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeGuests()) }()
	opt := w.options(r,
		&flaky{full: ch, rng: rand.New(rand.NewPCG(processSeed(), 2))},
		&flaky{full: bot, rng: rand.New(rand.NewPCG(processSeed(), 3))})
	if point := os.Getenv(dieVar); point != "" {
		opt = w.options(r, &mortal{full: ch, point: point})
		opt.Log = slog.New(mortalLog(point))
	}
	if guests != nil {
		opt = w.options(r, guests)
	}
	opt.Host.Runner, opt.Backoff = r, 5*time.Millisecond
	if home := os.Getenv(homeVar); home != "" {
		opt.Team = linkTo(teamOptions(os.Getenv(hubVar), home))
		defer func() { err = errors.Join(err, opt.Team.Close()) }()
	}
	b, err := service.Open(context.Background(), opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the end of the input stops the bridge
		cancel()
	}()
	return errors.Join(b.Run(ctx), b.Close(context.Background()))
}

// dieSomeTime kills every third agent of a torture test at a random moment.
func dieSomeTime() {
	name := os.Getenv(countVar) + ".starts"
	starts, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if processSeed() == 0 || err != nil {
		return
	}
	_, _ = starts.WriteString(".") // the number of starts makes each start different
	at, _ := starts.Seek(0, io.SeekCurrent)
	rng := rand.New(rand.NewPCG(processSeed(), uint64(at)))
	if self, err := os.FindProcess(os.Getpid()); err == nil && rng.IntN(3) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(400))*time.Millisecond, func() { _ = self.Kill() })
	}
}

// toPlatform returns a client that connects every request to the platform of this world.
func (w *world) toPlatform() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.path("run/platform.sock"))
	}}}
}

// bot returns a channel to the platform of this world.
func (w *world) bot() (*telegram.Channel, error) {
	return telegram.New(telegram.Options{
		Token: botToken, BaseURL: "http://platform", PollFor: 2 * time.Second, Timeout: time.Minute, Client: w.toPlatform(),
	})
}

// platformProcess runs a Bot API server that the test kills. In addition to the bot's methods it
// has two methods of the test (see platform).
func platformProcess() int {
	w := &world{dir: os.Getenv(dirVar)}
	rng := rand.New(rand.NewPCG(processSeed(), 4))
	s, err := telegramtest.Open(botToken, w.path("platform"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "platform:", err)
		return 1
	}
	// The random numbers need no lock, because the server calls this function for one request at a time.
	s.Fault = func(method string, _ int) telegramtest.Fault { return mishap(rng, method) }
	_ = os.Remove(w.path("run/platform.sock")) // left by a killed process
	l, err := net.Listen("unix", w.path("run/platform.sock"))
	if err == nil {
		people := &telegramPeople{s: s}
		mux := http.NewServeMux()
		mux.Handle("/", s)
		mux.HandleFunc("/say", people.say)
		mux.HandleFunc("/sent", people.sent)
		err = http.Serve(l, mux)
	}
	fmt.Fprintln(os.Stderr, "platform:", err)
	return 1
}

// mishap returns the fault of one call.
func mishap(rng *rand.Rand, method string) (f telegramtest.Fault) {
	switch p := rng.IntN(100); {
	case p < 5:
		f.Drop = true
	case p < 10:
		f.Status, f.Say, f.Late = http.StatusInternalServerError, "Internal Server Error", p < 8
	case p < 13:
		f.Status, f.Say, f.Raw = http.StatusBadGateway, "<html>bad gateway</html>", true
	case p < 15:
		f.Status, f.Say, f.RetryAfter = http.StatusTooManyRequests, "Too Many Requests: retry after 1", 1
	case p < 21:
		f.Lose = true
	case p < 25:
		f.Half = true
	case p < 50:
		f.Forget = method == "getUpdates"
	}
	return f
}

// utterance is a message from or to a person.
type utterance struct {
	Contact int64
	Text    string
	ReplyTo string // the first line of the answered message
}

// telegramPeople holds the people of a platform in the platform's process.
type telegramPeople struct {
	s *telegramtest.Server

	mu sync.Mutex // held while updates are made or read
}

// said returns the texts of people by their numbers.
func (p *telegramPeople) said() map[int64]string {
	texts := map[int64]string{}
	for _, up := range p.s.Updates {
		var body struct {
			Message struct {
				ID   int64 `json:"message_id"`
				Text string
			}
		}
		_ = json.Unmarshal(up.Body, &body) // the test made the body
		texts[body.Message.ID] = body.Message.Text
	}
	return texts
}

// say accepts each message once.
func (p *telegramPeople) say(_ http.ResponseWriter, r *http.Request) {
	var u utterance
	if json.NewDecoder(r.Body).Decode(&u) != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(slices.Collect(maps.Values(p.said())), u.Text) {
		p.s.SayMore(u.Contact, u.Contact, fmt.Sprint("P", u.Contact),
			map[string]any{"text": u.Text, "date": time.Now().Unix()})
	}
}

// sent waits until there are more messages to people than the caller has, and returns the new ones.
func (p *telegramPeople) sent(w http.ResponseWriter, r *http.Request) {
	have, _ := strconv.Atoi(r.FormValue("have")) // the test wrote this number
	if p.s.Wait(r.Context(), func() bool { return len(p.s.Messages()) > have }) != nil {
		return
	}
	p.mu.Lock()
	said := p.said()
	p.mu.Unlock()
	var list []utterance
	for _, m := range p.s.Messages()[have:] {
		line, _, _ := strings.Cut(said[m.ReplyTo], "\n")
		list = append(list, utterance{m.Chat, m.Text, line})
	}
	_ = json.NewEncoder(w).Encode(list) // a disconnected client asks again
}

// platform is the test's side of the current platform process.
type platform struct {
	*victim
	w      *world
	client *http.Client

	mu     sync.Mutex // guards people
	people map[int64]*person
}

// platform starts a platform and delivers messages to people until the test ends.
func (w *world) platform(seed uint64) *platform {
	p := &platform{victim: w.spawn("platform", seed), w: w, client: w.toPlatform(), people: map[int64]*person{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait(); p.kill() })
	return p
}

// again kills the platform and starts it again.
func (p *platform) again(seed uint64) {
	p.kill()
	p.victim = p.w.spawn("platform", seed)
}

// join adds a person to the platform.
func (p *platform) join(contact int64) *person {
	who := newPerson(p.w.t, "", fmt.Sprint(contact))
	who.Contact = fmt.Sprint(contact)
	who.deliver = func(m local.Message) string {
		p.do(p.w.t.Context(), "/say", utterance{Contact: contact, Text: m.Text}, nil)
		return m.ID
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[contact] = who
	return who
}

// do asks the platform until it answers or ctx ends.
func (p *platform) do(ctx context.Context, path string, question, answer any) {
	b, err := json.Marshal(question)
	if err != nil {
		panic(err)
	}
	for ; ctx.Err() == nil; pause(5 * time.Millisecond) { // a killed platform comes back
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://platform"+path, bytes.NewReader(b))
		if err != nil {
			panic(err)
		}
		resp, err := p.client.Do(req)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // the body was read
		if err == nil && (answer == nil || json.Unmarshal(b, answer) == nil) {
			return
		}
	}
}

// run delivers messages to people until ctx ends.
func (p *platform) run(ctx context.Context) {
	for have := 0; ctx.Err() == nil; {
		var list []utterance
		p.do(ctx, fmt.Sprintf("/sent?have=%d", have), nil, &list)
		for i, u := range list {
			p.mu.Lock()
			who := p.people[u.Contact]
			p.mu.Unlock()
			who.Show(local.Arrived{Key: fmt.Sprint(have + i), Text: u.Text, ReplyTo: who.Contact + "/" + u.ReplyTo})
		}
		have += len(list)
	}
}

// victim is a process that the test kills.
type victim struct {
	*exec.Cmd
	stdin io.Closer
}

// spawn starts a process in a role, for the test to kill.
func (w *world) spawn(role string, seed uint64, env ...string) *victim {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+w.dir, fmt.Sprintf("%s=%d", seedVar, seed),
		"GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return &victim{cmd, stdin}
}

func (v *victim) kill() {
	_ = v.Process.Kill() // the process may have ended
	_ = v.Wait()         // the process was killed
}
