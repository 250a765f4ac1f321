package origin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// newLog returns an empty log.
func newLog(t testing.TB) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// viewOf returns a new view of a log.
func viewOf(t testing.TB, log *eventlog.Log) *View {
	t.Helper()
	v, err := Open(t.Context(), &log.Reader, filepath.Join(t.TempDir(), "changes.db"), []byte("key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// scene is a run that a test records.
type scene struct {
	refs   event.Refs
	events []event.Event
}

// newScene begins the record of a run of an agent in the directory /project.
func newScene(run, agent string) *scene {
	s := &scene{refs: event.Refs{Session: "s", Run: event.RunID(run), Input: event.InputID("input of " + run)}}
	s.fact(event.MessageReceived, fact.MessageReceived{Text: "text of " + run, Sender: "alice", Dir: "/project",
		Provider: agent})
	s.fact(event.Requested, fact.Requested{Provider: agent, CallIndex: 1})
	return s
}

func (s *scene) fact(t event.Type, payload any) {
	s.events = append(s.events, event.NewFact(t, "perlica", s.refs, payload))
}

func (s *scene) frame(line string) {
	s.events = append(s.events, event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
		Refs: s.refs, Payload: []byte(line)})
}

// record writes the run to the log, with its end.
func (s *scene) record(t testing.TB, log *eventlog.Log) {
	t.Helper()
	s.fact(event.Responded, fact.Responded{})
	s.fact(event.CallEnforced, fact.Enforced{Calls: 1})
	if _, err := log.Append(t.Context(), s.events...); err != nil {
		t.Fatal(err)
	}
}

// answer adds a person's answer to the request with this id.
func (s *scene) answer(id, kind string) {
	e := event.NewFact(event.ReplySent, "perlica", s.refs, fact.ReplySent{RequestID: id, Outcome: "selected", Kind: kind,
		By: "bob"})
	e.Interaction = event.InteractionID("question " + id)
	s.events = append(s.events, e)
}

// play adds the recorded lines of an agent. A person gives the recorded answers.
func (s *scene) play(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kinds := map[string]string{} // the kinds of the options of each request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var frame struct {
			From string
			Line json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &frame); err != nil {
			t.Fatal(err)
		}
		env := provider.ParseMessage(frame.Line)
		switch {
		case frame.From == "agent" && env.Kind != provider.Response:
			s.frame(string(frame.Line))
			var p struct {
				Options []struct{ OptionId, Kind string }
			}
			_ = json.Unmarshal(env.Params, &p)
			for _, o := range p.Options {
				kinds[env.ID+" "+o.OptionId] = o.Kind
			}
		case frame.From == "client" && bytes.Contains(env.Result, []byte(`"outcome"`)):
			var r struct{ Outcome struct{ OptionId string } }
			_ = json.Unmarshal(env.Result, &r)
			s.answer(env.ID, kinds[env.ID+" "+r.Outcome.OptionId])
		}
	}
}

// TestRecordedFrames reads the changes from the recorded frames of each agent. A person allowed or refused the write. A
// shell command is no recorded change.
func TestRecordedFrames(t *testing.T) {
	frames := filepath.Join("..", "..", "provider", "testdata", "frames")
	files, err := filepath.Glob(filepath.Join(frames, "*_write_*.ndjson"))
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".ndjson")
		t.Run(name, func(t *testing.T) {
			agent, yes, _ := strings.Cut(name, "_write_")
			log := newLog(t)
			s := newScene(name, agent)
			s.play(t, path)
			s.record(t, log)
			v := viewOf(t, log)
			list, err := v.Changes(t.Context(), Wanted{})
			if err != nil {
				t.Fatal(err)
			}
			if yes == "no" || agent == "codex" {
				if len(list) > 0 {
					t.Errorf("%+v, want no change", list)
				}
				return
			}
			file, want := "/project/yes.txt", "person bob"
			if agent == "claude" || agent == "opencode" {
				file = "/project/out.txt"
			}
			if agent == "pi" {
				want = "unknown " // This agent never asks, and the scene has no report about it.
			}
			if len(list) != 1 {
				t.Fatalf("%+v, want one change", list)
			}
			c := list[0]
			if c.Path != file || c.Added != 1 || c.Removed != 0 || c.Perhaps || c.Kind+" "+c.Who != want || c.By != "alice" {
				t.Errorf("%+v", c)
			}
			diff, err := v.Diff(t.Context(), c)
			if diff != "+hello\n" || err != nil {
				t.Errorf("diff %q, %v", diff, err)
			}
			content := "hello"
			if agent == "cline" {
				content = "hello\n"
			}
			got, err := v.Blame(t.Context(), []string{file}, content)
			origin := 0
			if agent == "pi" {
				origin = unknown // its frames do not tell whether the file was missing before
			}
			if err != nil || len(got.Lines) != 1 || got.Lines[0].Change != origin {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
