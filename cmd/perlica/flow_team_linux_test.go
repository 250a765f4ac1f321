package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// workerOf adds a machine to the team. The world w belongs to the team's first member. The machine serves the
// project of w. The function heard counts the prompts of its agent that contain a text.
func (w *world) workerOf(s *hubtest.Server, database, name string) (m *world, heard func(string) int) {
	w.t.Helper()
	m = otherWorld(w.t)
	heard = m.countedAgent("")
	role := strings.ToLower(database) + "_" + name
	s.SQL(w.t, database, "CREATE ROLE "+role+" LOGIN IN ROLE perlica_member")
	m.env = append(m.env, "PERLICA_TEAM_URL="+s.URL(role, database))
	key := regexp.MustCompile(`(?m)^perlica/team.*$`).FindString(m.run("team", "join", name).stdout.String())
	w.run("team", "confirm", name, "--key", key, "--rights", "ask,approve").exits(0)
	return m, heard
}

func (m *world) teamWork() *job {
	return m.start("team", "work", "-n", "4", "--project", "shared="+m.project)
}

// TestFlowTeamKilled runs a flow of 60 items with --team. It kills the driver and two workers at random points and
// starts them again. No agent of any machine may hear an input twice. The result must be that of an undisturbed flow,
// and flow show must name the machine of each item.
//
// The driver must not make new ids after a restart. It must not hand an input over again that the hub has. It must not
// take the texts of answers from its own log.
func TestFlowTeamKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	w := newWorld(t)
	s, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+s.URL(hubtest.Lead, database))
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)
	const items = 60
	path, input := w.flowFile(strings.ReplaceAll(fanOut, "20ms", "100ms"), items)
	args := []string{"flow", "run", path, input, "--id=torn", "--team", "--team-project=shared", "--provider=counted"}
	var machines []*world
	var jobs []*job
	var counts []func(string) int
	for _, name := range []string{"one", "two"} {
		m, heard := w.workerOf(s, database, name)
		machines, counts, jobs = append(machines, m), append(counts, heard), append(jobs, m.teamWork())
	}
	heard := func(text string) (n int) {
		for _, count := range counts {
			n += count(text)
		}
		return n
	}
	random := rand.New(rand.NewPCG(*flowSeed, 0))
	drives := w.start(args...)
	for range *flowKills {
		select {
		case <-time.After(time.Duration(100+random.IntN(900)) * time.Millisecond):
		case <-t.Context().Done():
		}
		i := random.IntN(len(machines) + 1)
		if i == len(machines) {
			drives.signal(syscall.SIGKILL)
			drives.wait()
			drives = w.start(args...)
			continue
		}
		jobs[i].signal(syscall.SIGKILL)
		jobs[i].wait()
		machines[i].gone()
		jobs[i] = machines[i].teamWork()
	}
	drives.wait()
	retried := map[int]bool{}
	for range *flowKills { // a worker may have died during a retried call, too
		shown := w.flowShown("torn")
		again := false
		for _, it := range shown.Steps[0].Items {
			if it.State == "unknown" {
				retried[it.Item], again = true, true
				w.run("flow", "retry", "torn", fmt.Sprint("each/", it.Item)).exits(0)
			}
		}
		if !again {
			break
		}
		drives.exits(6)
		if n := heard(")(item-"); n != 0 || shown.Steps[1].State != "waiting" {
			t.Errorf("the last step was called %d times and is %s, with unknown outcomes before it", n, shown.Steps[1].State)
		}
		drives = w.run(args...)
	}
	t.Logf("%d of %d items had an unknown outcome after %d kills", len(retried), items, *flowKills)
	drives.exits(0)
	want := ""
	for i := range items {
		text := fmt.Sprintf("(item-%05d)", i+1)
		want += text
		most := 1
		if retried[i+1] {
			most = 2
		}
		if n := heard("@say " + text + `\n@sleep`); n > most {
			t.Errorf("the agents heard %s %d times", text, n)
		}
	}
	if n := heard("@say " + want); n != 1 {
		t.Errorf("the agents heard the last step %d times", n)
	}
	did := map[string]int{}
	for _, it := range w.flowShown("torn").Steps[0].Items {
		did[it.Worker]++
	}
	if did["one"] == 0 || did["two"] == 0 || did["one"]+did["two"] != items {
		t.Errorf("flow show names these machines: %v", did)
	}
	for i, m := range machines {
		jobs[i].signal(syscall.SIGTERM)
		jobs[i].exits(0)
		m.gone()
		if err := auditLog(filepath.Join(m.home, ".perlica", "state", "teams", ".perlica_config", "contexts", "team",
			"eventlog.db")); err != nil {
			t.Error(err)
		}
	}
	w.logged(0, "llm.requested")
	w.audit()
}
