package origin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestInferred checks when a changed file counts as changed during a run. If an observation is late or not complete, or
// if another run was under way, nothing is inferred.
func TestInferred(t *testing.T) {
	other := newScene("other", "claude")
	file := func(names ...string) (list []fact.TreeFile) {
		for _, name := range names {
			list = append(list, fact.TreeFile{Path: name, Mode: "100644", Size: 1, Blob: "b"})
		}
		return list
	}
	command := func(s *scene, id, status string) {
		s.update("tool_call", id, members{"kind": "execute", "title": "make " + id, "status": "in_progress"})
		s.update("tool_call_update", id, members{"status": status})
	}
	before := fact.TreeObserved{When: "before", Root: "/project"}
	after := fact.TreeObserved{When: "after", Root: "/project", Changed: file("gen.go", "sub/old.go")}
	for name, c := range map[string]struct {
		turn func(s *scene)
		want string
	}{
		"one command": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "gen", "completed")
			s.fact(event.TreeObserved, after)
		}, "/project/gen.go by make gen unknown, /project/sub/old.go by make gen unknown"},
		"a command that failed": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "gen", "failed")
			s.fact(event.TreeObserved, after)
		}, "/project/gen.go by make gen unknown, /project/sub/old.go by make gen unknown"},
		"two commands": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "a", "completed")
			command(s, "b", "completed")
			s.fact(event.TreeObserved, after)
		}, "/project/gen.go by make a make b , /project/sub/old.go by make a make b "},
		"a described change": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "gen", "completed")
			s.update("tool_call", "w", members{"status": "completed", "content": []any{members{"type": "diff",
				"path": "/project/gen.go", "oldText": "a", "newText": "b"}}})
			s.fact(event.TreeObserved, after)
		}, "/project/sub/old.go by make gen unknown"},
		"the first observation came late": {func(s *scene) {
			command(s, "gen", "completed")
			s.fact(event.TreeObserved, before)
			s.fact(event.TreeObserved, after)
		}, ""},
		"the second observation came late": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "gen", "completed")
			late := after
			late.Late = true
			s.fact(event.TreeObserved, late)
		}, ""},
		"not complete": {func(s *scene) {
			more := before
			more.More = true
			s.fact(event.TreeObserved, more)
			command(s, "gen", "completed")
			s.fact(event.TreeObserved, after)
		}, ""},
		"another run began": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			command(s, "gen", "completed")
			s.events = append(s.events, other.events...)
			s.fact(event.TreeObserved, after)
		}, ""},
		"another run was under way": {func(s *scene) {
			s.events = append(s.events, other.events...)
			s.fact(event.TreeObserved, before)
			command(s, "gen", "completed")
			s.fact(event.TreeObserved, after)
		}, ""},
		"no tool call": {func(s *scene) {
			s.fact(event.TreeObserved, before)
			s.fact(event.TreeObserved, after)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLog(t)
			s := newScene("r", "claude")
			c.turn(s)
			last := len(s.events) - 1 // the observation after the turn follows the end of the run
			observed := s.events[last]
			s.events = s.events[:last]
			s.record(t, log)
			if _, err := log.Append(t.Context(), observed); err != nil {
				t.Fatal(err)
			}
			list, err := viewOf(t, log).Changes(t.Context(), Wanted{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				if c.Inferred {
					got = append(got, fmt.Sprintf("%s by %s %s", c.Path, strings.Join(c.Commands, " "), c.Kind))
				}
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
