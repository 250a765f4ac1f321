package eventlog

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestAppendUnless checks that the query is evaluated during the commit, and that it ignores the events up to After.
// The other entries of the batch must be written.
func TestAppendUnless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	one, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	other, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	seq, err := one.Append(t.Context(), fact(event.ApprovalRevoked, event.Refs{}))
	if err != nil {
		t.Fatal(err)
	}
	unless := event.Query{After: seq, Types: []event.Type{event.ApprovalRevoked}}
	if _, err := one.AppendUnless(t.Context(), unless, fact(event.PolicyDecided, event.Refs{})); err != nil {
		t.Errorf("what lies before is no reason: %v", err)
	}
	if _, err := other.Append(t.Context(), fact(event.ApprovalRevoked, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	if _, err := one.AppendUnless(t.Context(), unless, fact(event.PolicyDecided, event.Refs{})); !errors.As(err,
		&conflict) || conflict.Type != event.PolicyDecided {
		t.Errorf("another handle's event: %v", err)
	}
	// The conflicting event is in the same batch.
	if err := one.Record(fact(event.SessionRenamed, event.Refs{}), fact(event.ApprovalRevoked, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	unless.After = seq + 2
	if _, err := one.AppendUnless(t.Context(), unless, fact(event.PolicyDecided, event.Refs{})); !errors.As(err,
		&conflict) {
		t.Errorf("the batch's own event: %v", err)
	}
	if got := collect(t, &one.Reader, event.Query{Types: []event.Type{event.PolicyDecided}}); len(got) != 1 {
		t.Errorf("%d were written", len(got))
	}
	if got := collect(t, &one.Reader, event.Query{Types: []event.Type{event.SessionRenamed}}); len(got) != 1 {
		t.Errorf("the rest of the batch is lost: %d", len(got))
	}
	if _, err := one.AppendUnless(t.Context(), event.Query{}, fact(event.PolicyDecided, event.Refs{})); err != nil {
		t.Errorf("no condition: %v", err)
	}
	queries := slices.DeleteFunc(slices.Collect(maps.Keys(one.batch.stmts)), func(text string) bool {
		return !strings.HasPrefix(text, "SELECT 1 FROM entries")
	})
	if len(queries) != 1 {
		t.Errorf("the condition was not prepared once: %q", queries)
	}
}
