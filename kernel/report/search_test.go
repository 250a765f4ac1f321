package report

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// searchIn opens a new index of the log.
func searchIn(t *testing.T, log *eventlog.Log) *Search {
	t.Helper()
	s, err := OpenSearch(t.Context(), &log.Reader, filepath.Join(t.TempDir(), "search.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// hits returns the found texts as pairs of event number and kind.
func hits(t *testing.T, s *Search, w Wanted) string {
	t.Helper()
	var list []string
	for h, err := range s.Find(t.Context(), w) {
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		list = append(list, fmt.Sprintf("%d %s", h.Event.Seq, h.Kind))
	}
	return strings.Join(list, ", ")
}

func TestSearchFindsEveryKind(t *testing.T) {
	s := searchIn(t, storyLog(t))
	for phrase, want := range map[string]string{
		"parser":           "2 input",
		"a.go":             "9 question, 7 question, 2 input",
		"go test":          "7 question",
		"three":            "7 question",
		"no rule says":     "7 question",
		"alice":            "8 decision",
		"Allow once":       "8 decision",
		"run the tests":    "8 decision, 7 question",
		"no one answered":  "10 decision",
		"remove it":        "10 decision, 9 question",
		"reading is fine":  "13 decision",
		"rm -rf":           "14 tool",
		"删除":               "17 answer",
		"my-session":       "1 session",
		"it does not know": "19 answer",
		"gone":             "", // the payload was pruned
		"onerror":          "", // occurs only in a line of the agent
		"end_turn":         "",
		"claude":           "",
		"kinput":           "", // occurs only in the tags
	} {
		if got := hits(t, s, Wanted{Phrases: []string{phrase}}); got != want {
			t.Errorf("%q: %q, want %q", phrase, got, want)
		}
	}
}

func TestSearchFilters(t *testing.T) {
	s := searchIn(t, storyLog(t))
	at := func(seq int) time.Time { // returns the time of an event
		return time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC).Add(time.Duration(seq) * 250 * time.Millisecond)
	}
	for _, c := range []struct {
		w    Wanted
		want string
	}{
		{Wanted{Phrases: []string{"a.go"}, Kinds: []Kind{kindInput}}, "2 input"},
		{Wanted{Phrases: []string{"a.go"}, Kinds: []Kind{kindInput, kindQuestion}}, "9 question, 7 question, 2 input"},
		{Wanted{Phrases: []string{"a.go"}, Kinds: []Kind{kindTool}}, ""},
		{Wanted{Phrases: []string{"a.go"}, Provider: "claude"}, "9 question, 7 question, 2 input"},
		{Wanted{Phrases: []string{"a.go"}, Provider: "clau"}, ""},
		{Wanted{Phrases: []string{"secret"}, Provider: "codex"}, "19 answer, 18 input"},
		{Wanted{Phrases: []string{"secret"}, Provider: `" OR "kinput`}, ""},
		{Wanted{Phrases: []string{"a.go"}, Session: "spine"}, "9 question, 7 question, 2 input"},
		{Wanted{Phrases: []string{"a.go"}, Session: "spin"}, ""},
		{Wanted{Phrases: []string{"a.go"}, Since: at(7)}, "9 question, 7 question"},
		{Wanted{Phrases: []string{"a.go"}, Since: at(7).Add(1)}, "9 question"},
		{Wanted{Phrases: []string{"a.go"}, Before: at(7)}, "2 input"},
		{Wanted{Phrases: []string{"a.go"}, Since: at(3), Before: at(9)}, "7 question"},
		{Wanted{Phrases: []string{"a.go"}, Before: at(-1)}, ""},
		{Wanted{Phrases: []string{"a.go", "judged", "remove"}}, ""},
		{Wanted{Phrases: []string{"go", "remove"}}, "9 question"},
	} {
		if got := hits(t, s, c.w); got != c.want {
			t.Errorf("%+v: %q, want %q", c.w, got, c.want)
		}
	}
	for _, w := range []Wanted{{}, {Phrases: []string{"a", "--"}}} {
		for _, err := range s.Find(t.Context(), w) {
			if !errors.Is(err, ErrNoWords) {
				t.Errorf("%+v: %v", w, err)
			}
		}
	}
}

// TestSearchByTimeOverStretches checks that a search by time finds all texts even if the clock has jumped.
func TestSearchByTimeOverStretches(t *testing.T) {
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	clock := start
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"),
		eventlog.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	refs := event.Refs{Session: "s", Run: "r"}
	for i := range 1500 { // three groups of 512 events
		clock = start.Add(time.Duration(i) * time.Second)
		text := "word"
		switch i {
		case 1200: // late on the log, but early by the clock
			clock, text = start.Add(-time.Hour), "word back"
		case 100: // early on the log, but late by the clock
			clock, text = start.Add(24*time.Hour), "word ahead"
		}
		if err := log.Record(event.NewFact(event.MessageReceived, "user", refs,
			fact.MessageReceived{Text: text})); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	s := searchIn(t, log)
	for _, c := range []struct {
		w    Wanted
		want string
	}{
		{Wanted{Before: start}, "1201 input"},
		{Wanted{Since: start.Add(time.Hour)}, "101 input"},
		{Wanted{Since: start.Add(10 * time.Second), Before: start.Add(12 * time.Second)}, "12 input, 11 input"},
		{Wanted{Before: start.Add(-2 * time.Hour)}, ""},
		{Wanted{}, everyInput(1500)},
	} {
		c.w.Phrases = []string{"word"}
		if got := hits(t, s, c.w); got != c.want {
			t.Errorf("%+v: %q, want %q", c.w, got, c.want)
		}
	}
}

// everyInput returns the expected hits of a search that finds one text in each of n events.
func everyInput(n int) string {
	var list []string
	for seq := n; seq > 0; seq-- {
		list = append(list, fmt.Sprintf("%d input", seq))
	}
	return strings.Join(list, ", ")
}

// TestSearchCatchesUp checks that the index includes new texts after the next OpenSearch. An answer must be found by
// the words of its question.
func TestSearchCatchesUp(t *testing.T) {
	log := logWith(t)
	path := filepath.Join(t.TempDir(), "search.db")
	all := slices.Concat(storyEvents(), failedEvents())
	var progress []event.Seq
	for _, e := range all {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSearch(t.Context(), &log.Reader, path, func(at event.Seq) { progress = append(progress, at) })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(progress) || len(slices.Compact(progress)) != len(progress) || len(progress) == 0 {
		t.Errorf("progress %v", progress)
	}
	piecemeal, err := OpenSearch(t.Context(), &log.Reader, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer piecemeal.Close()
	for _, phrase := range []string{"Run the tests", "allow once", "secret", "a"} {
		w := Wanted{Phrases: []string{phrase}}
		if got, want := hits(t, piecemeal, w), hits(t, searchIn(t, log), w); got != want || got == "" && phrase != "a" {
			t.Errorf("%q: %q, want %q", phrase, got, want)
		}
	}
}

func TestSearchFindSession(t *testing.T) {
	log := logWith(t,
		sessionFact(event.SessionCreated, sessionA, "old name"),
		sessionFact(event.SessionRenamed, sessionA, "spine"),
		inputFact(sessionA, runA, "job-1"),
		sessionFact(event.SessionCreated, sessionB, "gone"),
		inputFact(sessionB, runB, "job-2"),
		sessionFact(event.SessionDeleted, sessionB, ""),
	)
	s := searchIn(t, log)
	for _, ref := range []string{sessionA, sessionB, "spine", "old name", "gone", "a001", "b002", "0199",
		"0199aaaa-0000-7000-8000", "001", "", "nosuch"} {
		got, gotErr := s.FindSession(t.Context(), ref)
		want, wantErr := FindSession(t.Context(), &log.Reader, ref)
		for _, kind := range []error{ErrNotFound, ErrAmbiguousRef} {
			if got != want || errors.Is(gotErr, kind) != errors.Is(wantErr, kind) {
				t.Errorf("%q: %q, %v, want %q, %v", ref, got, gotErr, want, wantErr)
			}
		}
	}
}

// TestSearchAsksNoSort checks SQLite's plan for the search: it must neither sort nor scan the table of texts.
func TestSearchAsksNoSort(t *testing.T) {
	s := searchIn(t, storyLog(t))
	var plan []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	err := sqlx.SelectContext(context.Background(), s.view.DB(), &plan, `EXPLAIN QUERY PLAN `+findQuery, "text : a", 0, 9,
		0, 9, 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan {
		if strings.Contains(p.Detail, "TEMP B-TREE") || strings.HasPrefix(p.Detail, "SCAN texts") {
			t.Error(p.Detail)
		}
	}
	if len(plan) != 2 {
		t.Errorf("the plan is %v", plan)
	}
}
