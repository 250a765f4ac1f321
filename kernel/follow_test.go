package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// watched follows a session. It converts each notice to a few words.
type watched struct {
	t     *testing.T
	shown chan string
}

func watch(t *testing.T, r *Runner, session event.SessionID, turns int) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{t: t, shown: make(chan string, 100)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n, err := range record.Follow(ctx, &r.log.Reader, r.opt.Paths.Locks, session, turns) {
			if err != nil {
				t.Error(err)
				return
			}
			w.shown <- word(n)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func word(n record.Notice) string {
	switch n := n.(type) {
	case record.Received:
		return "received " + n.Text
	case record.Started:
		return "started by " + n.Provider
	case record.Updated:
		return "said " + n.Text
	case record.Asked:
		return fmt.Sprint("asked ", n.Title, " ", n.Answerable)
	case record.Closed:
		if n.Answer != nil {
			return "answered " + n.Question.Title + ": " + n.Answer.Option + " by " + n.Answer.By
		}
		return "lapsed " + n.Question.Title + ": " + string(n.Reason)
	case record.Decided:
		return "decided " + n.Title + ": " + n.Effect
	case record.Blocked:
		return "blocked " + n.Method
	case record.Stopping:
		return "stopping: " + n.Why
	case record.Finished:
		return fmt.Sprintf("finished %s: %s, %d call", n.Outcome, n.Text, n.Calls)
	case record.Held:
		return "held by " + n.By
	case record.Freed:
		return "freed" + map[bool]string{true: " in a turn"}[n.Run != ""]
	}
	return fmt.Sprintf("%T", n)
}

// expect checks that the next notices are the wanted ones, in this order.
func (w *watched) expect(want ...string) {
	w.t.Helper()
	for _, s := range want {
		select {
		case got := <-w.shown:
			if got != s {
				w.t.Fatalf("shown %q, want %q", got, s)
			}
		case <-time.After(2 * time.Minute):
			w.t.Fatalf("never shown %q", s)
		}
	}
}

// until skips notices until the wanted one comes.
func (w *watched) until(want string) {
	w.t.Helper()
	var passed []string
	for {
		select {
		case got := <-w.shown:
			if got == want {
				return
			}
			passed = append(passed, got)
		case <-time.After(2 * time.Minute):
			w.t.Fatalf("never shown %q, only %q", want, passed)
		}
	}
}

// TestFollow checks that a follower sees the running turn from its beginning, each later event, and the holder of the
// session.
func TestFollow(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	say(t, c, "@say before")
	now := watch(t, r, c.Session(), 0)
	now.expect("held by test")
	asked := make(chan interaction.Question, 1)
	done := make(chan record.Result, 1)
	go func() {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: "@say one\n@read /etc/passwd\n@ask execute Build command=make",
				Source: "test"}, Permissions: policy.ModeAsk, AnswerIn: time.Hour,
			Show: func(n record.Notice) {
				if q, ok := n.(record.Asked); ok {
					asked <- q.Question
				}
			},
		})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	q := <-asked
	turn := []string{"received " + "@say one\n@read /etc/passwd\n@ask execute Build command=make", "started by test",
		"said one"}
	late := watch(t, r, c.Session(), 1)
	late.expect(turn...)
	for _, w := range []*watched{now, late} {
		if w == now {
			w.expect(turn...)
		}
		w.until("asked Build true")
	}
	if err := r.AnswerQuestion(t.Context(), q, interaction.Answer{Option: q.Options[0].ID, By: "me"}); err != nil {
		t.Fatal(err)
	}
	res := <-done
	all := watch(t, r, c.Session(), 5)
	all.expect("received @say before", "started by test", "said before", "finished responded: before, 1 call")
	all.expect(turn...)
	all.until("blocked fs/read_text_file")
	all.until("asked Build false")
	for _, w := range []*watched{now, late, all} {
		w.until("answered Build: " + q.Options[0].ID + " by me")
		w.until("finished responded: " + res.Text + ", 1 call")
	}
	all.expect("held by test")
	closeConversation(t, c)
	for _, w := range []*watched{now, late, all} {
		w.expect("freed")
	}
}

// TestFollowTheKilled checks that a follower sees that the turn's process has ended, and later the outcome that
// recovery records.
func TestFollowTheKilled(t *testing.T) {
	r := openRunner(t)
	run := abandon(t, r, 5)
	w := watch(t, r, "s", 1)
	w.expect("received hi", "started by p", "said half an ", "asked may I? false", "freed in a turn")
	if _, err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.expect("lapsed may I?: "+string(interaction.Crashed), "finished outcome_unknown: half an , 1 call")
	append1(t, r, event.NewFact(event.CancelRequested, "user", event.Refs{Session: "s", Run: run},
		fact.Stop{By: "user", Why: "late"}))
	w.expect("stopping: late")
}

