package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestServiceOfATeam checks that a worker's question reaches the phone of a contact with the right to answer for
// everybody. The bridge is killed, and the contact answers the question afterwards. This machine's log for the team
// must name the person.
func TestServiceOfATeam(t *testing.T) {
	w := newWorld(t)
	s, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+s.URL(hubtest.Lead, database))
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)
	worker := w.start("team", "work")
	bridge := w.service()
	phone := w.phone("carol", "ask,approve,admin")
	asked := w.start("run", "--team", "--input-id", "one", "@ask execute Build command=make\n@say behind")
	phone.hears("At the worker alice of the team")
	phone.hears("input one")
	bridge.signal(syscall.SIGKILL)
	bridge.exits(-1)
	bridge = w.start("service")
	phone.says("/pending")
	phone.hears("question `")
	phone.says("@2 1") // The reply names the question, because a new bridge does not know the order of the questions.
	phone.hears("answered at")
	asked.exits(0)
	if out := asked.stdout.String(); !strings.Contains(out, "behind") {
		t.Errorf("%q", out)
	}
	if n := strings.Count(phone.stdout.String(), "or with `#"); n != 1 {
		t.Errorf("%d cards: %s", n, phone.stdout.String())
	}
	cmd := w.command("log", "tail", "--context", "team", "--json", "-n", "1000", "--type", "team.answered")
	cmd.Dir = filepath.Join(w.home, ".perlica", "state", "teams")
	shown := w.startCmd(cmd)
	shown.wait()
	if out := shown.stdout.String(); !strings.Contains(out, `"by":"carol (local:carol-`) ||
		!strings.Contains(out, `"where":"local"`) {
		t.Errorf("on record: %s", out)
	}
	w.logged(1, "service.team_question", "alice")
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)

	// With this setting, the bridge leaves the questions to other front ends.
	w.config("[service]\nteam = false\n")
	bridge = w.start("service")
	asked = w.start("run", "--team", "--input-id", "two", "@ask execute Again command=make")
	w.eventually("the question is open", func() error {
		pending := w.run("team", "pending")
		pending.exits(0)
		if out := pending.stdout.String(); !strings.Contains(out, "Again") {
			return errors.New(out)
		}
		return nil
	})
	phone.says("@sleep 4s") // This takes longer than a question needs to arrive.
	phone.says("hello")
	phone.hears("You said: hello")
	if strings.Contains(phone.stdout.String(), "Again") {
		t.Error("it came all the same")
	}
	w.run("team", "cancel", "two").exits(0)
	asked.wait()
	for _, j := range []*job{bridge, worker} {
		j.signal(syscall.SIGTERM)
		j.exits(0)
	}
}
