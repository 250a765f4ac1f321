package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	hubtest.Remove()
	os.Exit(code)
}

// open connects to a database as a role.
func open(t testing.TB, url string) *Hub {
	t.Helper()
	h, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // the server may be gone
	return h
}

// found makes a team in the generation "g1". Its first member has the given name.
func found(t testing.TB, h *Hub, name string) {
	t.Helper()
	if err := h.MakeSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := h.Found(t.Context(), Team{ID: "id", Name: "team", Admin: "key"}, "g1")
	if err != nil || !made {
		t.Fatalf("got %v, %v; want err == nil && made", made, err)
	}
	if err := h.State(t.Context(), Member{Name: name, Version: 1, Key: "key", Rights: access.Rights{access.Admin},
		Login: "owner", Signature: []byte{}}); err != nil {
		t.Fatal(err)
	}
}

func newInput(id, text string) Input {
	sum := sha256.Sum256([]byte(text))
	return Input{ID: id, Sender: "alice", Digest: hex.EncodeToString(sum[:]), Project: "p", Permissions: "ask",
		Signature: []byte("s"), Payload: [][]byte{[]byte(text)}}
}

func submitted(t testing.TB, h *Hub, inputs ...Input) map[string]string {
	t.Helper()
	came, err := h.Submit(t.Context(), "g1", inputs)
	if err != nil {
		t.Fatal(err)
	}
	return came
}

var worker = Worker{Name: "alice", Projects: []string{"p"}, Providers: []string{"predictable"},
	Labels: []string{"gpu", "linux"}, Slots: 1}

