package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// TestShownOnlyWhenOnDisk checks, through another connection to the file, that each shown line is already on disk.
func TestShownOnlyWhenOnDisk(t *testing.T) {
	r := openRunner(t)
	file, err := store.OpenReader(t.Context(), r.opt.Paths.EventLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shown := 0
	s := newShower(func(n record.Notice) {
		shown++
		size, _, err := file.Head(t.Context())
		want, aerr := strconv.ParseInt(n.(record.Updated).Text, 10, 64)
		if err != nil || aerr != nil || size < want {
			t.Errorf("update %d was shown with %d events on disk, %v, %v", want, size, err, aerr)
		}
	}, r.log, func(err error) { t.Error(err) })
	for i := range 50 {
		line := event.Event{Type: event.NotificationReceived, Class: event.Frame, Payload: []byte("{}")}
		if err := r.log.Record(line); err != nil {
			t.Fatal(err)
		}
		s.addNotice(record.Updated{Update: provider.Update{Text: fmt.Sprint(i + 1)}})
		if i%10 == 0 {
			if err := r.log.Sync(); err != nil { // so that there are several batches
				t.Fatal(err)
			}
		}
	}
	s.closeQueue()
	if shown != 50 {
		t.Errorf("%d of 50 were shown", shown)
	}
}

// TestNothingIsShownThatCouldNotBeSynced checks that nothing is shown after a line could not be written to disk.
func TestNothingIsShownThatCouldNotBeSynced(t *testing.T) {
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(log.Path(), log.Path()+".moved"); err != nil {
		t.Fatal(err)
	}
	var failed error
	s := newShower(func(record.Notice) { t.Error("shown") }, log, func(err error) { failed = err })
	if err := log.Record(event.NewFact("x", "user", event.Refs{}, struct{}{})); err != nil {
		t.Fatal(err)
	}
	s.addNotice(record.Updated{})
	s.closeQueue()
	if failed == nil || !errors.Is(log.Close(), failed) {
		t.Errorf("reported: %v", failed)
	}
}

// TestTheAnswerComesBeforeItsConsequence checks that the end of a question is shown before the agent's reaction to the
// answer.
func TestTheAnswerComesBeforeItsConsequence(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	const rounds = 30
	notices, done := underWay(t, c, strings.Repeat(askOnce+"\n", rounds))
	for range rounds {
		q := first[record.Asked](t, notices).Question
		if err := r.AnswerQuestion(t.Context(), q, interaction.Answer{Option: "y", By: "me"}); err != nil {
			t.Fatal(err)
		}
		// A second answer gets to know the first one, even if it is not valid itself.
		err := r.AnswerQuestion(t.Context(), q, interaction.Answer{Option: "none", By: "you"})
		var taken *interaction.TakenError
		if !errors.As(err, &taken) || taken.Answer == nil || taken.Answer.By != "me" {
			t.Fatalf("the second answer: %v", err)
		}
		for closed, said := false, false; !said; {
			switch n := (<-notices).(type) {
			case record.Closed:
				closed = true
			case record.Updated:
				if said = strings.Contains(n.Text, "permission: y"); said && !closed {
					t.Fatal("what the agent made of the answer came first")
				}
			}
		}
	}
	<-done
	closeConversation(t, c)
}

// TestTheDecisionComesBeforeItsConsequence checks that a decision of the mode is shown before the agent's reaction to
// it.
func TestTheDecisionComesBeforeItsConsequence(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	decided, said := 0, 0
	_, err := c.Run(t.Context(), Turn{
		Input: Input{Text: strings.Repeat(askOnce+"\n", 30), Source: "test"}, Permissions: policy.ModeAllow,
		Show: func(n record.Notice) {
			switch n := n.(type) {
			case record.Decided:
				decided++
			case record.Updated:
				if strings.Contains(n.Text, "permission: y") {
					if said++; said > decided {
						t.Error("what the agent made of the decision came first")
					}
				}
			}
		},
	})
	if err != nil || said != 30 {
		t.Errorf("%d replies, %v", said, err)
	}
	closeConversation(t, c)
}

// TestHeldNotices checks that queued notices are shown once and in order: after flushQueue, when the queue is full, and
// at the end.
func TestHeldNotices(t *testing.T) {
	shown := make(chan record.Notice, 3*showQueue)
	held := make(chan struct{})
	s := newShower(func(n record.Notice) {
		<-held // shows nothing until the queue has been full
		shown <- n
	}, nil, func(err error) { t.Error(err) })
	s.flushQueue() // the queue is empty
	go func() {
		defer close(held)
		for i := range 2 * showQueue { // more notices than the queue can have, without flushQueue
			s.holdNotice(record.Warned{Detail: strconv.Itoa(i)})
		}
	}()
	soon(t, "the room for the last", held)
	s.flushQueue()
	large := provider.Update{Raw: make([]byte, showBytes+1)}
	s.holdNotice(record.Updated{Update: large}) // this notice still fits, and the next one does not
	s.holdNotice(record.Warned{Detail: "last"})
	s.closeQueue()
	s.closeQueue()
	s.addNotice(record.Warned{Detail: "too late"})
	for i := range 2 * showQueue {
		if w, ok := (<-shown).(record.Warned); !ok || w.Detail != strconv.Itoa(i) {
			t.Fatalf("%#v in place of %d", w, i)
		}
	}
	if _, ok := (<-shown).(record.Updated); !ok || len(shown) != 1 || (<-shown).(record.Warned).Detail != "last" {
		t.Error("the last two are not as they were held")
	}
}
