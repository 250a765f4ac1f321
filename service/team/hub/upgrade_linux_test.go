package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestUpgrade brings a hub of an earlier version up to date. Its team and its input stay.
func TestUpgrade(t *testing.T) {
	for _, from := range []int{1, 6} {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) { upgradeFrom(t, from) })
	}
}

func upgradeFrom(t *testing.T, from int) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	list, err := steps()
	if err != nil {
		t.Fatal(err)
	}
	for n := range from {
		if err := h.do(t.Context(), func(ctx context.Context, c *pgx.Conn) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return migrate(ctx, tx, n, list[n]) })
		}); err != nil {
			t.Fatal(err)
		}
	}
	if made, err := h.Found(t.Context(), Team{ID: "id", Name: "team", Admin: "key"}, "g1"); err != nil || !made {
		t.Fatal(made, err)
	}
	if err := h.State(t.Context(), Member{Name: "alice", Version: 1, Key: "key", Rights: access.Rights{access.Admin}, Login: "owner", Signature: []byte{}}); err != nil {
		t.Fatal(err)
	}
	s.SQL(t, db, `
		INSERT INTO perlica.inputs (id, generation, sender, digest, project, provider, labels, permissions, priority, replaces, attachments, signature)
		VALUES ('a', 'g1', 'alice', '', 'p', '', '{}', '', 0, '', '[]', '');
		INSERT INTO perlica.lanes (lane, project, provider, labels) VALUES ('p', 'p', '', '{}');
		INSERT INTO perlica.queue (input, generation, sender, lane, priority, ready) VALUES ('a', 'g1', 'alice', 'p', 0, true);
		INSERT INTO perlica.inputs SELECT 'b', generation, sender, digest, project, provider, labels, permissions, priority, not_before, replaces, attachments, signature FROM perlica.inputs;
		INSERT INTO perlica.claims (input, worker, generation, position, reported) VALUES ('b', 'alice', 'g1', 1, true);
		INSERT INTO perlica.outcomes (input, worker, outcome, result) VALUES ('b', 'alice', 'responded', '{}')`)
	var version *VersionError
	if _, err := h.Look(t.Context()); !errors.As(err, &version) || version.Hint() == "" || version.Have != from {
		t.Errorf("before: %v", err)
	}
	for _, want := range []int{from, len(list)} {
		if before, err := h.Migrate(t.Context()); err != nil || before != want {
			t.Fatal(before, err)
		}
	}
	if st, err := h.Look(t.Context()); err != nil || st.Schema != len(list) || st.Generation != "g1" {
		t.Errorf("%+v, %v", st, err)
	}
	if again, err := h.Owned(t.Context(), "alice"); err != nil || len(again) != 1 || again[0].ID != "b" {
		t.Errorf("to be reported once more, signed: %v, %v", again, err)
	}
	if got := claimed(t, h, 9); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
}

// TestMigrationsStay checks that no existing migration changes. A change of the schema needs a new
// one.
func TestMigrationsStay(t *testing.T) {
	list, err := steps()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"b3c4a80feacdc2aba2", "e79e0b0a837ddf8b15", "5889dbd35f63b855ca", "b3769fd7a4fff8e7d9", "81b7cad80636ef8ff7", "734d782d3a80d20991"} {
		if sum := sha256.Sum256([]byte(list[n])); !strings.HasPrefix(hex.EncodeToString(sum[:]), want) {
			t.Errorf("migration %d was changed", n+1)
		}
	}
}
