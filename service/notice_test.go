package service_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/local"
)

// TestNoticesOnThePhone checks that an agent's notices follow the answer or the error once,
// unchanged. The title of the session does not.
func TestNoticesOnThePhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@update {"sessionUpdate":"session_info_update","title":"a title"}
@update {"sessionUpdate":"notice","severity":"warning","message":"*9 %* are left"}
@update {"sessionUpdate":"notice","severity":"warning","message":"*9 %* are left"}
@update {"sessionUpdate":"compaction_update","status":"completed","summary":[{"type":"text","text":"we built it"}]}
@say done`)
	got := alice.expect("done").Text
	if want := "done\n\nℹ️ notice (warning): *9 %* are left\n\nℹ️ compaction: completed: we built it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	alice.say(`@update {"sessionUpdate":"notice","message":"it gets full"}
@error -32000 "out of luck"`)
	if got := alice.expect("out of luck").Text; !strings.HasSuffix(got, "\n\nℹ️ notice: it gets full") {
		t.Errorf("%q", got)
	}
	alice.say("@say plain")
	// The next answer does not repeat the remarks of an earlier turn.
	if got := alice.expect("plain").Text; got != "plain" {
		t.Errorf("%q", got)
	}
}
