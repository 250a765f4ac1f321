package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestLeavesAmidWork checks a worker at the end of its membership. The worker finishes its call, takes no further
// input, and ends.
func TestLeavesAmidWork(t *testing.T) {
	s, db := hubtest.Shared(t)
	_, alice := founded(t, s, db)
	s.SQL(t, db, "CREATE ROLE bob_"+db+" LOGIN IN ROLE perlica_member")
	m, bob := member(t, alice, s.URL("bob_"+db, db), "bob", access.Ask)
	// The second slot stays free, so the worker looks for inputs during its call.
	w, err := NewWorker(t.Context(), bob, WorkerOptions{Slots: 2, Projects: map[string]string{"website": m.dir},
		Note: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- w.Run(t.Context(), context.Background()) }()
	submit(t, alice, asks("long", "@sleep 2s\n@say On"))
	until(t, "the call is under way", func() bool { return calls(t, bob, "long") == 1 })
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	submit(t, alice, asks("next", "@say Next"))
	if left, err := alice.Hub.Owned(t.Context(), "bob"); err != nil || len(left) != 1 || left[0].ID != "long" {
		t.Errorf("what it leaves: %v, %v", left, err)
	}
	if err := <-over; !errors.Is(err, errGone) {
		t.Errorf("it ended with %v", err)
	}
	if res, ok, err := bob.r.Recorded(t.Context(), "long"); !ok || err != nil || res.Outcome != record.OutcomeResponded ||
		calls(t, bob, "next") != 0 {
		t.Errorf("its call: %v, %v, %v", res.Outcome, ok, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestLeavesAmidWait checks that a member that leaves while it waits for an input is told so.
func TestLeavesAmidWait(t *testing.T) {
	s, db := hubtest.Shared(t)
	_, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Ask)
	submit(t, bob, asks("waits", "@say On"))
	live, err := bob.Live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live.Look = func(hub.Status, []hub.Question) {}
	over := make(chan error, 1)
	go func() {
		_, err := live.Wait(t.Context(), "waits")
		over <- err
	}()
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; !errors.Is(err, errGone) {
		t.Error(err)
	}
}

// TestJoin checks names, keys and their confirmation.
func TestJoin(t *testing.T) {
	s, db := hubtest.Shared(t)
	_, alice := founded(t, s, db)
	url := s.URL("owner", db)
	m := newMachine(t, url)
	if _, err := Open(t.Context(), m.opt); !errors.Is(err, errNotJoined) {
		t.Errorf("before it joined: %v", err)
	}
	bob := m.join(t, "bob", false)
	if _, err := Open(t.Context(), m.opt); !errors.Is(err, errNotConfirmed) {
		t.Errorf("before it is confirmed: %v", err)
	}
	if _, _, err := Join(t.Context(), newMachine(t, url).opt, "bob"); !errors.Is(err, errTaken) {
		t.Errorf("a second machine that asks under the name: %v", err)
	}
	if err := alice.Confirm(t.Context(), "bob", alice.Key, access.Rights{access.Ask}); err == nil {
		t.Error("confirmed with another key than the one that asks")
	}
	if err := bob.Confirm(t.Context(), "bob", bob.Key, access.Rights{access.Admin}); err == nil {
		t.Error("confirmed itself")
	}
	if err := alice.Confirm(t.Context(), "bob", bob.Key, access.Rights{access.Ask}); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), m.opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Join(t.Context(), newMachine(t, url).opt, "bob"); !errors.Is(err, errTaken) {
		t.Errorf("a second machine under a member's name: %v", err)
	}
	for _, name := range []string{"", "Bob", "bob smith", "böb", "bob\nkey x", strings.Repeat("b", 64)} {
		if _, _, err := Join(t.Context(), m.opt, name); err == nil {
			t.Errorf("the name %q", name)
		}
	}
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), m.opt); !errors.Is(err, errGone) {
		t.Errorf("after it left: %v", err)
	}
	back, confirmed, err := Join(t.Context(), m.opt, "bob")
	if err != nil || confirmed {
		t.Fatal("it asks again:", confirmed, err)
	}
	defer func() { _ = back.Close() }() // nothing further is written
	if err := alice.Confirm(t.Context(), "bob", back.Key, access.Rights{access.Ask}); err != nil {
		t.Fatal(err)
	}
	if again, err = Open(t.Context(), m.opt); err != nil {
		t.Fatal("confirmed again:", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	// This database has a team with the same name, but it is another team.
	other := s.Database(t)
	opt := newMachine(t, s.URL("owner", other)).opt
	if _, _, err := Init(t.Context(), opt, "team"); err != nil {
		t.Fatal(err)
	}
	moved := m.opt
	moved.URL = opt.URL
	if _, err := Open(t.Context(), moved); !errors.Is(err, errOtherTeam) {
		t.Errorf("another hub of the same name: %v", err)
	}
}

// TestPins checks that the log remembers a member that the hub has forgotten.
func TestPins(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Ask)
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	s.SQL(t, db, "DELETE FROM perlica.members WHERE gone") // as after a restored backup
	submitted, err := bob.signDraft(&Draft{ID: "a", Text: "x", Project: "website"}, bob.State().Generation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Hub.Submit(t.Context(), submitted.Generation, []hub.Input{submitted}); err != nil {
		t.Fatal(err)
	}
	m.work(t, alice, 1)
	if st := ended(t, alice, "a", nil); st.State != hub.Refused {
		t.Error(st.State)
	}
	var kept []string
	for e, err := range alice.Log().Events(t.Context(), event.Query{Types: []event.Type{event.TeamMember}}) {
		var p fact.TeamMember
		if err != nil || e.Decode(&p) != nil {
			t.Fatal(err)
		}
		kept = append(kept, fmt.Sprint(p.Name, " ", p.Version, " ", p.Gone))
	}
	if want := []string{"alice 1 false", "bob 1 false", "bob 2 true"}; !slices.Equal(kept, want) {
		t.Error(kept)
	}
}

// TestLeaveIsTheLastWord checks an unsigned statement that an admin's password inserted. It does
// not preserve a member's role.
func TestLeaveIsTheLastWord(t *testing.T) {
	s, db := hubtest.Shared(t)
	_, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Ask)
	s.SQL(t, db,
		"INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature) VALUES ('bob', 7, 'k', "+
			"'{}', false, '"+bob.State().Login+"', 'bob', '')")
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if m, _ := alice.member("bob"); !m.Gone || m.Version != 8 {
		t.Errorf("%+v", m)
	}
	if left := s.SQL(t, db, "SELECT name FROM perlica.logins WHERE name = 'bob'"); left != "" {
		t.Error("its role is still a member's")
	}
}
