package kernel

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// TestAConversationMisused checks concurrent calls. Inputs run one after another, and Close and a setting wait for the
// turn. If the ctx of a waiting input ends, the input is not sent. After Close no input is sent.
func TestAConversationMisused(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if res := say(t, c, "@say x"); res.Text != "x" {
				t.Errorf("%q", res.Text)
			}
		})
	}
	wg.Wait()

	under, stop := make(chan struct{}), make(chan fact.Stop, 1)
	var once sync.Once
	wg.Go(func() {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: "@say begun\n@hang", Source: "test"}, Permissions: policy.ModeDeny, Stop: stop,
			Show: func(n record.Notice) {
				if _, ok := n.(record.Updated); ok {
					once.Do(func() { close(under) })
				}
			},
		})
		if err != nil || res.Stopped == nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
	<-under
	late, cancel := context.WithCancel(t.Context())
	cancel()
	wg.Go(func() {
		if res, err := c.Run(late, Turn{Input: Input{Text: "late", Source: "test"},
			Permissions: policy.ModeDeny}); err == nil && res.Calls > 0 {
			t.Errorf("an input was sent for nobody: %+v", res)
		}
	})
	wg.Go(func() {
		if err := c.SetMode(t.Context(), "auto"); err != nil && !errors.Is(err, ErrConversationClosed) {
			t.Error(err)
		}
	})
	wg.Go(func() { closeConversation(t, c) })
	stop <- fact.Stop{By: "user", Why: "enough"}
	wg.Wait()
	if _, err := c.Run(t.Context(), Turn{Input: Input{Text: "after", Source: "test"}}); !errors.Is(err,
		ErrConversationClosed) {
		t.Errorf("after Close: %v", err)
	}
	if all, _ := sent(t, r, "session/prompt"); all != 5 {
		t.Errorf("%d prompts, want 5", all)
	}
	c.after.Wait()
	if left, err := filepath.Glob(filepath.Join(r.opt.Paths.Locks, "*.lock")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestAnInputLeavesTheQueue checks that an input or a setting can stop waiting before the turn ends, and then leaves no
// event.
func TestAnInputLeavesTheQueue(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	under, first := make(chan struct{}), make(chan fact.Stop, 1)
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: "@say begun\n@hang", Source: "test"}, Permissions: policy.ModeDeny, Stop: first,
			Show: func(n record.Notice) {
				if _, ok := n.(record.Updated); ok {
					once.Do(func() { close(under) })
				}
			},
		})
		if err != nil || res.Stopped == nil || res.Stopped.Why != "enough" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	<-under
	why := errors.New("nobody wants it any more")
	late, cancel := context.WithCancelCause(t.Context())
	stop := make(chan fact.Stop, 1)
	gone := make(chan error, 3)
	for _, wait := range []func() error{
		func() error { _, err := c.Run(late, Turn{Input: Input{Text: "late"}}); return err },
		func() error { return c.SetMode(late, "auto") },
		func() error { _, err := c.Run(t.Context(), Turn{Input: Input{Text: "late"}, Stop: stop}); return err },
	} {
		go func() { gone <- wait() }()
	}
	cancel(why)
	stop <- fact.Stop{By: "user", Why: "changed my mind"}
	cancelled, stopped := 0, 0
	for range 3 {
		select {
		case err := <-gone:
			var s *StoppedError
			switch {
			case errors.Is(err, why):
				cancelled++
			case errors.As(err, &s) && s.Stop.Why == "changed my mind":
				stopped++
			default:
				t.Errorf("it ends with %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("it waits for the turn")
		}
	}
	if cancelled != 2 || stopped != 1 {
		t.Errorf("%d were cancelled, %d stopped", cancelled, stopped)
	}
	first <- fact.Stop{By: "user", Why: "enough"}
	wg.Wait()
	if n, err := r.log.Count(t.Context(), event.Query{Types: []event.Type{event.MessageReceived}}); err != nil || n != 1 {
		t.Errorf("%d inputs are on record, %v", n, err)
	}
	closeConversation(t, c)
}
