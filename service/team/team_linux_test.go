package team

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestWork checks that inputs are answered, each on its worker's log with the claim before the
// intent.
func TestWork(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	d := asks("a", "@say One")
	d.Attachments = []File{{"notes.txt", []byte("content")}}
	submit(t, alice, d, asks("b", "@say Two"), asks("c", "@exit 3"))
	drain := m.work(t, alice, 2)
	for id, want := range map[string]string{"a": "responded One\nAttached", "b": "responded Two",
		"c": "outcome_unknown "} {
		st := ended(t, alice, id, nil)
		r, err := ResultOf(st)
		text, _, _ := strings.Cut(r.Text, ":")
		if got := st.State + " " + text; err != nil || got != want || st.Worker != "alice" {
			t.Errorf("%s: %q by %s, %v", id, got, st.Worker, err)
		}
		if res := r.Kernel(); string(res.Outcome) != st.State || res.Input != event.InputID(id) || res.Calls != 1 {
			t.Errorf("%+v", res)
		}
	}
	drain()
	for _, id := range []string{"a", "b", "c"} {
		var types []event.Type
		for e, err := range alice.Log().Events(t.Context(), event.Query{Input: event.InputID(id), Class: event.Fact}) {
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, e.Type)
		}
		if claimed, intent := slices.Index(types, event.TeamClaimed), slices.Index(types, event.Requested); claimed < 0 ||
			intent < claimed || calls(t, alice, id) != 1 {
			t.Errorf("%s: %v", id, types)
		}
	}
	if came, err := alice.Submit(t.Context(), []Draft{asks("b", "@say Two"), asks("b", "@say Three")}[:1]); err != nil ||
		came["b"] != hub.There {
		t.Error(came, err)
	}
	if came, err := alice.Submit(t.Context(), []Draft{asks("b", "@say Three")}); err != nil || came["b"] != hub.Differs {
		t.Error(came, err)
	}
}

