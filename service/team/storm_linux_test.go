package team

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

var (
	stormFor     = flag.Duration("storm-for", 50*time.Second, "how long TestStorm goes on")
	stormSeed    = flag.Uint64("storm-seed", 1, "what happens in TestStorm, and when")
	stormWorkers = flag.Int("storm-workers", 2, "how many workers TestStorm has, of two processes each")
)

// storm is a team in which faults happen.
type storm struct {
	t        *testing.T
	rnd      *rand.Rand
	server   *hubtest.Server
	networks []*hubtest.Proxy // the networks of all machines except the first
	machines []machine
	teams    []*Team     // alice's first
	procs    []*exec.Cmd // two for each machine
	ids      []string
	happened map[string]int
	lasting  sync.WaitGroup // temporary faults that have not ended yet
}

func newStorm(t *testing.T) *storm {
	w := &storm{t: t, rnd: rand.New(rand.NewPCG(*stormSeed, 0)), server: hubtest.Start(t), happened: map[string]int{}}
	m, alice := founded(t, w.server, "postgres")
	w.machines, w.teams = append(w.machines, m), append(w.teams, alice)
	for i := range *stormWorkers - 1 {
		m, j := member(t, alice, m.opt.URL, fmt.Sprint("worker", i), access.Ask)
		network := hubtest.NewProxy(t, w.server)
		m.opt.URL = network.URL(regexp.MustCompile("user=(.*)").FindStringSubmatch(m.opt.URL)[1], "postgres")
		w.machines, w.teams, w.networks = append(w.machines, m), append(w.teams, j), append(w.networks, network)
	}
	for _, m := range w.machines {
		w.procs = append(w.procs, m.start(t, ""), m.start(t, ""))
	}
	return w
}

// more submits inputs. The last one continues the session of an earlier one, if possible.
func (w *storm) more(n int) {
	var drafts []Draft
	for range n {
		id := fmt.Sprint("i", len(w.ids))
		w.ids = append(w.ids, id)
		drafts = append(drafts, asks(id, fmt.Sprintf("@sleep %dms\n@say %s", 20+w.rnd.IntN(1500), id)))
	}
	earlier, _, err := w.teams[0].Hub.Status(w.t.Context(), w.ids[w.rnd.IntN(len(w.ids))])
	if r, rerr := ResultOf(earlier); err == nil && rerr == nil && r.SessionID != "" {
		last := &drafts[n-1]
		last.Worker, last.Session = earlier.Worker, event.SessionID(r.SessionID)
		w.happened["session gone on with"]++
	}
	submit(w.t, w.teams[0], drafts...)
}

// strike causes one fault.
func (w *storm) strike() {
	i := w.rnd.IntN(len(w.procs))
	switch n := w.rnd.IntN(len(w.procs) + 4); {
	case n < len(w.procs):
		w.happened["worker killed"]++
		kill(w.t, w.procs[i])
		w.procs[i] = w.machines[i/2].start(w.t, "")
	case n < len(w.procs)+2:
		w.happened["server killed"]++
		w.server.Kill()
		w.server.Run(w.t)
	case n == len(w.procs)+2 && len(w.networks) > 0:
		w.happened["network cut"]++
		network := w.networks[w.rnd.IntN(len(w.networks))]
		network.Cut()
		w.later(network.Restore)
	default:
		w.happened["worker stopped"]++
		p := w.procs[i].Process
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			w.t.Error(err)
		}
		w.later(func() { _ = p.Signal(syscall.SIGCONT) }) // the process may have been killed
	}
}

// later ends a temporary fault within three seconds.
func (w *storm) later(end func()) {
	w.lasting.Add(1)
	time.AfterFunc(time.Duration(w.rnd.IntN(3000))*time.Millisecond, func() {
		defer w.lasting.Done()
		end()
	})
}

// prompts counts how often the agents have read the prompt of each input.
func (w *storm) prompts() map[string]int {
	said := regexp.MustCompile(`@say (i[0-9]+)"`) // the name ends the prompt
	n := map[string]int{}
	for _, m := range w.machines {
		b, err := os.ReadFile(filepath.Join(m.dir, promptFile))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, found := range said.FindAllSubmatch(b, -1) {
			n[string(found[1])]++
		}
	}
	return n
}

// inSecondPlace reports whether the intents file of a log names the input. Perlica writes each intent to the log and to
// this file.
func (w *storm) inSecondPlace(id string) bool {
	return slices.ContainsFunc(w.teams, func(j *Team) bool {
		called, _, err := intents.Names(j.Log().Path(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		return called
	})
}

// TestStorm kills workers and the server, stops workers, and cuts networks, repeatedly. No input is
// called twice and none is lost. All copies equal their logs and verify.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	w := newStorm(t)
	w.more(10)
	for end := time.Now().Add(*stormFor); time.Now().Before(end); {
		select {
		case <-time.After(time.Duration(200+w.rnd.IntN(600)) * time.Millisecond):
		case <-t.Context().Done():
		}
		w.strike()
		w.more(3)
	}
	w.lasting.Wait()
	states := map[string]string{}
	for _, id := range w.ids {
		states[id] = ended(t, w.teams[0], id, nil).State
	}
	outcomes, prompts := map[string]int{}, w.prompts()
	for _, id := range w.ids {
		outcomes[states[id]]++
		n := 0
		for _, j := range w.teams {
			n += calls(t, j, id)
		}
		// A worker writes an intent to the intents file and then to the log. If it is killed in between, only the file
		// names the input.
		if n > 1 || n == 0 && (states[id] != "outcome_unknown" || prompts[id] > 0 || !w.inSecondPlace(id)) {
			t.Errorf("%s was called %d times: %s", id, n, states[id])
		}
		if n := prompts[id]; n > 1 || n == 0 && states[id] == "responded" {
			t.Errorf("the agents have read %d prompts of %s: %s", n, id, states[id])
		}
		if states[id] != "responded" && states[id] != "outcome_unknown" {
			t.Errorf("%s: %s", id, states[id])
		}
	}
	w.verify()
	t.Logf("seed %d, %d workers: %d inputs %v, %v", *stormSeed, len(w.machines), len(w.ids), outcomes, w.happened)
}

// verify compares all copies with their logs.
func (w *storm) verify() {
	for _, c := range w.procs {
		_ = c.Process.Signal(syscall.SIGTERM) // the worker ends normally
		if err := c.Wait(); err != nil {
			w.t.Errorf("a worker at its end: %v", err)
		}
	}
	sizes := map[string]int64{}
	for _, j := range w.teams {
		// Try several times, because the connection may lead to a killed server.
		until(w.t, "the copy of "+j.As+" is whole", func() bool {
			return hub.NewCopySender(j.Hub, &j.Log().Reader, j.As).Send(context.Background()) == nil
		})
		size, _, err := j.Log().Head(context.Background())
		if err != nil {
			w.t.Error(err)
		}
		sizes[j.As] = size
	}
	list, err := keeper(w.t, w.teams[0]).Round(context.Background(), true)
	if err != nil || len(list) != len(w.teams) {
		w.t.Errorf("%d copies, %v", len(list), err)
	}
	for _, v := range list {
		if v.Problem != "" || v.Size != sizes[v.Worker] {
			w.t.Errorf("the copy of %s has %d of %d events: %s", v.Worker, v.Size, sizes[v.Worker], v.Problem)
		}
	}
}