func claimed(t testing.TB, h *Hub, most int) (ids []string) {
	t.Helper()
	claims, err := h.Claim(t.Context(), worker, most, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	return ids
}

func state(t testing.TB, h *Hub, id string) string {
	t.Helper()
	s, ok, err := h.Status(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("got %v, %v; want err == nil && ok", ok, err)
	}
	return s.State
}

// TestLife takes an input from its submission to its outcome.
func TestLife(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	if _, err := h.Look(t.Context()); !errors.Is(err, ErrNoTeam) {
		t.Errorf("an empty database: %v", err)
	}
	found(t, h, "alice")
	st, err := h.Look(t.Context())
	if err != nil || st.ID != "id" || st.Generation != "g1" || !st.Adopted || st.Position == 0 || st.Login != "owner" ||
		!st.Superuser {
		t.Fatalf("%+v, %v", st, err)
	}
	if made, err := h.Found(t.Context(), Team{ID: "other"}, "g9"); made || err != nil {
		t.Errorf("a second team: %v, %v", made, err)
	}
	big := newInput("b", string(make([]byte, 0)))
	big.Payload = [][]byte{[]byte("text"), make([]byte, 2*piece+7), {}}
	big.Attachments = []Attachment{{Name: "a", Size: 2*piece + 7, SHA256: "x"}, {Name: "empty", SHA256: "y"}}
	if came := submitted(t, h, newInput("a", "one"), big); came["a"] != New || came["b"] != New {
		t.Fatalf(`got %v; want came["a"] == New && came["b"] == New`, came)
	}
	if came := submitted(t, h, newInput("a", "one"), newInput("b", "two"), newInput("c", "three")); came["a"] != There ||
		came["b"] != Differs || came["c"] != New {
		t.Fatalf(`got %v; want came["a"] == There && came["b"] == Differs && came["c"] == New`, came)
	}
	if _, err := h.Submit(t.Context(), "g0", []Input{newInput("d", "four")}); !errors.Is(err, ErrEnded) {
		t.Errorf("another generation: %v", err)
	}
	if got := claimed(t, h, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf(`got %v; want slices.Equal(got, []string{"a", "b"})`, got)
	}
	owned, err := h.Owned(t.Context(), "alice")
	if err != nil || len(owned) != 2 || owned[1].Attachments[0].Name != "a" || owned[1].Position == 0 {
		t.Fatal(owned, err)
	}
	payload, err := h.Fetch(t.Context(), "b", 64<<20)
	if err != nil || len(payload) != 3 || string(payload[0]) != "text" || len(payload[1]) != 2*piece+7 ||
		len(payload[2]) != 0 {
		t.Fatal(len(payload), err)
	}
	if err := h.Report(t.Context(), "alice", "a", "responded", json.RawMessage(`{"text":"1"}`), []byte("s")); err != nil {
		t.Fatal(err)
	}
	if err := h.Report(t.Context(), "alice", "a", "outcome_unknown", json.RawMessage(`{}`), []byte("s")); err != nil {
		t.Fatal(err)
	}
	if err := h.Report(t.Context(), "bob", "b", "responded", json.RawMessage(`{}`), []byte("s")); !errors.Is(err,
		ErrNoClaim) {
		t.Errorf("an outcome of another's claim: %v", err)
	}
	for id, want := range map[string]string{"a": "responded", "b": Claimed, "c": Queued} {
		if got := state(t, h, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if owned, err = h.Owned(t.Context(), "alice"); err != nil || len(owned) != 1 {
		t.Errorf("got %v, %v; want err == nil && len(owned) == 1", owned, err)
	}
	if done, err := h.Withdraw(t.Context(), "b", "alice"); done || err != nil {
		t.Errorf("a claimed one was withdrawn: %v", err)
	}
	if done, err := h.Withdraw(t.Context(), "c", "alice"); !done || err != nil {
		t.Errorf("not withdrawn: %v", err)
	}
	if got := claimed(t, h, 9); len(got) != 0 || state(t, h, "c") != Withdrawn {
		t.Errorf(`got %v; want len(got) == 0 && state(t, h, "c") == Withdrawn`, got)
	}
	counts, err := h.Counts(t.Context())
	if fmt.Sprint(counts) != "map[claimed:1 responded:1 withdrawn:1]" || err != nil {
		t.Errorf(`got %v, %v; want fmt.Sprint(counts) == "map[claimed:1 responded:1 withdrawn:1]" && err == nil`, counts, err)
	}
}

// TestOrder checks that priority counts before age. A worker gets only inputs that it serves, and no input before its
// time.
func TestOrder(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	high, gpu, other, elsewhere, later, soon := newInput("high", "x"), newInput("gpu", "x"), newInput("other", "x"),
		newInput("elsewhere", "x"), newInput("later", "x"), newInput("soon", "x")
	high.Priority, gpu.Labels, other.Labels, elsewhere.Project = 5, []string{"gpu"}, []string{"gpu", "windows"}, "q"
	later.NotBefore, soon.NotBefore = time.Now().Add(time.Hour), time.Now().Add(time.Millisecond)
	wanted := newInput("wanted", "x")
	wanted.Provider = "claude"
	submitted(t, h, newInput("first", "x"))
	submitted(t, h, high, gpu, other, elsewhere, later, soon, wanted)
	if got := claimed(t, h, 1); !slices.Equal(got, []string{"high"}) {
		t.Errorf(`got %v; want slices.Equal(got, []string{"high"})`, got)
	}
	s.SQL(t, db, "SELECT pg_sleep(0.002)")
	if _, _, err := h.Pulse(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	got := claimed(t, h, 9)
	slices.Sort(got)
	if !slices.Equal(got, []string{"first", "gpu", "soon"}) {
		t.Errorf(`got %v; want slices.Equal(got, []string{"first", "gpu", "soon"})`, got)
	}
	if st := state(t, h, "later"); st != Waiting {
		t.Errorf("got %v; want st == Waiting", st)
	}
}

// TestOneClaim checks that each input has one owner after many simultaneous claims.
func TestOneClaim(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	var inputs []Input
	for i := range 200 {
		inputs = append(inputs, newInput(fmt.Sprint("i", i), "x"))
	}
	submitted(t, h, inputs...)
	var mu sync.Mutex
	owners := map[string]int{}
	var all sync.WaitGroup
	for range 8 {
		one := open(t, s.URL("owner", db))
		all.Go(func() {
			for {
				claims, err := one.Claim(context.Background(), worker, 3, nil)
				if err != nil {
					t.Error(err)
				}
				if len(claims) == 0 {
					return
				}
				mu.Lock()
				for _, c := range claims {
					owners[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, n := range owners {
		if n != 1 {
			t.Errorf("%s has %d owners", id, n)
		}
	}
	// The last empty claims may have looked while others held rows. Some inputs are left then.
	owners["rest"] = len(claimed(t, h, 200))
	if n := s.SQL(t, db, "SELECT count(*) FROM perlica.claims"); n != "200" {
		t.Errorf("%s claims, %d by the workers", n, len(owners))
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

// TestQuestions checks that an answer waits for the worker's verdict.
func TestQuestions(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"))
	claimed(t, h, 1)
	q := Question{ID: "q", Input: "a", Worker: "alice", Question: json.RawMessage(`{"title": "T"}`)}
	for range 2 {
		if err := h.PutQuestion(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	open, err := h.Questions(t.Context(), "", "a")
	if err != nil || len(open) != 1 || string(open[0].Question) != string(q.Question) {
		t.Fatalf("got %v, %v; want err == nil && len(open) == 1 && string(open[0].Question) == string(q.Question)", open, err)
	}
	for i, option := range []string{"o", "o", "other"} { // the first answer stays, and a repetition is recognised
		same, err := h.Propose(t.Context(), Answer{Question: "q", Member: "alice", Option: option, Signature: []byte{1}})
		if err != nil || same != (option == "o") {
			t.Fatalf(`got %v, %v, %v; want err == nil && same == (option == "o")`, i, same, err)
		}
	}
	for _, signature := range [][]byte{{9}, {2}} { // the first signature is not the member's
		if err := h.PutCancel(t.Context(), Cancel{Input: "a", Member: "alice", Signature: signature}); err != nil {
			t.Fatal(err)
		}
	}
	answers, cancels, err := h.Pulse(t.Context(), worker)
	if err != nil || len(answers) != 1 || answers[0].Option != "o" || len(cancels) != 1 || cancels[0].Signature[0] != 2 {
		t.Fatal(answers, cancels, err)
	}
	if err := h.Judge(t.Context(), "q", "alice", "too late"); err != nil {
		t.Fatal(err)
	}
	if err := h.CloseQuestion(t.Context(), "alice", "q", json.RawMessage(`{"by": "b"}`)); err != nil {
		t.Fatal(err)
	}
	given, end, err := h.Verdict(t.Context(), "q", "alice")
	if err != nil || given.Verdict == nil || *given.Verdict != "too late" || end == nil {
		t.Errorf(`got %v, %v, %v; want err == nil && given.Verdict != nil && *given.Verdict == "too late" && end != nil`,
			given, end, err)
	}
	if answers, _, err = h.Pulse(t.Context(), worker); err != nil || len(answers) != 0 {
		t.Errorf("got %v, %v; want err == nil && len(answers) == 0", answers, err)
	}
	if workers, now, err := h.Workers(t.Context()); err != nil || len(workers) != 1 ||
		now.Sub(workers[0].Heard) > time.Minute || workers[0].Labels[0] != "gpu" {
		t.Error(workers, err)
	}
}