// TestFollowTheQuietlyKilled checks that a follower sees the end of a holder that writes no event, even after a quiet
// time.
func TestFollowTheQuietlyKilled(t *testing.T) {
	t.Parallel()
	r := openRunner(t)
	append1(t, r, newSessionFact("s", fact.SessionCreated{Provider: "p"}))
	lock, err := filelock.Acquire(filelock.Session(r.opt.Paths.Locks, "s"))
	if err != nil {
		t.Fatal(err)
	}
	lock.Sign("test", time.Now())
	w := watch(t, r, "s", 1)
	w.expect("held by test")
	select {
	case got := <-w.shown:
		t.Fatalf("shown %q", got)
	case <-time.After(3 * time.Second): // nothing happens in this time
	}
	lock.Free() // a lock becomes free like this when its process ends
	w.expect("freed")
}

// TestFollowLog checks that a follower of the whole log can begin after any event. It must get the same entries as a
// follower from the beginning.
func TestFollowLog(t *testing.T) {
	r := openRunner(t)
	one, two := converse(t, r, "", "", ""), converse(t, r, "", "", "")
	say(t, one, "@say first\n@read /etc/passwd")
	say(t, two, "@say second")
	abandon(t, r, 5)
	if _, err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	follow := func(after event.Seq, finished int, onRecord func()) (seqs []event.Seq, list []string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for e, err := range r.FollowLog(ctx, after) {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Notice.(type) {
			case record.Held, record.Freed:
				continue
			case record.Finished:
				finished--
			}
			seqs = append(seqs, e.Seq)
			list = append(list, fmt.Sprint(e.Seq, " ", e.Refs.Session, " ", word(e.Notice)))
			if finished == 1 && onRecord != nil {
				onRecord()
				onRecord = nil
			}
			if finished == 0 {
				break
			}
		}
		return seqs, list
	}
	seqs, all := follow(0, 3, nil)
	over := 0
	for i, seq := range seqs[:len(seqs)-1] {
		if seqs[i+1] <= seq {
			t.Errorf("more than one notice of an event: %q", all[i:i+2])
		}
		if strings.Contains(all[i], " finished ") {
			over++
		}
		if _, got := follow(seq, 3-over, nil); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %d: %q, want %q", seq, got, all[i+1:])
		}
	}
	// Some of the sections end inside a turn.
	for i := range seqs {
		for j := i + 1; j < len(seqs); j++ {
			var part []string
			past := &record.Reading{Log: &r.log.Reader, At: seqs[i]}
			for past.At < seqs[j] { // reads one entry at a time, each after the previous one
				for e, err := range past.Until(t.Context(), seqs[j]) {
					if err != nil {
						t.Fatal(err)
					}
					part = append(part, fmt.Sprint(e.Seq, " ", e.Refs.Session, " ", word(e.Notice)))
					break
				}
			}
			if !slices.Equal(part, all[i+1:j+1]) {
				t.Errorf("from %d to %d: %q, want %q", seqs[i], seqs[j], part, all[i+1:j+1])
			}
		}
	}
	said := make(chan struct{})
	_, got := follow(0, 4, func() {
		go func() {
			defer close(said)
			say(t, two, "@say third")
		}()
	})
	<-said
	if end := got[len(got)-1]; len(got) <= len(all) || !strings.HasSuffix(end, "finished responded: third, 1 call") {
		t.Errorf("%q", got)
	}
}

// TestFollowAFlood checks that a follower gets every event exactly once if events come faster than it reads them.
func TestFollowAFlood(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	say(t, c, "@say first")
	const updates = 2560 // several times readMost
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said := make(chan struct{})
	var last event.Seq
	texts, finished := 0, 0
	for e, err := range r.FollowLog(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Notice.(type) {
		case record.Held, record.Freed:
			continue
		case record.Updated:
			texts++
		case record.Finished:
			finished++
		}
		if e.Seq <= last {
			t.Fatalf("%d comes behind %d", e.Seq, last)
		}
		last = e.Seq
		if finished == 2 {
			break
		}
		if _, over := e.Notice.(record.Finished); over {
			go func() {
				defer close(said)
				say(t, c, fmt.Sprintf("@stream %d 10", updates))
			}()
		}
	}
	<-said
	if texts != updates+1 {
		t.Errorf("%d texts, want %d", texts, updates+1)
	}
}
