package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestRemoteApply kills a primary with remote_apply and a named standby. The promoted standby lacks
// no acknowledged submission.
func TestRemoteApply(t *testing.T) {
	old := hubtest.Start(t, "synchronous_commit=remote_apply")
	h := open(t, old.URL("owner", "postgres"))
	found(t, h, "alice")
	standby := old.Backup(t, true)
	standby.Run(t)
	old.AwaitReplayed(t, standby)
	old.SQL(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	old.SQL(t, "postgres", "SELECT pg_reload_conf()")
	for old.SQL(t, "postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
	}
	var mu sync.Mutex
	var acknowledged []string
	enough := make(chan struct{})
	var all sync.WaitGroup
	for i := range 3 {
		sender := open(t, old.URL("owner", "postgres"))
		all.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d", i, n)
				if _, err := sender.Submit(context.Background(), "g1", []Input{newInput(id, "x")}); err != nil {
					return // the server is gone
				}
				mu.Lock()
				if acknowledged = append(acknowledged, id); len(acknowledged) == 60 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	old.Kill()
	all.Wait()
	standby.Promote(t)
	after := open(t, standby.URL("owner", "postgres"))
	digests, err := after.Find(t.Context(), acknowledged)
	if err != nil || len(digests) != len(acknowledged) {
		t.Errorf("%d of %d are there: %v", len(digests), len(acknowledged), err)
	}
}

// claimBy claims one input with another statement.
func claimBy(t testing.TB, h *Hub, sql string) (ids []string) {
	t.Helper()
	err := h.do(t.Context(), func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, sql, claimArgs()...)
		if err != nil {
			return err
		}
		claims, err := readTaken(rows)
		for _, c := range claims {
			ids = append(ids, c.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// without returns the statement of a claim with one part replaced.
func without(t testing.TB, old, instead string) string {
	t.Helper()
	if strings.Count(claimSQL, old) != 1 {
		t.Fatalf("a claim has no %q", old)
	}
	return strings.Replace(claimSQL, old, instead, 1)
}

// TestServerControls removes parts of a claim, one after another. On a real server an input then gets two owners, so
// each part is needed.
func TestServerControls(t *testing.T) {
	old := hubtest.Start(t)
	h := open(t, old.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"), newInput("b", "x"))
	standby := old.Backup(t, true)
	standby.Run(t)
	old.AwaitReplayed(t, standby)
	standby.Kill()
	standby.Cut()
	if got := claimed(t, h, 1); len(got) != 1 || got[0] != "a" {
		t.Fatalf(`got %v; want len(got) == 1 && got[0] == "a"`, got)
	}
	standby.Run(t)
	standby.Promote(t)
	after := open(t, standby.URL("owner", "postgres"))

	// Without the comparison of the server's identity, a claim would take the input a second time.
	if _, err := after.Claim(t.Context(), worker, 1, nil); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("the claim as it is: %v", err)
	}
	if got := claimBy(t, after, without(t, "AND g.system = here.system AND g.timeline = here.timeline",
		"")); len(got) != 1 || got[0] != "a" {
		t.Errorf("not compared: %v, which the old primary gave out", got)
	}

	// Without the comparison of the generation, a claim would take inputs that an adoption left in the queue.
	if _, err := after.Adopt(t.Context(), "g2", "alice", false); err != nil {
		t.Fatal(err)
	}
	for _, generation := range []string{"g1", "g2"} { // the claim runs once for each generation in the queue
		standby.SQL(t, "postgres",
			`DELETE FROM perlica.queue; INSERT INTO perlica.queue (input, generation, sender, lane, priority, ready) VALUES ('b', '`+generation+`', 'alice', E'p\n\n', 0, true)`)
		if got := claimed(t, after, 1); len(got) != 0 {
			t.Errorf("the claim as it is takes %v", got)
		}
	}
	opened := without(t, "AND NOT EXISTS (SELECT FROM perlica.closings s WHERE s.input = i.id AND s.kind <> 'resolved')",
		"")
	if got := claimBy(t, after, opened); len(got) != 0 {
		t.Errorf("also where it is closed: %v", got)
	}
	if got := claimBy(t, after, strings.Replace(opened, "i.generation = (SELECT name FROM here) AND", "",
		1)); len(got) != 1 || got[0] != "b" {
		t.Errorf("of any generation: %v, which was closed", got)
	}

	// This claim keeps the taken input in the queue. Only the key of the claims protects it, and
	// without the key nothing does.
	kept := strings.Replace(without(t, "DELETE FROM perlica.queue q", "SELECT q.input FROM perlica.queue q"),
		"RETURNING q.input\n", "\n", 1)
	if first, second := claimBy(t, h, kept), claimBy(t, h, kept); len(first) != 1 || len(second) != 0 {
		t.Errorf("with the key: %v, then %v", first, second)
	}
	old.SQL(t, "postgres", "ALTER TABLE perlica.claims DROP CONSTRAINT claims_pkey CASCADE")
	if again := claimBy(t, h, kept); len(again) != 1 || again[0] != "b" {
		t.Errorf("without the key: %v", again)
	}
	if n := old.SQL(t, "postgres", "SELECT count(*) FROM perlica.claims WHERE input = 'b'"); n != "2" {
		t.Errorf("%s owners", n)
	}
}

// TestRoundTrips checks that a claim, its text and its report take at most six exchanges with the
// hub.
func TestRoundTrips(t *testing.T) {
	s := hubtest.Start(t)
	p := hubtest.NewProxy(t, s)
	h := open(t, p.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"), newInput("b", "x"), newInput("c", "x"))
	answer(t, h) // the first claim also prepares the statements, so it is not counted
	before := p.Trips()
	answer(t, h)
	answer(t, h)
	if n := p.Trips() - before; n < 2 || n > 12 {
		t.Errorf("%d round trips for two inputs", n)
	} else {
		t.Logf("%d round trips for two inputs", n)
	}
}
