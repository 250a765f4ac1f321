package team

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestEditedHub checks that verification finds every edit of a copy's rows, even by a superuser.
func TestEditedHub(t *testing.T) {
	s, db := hubtest.Shared(t)
	_, alice := founded(t, s, db)
	fill(t, alice, 20, []byte("line"))
	if _, err := alice.Log().Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	isWhole(t, alice)
	kept, _, err := alice.Log().NewestCheckpoint(t.Context(), 0, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{
		"a payload":         "UPDATE perlica.events SET payload = 'never' WHERE seq = 9",
		"a payload removed": "UPDATE perlica.events SET payload = NULL WHERE seq = 9",
		"a header":          "UPDATE perlica.events SET header = set_byte(header, 40, 65) WHERE seq = 9",
		"a leaf":            "UPDATE perlica.events SET leaf = sha256('x') WHERE seq = 9",
		"a leaf cut":        "UPDATE perlica.events SET leaf = '' WHERE seq = 9",
		"an event deleted":  "DELETE FROM perlica.events WHERE seq = 9",
		"renumbered": "DELETE FROM perlica.events WHERE seq = 9; UPDATE perlica.events SET seq = -seq + 1 WHERE seq > 9; UPDATE " +
			"perlica.events SET seq = -seq WHERE seq < 0",
		"swapped": "UPDATE perlica.events SET seq = CASE seq WHEN 9 THEN -10 ELSE -9 END WHERE seq IN (9, 10); UPDATE " +
			"perlica.events SET seq = -seq WHERE seq < 0",
		"the end":          "DELETE FROM perlica.events WHERE seq > 9",
		"all of it":        "DELETE FROM perlica.events; DELETE FROM perlica.checkpoints",
		"a checkpoint":     "UPDATE perlica.checkpoints SET note = translate(note, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'BCDEFGHIJKLMNOPQRSTUVWXYZA')",
		"from another log": "UPDATE perlica.logs SET origin = 'perlica/another'",
	} {
		t.Run(name, func(t *testing.T) {
			edited, err := hub.Open(s.URL("owner", db))
			if err != nil {
				t.Fatal(err)
			}
			defer edited.Close()
			s.SQL(t, db,
				"CREATE SCHEMA kept; CREATE TABLE kept.e AS TABLE perlica.events; CREATE TABLE kept.c AS TABLE "+
					"perlica.checkpoints; CREATE TABLE kept.l AS TABLE perlica.logs; "+sql)
			defer s.SQL(t, db, `DELETE FROM perlica.events; DELETE FROM perlica.checkpoints; DELETE FROM perlica.logs;
				INSERT INTO perlica.events TABLE kept.e; INSERT INTO perlica.checkpoints TABLE kept.c; INSERT INTO perlica.logs TABLE kept.l; DROP SCHEMA kept CASCADE`)
			opt := verify.Options{Since: &kept}
			if strings.HasPrefix(name, "from") {
				opt.Since = nil
			}
			if rep := verified(t, edited, alice, opt); rep.OK() {
				t.Errorf("not found: %+v", rep)
			}
		})
	}
	isWhole(t, alice)
}

// TestRestoredHub checks a hub that was restored from yesterday's backup. It has the whole copy
// again after the worker's next send.
func TestRestoredHub(t *testing.T) {
	s := hubtest.Start(t)
	m, alice := founded(t, s, "postgres")
	fill(t, alice, 20, []byte("line"))
	if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	yesterday := s.Backup(t, false)
	submit(t, alice, asks("a", "@say One"))
	drain := m.work(t, alice, 1)
	ended(t, alice, "a", nil)
	drain()
	isWhole(t, alice)
	if err := alice.Close(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	yesterday.Restore(t)
	m.opt.URL = yesterday.URL("owner", "postgres")
	again := m.open(t)
	if _, err := again.Adopt(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	size, _, err := again.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rep := verified(t, again.Hub, again, verify.Options{}); rep.Events >= size {
		t.Fatalf("the backup has all: %+v", rep)
	}
	submit(t, again, asks("b", "@say Two"))
	drain = m.work(t, again, 1)
	ended(t, again, "b", nil)
	drain()
	isWhole(t, again)
}

// TestPruningReachesTheCopy checks that content pruned from the log is also removed from its copy,
// the inputs, the results and the questions.
func TestPruningReachesTheCopy(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	submit(t, alice,
		asks("a", "@ask execute \"Tell a secret\" command=make\n@tool execute \"Tell a secret\" command=make\n@say a secret"),
		asks("b", "@say another"), asks("c", `@error -32603 "a secret"`))
	drain := m.work(t, alice, 1)
	ended(t, alice, "a", func(_ hub.Status, open []hub.Question) {
		for _, q := range open {
			var asked interaction.Question
			if err := json.Unmarshal(q.Question, &asked); err != nil {
				t.Error(err)
			}
			no, _ := asked.First("reject_once")
			if err := alice.Answer(t.Context(), q, interaction.Answer{Option: no.ID, Text: "secret"}); err != nil {
				t.Error(err)
			}
		}
	})
	ended(t, alice, "b", nil)
	ended(t, alice, "c", nil)
	drain()
	found := func() string {
		return s.SQL(t, db,
			`SELECT (SELECT count(*) FROM perlica.events WHERE convert_from(payload, 'UTF8') LIKE '%a secret%'),
			(SELECT count(*) FROM perlica.payloads WHERE convert_from(bytes, 'UTF8') LIKE '%secret%'), (SELECT count(*) FROM perlica.outcomes WHERE result::text LIKE '%secret%'),
			(SELECT count(*) FROM perlica.questions WHERE question::text LIKE '%secret%'), (SELECT count(*) FROM perlica.answers WHERE text LIKE '%secret%')`)
	}
	if n := found(); strings.HasPrefix(n, "0|") || !strings.HasSuffix(n, "|2|2|1|1") {
		t.Fatal(n)
	}
	for _, input := range []event.InputID{"a", "c"} {
		intent, _, err := alice.Log().Last(t.Context(), event.Query{Types: []event.Type{event.Requested}, Input: input})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := alice.Log().Prune(t.Context(), event.Pruning{Until: 1 << 40, Run: intent.Run, By: "alice"}); err != nil {
			t.Fatal(err)
		}
	}
	m.work(t, alice, 1)()
	if n := found(); n != "0|0|0|0|0" {
		t.Errorf("left: %s", n)
	}
	if rep := isWhole(t, alice); rep.Pruned == 0 {
		t.Errorf("%+v", rep)
	}
	if n := s.SQL(t, db, "SELECT count(*) FROM perlica.payloads"); n != "1" {
		t.Errorf("%s of the three inputs are left", n)
	}
}

// TestCopyResumes checks that a repeatedly interrupted copy finally equals the log.
func TestCopyResumes(t *testing.T) {
	s := hubtest.Start(t)
	_, alice := founded(t, s, "postgres")
	fill(t, alice, 6000, bytes.Repeat([]byte("x"), 1000))
	fill(t, alice, 3, bytes.Repeat([]byte("y"), 3<<20))
	own, err := hub.Open(alice.opt.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	sender := hub.NewCopySender(own, &alice.Log().Reader, "alice")
	cuts := 0
	for i := range 6 {
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		go func() { done <- sender.Send(ctx) }()
		from := fmt.Sprint(i * 900)
		until(t, "something more is there, or it is all done", func() bool {
			n, err := s.Try("owner", "postgres", "SELECT count(*) > "+from+
				" FROM pg_stat_activity, perlica.events WHERE state = 'active' AND application_name = 'perlica'")
			return len(done) > 0 || err == nil && n == "t"
		})
		s.Kill()
		if err := <-done; err != nil {
			cuts++
		}
		s.Run(t)
	}
	// The first call fails, because it finds the broken connection.
	until(t, "all of it is there", func() bool { return sender.Send(t.Context()) == nil })
	_, _ = alice.Hub.Look(t.Context()) // this call also finds its broken connection
	isWhole(t, alice)
	if cuts == 0 {
		t.Error("it was never cut off")
	}
	t.Logf("cut off %d times", cuts)
}
