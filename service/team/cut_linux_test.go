package team

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestCut checks a worker without a network. Its question can be answered at its own terminal, and
// its call continues. A later answer over the hub does not count and learns the reason. A claim
// with a lost confirmation starts only when the worker looks for its claims.
func TestCut(t *testing.T) {
	s := hubtest.Start(t)
	m, alice := founded(t, s, "postgres")
	_, bob := member(t, alice, m.opt.URL, "bob", access.Approve, access.Ask)
	network := hubtest.NewProxy(t, s)
	remote := m
	remote.opt.URL = network.URL("owner", "postgres")
	c := remote.start(t, "")

	submit(t, alice, asks("q", "@ask execute Build command=make"))
	var asked []hub.Question
	until(t, "the question is on the hub", func() bool {
		asked, _ = bob.Hub.Questions(t.Context(), "", "q") // after an error, until calls this function again
		return len(asked) == 1
	})
	network.Cut()
	// This reads the questions as 'perlica pending' does in another process on the worker's machine.
	open, err := alice.r.PendingQuestions(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	yes, _ := open[0].First("allow_once")
	no, _ := open[0].First("reject_once")
	if err := alice.r.AnswerQuestion(t.Context(), open[0], interaction.Answer{Option: yes.ID, By: "alice",
		Where: "pending"}); err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 1)
	go func() { late <- bob.Answer(t.Context(), asked[0], interaction.Answer{Option: no.ID}) }()
	until(t, "the call ends", func() bool {
		runs, err := alice.Log().OpenRuns(t.Context())
		return err == nil && len(runs) == 0 && calls(t, alice, "q") == 1
	})
	if st := stateOf(alice, "q"); st != hub.Claimed {
		t.Errorf("over a network that is cut: %s", st)
	}
	until(t, "the later answer is on the hub", func() bool {
		return s.SQL(t, "postgres", "SELECT count(*) FROM perlica.answers") == "1"
	})
	network.Restore()
	if st := ended(t, alice, "q", nil); st.State != "responded" || calls(t, alice, "q") != 1 {
		t.Errorf("%s, %d calls", st.State, calls(t, alice, "q"))
	} else if r, err := ResultOf(st); err != nil || r.Permissions.Allowed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var uncounted *UncountedError
	if err := <-late; !errors.As(err, &uncounted) || !strings.Contains(err.Error(), "by alice (pending)") {
		t.Errorf("the later answer: %v", err)
	}

	kill(t, c)
}

// TestLostAnswer checks a claim that reaches the hub while its confirmation is lost. It does not
// start at once. The worker finds it when it looks for its claims.
func TestLostAnswer(t *testing.T) {
	s := hubtest.Start(t)
	m, alice := founded(t, s, "postgres")
	network := hubtest.NewProxy(t, s)
	m.opt.URL = network.URL("owner", "postgres")
	w, err := NewWorker(t.Context(), m.open(t), WorkerOptions{Slots: 1, Projects: map[string]string{"website": m.dir},
		Note: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	// This claim without an input prepares the statement, so that the next claim needs one exchange.
	if n, err := w.claimInputs(t.Context(), t.Context(), 1); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	submit(t, alice, asks("a", "@say Once"))
	network.Deafen()
	lost := make(chan error, 1)
	go func() {
		_, err := w.claimInputs(t.Context(), t.Context(), 1)
		lost <- err
	}()
	until(t, "the hub has the claim", func() bool { return stateOf(alice, "a") == hub.Claimed })
	network.Reset()
	network.Restore()
	if err := <-lost; err == nil {
		t.Error("its answer came")
	}
	w.tasks.Wait()
	if n := calls(t, alice, "a"); n != 0 {
		t.Errorf("%d calls of a claim that nobody knows of", n)
	}
	if err := w.findClaims(t.Context(), t.Context(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	w.tasks.Wait()
	if n := calls(t, alice, "a"); n != 1 {
		t.Errorf("%d calls after the look", n)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestPromotionAmidCalls promotes and adopts a standby while one process of a worker is between claim and intent and
// another one is in a call. The old primary stays in service for its own worker. Each input is called once.
func TestPromotionAmidCalls(t *testing.T) {
	old := hubtest.Start(t)
	network := hubtest.NewProxy(t, old)
	m, alice := founded(t, old, "postgres")
	m2, bob := member(t, alice, m.opt.URL, "bob", access.Ask)
	standby := old.Backup(t, true)
	standby.Run(t)
	remote := m
	remote.opt.URL = network.URL("owner", "postgres")

	submit(t, alice, asks("stopped", "@say Late"))
	stopped := remote.start(t, "stop")
	until(t, "it is claimed", func() bool { return stateOf(alice, "stopped") == hub.Claimed })
	calling := remote.start(t, "")
	submit(t, alice, asks("calling", "@sleep 2s\n@say On"))
	until(t, "the call is under way", func() bool { return calls(t, alice, "calling") == 1 })
	old.AwaitReplayed(t, standby)
	standby.Kill()
	standby.Cut()
	standby.Run(t)
	standby.Promote(t)
	network.Aim(standby)

	// An admin adopts the new primary while the calls continue.
	now := m
	now.opt.URL = standby.URL("owner", "postgres")
	admin := now.open(t)
	if _, err := admin.Adopt(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	submit(t, admin, asks("new", "@say New"))
	if st := ended(t, admin, "new", nil); st.State != "responded" || calls(t, alice, "new") != 1 {
		t.Errorf("on the new primary: %s, %d calls", st.State, calls(t, alice, "new"))
	}
	if st := ended(t, admin, "calling", nil); st.State != hub.Adopted && st.State != "responded" {
		t.Errorf("in the middle of its call: %s", st.State)
	}

	// The old primary serves its own generation at the same time.
	drain := m2.work(t, bob, 1)
	submit(t, alice, asks("old", "@say Old"))
	if st := ended(t, alice, "old", nil); st.State != "responded" || st.Worker != "bob" || calls(t, bob, "old") != 1 {
		t.Errorf("on the old primary: %+v", st)
	}
	drain()
	if _, ok, err := admin.Hub.Status(t.Context(), "old"); ok || err != nil {
		t.Errorf("it is on the new one, too: %v", err)
	}

	// The owner of an input knows its claim from its own log, so it needs neither server.
	until(t, "it goes on", func() bool {
		_ = stopped.Process.Signal(syscall.SIGCONT) // the process may stop itself after this signal
		return stateOf(admin, "stopped") == "responded" && stateOf(admin, "calling") == "responded"
	})
	for _, id := range []string{"stopped", "calling", "new"} {
		if n := calls(t, alice, id) + calls(t, bob, id); n != 1 {
			t.Errorf("%s: %d calls", id, n)
		}
	}
	for _, c := range []*exec.Cmd{stopped, calling} {
		kill(t, c)
	}
}
