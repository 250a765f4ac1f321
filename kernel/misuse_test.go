package kernel

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/perlica/perlica/policy"
)

// TestAConversationMisused: inputs at once are one after the other, Close and a setting wait
// for the turn, an input whose context ended while it waited is not sent, and none is after Close.
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

	under, stop := make(chan struct{}), make(chan Stop, 1)
	var once sync.Once
	wg.Go(func() {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: "@say begun\n@hang", Source: "test"}, Permissions: policy.ModeDeny, Stop: stop,
			Show: func(n Notice) {
				if _, ok := n.(Updated); ok {
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
		if res, err := c.Run(late, Turn{Input: Input{Text: "late", Source: "test"}, Permissions: policy.ModeDeny}); err == nil && res.Calls > 0 {
			t.Errorf("an input was sent for nobody: %+v", res)
		}
	})
	wg.Go(func() {
		if err := c.SetMode(t.Context(), "auto"); err != nil && !errors.Is(err, ErrConversationClosed) {
			t.Error(err)
		}
	})
	wg.Go(func() { closeConversation(t, c) })
	stop <- Stop{By: "user", Why: "enough"}
	wg.Wait()
	if _, err := c.Run(t.Context(), Turn{Input: Input{Text: "after", Source: "test"}}); !errors.Is(err, ErrConversationClosed) {
		t.Errorf("after Close: %v", err)
	}
	if all, _ := sent(t, r, "session/prompt"); all != 5 {
		t.Errorf("%d prompts, want 5", all)
	}
}
