package team

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// checkpointed puts lines and a checkpoint on a worker's log and copies the log to the hub.
func checkpointed(t testing.TB, j *Team, events int) {
	t.Helper()
	fill(t, j, events, []byte("line"))
	if _, err := j.Log().Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := hub.NewCopySender(j.Hub, &j.Log().Reader, j.As).Send(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func keeper(t testing.TB, j *Team) *hub.Keeper {
	t.Helper()
	k, err := j.Keeper(t.Context(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// round runs a keeper's round over one copy.
func round(t testing.TB, k *hub.Keeper, whole bool) hub.Verdict {
	t.Helper()
	list, err := k.Round(t.Context(), whole)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

// kept returns a team of alice, a worker, and bob, a keeper.
func kept(t *testing.T) (s *hubtest.Server, db string, alice, bob *Team) {
	t.Helper()
	s, db = hubtest.Shared(t)
	_, alice = founded(t, s, db)
	_, bob = member(t, alice, s.URL("owner", db), "bob", access.Ask)
	checkpointed(t, alice, 30)
	return s, db, alice, bob
}

// TestKeeper checks that a sound copy is cosigned, first on the keeper's own log. The keeper reads
// only new events and cosigns nothing twice. It sends a lost cosignature again.
func TestKeeper(t *testing.T) {
	s, db, alice, bob := kept(t)
	k := keeper(t, bob)
	v := round(t, k, true)
	size := v.Size
	if v.Problem != "" || v.Signed != size || v.Cosigned != size || v.Absent != 0 {
		t.Fatalf("%+v", v)
	}
	e, ok, err := bob.Log().Last(t.Context(), event.Query{Types: []event.Type{event.TeamCosigned}})
	if err != nil || !ok || !strings.Contains(string(e.Payload), `"worker":"alice"`) {
		t.Errorf("on record: %s, %v", e.Payload, err)
	}
	if v = round(t, k, false); v.Problem != "" || v.Absent != size || v.Events != 0 {
		t.Errorf("nothing new: %+v", v)
	}
	checkpointed(t, alice, 5)
	if v = round(t, k, false); v.Problem != "" || v.Absent != size || v.Events != 5 || v.Cosigned != size+5 {
		t.Errorf("what is new: %+v", v)
	}
	s.SQL(t, db, "DELETE FROM perlica.cosignatures")
	k = keeper(t, bob)
	if v = round(t, k, true); v.Problem != "" || v.Cosigned != size+5 {
		t.Errorf("%+v", v)
	}
	if v = round(t, k, true); v.Copy.Cosigned != size+5 || len(v.Report.Cosigned) != 1 ||
		v.Report.Cosigned[0].Size != size+5 || time.Since(v.Report.Cosigned[0].Time) > limit {
		t.Errorf("sent again: %+v", v)
	}
	if n, err := bob.Log().Count(t.Context(), event.Query{Types: []event.Type{event.TeamCosigned}}); n != 2 || err != nil {
		t.Errorf("cosigned %d times, %v", n, err)
	}
	// Alice's keeper verifies the copy of her own log, but does not cosign it.
	if v = round(t, keeper(t, alice), true); v.Problem != "" || v.Cosigned != 0 {
		t.Errorf("her own: %+v", v)
	}
}

// TestKeeperFindsEdits checks an edited event, a copy that lost its end, and another history with
// the worker's own signature. The keeper does not cosign these copies.
func TestKeeperFindsEdits(t *testing.T) {
	s, db, alice, bob := kept(t)
	k := keeper(t, bob)
	size := round(t, k, true).Size

	s.SQL(t, db, "UPDATE perlica.events SET payload = 'never' WHERE seq = 9")
	if v := round(t, k, true); !strings.Contains(v.Problem, "edited") || v.FirstBad != 9 {
		t.Errorf("an edited event: %+v", v)
	}
	s.SQL(t, db, "UPDATE perlica.events SET payload = 'line' WHERE seq = 9")

	s.SQL(t, db, fmt.Sprintf("DELETE FROM perlica.events WHERE seq > %d", size-3))
	if v := round(t, keeper(t, bob), true); !strings.Contains(v.Problem, "restored from a backup") {
		t.Errorf("a shorter copy: %+v", v)
	}
	if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := round(t, keeper(t, bob), true); v.Problem != "" {
		t.Errorf("sent again: %+v", v)
	}
	s.SQL(t, db,
		"DELETE FROM perlica.events; DELETE FROM perlica.cosignatures; DELETE FROM perlica.checkpoints; DELETE FROM "+
			"perlica.logs")
	if v := round(t, keeper(t, bob), true); !strings.Contains(v.Problem, "restored from a backup") {
		t.Errorf("no copy: %+v", v)
	}

	// The worker lies: its history differs from event 9 on, with new hashes and its own signature.
	var tree []event.Event
	for e, err := range alice.Log().Events(t.Context(), event.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 9 {
			e.Payload = []byte("never said")
			e.PayloadLen, e.PayloadSHA256 = int64(len(e.Payload)), sha256.Sum256(e.Payload)
			e.LeafHash = e.Leaf()
		}
		tree = append(tree, e)
	}
	origin, err := alice.Log().Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.SQL(t, db, "INSERT INTO perlica.logs (worker, origin) VALUES ('alice', '"+origin+"')")
	if err := hub.AppendCopy(t.Context(), alice.Hub, hub.Batch{Worker: "alice", Events: tree}); err != nil {
		t.Fatal(err)
	}
	if v := round(t, keeper(t, bob), true); !strings.Contains(v.Problem, "checkpoint") || v.Cosigned != size {
		t.Errorf("a rewritten history: %+v", v)
	}
	if n, err := bob.Log().Count(t.Context(), event.Query{Types: []event.Type{event.TeamCosigned}}); n != 1 || err != nil {
		t.Errorf("cosigned %d times, %v", n, err)
	}
}

// TestKeeperSeesForks checks that a keeper reports a worker that stopped because its log and its copy differ.
func TestKeeperSeesForks(t *testing.T) {
	_, _, alice, bob := kept(t)
	if err := hub.ForkCopy(t.Context(), alice.Hub, "alice", 7); err != nil {
		t.Fatal(err)
	}
	if v := round(t, keeper(t, bob), true); !strings.Contains(v.Problem, "event 7") || v.Cosigned != 0 {
		t.Errorf("%+v", v)
	}
}

// TestFetch checks that a fetched copy can be verified without the hub, with the worker's and the
// keeper's keys.
func TestFetch(t *testing.T) {
	_, _, alice, bob := kept(t)
	k := keeper(t, bob)
	size := round(t, k, true).Size
	fill(t, alice, 3, []byte("not signed yet"))
	if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	v, done, err := bob.Fetch(t.Context(), "alice", &out, nil)
	if err != nil || v.Size != size+3 || done.Events != size || !done.Signed {
		t.Fatalf("%+v, %+v, %v", v, done, err)
	}
	var opt verify.Options
	for _, key := range append(bob.LogKeys("alice", v.Origin), bob.WitnessKeys()...) {
		known, err := evidence.NewVerifier(key)
		if err != nil {
			t.Fatal(err)
		}
		opt.Keys = append(opt.Keys, known)
	}
	src, err := export.NewSource(&out)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Check(t.Context(), src, opt)
	if err != nil || !rep.OK() || rep.Events != size || rep.Signed != size || len(rep.Warnings) != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if len(rep.Cosigned) != 1 || rep.Cosigned[0].Name != "perlica/team/bob" || rep.Cosigned[0].Size != size {
		t.Errorf("%+v", rep.Cosigned)
	}
}

// TestKeyChange checks that a worker's signatures with an earlier key still count.
func TestKeyChange(t *testing.T) {
	_, _, _, bob := kept(t)
	other := bob.Key // any other key
	bob.mu.Lock()
	old := bob.members["alice"]
	next := old
	next.Key, next.Version = other, old.Version+1
	bob.addMember(next)
	bob.mu.Unlock()
	if got := bob.keysOf("alice"); !slices.Equal(got, []string{old.Key, other}) {
		t.Error(got)
	}
	if v := round(t, keeper(t, bob), true); v.Problem != "" || v.Signed != v.Size {
		t.Errorf("%+v", v)
	}
}

// BenchmarkKeeper verifies a copy with events of 400 bytes; -copy-events is their number.
func BenchmarkKeeper(b *testing.B) {
	s, db := hubtest.Shared(b)
	m := newMachine(b, s.URL("owner", db))
	if _, _, err := Init(b.Context(), m.opt, "team"); err != nil {
		b.Fatal(err)
	}
	alice := m.join(b, "alice", true)
	for range *copyEvents / 5000 {
		fill(b, alice, 5000, bytes.Repeat([]byte("x"), 400))
		if _, err := alice.Log().Checkpoint(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(context.Background()); err != nil {
		b.Fatal(err)
	}
	sent := time.Since(began)
	k := keeper(b, alice)
	b.ResetTimer()
	var v hub.Verdict
	for range b.N {
		if v = round(b, k, true); v.Problem != "" {
			b.Fatal(v.Problem)
		}
	}
	b.ReportMetric(float64(v.Events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(v.Events)/sent.Seconds(), "sent/s")
}
