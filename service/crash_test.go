package service_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// dieVar names the point at which a bridge process kills itself. keylessVar tells its channel to
// forget the keys of sent messages.
const dieVar, keylessVar = "PERLICA_SERVICE_DIE", "PERLICA_SERVICE_KEYLESS"

// die kills this process.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

func killParent() {
	if parent, err := os.FindProcess(os.Getppid()); err == nil {
		_ = parent.Kill()
	}
	select {}
}

// mortal is a channel on which the bridge dies before or after it sends a message.
type mortal struct {
	full
	point   string
	keyless bool
}

func (m *mortal) Limits() channel.Limits {
	l := m.full.Limits()
	l.Dedupes = !m.isKeyless()
	return l
}

func (m *mortal) isKeyless() bool { return m.keyless || os.Getenv(keylessVar) != "" }

func (m *mortal) Send(ctx context.Context, out channel.Outbound) (string, error) {
	what := "reply"
	switch {
	case isAck(local.Arrived{Text: out.Text}):
		what = "ack"
	case asking.MatchString(out.Text):
		what = "card"
	}
	if m.point == "before "+what {
		die()
	}
	// A new key makes this channel like most platforms: each attempt makes a new message.
	if m.isKeyless() {
		out.Key = crand.Text()
	}
	id, err := m.full.Send(ctx, out)
	if m.point == "behind "+what {
		die()
	}
	return id, err
}

// mortalLog kills the process when the bridge logs an event, before the event is on record.
type mortalLog string

func (l mortalLog) Enabled(context.Context, slog.Level) bool { return true }

func (l mortalLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == string(l) {
		die()
	}
	return nil
}

func (l mortalLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l mortalLog) WithGroup(string) slog.Handler      { return l }

// TestDeathAtEachPoint kills the bridge at each of its steps. The next bridge reports the truth.
func TestDeathAtEachPoint(t *testing.T) {
	const hello, answered, unknown = "hello", "You said: hello", "is unknown"
	const ask = `@ask execute "Build it" command="make"`
	const bridgeDied = "closed without an answer: the bridge died while it was open"
	perhaps := [2]int{0, 1}
	for _, at := range []struct {
		point, text string
		outcome     string // the reported outcome
		acks        [2]int // fewest and most acknowledgements on a channel that forgets keys; otherwise one
		marked      int    // messages marked as repeated on a channel that forgets keys
		card        string // the report about the question
	}{
		{point: "message", text: hello, outcome: answered, acks: [2]int{1, 1}}, // received, not on disk
		{point: "before ack", text: hello, acks: [2]int{0, 0}},                 // on disk; the outcome of the call varies
		{point: "behind ack", text: hello, acks: [2]int{1, 1}},
		{point: "turn", text: hello, outcome: answered, acks: perhaps},     // not called
		{point: "prompt", text: hello, outcome: unknown, acks: perhaps},    // called
		{point: "finished", text: hello, outcome: answered, acks: perhaps}, // answered, not reported
		{point: "before reply", text: hello, outcome: answered, acks: [2]int{1, 1}, marked: 1},
		{point: "behind reply", text: hello, outcome: answered, acks: [2]int{1, 1}, marked: 1},
		{point: "question", text: ask, outcome: unknown, acks: perhaps}, // on record, not shown
		{point: "before card", text: ask, outcome: unknown, acks: perhaps, card: bridgeDied},
		{point: "behind card", text: ask, outcome: unknown, acks: perhaps, card: bridgeDied},
		// the question is answered, but its card is still open
		{point: "question closed", text: ask, outcome: unknown, acks: perhaps,
			card: "ALICE (local:" + contactOf("alice") + ") answered at"},
	} {
		for _, keyless := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,keyless=%t", at.point, keyless), func(t *testing.T) {
				w := newWorld(t)
				w.isPaired("alice")
				alice := w.phone("alice")
				alice.mu.Lock()
				if at.point == "question closed" {
					alice.also = alice.allow
				}
				alice.mu.Unlock()
				env := []string{dieVar + "=" + at.point}
				if keyless {
					env = append(env, keylessVar+"=1")
				}
				bridge := w.spawn("bridge", 0, env...)
				defer bridge.kill()
				alice.Say(local.Message{ID: "m", Text: at.text})
				if err := bridge.Wait(); err == nil {
					t.Fatal("the bridge did not die")
				}
				s := w.serve(local.DefaultLimits(), func(o *service.Options) {
					o.Channels[0] = &mortal{full: o.Channels[0].(full), keyless: keyless}
				})
				alice.outcome("m")
				if at.card != "" {
					if a := alice.expect(at.card); !strings.Contains(a.Text, "Build it") {
						t.Errorf("it does not say what was asked: %q", a.Text)
					}
				}
				// The dead bridge may have sent the first outcome already, so wait for the repeated one.
				if keyless && at.marked > 0 {
					alice.expect("(possibly repeated)")
				}
				if err := s.stop(); err != nil {
					t.Fatal(err)
				}
				outcomes, marked := 0, 0
				for _, a := range alice.arrived {
					switch {
					case a.ReplyTo != alice.Contact+"/m" || !isOutcome(a):
					case !strings.Contains(a.Text, at.outcome):
						t.Errorf("what became of it: %q, want %q", a.Text, at.outcome)
					case strings.HasPrefix(a.Text, "(possibly repeated)"):
						marked++
					default:
						outcomes++
					}
				}
				acks, calls := alice.count("ACK"), strings.Count(w.prompts(), "session/prompt")
				if !keyless && (acks != 1 || outcomes != 1 || marked != 0) || calls > 1 || outcomes > 1 ||
					keyless && (acks < at.acks[0] || acks > at.acks[1] || marked != at.marked || outcomes+marked < 1) {
					t.Errorf("%d acknowledgements, %d outcomes, %d marked as repeated, %d prompts", acks, outcomes, marked, calls)
				}
			})
		}
	}
}

