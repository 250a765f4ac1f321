package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestDiskFull checks a hub with a full disk. It accepts nothing and says so at once, and the
// running call continues. After space is free again, every acknowledged input is answered once.
func TestDiskFull(t *testing.T) {
	s := hubtest.New(t, "min_wal_size=32MB", "max_wal_size=32MB")
	s.Small(t, "128")
	s.Init(t)
	s.Run(t)
	m, alice := founded(t, s, "postgres")
	m.work(t, alice, 1)
	submit(t, alice, asks("running", "@ask execute Build command=make"))
	until(t, "it asks", func() bool {
		open, err := alice.Hub.Questions(t.Context(), "", "running")
		return err == nil && len(open) == 1
	})
	free := s.Fill(t)
	client := m.open(t)
	var taken []string
	// The hub must refuse at once. This time is shorter than the client's search for an interrupted submission.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		id := fmt.Sprint("i", i)
		if _, err = client.Submit(ctx, []Draft{asks(id, "@say "+strings.Repeat("x", 100_000))}); err == nil {
			taken = append(taken, id)
		}
	}
	t.Logf("%d inputs were taken: %v", len(taken), err)
	if len(taken) == 0 {
		t.Error("the disk was full from the start")
	}
	if !errors.Is(err, hub.ErrFull) && !s.Ended() {
		t.Errorf("the error is %v", err)
	}
	open, err := alice.r.PendingQuestions(t.Context()) // at the worker's own terminal
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	yes, _ := open[0].First("allow_once")
	if err := alice.r.AnswerQuestion(t.Context(), open[0], interaction.Answer{Option: yes.ID, By: "alice",
		Where: "pending"}); err != nil {
		t.Fatal(err)
	}
	until(t, "the call ends", func() bool {
		runs, err := alice.Log().OpenRuns(t.Context())
		return err == nil && len(runs) == 0 && calls(t, alice, "running") == 1
	})
	free()
	if s.Ended() {
		s.Kill()
		s.Run(t)
	}
	for _, id := range append(taken, "running") {
		if st := ended(t, alice, id, nil); st.State != "responded" || calls(t, alice, id) != 1 {
			t.Errorf("%s: %s, %d calls", id, st.State, calls(t, alice, id))
		}
	}
}
