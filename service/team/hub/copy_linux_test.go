package hub

import (
	"errors"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestCopyRoles checks that a member's password permits no write to another member's copy. In its
// own copy, the member can only remove payloads.
func TestCopyRoles(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	if err := h.MakeSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	roles := map[string]*Hub{}
	for _, name := range []string{"alice", "bob"} {
		role := name + "_" + db
		s.SQL(t, db, "CREATE ROLE "+role+" LOGIN IN ROLE perlica_member")
		roles[name] = open(t, s.URL(role, db))
		if err := h.State(t.Context(), Member{Name: name, Version: 1, Key: "key", Rights: access.Rights{}, Login: role,
			Signature: []byte{}}); err != nil {
			t.Fatal(err)
		}
	}
	one := []event.Event{{Seq: 1, Payload: []byte("said")}}
	if _, err := enrol(t.Context(), roles["alice"], "alice", "perlica/a", false); err != nil {
		t.Fatal(err)
	}
	batch := Batch{Worker: "alice", Events: one, Checkpoints: []evidence.Checkpoint{{Size: 1, Note: "n"}}}
	if err := AppendCopy(t.Context(), roles["alice"], batch); err != nil {
		t.Fatal(err)
	}
	if err := AppendCopy(t.Context(), roles["alice"], batch); !errors.Is(err, errMoved) {
		t.Errorf("twice: %v", err)
	}
	gap := Batch{Worker: "alice", Size: 5, Events: []event.Event{{Seq: 6}},
		Checkpoints: []evidence.Checkpoint{{Size: 6, Note: "n"}}}
	err := AppendCopy(t.Context(), roles["alice"], gap)
	if !errors.Is(err, errMoved) || s.SQL(t, db, "SELECT max(size) FROM perlica.checkpoints") != "1" {
		t.Errorf("behind events that a hub lost: %v", err)
	}
	if _, err := enrol(t.Context(), roles["alice"], "alice", "perlica/b", false); !errors.Is(err, ErrOtherLog) {
		t.Errorf("another log under the name: %v", err)
	}
	if _, err := enrol(t.Context(), roles["bob"], "bob", "perlica/a", false); !errors.Is(err, ErrOtherLog) {
		t.Errorf("the log under another name: %v", err)
	}
	_, err = enrol(t.Context(), roles["bob"], "carol", "perlica/c", false)
	for what, err := range map[string]error{
		"a log": err,
		"an event": AppendCopy(t.Context(), roles["bob"],
			Batch{Worker: "alice", Size: 1, Events: []event.Event{{Seq: 2}}}),
		"a checkpoint": AppendCopy(t.Context(), roles["bob"],
			Batch{Worker: "alice", Size: 1, Checkpoints: []evidence.Checkpoint{{Size: 2, Note: "n"}}}),
		"a keeper's signature": cosign(t.Context(), roles["bob"], "alice", 1, "alice", "line"),
		"an event of no log":   AppendCopy(t.Context(), roles["bob"], Batch{Worker: "bob", Events: one}),
		"a checkpoint of no log": AppendCopy(t.Context(), roles["bob"],
			Batch{Worker: "bob", Checkpoints: []evidence.Checkpoint{{Size: 1, Note: "n"}}}),
	} {
		if !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s in another's name: %v", what, err)
		}
	}
	if err := cosign(t.Context(), roles["bob"], "alice", 1, "bob", "line"); err != nil {
		t.Error(err)
	}
	// These statements do not see other members' rows, so the rows stay.
	_, _ = s.Try("bob_"+db, db, "UPDATE perlica.events SET payload = NULL; UPDATE perlica.logs SET forked = 1")
	for _, sql := range []string{"UPDATE perlica.events SET payload = 'never'", "UPDATE perlica.events SET leaf = ''",
		"DELETE FROM perlica.events", "UPDATE perlica.checkpoints SET note = ''",
		"DELETE FROM perlica.cosignatures", "UPDATE perlica.logs SET origin = 'x'", "UPDATE perlica.logs SET forked = NULL",
		"TRUNCATE perlica.events"} {
		if _, err := s.Try("alice_"+db, db, sql); err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
	if n := s.SQL(t, db, "SELECT convert_from(payload, 'UTF8'), forked FROM perlica.events, perlica.logs"); n != "said|" {
		t.Errorf(`got %v; want n == "said|"`, n)
	}
	s.SQL(t, db, `
		INSERT INTO perlica.generations (name, system, timeline, by) VALUES ('g', 1, 't', '');
		INSERT INTO perlica.inputs (id, generation, sender, digest, project, provider, labels, permissions, priority, replaces, attachments, signature)
		VALUES ('i', 'g', 'bob', 'd', 'p', '', '{}', 'ask', 0, '', '[]', '');
		INSERT INTO perlica.payloads (input, part, piece, bytes) VALUES ('i', 0, 0, 'asked');
		INSERT INTO perlica.claims (input, worker, generation, position) VALUES ('i', 'alice', 'g', 1);
		INSERT INTO perlica.outcomes (input, worker, outcome, result, digest, signature)
		VALUES ('i', 'alice', 'responded', '{"run_id": "r", "text": "answered"}', '', '');
		INSERT INTO perlica.questions (id, input, worker, question, closed) VALUES ('q', 'i', 'alice', '{"title": "asked"}', '{"answer": {"text": "typed"}}');
		INSERT INTO perlica.answers (question, member, option, text, signature) VALUES ('q', 'bob', 'o', 'typed', '')`)
	left := func() string {
		return s.SQL(t, db,
			"SELECT (SELECT payload IS NULL FROM perlica.events), (SELECT count(*) FROM perlica.payloads), (SELECT result "+
				"->> 'text' FROM perlica.outcomes), (SELECT question::text || closed::text FROM perlica.questions), (SELECT "+
				"text FROM perlica.answers)")
	}
	_, _ = s.Try("bob_"+db, db,
		"DELETE FROM perlica.payloads; UPDATE perlica.outcomes SET result = '{}'; UPDATE perlica.questions SET question = "+
			"'{}'; UPDATE perlica.answers SET text = ''")
	if n := left(); n != `f|1|answered|{"title": "asked"}{"answer": {"text": "typed"}}|typed` {
		t.Errorf("another worker took out: %s", n)
	}
	if err := AppendCopy(t.Context(), roles["alice"], Batch{Worker: "alice", Size: 1, Gone: []int64{1},
		Inputs: []string{"i"}, Runs: []string{"r"}, Questions: []string{"q"}}); err != nil {
		t.Error(err)
	}
	if n := left(); n != "t|0||{}{}|" {
		t.Errorf("left: %s", n)
	}
	if err := ForkCopy(t.Context(), roles["alice"], "alice", 1); err != nil {
		t.Error(err)
	}
	if err := AppendCopy(t.Context(), roles["alice"], Batch{Worker: "alice", Size: 1,
		Events: []event.Event{{Seq: 2}}}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("behind a fork: %v", err)
	}
}