// TestDrafts checks that a draft that cannot be signed is not submitted.
func TestDrafts(t *testing.T) {
	for name, d := range map[string]Draft{
		"no text": {Text: " ", Project: "p"}, "no project": {Text: "x"},
		"two lines in an id": {ID: "a\nsender bob", Text: "x", Project: "p"},
		"permissions":        {Text: "x", Project: "p", Permissions: "all"},
		"a label":            {Text: "x", Project: "p", Labels: []string{"a,b"}},
		"too large":          {Text: "x", Project: "p", Attachments: []File{{"f", make([]byte, MaxInput)}}},
		"NUL":                {Text: "a\x00", Project: "p"},
		"priority":           {Text: "x", Project: "p", Priority: 3_000_000_000},
	} {
		if d.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := (&Draft{Text: "x", Project: "p", Attachments: []File{{"f", make([]byte, 40<<20)}}}).Check(); err != nil {
		t.Errorf("40 MB: %v", err)
	}
}

// TestUnsigned checks that a row without the signature of a member with the right does not count.
func TestUnsigned(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Ask)
	_, carol := member(t, alice, s.URL("owner", db), "carol", access.Approve)
	_, dave := member(t, alice, s.URL("owner", db), "dave", access.Ask)
	submit(t, bob, asks("fine", "@say Fine"), asks("text", "@say Text"), asks("mode", "@say Mode"),
		asks("project", "@say P"), asks("replayed", "@say R"))
	if _, err := carol.Submit(t.Context(), []Draft{asks("right", "@say Right")}); !errors.Is(err, ErrNoRight) {
		t.Error(err)
	}
	right, err := carol.signDraft(&Draft{ID: "right", Text: "@say Right", Project: "website"}, carol.State().Generation)
	if err == nil {
		// Carol has no right to ask. She submits with another program, so no check on her machine refuses the input.
		_, err = carol.Hub.Submit(t.Context(), right.Generation, []hub.Input{right})
	}
	if err != nil {
		t.Fatal(err)
	}
	submit(t, dave, asks("left", "@say Left"))
	if err := alice.Leave(t.Context(), "dave"); err != nil {
		t.Fatal(err)
	}
	in, err := bob.signDraft(&Draft{ID: "forged", Text: "@say Forged", Project: "website"}, bob.State().Generation)
	if err != nil {
		t.Fatal(err)
	}
	in.Sender = "alice" // signed by bob
	if _, err := alice.Hub.Submit(t.Context(), in.Generation, []hub.Input{in}); err != nil {
		t.Fatal(err)
	}
	s.SQL(t, db, `
		UPDATE perlica.payloads SET bytes = '@say Other' WHERE input = 'text';
		UPDATE perlica.inputs SET permissions = 'allow' WHERE id = 'mode';
		UPDATE perlica.inputs SET signature = (SELECT signature FROM perlica.inputs WHERE id = 'fine') WHERE id = 'replayed';
		UPDATE perlica.inputs SET sender = 'nobody' WHERE id = 'project';`)
	// A person with a database password inserts a statement without a valid signature that makes bob an admin.
	if err := alice.Hub.State(t.Context(), hub.Member{Name: "bob", Version: 9, Key: bob.Key,
		Rights: access.Rights{access.Admin}, Login: bob.State().Login, Signer: "alice", Signature: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	m.work(t, alice, 2)
	for id, why := range map[string]string{
		"fine": "", "text": "not what its sender signed", "mode": "not signed by bob", "project": "no member",
		"replayed": "not signed by bob",
		"right":    "may not ask", "left": "has left", "forged": "not signed by alice",
	} {
		st := ended(t, alice, id, nil)
		r, err := ResultOf(st)
		if err != nil {
			t.Fatal(err)
		}
		want, n := hub.Refused, 0
		if why == "" {
			want, n = "responded", 1
		}
		if st.State != want || calls(t, alice, id) != n || why != "" && !strings.Contains(r.Error.Message, why) {
			t.Errorf("%s: %s, %d calls, %v", id, st.State, calls(t, alice, id), r.Error)
		}
	}
	if bob, _ := alice.member("bob"); bob.Version != 1 {
		t.Errorf("a statement that no admin signed is pinned: %+v", bob)
	}

	// Only the owner of an input, or a member with the right, can tell its outcome. A database role that may write is
	// not enough.
	open := asks("open", "@say Open")
	open.Labels = []string{"no-worker-has-it"}
	submit(t, bob, open)
	for _, forged := range []struct{ id, sql string }{
		{"fine", `UPDATE perlica.outcomes SET result = '{"text": "rm -rf /"}' WHERE input = 'fine'`},
		{"fine", `UPDATE perlica.outcomes SET result = '{"text": "", "pruned": true}', outcome = 'refused' WHERE input = 'fine'`},
		{"open", `INSERT INTO perlica.closings (input, kind, by, note, signature) VALUES ('open', 'resolved', 'bob', 'It is done.', 'x')`},
	} {
		s.SQL(t, db, forged.sql)
		if st, ok, err := bob.Status(t.Context(), forged.id); !ok || err != nil || st.State != hub.Claimed ||
			len(st.Result) > 0 || !strings.Contains(st.Note, "did not sign") {
			t.Errorf("after %s: %+v, %v", forged.sql, st, err)
		}
	}
	// A forged opinion blocks neither its member's own opinion nor an earlier one of another
	// member.
	if err := bob.Resolve(t.Context(), "open", "It burnt."); err != nil {
		t.Fatal(err)
	}
	s.SQL(t, db,
		`INSERT INTO perlica.closings (input, kind, by, note, signature, at) VALUES ('open', 'resolved', 'alice', 'No.', 'x', now() + interval '1 minute')`)
	if st, _, err := alice.Status(t.Context(), "open"); err != nil || st.State != hub.Resolved || st.By != "bob" ||
		st.Note != "It burnt." {
		t.Errorf("%+v, %v", st, err)
	}
	s.SQL(t, db,
		`UPDATE perlica.outcomes SET result = '{"text": "rm -rf /", "pruned": true, "run_id": "rm"}', outcome = 'responded' WHERE input = 'fine'`)
	if st, _, err := bob.Status(t.Context(), "fine"); err != nil || st.State != "responded" ||
		!bytes.Contains(st.Result, []byte(`"pruned":true`)) || bytes.Contains(st.Result, []byte(`"rm`)) {
		t.Errorf("as if it were pruned: %+v %s, %v", st, st.Result, err)
	}
	if err := bob.Resolve(t.Context(), "mode", "No."); err != nil {
		t.Fatal(err)
	}
}

// TestOtherProjectsSession checks a worker that serves two projects. An input of one project cannot
// continue a session of the other.
func TestOtherProjectsSession(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	drain := m.work(t, alice, 1)
	submit(t, alice, asks("one", "@say One"))
	first, err := ResultOf(ended(t, alice, "one", nil))
	if err != nil {
		t.Fatal(err)
	}
	drain()
	m.serve(t, alice, WorkerOptions{Slots: 1, Projects: map[string]string{"other": m.dir}})
	submit(t, alice, Draft{ID: "two", Text: "@say Two", Project: "other", Worker: "alice",
		Session: event.SessionID(first.SessionID)})
	st := ended(t, alice, "two", nil)
	if r, err := ResultOf(st); err != nil || st.State != hub.Refused ||
		!strings.Contains(r.Error.Message, "is not one of the project other") {
		t.Errorf("%+v, %v", st, err)
	}
}

// firstQuestion waits for a question about an input. It returns the question and a channel of the
// input's end.
func firstQuestion(t *testing.T, who *Team, id string) (hub.Question, <-chan hub.Status) {
	t.Helper()
	questions, over := make(chan hub.Question, 1), make(chan hub.Status, 1)
	go func() {
		over <- ended(t, who, id, func(_ hub.Status, open []hub.Question) {
			if len(open) > 0 {
				select {
				case questions <- open[0]:
				default:
				}
			}
		})
	}()
	select {
	case q := <-questions:
		return q, over
	case st := <-over:
		t.Fatalf("it ended without a question: %+v", st)
	}
	return hub.Question{}, nil
}

// TestAnswers checks that the first answer of a member with the right counts on the worker's log.
// Other answers learn the reason.
func TestAnswers(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	url := s.URL("owner", db)
	_, bob := member(t, alice, url, "bob", access.Approve)
	_, carol := member(t, alice, url, "carol", access.Ask)
	m.work(t, alice, 1)
	submit(t, carol, asks("a", "@ask execute Build command=make"))
	q, over := firstQuestion(t, carol, "a")
	var question interaction.Question
	if err := json.Unmarshal(q.Question, &question); err != nil {
		t.Fatal(err)
	}
	yes, _ := question.First("allow_once")
	if err := carol.Answer(t.Context(), q, interaction.Answer{Option: yes.ID}); !errors.Is(err, ErrNoRight) {
		t.Errorf("without the right: %v", err)
	}
	// Anybody with a database password can write these rows, so the worker must refuse them.
	for _, a := range []hub.Answer{{Question: q.ID, Member: "carol", Option: yes.ID, Signature: []byte("x")},
		{Question: q.ID, Member: "alice", Option: yes.ID, Signature: []byte("x")}} {
		if _, err := alice.Hub.Propose(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"carol": "may not approve", "alice": "not signed by alice"} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		for {
			given, _, err := carol.Hub.Verdict(ctx, q.ID, name)
			if err != nil {
				t.Fatal(err)
			}
			if given.Verdict != nil {
				if !strings.Contains(*given.Verdict, want) {
					t.Errorf("%s: %q", name, *given.Verdict)
				}
				break
			}
		}
	}
	if err := bob.Answer(t.Context(), q, interaction.Answer{Option: yes.ID}); err != nil {
		t.Fatal(err)
	}
	st := <-over
	if r, err := ResultOf(st); err != nil || r.Permissions.Allowed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var uncounted *UncountedError
	if err := bob.Answer(t.Context(), q, interaction.Answer{Option: yes.ID}); err != nil { // the answer that counted
		t.Error(err)
	}
	if err := alice.Answer(t.Context(), q, interaction.Answer{Option: yes.ID}); !errors.As(err, &uncounted) {
		t.Errorf("an answer that came too late: %v", err)
	}
	e, ok, err := alice.Log().Last(t.Context(), event.Query{Types: []event.Type{event.InteractionAnswered}})
	if err != nil || !ok || !strings.Contains(string(e.Payload), `"by":"bob","where":"team"`) ||
		!strings.Contains(string(e.Payload), bob.Key) {
		t.Errorf("on record: %s, %v", e.Payload, err)
	}
}

// TestForgedQuestion checks that an answer counts only for the question that was seen. If a
// superuser of the database changes the question, the worker accepts no answer to the changed one.
func TestForgedQuestion(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Ask, access.Approve)
	m.work(t, alice, 1)
	submit(t, bob, asks("a", "@ask execute Build command=make"))
	asked, over := firstQuestion(t, bob, "a")
	var question interaction.Question
	if err := json.Unmarshal(asked.Question, &question); err != nil {
		t.Fatal(err)
	}
	yes, _ := question.First("allow_once")
	s.SQL(t, db, `UPDATE perlica.questions SET question = replace(question::text, '"make"', '"make clean"')::json`)
	list, err := bob.Hub.Questions(t.Context(), "", "a")
	if err != nil || len(list) != 1 || !strings.Contains(string(list[0].Question), `"make clean"`) {
		t.Fatalf("%s, %v", list, err)
	}
	var uncounted *UncountedError
	if err := bob.Answer(t.Context(), list[0], interaction.Answer{Option: yes.ID}); !errors.As(err, &uncounted) ||
		!strings.Contains(uncounted.Error(), "not signed by bob for this question as it was asked") {
		t.Errorf("a yes to the forged question: %v", err)
	}
	// A question does not count if its worker does not own the input.
	s.SQL(t, db, `INSERT INTO perlica.questions (id, input, worker, question) VALUES ('x', 'a', 'bob', '{"id":"x"}')`)
	if list, err := bob.Hub.Questions(t.Context(), "", "a"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	stranger := asked
	stranger.Worker = "nobody"
	if err := bob.Answer(t.Context(), stranger, interaction.Answer{Option: yes.ID}); err == nil ||
		!strings.Contains(err.Error(), "not a member") {
		t.Errorf("a question of a worker that is not known: %v", err)
	}
	if err := alice.Answer(t.Context(), asked, interaction.Answer{Option: yes.ID}); err != nil {
		t.Error(err)
	}
	if r, err := ResultOf(<-over); err != nil || r.Permissions.Allowed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	e, ok, err := alice.Log().Last(t.Context(), event.Query{Types: []event.Type{event.InteractionAnswered}})
	if err != nil || !ok || !strings.Contains(string(e.Payload), `"digest":"`+asked.Digest()+`"`) {
		t.Errorf("on record: %s, %v", e.Payload, err)
	}
}

// TestStops checks that members with the right withdraw a waiting input and stop a running one.
func TestStops(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	_, bob := member(t, alice, s.URL("owner", db), "bob", access.Approve)
	submit(t, alice, asks("waits", "@say x"))
	if _, err := bob.Cancel(t.Context(), "waits", "test", ""); !errors.Is(err, ErrNoRight) {
		t.Error(err)
	}
	if withdrawn, err := alice.Cancel(t.Context(), "waits", "test", ""); !withdrawn || err != nil {
		t.Fatal(withdrawn, err)
	}
	m.work(t, alice, 1)
	submit(t, alice, asks("runs", "@hang"))
	stopped := false
	st := ended(t, alice, "runs", func(s hub.Status, _ []hub.Question) {
		if s.State == hub.Claimed && !stopped && calls(t, alice, "runs") == 1 {
			stopped = true
			if err := bob.Hub.PutCancel(t.Context(), hub.Cancel{Input: "runs", Member: "bob",
				Signature: []byte("x")}); err != nil {
				t.Error(err)
			}
			if withdrawn, err := alice.Cancel(t.Context(), "runs", "test", ""); withdrawn || err != nil {
				t.Error(withdrawn, err)
			}
		}
	})
	if r, err := ResultOf(st); err != nil || r.Stopped == nil || r.Stopped.Why != "stopped by alice" {
		t.Errorf("%+v, %v", r, err)
	}
	if n := calls(t, alice, "waits"); n != 0 {
		t.Error("withdrawn and called")
	}
}

// TestCapped checks that an input's permissions are never looser than the worker's.
func TestCapped(t *testing.T) {
	for _, c := range [][3]string{{"allow", "ask", "ask"}, {"deny", "allow", "deny"}, {"", "reads", "reads"},
		{"reads", "reads", "reads"}, {"ask", "reads", "ask"}, {"all", "deny", "deny"}} {
		if got := fmt.Sprint(capped(c[0], policyMode(c[1]))); got != c[2] {
			t.Errorf("%s at a worker of %s: %s", c[0], c[1], got)
		}
	}
}

// TestForgedStop checks that an unsigned request to stop an input is reported once, however often
// it is read.
func TestForgedStop(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	notes := 0
	w, err := NewWorker(t.Context(), alice, WorkerOptions{Slots: 1, Projects: map[string]string{"website": m.dir},
		Note: func(string) { notes++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // nothing was written
	stop := make(chan fact.Stop, 1)
	w.running["a"] = stop
	for range 3 {
		w.stopInput(hub.Cancel{Input: "a", Member: "alice", Signature: []byte("x")})
	}
	if notes != 1 || len(stop) != 0 {
		t.Errorf("%d notes, %d stops", notes, len(stop))
	}
}