// isPaired pairs a contact before the bridge runs.
func (w *world) isPaired(name string) {
	w.t.Helper()
	r, err := w.openRunner(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	id := contactOf(name)
	fact := map[string]any{"channel": local.Name, "contact": id, "chat": id, "name": strings.ToUpper(name),
		"rights": service.DefaultRights()}
	if _, err := r.Log().Append(w.t.Context(), event.NewFact(event.ContactPaired, "test", event.Refs{},
		fact)); err != nil {
		w.t.Fatal(err)
	}
	records, err := service.OpenRecords(w.t.Context(), &r.Log().Reader, w.path("service_bridge.db"), r.Vouchers())
	if err != nil {
		w.t.Fatal(err)
	}
	defer records.Close()
	list, err := records.Unconfirmed(w.t.Context())
	if err != nil || len(list) != 1 {
		w.t.Fatal(list, err)
	}
	if err := records.Confirm(w.t.Context(), list[0]); err != nil {
		w.t.Fatal(err)
	}
}

// TestTheViewComesBack checks that a deleted view is rebuilt with the same rows.
func TestTheViewComesBack(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("hello")
	alice.expect("You said: hello")
	alice.say(`@ask execute "May I" command="make"`)
	alice.expect("May I")
	alice.say("Reject")
	alice.expect("permission: reject")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	before := w.rows()
	if !strings.Contains(before, "hello") || !strings.Contains(before, alice.Contact) {
		t.Fatalf("rows: %s", before)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(w.path("service_bridge.db") + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	r, err := w.openRunner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	records, err := service.OpenRecords(t.Context(), &r.Log().Reader, w.path("service_bridge.db"), r.Vouchers())
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Close(); err != nil {
		t.Fatal(err)
	}
	if after := w.rows(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// rows returns all rows of the view or of some of its tables.
func (w *world) rows(tables ...string) string {
	if len(tables) == 0 {
		tables = []string{"bridge", "channels", "contacts", "pairing", "strangers", "inbox", "outbox", "questions"}
	}
	db, err := sqlx.Open("sqlite", w.path("service_bridge.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var b strings.Builder
	for _, table := range tables {
		rows, err := db.Queryx("SELECT * FROM " + table + " ORDER BY 1, 2")
		if err != nil {
			w.t.Fatal(err)
		}
		for rows.Next() {
			row, err := rows.SliceScan()
			if err != nil {
				w.t.Fatal(err)
			}
			fmt.Fprintln(&b, table, row)
		}
		_ = rows.Close()
	}
	return b.String()
}
