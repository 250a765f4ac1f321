package service_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

var (
	tortureMessages = flag.Int("torture-messages", 40, "how many messages the torture test sends")
	tortureSeed     = flag.Uint64("torture-seed", 0, "the torture test's seed; 0: by the clock")
)

// TestTorture runs five people on two channels. The bridge, its agents and one of the platforms are
// killed repeatedly. Messages come twice and in another order. Sending is slow and fails before or
// after the platform has the message. Some turns ask and are answered. Each message is acknowledged
// at most once, called at most once, and has exactly one outcome, in order.
func TestTorture(t *testing.T) {
	seed := *tortureSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	rng := seeded(t, seed)
	w := newWorld(t)
	remote := w.platform(rng.Uint64())
	var people []*person
	for i := range 3 {
		people = append(people, w.phone(fmt.Sprintf("p%d", i)))
	}
	for i := 3; i < 5; i++ {
		people = append(people, remote.join(int64(i)))
	}
	bot, err := w.bot()
	if err != nil {
		t.Fatal(err)
	}
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Channels = append(o.Channels, bot) })
	for _, p := range people {
		w.pair(s, p)
		p.mu.Lock()
		p.also = func(a local.Arrived) { p.allow(a); p.confirm(a) }
		p.mu.Unlock()
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()
	bridge := w.spawn("bridge", rng.Uint64())
	sent := make([][]string, len(people))
	kills, platformKills := 0, 0
	for range *tortureMessages {
		n := rng.IntN(len(people))
		text := fmt.Sprintf("<p%d-%03d>", n, len(sent[n]))
		sent[n] = append(sent[n], text)
		script := text
		switch {
		case rng.IntN(10) == 0:
			script = text + "\n@kill"
		case rng.IntN(5) == 0:
			script = text + "\n@sleep 50ms"
		case rng.IntN(7) == 0:
			script = text + "\n@ask execute \"Build it\" command=\"make\""
		}
		people[n].deliver(local.Message{ID: text, Text: script})
		switch rng.IntN(18) {
		case 0, 1, 2:
			pause(time.Duration(rng.IntN(120)) * time.Millisecond)
			kills++
			bridge.kill()
			bridge = w.spawn("bridge", rng.Uint64())
		case 3, 4:
			pause(time.Duration(rng.IntN(60)) * time.Millisecond)
			platformKills++
			remote.again(rng.Uint64())
		case 5, 6, 7:
			// Wait for an outcome sometimes. Otherwise all kills would happen before the first answer.
			if n := rng.IntN(len(people)); len(sent[n]) > 0 {
				people[n].outcome(sent[n][rng.IntN(len(sent[n]))])
			}
		}
	}
	for n, p := range people {
		for _, text := range sent[n] {
			p.outcome(text)
		}
	}
	// The end of its input stops the bridge normally.
	_ = bridge.stdin.Close()
	if err := bridge.Wait(); err != nil {
		t.Errorf("the bridge: %v", err)
	}
	t.Logf("%d messages; the bridge was killed %d times, the platform %d times, in %s",
		*tortureMessages, kills, platformKills, time.Since(begin).Round(time.Second))
	w.audit(people, sent)
}

// pause waits a moment, so that a killed process has begun to work.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// outcome waits for the outcome of a message.
func (p *person) outcome(text string) {
	p.t.Helper()
	timeout := time.After(3 * time.Minute)
	for {
		p.mu.Lock()
		change := p.change
		for _, a := range p.arrived {
			if isOutcome(a) && a.ReplyTo == p.Contact+"/"+text {
				p.mu.Unlock()
				return
			}
		}
		got := fmt.Sprintf("%q", p.arrived)
		p.mu.Unlock()
		select {
		case <-change:
		case <-timeout:
			p.t.Fatalf("%s was never told what became of %s; got %s", p.Contact, text, got)
		}
	}
}

func isAck(a local.Arrived) bool { return strings.Contains(a.Text, "ACK") }

func isOutcome(a local.Arrived) bool {
	return !isAck(a) && !strings.Contains(a.Text, "/withdraw") && !strings.Contains(a.Text, "It goes to the agent")
}

// heldAs matches the name of a message that was typed while a question was open.
var heldAs = regexp.MustCompile("It is held.*/send ([0-9a-f]{6})")

// confirm releases a held message if this reply is about one.
func (p *person) confirm(a local.Arrived) {
	if word := heldAs.FindStringSubmatch(a.Text); word != nil {
		p.say("/send " + word[1])
	}
}

// asking matches the end of a card with the question's id.
var asking = regexp.MustCompile("or with (?:`|<code>)?(#[0-9a-f]{8})")

// allow answers a question, by text if the card says so, otherwise by its first button.
func (p *person) allow(a local.Arrived) {
	first := slices.IndexFunc(a.Buttons, func(b channel.Button) bool { return strings.HasSuffix(b.Data, ":1") })
	if id := asking.FindStringSubmatch(a.Text); id != nil {
		p.deliver(local.Message{ID: id[1], Text: id[1] + " 1"})
	} else if first >= 0 {
		p.deliver(local.Message{ReplyTo: a.Key, Button: a.Buttons[first].Data})
	}
}

