package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestPromotion checks that a promoted standby that lacks a claim takes nothing before its
// adoption. After it, the standby takes no input of the old generation. The old primary serves its
// own generation at the same time.
func TestPromotion(t *testing.T) {
	old := hubtest.Start(t)
	h := open(t, old.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"), newInput("b", "x"), newInput("c", "x"))
	standby := old.Backup(t, true)
	standby.Run(t)
	old.AwaitReplayed(t, standby)
	standby.Kill() // so the standby lacks the next claim
	standby.Cut()
	if got := claimed(t, h, 1); !slices.Equal(got, []string{"a"}) {
		t.Fatalf(`got %v; want slices.Equal(got, []string{"a"})`, got)
	}
	standby.Run(t)
	after := open(t, standby.URL("owner", "postgres"))
	if _, err := after.Look(t.Context()); !errors.Is(err, ErrStandby) {
		t.Errorf("a standby: %v", err)
	}
	if _, err := after.Claim(t.Context(), worker, 1, nil); !errors.Is(err, ErrStandby) {
		t.Errorf("a claim on a standby: %v", err)
	}
	standby.Promote(t)
	if st, err := after.Look(t.Context()); err != nil || st.Adopted || st.Generation != "g1" {
		t.Errorf(`got %+v, %v; want err == nil && !st.Adopted && st.Generation == "g1"`, st, err)
	}
	if _, err := after.Claim(t.Context(), worker, 1, nil); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("a claim on a server that was promoted: %v", err)
	}
	if _, err := after.Submit(t.Context(), "g1", []Input{newInput("d", "x")}); !errors.Is(err, ErrNotAdopted) {
		t.Errorf("a submission to it: %v", err)
	}
	done, err := after.Adopt(t.Context(), "g2", "alice", false)
	if err != nil || done != (Adoption{Queued: 3}) {
		t.Fatalf("got %v, %v; want err == nil && done == (Adoption{Queued: 3})", done, err)
	}
	if got := claimed(t, after, 9); len(got) != 0 || state(t, after, "a") != Adopted {
		t.Errorf("taken of before: %v", got)
	}
	if _, err := after.Submit(t.Context(), "g2", []Input{newInput("e", "x")}); err != nil {
		t.Fatal(err)
	}
	if got := claimed(t, after, 9); !slices.Equal(got, []string{"e"}) {
		t.Errorf(`got %v; want slices.Equal(got, []string{"e"})`, got)
	}
	if err := after.Report(t.Context(), "alice", "a", "responded", json.RawMessage(`{}`), []byte("s")); !errors.Is(err,
		ErrNoClaim) {
		t.Errorf("the outcome of a forgotten claim: %v", err)
	}
	if got := claimed(t, h, 9); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("the old primary gives out %v", got)
	}
	if _, err := after.Adopt(t.Context(), "g3", "alice", false); !errors.Is(err, errSameServer) {
		t.Errorf("adopted twice: %v", err)
	}
}

