package report

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// statsLog returns a log with two runs of one provider on two days, and a run of another provider that has no intent.
func statsLog(t *testing.T) *eventlog.Log {
	t.Helper()
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"),
		eventlog.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	put := func(typ event.Type, run string, v any) {
		t.Helper()
		refs := event.Refs{Session: event.SessionID("s" + run), Run: event.RunID(run), Input: event.InputID("i" + run)}
		if typ == event.InteractionRequested || typ == event.InteractionAnswered {
			refs.Interaction = event.InteractionID("q" + run)
		}
		if typ == event.InteractionLapsed {
			refs.Interaction = "lapsed"
		}
		if _, err := log.Append(t.Context(), event.NewFact(typ, "test", refs, v)); err != nil {
			t.Fatal(err)
		}
	}
	put(event.SessionCreated, "1", fact.SessionCreated{Provider: "claude"})
	put(event.MessageReceived, "1", fact.MessageReceived{Provider: "claude"})
	put(event.Requested, "1", fact.Requested{Provider: "claude"})
	put(event.InteractionRequested, "1", interaction.Question{Options: []interaction.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}})
	put(event.InteractionAnswered, "1", interaction.Answer{Option: "n", By: "alice"})
	put(event.PolicyDecided, "1", fact.PolicyDecided{Effect: "deny", By: "rule"})
	put(event.PolicyDecided, "1", fact.PolicyDecided{Effect: "allow", By: "standing"})
	put(event.InteractionLapsed, "1", interaction.Resolution{Reason: interaction.TimeUp})
	put(event.ToolBlocked, "1", fact.ToolBlocked{})
	now = now.Add(2 * time.Hour) // the run ends on the next day
	put(event.Responded, "1", fact.Responded{
		Usage: json.RawMessage(`{"inputTokens":10,"outputTokens":20}`), Cost: &fact.Cost{Amount: 0.5, Currency: "EUR"},
	})
	put(event.CallEnforced, "1", fact.Enforced{Calls: 1})
	put(event.MessageReceived, "2", fact.MessageReceived{Provider: "claude"})
	put(event.Requested, "2", fact.Requested{Provider: "claude"})
	put(event.PolicyUnasked, "2", fact.UnaskedTool{})
	put(event.OutcomeUnknown, "2", fact.Failed{})
	put(event.MessageReceived, "3", fact.MessageReceived{Provider: "codex"})
	return log
}

func TestStats(t *testing.T) {
	log := statsLog(t)
	first := Group{"2026-03-01", "claude", Numbers{
		Runs: 1, Calls: 1, Responded: 1, Asked: 3, Allowed: 1, Denied: 2, Unanswered: 1, Blocked: 1,
		TokensIn: 10, TokensOut: 20, Costs: map[string]float64{"EUR": 0.5},
	}}
	second := Group{"2026-03-02", "claude", Numbers{Runs: 1, Calls: 1, Unknown: 1, Unasked: 1}}
	third := Group{"2026-03-02", "codex", Numbers{Runs: 1, NoOutcome: 1}}
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		q    StatsQuery
		want []Group
	}{
		{StatsQuery{}, []Group{first, second, third}},
		{StatsQuery{Before: midnight}, []Group{first}},
		{StatsQuery{Since: midnight}, []Group{second, third}},
		{StatsQuery{Provider: "codex"}, []Group{third}},
		{StatsQuery{Provider: "x"}, []Group{}},
	} {
		c.q.Zone = time.UTC
		s, err := ReadStats(t.Context(), &log.Reader, c.q)
		if err != nil || !reflect.DeepEqual(s.Groups, c.want) || s.Total.Runs != len(c.want) || s.Withheld != 0 {
			t.Errorf("%+v:\n got %+v, %v\nwant %+v", c.q, s, err, c.want)
		}
	}
	s, err := ReadStats(t.Context(), &log.Reader, StatsQuery{Zone: time.FixedZone("", 3600)})
	if err != nil || s.Groups[0].Day != "2026-03-02" || s.Total.Costs["EUR"] != 0.5 {
		t.Errorf("an hour to the east: %+v, %v", s, err)
	}
	want := []Answers{{"nobody", "time is up", 1}, {"person", "alice", 1}, {"rule", "", 1}, {"standing", "", 1}}
	if !reflect.DeepEqual(s.Answers, want) {
		t.Errorf("answers: %+v", s.Answers)
	}
}

// TestStatsOfAPrunedLog checks that a pruned run is still in the statistics by the types of its events, and gets its
// provider from the session.
func TestStatsOfAPrunedLog(t *testing.T) {
	log := statsLog(t)
	if _, err := log.Prune(t.Context(), event.Pruning{Until: 1000, Run: "1"}); err != nil {
		t.Fatal(err)
	}
	s, err := ReadStats(t.Context(), &log.Reader, StatsQuery{Provider: "claude", Zone: time.UTC})
	if err != nil || len(s.Groups) != 2 || s.Withheld != 10 {
		t.Fatalf("%+v, %v", s, err)
	}
	want := Numbers{Runs: 1, Calls: 1, Responded: 1, Asked: 3, Unanswered: 1, Blocked: 1}
	if !reflect.DeepEqual(s.Groups[0].Numbers, want) {
		t.Errorf("%+v", s.Groups[0])
	}
}

func TestOpenRuns(t *testing.T) {
	log := statsLog(t)
	refs := event.Refs{Session: "s9", Run: "9", Input: "i9"}
	line := func(typ event.Type, text string) event.Event {
		return event.Event{Type: typ, Class: event.Frame, Actor: "agent", Refs: refs, Payload: []byte(text)}
	}
	asked := refs
	asked.Interaction = "q9"
	if _, err := log.Append(t.Context(),
		event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "do it", Provider: "p"}),
		event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "p"}),
		line(event.RequestSent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`),
		line(event.NotificationReceived,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half"}}}}`),
		event.NewFact(event.InteractionRequested, "agent", asked, interaction.Question{Title: "may I?"}),
	); err != nil {
		t.Fatal(err)
	}
	list, err := OpenRuns(t.Context(), &log.Reader, t.TempDir())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if o := list[0]; o.Run != "2" || o.Outcome != record.OutcomeUnknown || o.Sent || o.Provider != "claude" ||
		o.Known == "" {
		t.Errorf("%+v", o)
	}
	if o := list[1]; o.Run != "9" || o.Outcome != "" || o.Alive || !o.Sent || o.Lines != 1 || o.Answered ||
		o.Arrived != "half" ||
		o.Text != "do it" || o.Session != "s9" || len(o.Questions) != 1 || o.Questions[0] != "may I?" || o.Pruned {
		t.Errorf("%+v", o)
	}
	if _, err := log.Append(t.Context(), event.NewFact(event.RunResolved, "user", event.Refs{Run: "2"},
		fact.Resolved{})); err != nil {
		t.Fatal(err)
	}
	if list, err = OpenRuns(t.Context(), &log.Reader, t.TempDir()); err != nil || len(list) != 1 || list[0].Run != "9" {
		t.Errorf("after a judgement: %+v, %v", list, err)
	}
}