// audit checks the promises from all sides: the arrived messages, the prompts at the agents, and
// the log.
func (w *world) audit(people []*person, sent [][]string) {
	t := w.t
	calls := w.calls()
	received, finished, came := w.recorded()
	total := map[string]int{}
	for n, p := range people {
		remote := p.Path == ""
		acks, outcomes, repeats, order := map[string]int{}, map[string]int{}, map[string]int{}, []string{}
		held := map[string]bool{} // later messages may overtake a held one
		p.mu.Lock()
		for _, a := range p.arrived {
			text := strings.TrimPrefix(a.ReplyTo, p.Contact+"/")
			switch {
			case !named.MatchString(text): // a reply that names no message, for example about an answer
				continue
			case isAck(a):
				acks[text]++
				continue
			case !isOutcome(a):
				held[text] = held[text] || heldAs.MatchString(a.Text)
				continue
			case strings.HasPrefix(a.Text, "(possibly repeated)"):
				repeats[text]++
			default:
				outcomes[text]++
			}
			total[outcomeKind(a.Text)]++
			if outcomes[text]+repeats[text] == 1 && !held[text] {
				order = append(order, text)
			}
		}
		p.mu.Unlock()
		for _, text := range sent[n] {
			if acks[text] > 1 || !remote && acks[text] != 1 {
				t.Errorf("%s: %d acknowledgements", text, acks[text])
			}
			if outcomes[text] > 1 || !remote && (outcomes[text] != 1 || repeats[text] != 0) {
				t.Errorf("%s: %d outcomes, and %d marked as repeated", text, outcomes[text], repeats[text])
			}
			if calls[text] > 1 || received[text] != 1 || finished[text] != 1 {
				t.Errorf("%s: called %d times, received %d times, finished %d times", text, calls[text], received[text],
					finished[text])
			}
		}
		if !slices.IsSortedFunc(order, func(a, b string) int { return came[a] - came[b] }) {
			t.Errorf("%s got its answers out of order: %v", p.Contact, order)
		}
	}
	t.Logf("arrived: %v; %d prompts; questions: %v", total, len(calls), w.closings())
	r, err := store.OpenReader(t.Context(), w.path("eventlog.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if rep, err := verify.Log(t.Context(), r, verify.Options{}); err != nil || !rep.OK() {
		t.Errorf("the log: %+v, %v", rep, err)
	}
	if open, err := record.ListUnfinished(t.Context(), r, w.path("locks")); err != nil || len(open) > 0 {
		t.Errorf("runs without an outcome: %+v, %v", open, err)
	}
	if left, _ := filepath.Glob(w.path("files/*")); len(left) > 0 {
		t.Errorf("files left behind: %v", left)
	}
}

// closings counts the ends of the questions. No question may be open.
func (w *world) closings() map[string]int {
	closings := map[string]int{}
	for line := range strings.SplitSeq(w.rows("questions"), "\n") {
		switch {
		case line == "":
		case strings.Contains(line, "answered at"):
			closings["answered"]++
		case strings.Contains(line, "closed without an answer") && !strings.Contains(line, "time is up"):
			closings["asker gone"]++
		default:
			w.t.Errorf("a question: %s", line)
		}
	}
	return closings
}

// outcomeKind returns the kind of an outcome, for a count.
func outcomeKind(text string) string {
	kind := "answers"
	switch {
	case strings.Contains(text, "is unknown"):
		kind = "unknown"
	case strings.Contains(text, "The agent failed"), strings.Contains(text, "was not sent to the agent"):
		kind = "errors"
	}
	if strings.HasPrefix(text, "(possibly repeated)") {
		kind += " (possibly repeated)"
	}
	return kind
}

// recorded returns how often each message was received and finished, and the order of arrival,
// because messages overtake each other.
func (w *world) recorded() (received, finished, came map[string]int) {
	t := w.t
	r, err := store.OpenReader(t.Context(), w.path("eventlog.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	received, finished, came = map[string]int{}, map[string]int{}, map[string]int{}
	names := map[event.InputID]string{}
	for e, err := range r.Events(t.Context(), event.Query{Types: []event.Type{event.BridgeReceived, event.BridgeFinished}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.BridgeFinished {
			finished[names[e.Input]]++
			continue
		}
		var f struct{ Text string }
		if err := e.Decode(&f); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(f.Text, "\n")
		names[e.Input] = text
		received[text]++
		came[text] = len(came)
	}
	return received, finished, came
}

// named matches a message's name at the beginning of a line. A transcript of earlier turns quotes
// names differently.
var named = regexp.MustCompile(`(?m)^<p\d-\d+>`)

// calls counts the prompts with each message as input that reached an agent.
func (w *world) calls() map[string]int {
	calls := map[string]int{}
	for line := range strings.SplitSeq(w.prompts(), "\n") {
		var m struct {
			Params struct {
				Prompt []struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(line), &m) != nil || len(m.Params.Prompt) == 0 {
			continue
		}
		for _, text := range named.FindAllString(m.Params.Prompt[len(m.Params.Prompt)-1].Text, -1) {
			calls[text]++
		}
	}
	return calls
}
