package kernel

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// TestRefusedIsNotShownAsAllowed checks two open requests with the same id. Both are refused, unless the answer to the
// first request was sent before the second came. The shown notices must agree with the answers that the agent got.
func TestRefusedIsNotShownAsAllowed(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	defer closeConversation(t, c)
	var mu sync.Mutex
	shown := 0
	res, err := c.Run(t.Context(), Turn{
		Input: Input{Text: "@ask execute T command=make count=2 rpcid=7", Source: "test"}, Permissions: policy.ModeAllow,
		Show: func(n record.Notice) {
			if d, ok := n.(record.Decided); ok && d.Effect == string(policy.Allow) {
				mu.Lock()
				defer mu.Unlock()
				shown++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Count(res.Text, ": allow-once")
	mu.Lock()
	defer mu.Unlock()
	if res.Permissions.Allowed != told || shown != told {
		t.Errorf("%d allowed, %d shown, the agent got %d: %q", res.Permissions.Allowed, shown, told, res.Text)
	}
	rec, err := record.Read(t.Context(), &r.log.Reader, res.Run, event.Query{Class: event.Fact})
	if err != nil || rec.Counted() != res.Permissions {
		t.Errorf("on record: %+v, %v; the run counted %+v", rec.Counted(), err, res.Permissions)
	}
	followed := 0
	w := watch(t, r, c.Session(), 1)
	for n := ""; !strings.HasPrefix(n, "finished"); {
		select {
		case n = <-w.shown:
		case <-time.After(2 * time.Minute):
			t.Fatal("the turn was not followed to its end")
		}
		if strings.HasPrefix(n, "decided ") && strings.HasSuffix(n, ": allow") {
			followed++
		}
	}
	if followed != told {
		t.Errorf("%d shown to a follower, the agent got %d", followed, told)
	}
}
