package bot

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestRecord checks that the next process reads the same state, also for messages that are no
// longer in memory. Other bots in the same log do not change it.
func TestRecord(t *testing.T) {
	ctx := t.Context()
	own, err := eventlog.Open(ctx, filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{Context: "user"})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	alice := fact.Peer{Channel: "local", Contact: "alice"}
	r, err := Open(ctx, own, "/lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func() error{
		func() error { return r.Route(ctx, "first", alice, "1", "/shop", "/shop") },
		func() error { return r.Read(ctx, "local", "1") },
		func() error { return Add(ctx, own, fact.ServedProject{Home: "/lab", Project: "shop", Log: "/shop"}) },
		func() error { return Add(ctx, own, fact.ServedProject{Home: "/lab", Project: "barn", Log: "/barn"}) },
		func() error { return Remove(ctx, own, fact.ServedProject{Home: "/lab", Project: "shop", Log: "/shop"}) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	other, err := Open(ctx, own, "/attic")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Route(ctx, "theirs", alice, "1", "/barn", "/barn"); err != nil {
		t.Fatal(err)
	}
	if err := other.Read(ctx, "local", "77"); err != nil {
		t.Fatal(err)
	}
	var later []event.Event
	for i := range newest {
		later = append(later, event.NewFact(event.MessageRouted, "perlica",
			event.Refs{Input: event.InputID(fmt.Sprint("later-", i))},
			fact.MessageRouted{Home: "/lab", Channel: "local", Message: fmt.Sprint(i), Log: "/barn"}))
	}
	if err := r.appendEvents(ctx, later...); err != nil {
		t.Fatal(err)
	}
	again, err := Open(ctx, own, "/lab")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Record{"the same process": r, "the next one": again} {
		if log, ok := r.Routed("first"); ok {
			t.Errorf("%s: the oldest is in memory: %s", name, log)
		}
		if log, ok, err := r.Find(ctx, "first"); log != "/shop" || !ok || err != nil {
			t.Errorf("%s: the oldest went to %q, %v, %v", name, log, ok, err)
		}
		if log, ok := r.Routed("later-4095"); log != "/barn" || !ok {
			t.Errorf("%s: the newest went to %q, %v", name, log, ok)
		}
		for _, input := range []event.InputID{"theirs", "none"} {
			if log, ok, err := r.Find(ctx, input); ok || err != nil {
				t.Errorf("%s: %s went to %q, %v", name, input, log, err)
			}
		}
		if cursor, ok := r.Cursor("local"); cursor != "1" || !ok || r.Chosen(alice) != "/shop" {
			t.Errorf("%s: read up to %q, %v; %q is chosen", name, cursor, ok, r.Chosen(alice))
		}
	}
	if list, ever, err := Projects(ctx, &own.Reader, "/lab"); len(list) != 1 || list[0].Project != "barn" || !ever ||
		err != nil {
		t.Errorf("%v, %v, %v", list, ever, err)
	}
	if list, ever, err := Projects(ctx, &own.Reader, "/attic"); len(list) != 0 || ever || err != nil {
		t.Errorf("%v, %v, %v", list, ever, err)
	}
}