// TestRestoredBackups checks two restores of one backup. Each takes nothing before its adoption,
// and they are two generations.
func TestRestoredBackups(t *testing.T) {
	s := hubtest.Start(t)
	h := open(t, s.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"), newInput("b", "x"), newInput("c", "x"))
	claimed(t, h, 1)
	copies := []*hubtest.Server{s.Backup(t, false), s.Backup(t, false)}
	if err := h.Report(t.Context(), "alice", "a", "responded", json.RawMessage(`{}`), []byte("s")); err != nil {
		t.Fatal(err)
	}
	claimed(t, h, 1) // this claims the input b, and neither copy knows the claim
	for i, c := range copies {
		c.Restore(t)
		r := open(t, c.URL("owner", "postgres"))
		if _, err := r.Claim(t.Context(), worker, 1, nil); !errors.Is(err, ErrNotAdopted) {
			t.Errorf("copy %d: %v", i, err)
		}
		done, err := r.Adopt(t.Context(), fmt.Sprint("r", i), "alice", false)
		if err != nil || done != (Adoption{Queued: 2, Claimed: 1}) {
			t.Errorf("copy %d: %+v, %v", i, done, err)
		}
		// The owner of the input a reports its outcome. A server that knows the claim shows the outcome, not the
		// closing by the adoption.
		if err := r.Report(t.Context(), "alice", "a", "responded", json.RawMessage(`{}`), []byte("s")); err != nil ||
			state(t, r, "a") != "responded" {
			t.Errorf("copy %d: %v", i, err)
		}
		if got := claimed(t, r, 9); len(got) != 0 {
			t.Errorf("copy %d gives out %v", i, got)
		}
		if _, err := r.Submit(t.Context(), fmt.Sprint("r", 1-i), []Input{newInput("d", "x")}); !errors.Is(err, ErrEnded) {
			t.Errorf("an input of the other copy's generation: %v", err)
		}
	}
}

// TestForgottenClaims checks a copy of the disk that was restored on the same timeline. A worker
// with newer knowledge detects it, and it can still be adopted.
func TestForgottenClaims(t *testing.T) {
	s := hubtest.Start(t)
	h := open(t, s.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"))
	s.SQL(t, "postgres", "CHECKPOINT")
	s.Kill()
	back := s.Copy(t)
	s.Run(t)
	_, _ = h.Look(t.Context()) // this call fails and drops the dead connection
	claims, err := h.Claim(t.Context(), worker, 1, nil)
	if err != nil || len(claims) != 1 {
		t.Fatalf("got %v, %v; want err == nil && len(claims) == 1", claims, err)
	}
	large := newInput("large", "x")
	large.Payload = append(large.Payload, make([]byte, 3<<20)) // more write-ahead log than the copy will have
	submitted(t, h, large)
	st, err := h.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remembered := map[string]Claim{"g1": claims[0], "g0": {Position: 1 << 60}}
	if _, err := h.Claim(t.Context(), worker, 1, remembered); err != nil {
		t.Errorf("the server itself: %v", err)
	}
	s.Kill()
	back.Run(t)
	r := open(t, back.URL("owner", "postgres"))
	var forgotten *ForgottenError
	if _, err := r.Claim(t.Context(), worker, 1, remembered); !errors.As(err, &forgotten) || forgotten.ID != "a" {
		t.Errorf("its copy, which lacks the claim: %v", err)
	}
	if _, err := r.Claim(t.Context(), worker, 1, map[string]Claim{"g1": {Position: st.Position}}); !errors.As(err,
		&forgotten) || forgotten.Have >= forgotten.Position {
		t.Errorf("its copy, which is behind: %v", err)
	}
	if n := back.SQL(t, "postgres", "SELECT count(*) FROM perlica.claims"); n != "0" {
		t.Error("something was taken")
	}
	if done, err := r.Adopt(t.Context(), "g2", "alice", true); err != nil || done.Queued != 1 {
		t.Errorf("got %v, %v; want err == nil && done.Queued == 1", done, err)
	}
}

// TestKilledServer checks that acknowledged data survives a crash. If commits did not wait for the disk, the data would
// be lost. This package prevents that setting, and a worker that remembers its claims detects the loss.
func TestKilledServer(t *testing.T) {
	s := hubtest.Start(t, "wal_writer_delay=10000ms", "synchronous_commit=off")
	h := open(t, s.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"), newInput("b", "x"))
	claims, err := h.Claim(t.Context(), worker, 1, nil)
	if err != nil || len(claims) != 1 {
		t.Fatalf("got %v, %v; want err == nil && len(claims) == 1", claims, err)
	}
	s.Kill()
	s.Run(t)
	_, err = h.Look(t.Context())
	if st := state(t, h, "a"); st != Claimed {
		t.Errorf("an acknowledged claim: %s (%v)", st, err)
	}
	// This control repeats the test without the setting that connect makes.
	if _, err := h.conn.Exec(t.Context(), "SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	claims, err = h.Claim(t.Context(), worker, 1, nil)
	if err != nil || len(claims) != 1 {
		t.Fatalf("got %v, %v; want err == nil && len(claims) == 1", claims, err)
	}
	s.Kill()
	s.Run(t)
	_, _ = h.Look(t.Context()) // this call fails and drops the dead connection
	if st := state(t, h, "b"); st != Queued {
		t.Fatalf("the control lost nothing: %s", st)
	}
	var forgotten *ForgottenError
	if _, err := h.Claim(t.Context(), worker, 1, map[string]Claim{"g1": claims[0]}); !errors.As(err, &forgotten) {
		t.Errorf("a server that forgot: %v", err)
	}
}

// TestCancelledWait checks a cancelled wait for a standby. PostgreSQL answers with success and a
// warning. The worker does not start the claim at once. Owned finds it.
func TestCancelledWait(t *testing.T) {
	s := hubtest.Start(t)
	h := open(t, s.URL("owner", "postgres"))
	found(t, h, "alice")
	const most = 200
	for i := range most {
		submitted(t, h, newInput(fmt.Sprint(i), "x"))
	}
	s.SQL(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'none'")
	s.SQL(t, "postgres", "SELECT pg_reload_conf()")
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		_, _ = s.Try("owner", "postgres", `DO $$ BEGIN
			FOR i IN 1..2000 LOOP
				PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep';
				EXIT WHEN FOUND;
				PERFORM pg_sleep(0.01);
				PERFORM pg_stat_clear_snapshot();
			END LOOP;
		END $$`)
	}()
	var err error
	made := 0
	for ; err == nil && made < most; made++ { // the server's processes read the setting one after the other
		_, err = h.Claim(t.Context(), worker, 1, nil)
		s.SQL(t, "postgres", "SELECT pg_sleep(0.01)")
	}
	<-cancelled
	if !errors.Is(err, ErrUnsure) {
		t.Fatalf("%d claims: %v", made, err)
	}
	owned, err := h.Owned(t.Context(), "alice")
	if err != nil || len(owned) != made {
		t.Errorf("%d are owned of %d, %v", len(owned), made, err)
	}
}

// TestAdoptionAmidClaims checks an adoption during submissions and claims. No input of the old
// generation can be claimed afterwards, and all inputs without an outcome are closed.
func TestAdoptionAmidClaims(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	ctx, stop := context.WithCancel(t.Context())
	begun := make(chan struct{}, 100)
	var all sync.WaitGroup
	for i := range 2 {
		sender, taker := open(t, s.URL("owner", db)), open(t, s.URL("owner", db))
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := sender.Submit(ctx, "g1", []Input{newInput(fmt.Sprintf("%d-%d", i, n), "x")})
				if errors.Is(err, ErrEnded) {
					return
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				claims, err := taker.Claim(ctx, worker, 1, nil)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if len(claims) > 0 {
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	for range 20 {
		<-begun
	}
	if _, err := h.Adopt(t.Context(), "g2", "alice", true); err != nil {
		t.Fatal(err)
	}
	before := s.SQL(t, db, "SELECT count(*) FROM perlica.claims WHERE generation = 'g1'")
	if _, err := h.Submit(t.Context(), "g2", []Input{newInput("new", "x")}); err != nil {
		t.Fatal(err)
	}
	for state(t, h, "new") != Claimed {
	}
	stop()
	all.Wait()
	if after := s.SQL(t, db, "SELECT count(*) FROM perlica.claims WHERE generation = 'g1'"); after != before {
		t.Errorf("%s claims of the old generation, %s before", after, before)
	}
	if n := s.SQL(t, db, "SELECT count(*) FROM perlica.queue WHERE generation = 'g1'"); n != "0" {
		t.Errorf("%s of the old generation wait", n)
	}
	if n := s.SQL(t, db,
		"SELECT count(*) FROM perlica.inputs i WHERE generation = 'g1' AND NOT EXISTS (SELECT FROM perlica.closings c "+
			"WHERE c.input = i.id)"); n != "0" {
		t.Errorf("%s of the old generation are not closed", n)
	}
}

// TestMakeSchemaAtOnce checks that several callers may make the schema of one database at the same time.
func TestMakeSchemaAtOnce(t *testing.T) {
	s, db := hubtest.Shared(t)
	var all sync.WaitGroup
	for range 4 {
		h := open(t, s.URL("owner", db))
		if _, err := h.Look(t.Context()); !errors.Is(err, ErrNoTeam) { // the connection works
			t.Fatalf("got %v; want errors.Is(err, ErrNoTeam)", err)
		}
		all.Go(func() {
			if err := h.MakeSchema(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestVersions checks schemas of other versions, and unencrypted connections.
func TestVersions(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	submitted(t, h, newInput("a", "x"))
	var version *VersionError
	for _, n := range []int{SchemaVersion + 1, SchemaVersion - 1} {
		s.SQL(t, db, fmt.Sprintf("UPDATE perlica.schema SET version = %d", n))
		if got, err := h.Claim(t.Context(), worker, 1, nil); !errors.As(err, &version) || state(t, h, "a") != Queued {
			t.Errorf("version %d: a worker that runs while the schema changes takes %v, %v", n, got, err)
		}
		if _, err := h.Look(t.Context()); !errors.As(err, &version) || version.Have != n || version.Hint() == "" {
			t.Errorf("version %d: Look: %v", n, err)
		}
		if err := h.MakeSchema(t.Context()); !errors.As(err, &version) || version.Have != n {
			t.Errorf("version %d: MakeSchema: %v", n, err)
		}
	}
	s.SQL(t, db, "DROP TABLE perlica.schema")
	if err := h.MakeSchema(t.Context()); !errors.As(err, &version) || version.Have != 0 {
		t.Errorf("tables without a version: MakeSchema: %v", err)
	}
	for url, secure := range map[string]bool{
		"postgres://u:p@db.example.org/t": false, "postgres://db.example.org/t?sslmode=disable": false,
		"host=db.example.org sslmode=prefer":              false,
		"postgres://db.example.org/t?sslmode=verify-full": true, "postgres://127.0.0.1/t": true,
		"postgres://localhost/t?sslmode=disable": true, "host=/tmp dbname=t": true,
		"postgres://127.0.0.1,db.example.org/t": false,
	} {
		if _, err := Open(url); errors.Is(err, errURL) == secure {
			t.Errorf("%s: got %v; want errors.Is(err, ErrURL) != secure", url, err)
		}
	}
	if _, err := Open("postgres://u:secret@%zz"); !errors.Is(err, errURL) || strings.Contains(err.Error(), "secret") {
		t.Errorf(`got %v; want errors.Is(err, ErrURL) && !strings.Contains(err.Error(), "secret")`, err)
	}
}
