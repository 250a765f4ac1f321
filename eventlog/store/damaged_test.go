package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
)

// TestDamagedEvents checks that a reader never yields a changed payload or header. The reader must end there with an
// error, or yield a marked event without a payload. A payload that another program removed must not count as pruned.
func TestDamagedEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		header bool
	}{
		"payload":             {`payload = CAST('{"name":"forged"}' AS BLOB)`, false},
		"payload, longer":     {`payload = CAST(payload || ' ' AS BLOB)`, false},
		"payload, emptied":    {`payload = x''`, false},
		"payload, removed":    {`payload = NULL`, false},
		"payload and length":  {`payload = CAST('{}' AS BLOB), payload_len = 2`, true},
		"actor":               {`actor = 'policy'`, true},
		"type":                {`type = 'session.renamed'`, true},
		"time":                {`ts = ts + 1`, true},
		"run":                 {`run_id = 'another'`, true},
		"leaf":                {`leaf = zeroblob(32)`, true},
		"input of the header": {`input_id = 'i'`, true},
	} {
		l := openTest(t)
		for range 3 {
			mustAppend(t, l, event.NewFact(event.SessionCreated, "user", event.Refs{Session: "s"},
				map[string]string{"name": "true"}))
		}
		db := sqlx.MustOpen("sqlite", store.DSN(l.Path()))
		defer db.Close()
		db.SetMaxOpenConns(1)
		db.MustExec(storetest.Editable + `DROP TRIGGER events_lose_nothing_but_payloads`)
		db.MustExec(`UPDATE events SET ` + tt.change + ` WHERE seq = 2`)

		var err error
		for _, err = range l.Events(t.Context(), event.Query{}) {
			if err != nil {
				break
			}
		}
		var damage *event.DamagedError
		if !errors.Is(err, disk.ErrCorrupt) || !errors.As(err, &damage) || damage.Seq != 2 || damage.Header != tt.header {
			t.Errorf("%s: %v", name, err)
		}
		r, err := store.OpenToShow(t.Context(), l.Path())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range r.Events(t.Context(), event.Query{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n++
			if d := e.Damage(); (d != nil) != (e.Seq == 2) || d != nil && (e.Payload != nil || d.Header != tt.header) {
				t.Errorf("%s: event %d: %v, %s", name, e.Seq, d, e.Payload)
			}
			b, err := e.MarshalJSON()
			if err != nil || bytes.Contains(b, []byte(`"withheld":"damaged"`)) != (e.Seq == 2) {
				t.Errorf("%s: %s, %v", name, b, err)
			}
		}
		if err := r.Damaged(); n != 3 || !errors.Is(err, disk.ErrCorrupt) {
			t.Errorf("%s: %d events, %v", name, n, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemovedPayloads checks that a missing payload is damage unless a log.pruned covers its event. A log.pruned
// without its own payload covers nothing.
func TestRemovedPayloads(t *testing.T) {
	l := openTest(t)
	for _, session := range []event.SessionID{"s", "t", "s"} {
		mustAppend(t, l, event.NewFact(event.SessionCreated, "user", event.Refs{Session: session},
			map[string]string{"name": "true"}))
	}
	mustAppend(t, l, event.NewFact(event.LogPruned, "user", event.Refs{},
		event.Pruning{Until: 2, Session: "s", By: "test"}))
	db := sqlx.MustOpen("sqlite", store.DSN(l.Path()))
	defer db.Close()
	db.MustExec(`UPDATE entries SET payload = NULL`)

	r, err := store.OpenToShow(t.Context(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := ""
	for e, err := range r.Events(t.Context(), event.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		got += e.Withheld + " "
	}
	// Here the payload of the log.pruned itself is missing, so the log.pruned covers nothing.
	if want := "damaged damaged damaged damaged "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
