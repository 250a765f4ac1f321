package kernel

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// choosing returns a function for Turn.Show that answers every question with an option of the given kind.
func choosing(t *testing.T, r *Runner, kind string) func(record.Notice) {
	return func(n record.Notice) {
		asked, ok := n.(record.Asked)
		if !ok {
			return
		}
		o, ok := asked.First(kind)
		if !ok {
			t.Errorf("no %s in %+v", kind, asked.Options)
		}
		err := r.Questions().Answer(context.Background(), asked.ID, interaction.Answer{Option: o.ID, By: "me", Always: true})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestAYesForGoodFrees checks a tool that a person allowed with a permanent yes. Its report must name the question
// with this yes, also in later turns. Other tools must be reported as unasked.
func TestAYesForGoodFrees(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	defer closeConversation(t, c)
	turn := func(text string) record.Result {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: text, Source: "test"}, Permissions: policy.ModeAsk, AnswerIn: time.Minute, Show: choosing(t,
				r, "allow_always"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := turn(`@ask edit "Write" path=a.txt new=x` + "\n" +
		`@tool edit "Write" path=b.txt new=x`); len(res.Unasked) != 1 || res.Unasked[0].FreedBy == "" || res.Freed() != 1 {
		t.Errorf("in the turn of the yes: %+v", res.Unasked)
	}
	turn(`@ask execute "Test" command="go test ./a"`)
	question := func(kind string) event.InteractionID {
		for _, q := range r.allowedForGood(c.Session()) {
			if q.Subject.Kind == kind {
				return q.ID
			}
		}
		t.Fatal("no yes for good about ", kind)
		return ""
	}
	for text, by := range map[string]event.InteractionID{
		`@tool edit "Write" path=c.txt new=x`:                 question("edit"),
		`@tool execute "Test" command="go test ./b"`:          question("execute"),
		`@tool execute "Remove" command="rm -r src"`:          "",
		`@tool execute "Test" command="go test ./b; rm -r x"`: "",
		`@tool edit "Write" path=/etc/passwd new=x`:           "",
		`@tool delete "Remove" path=a.txt`:                    "",
		`@tool other "Tool" input={"command":"go test ./a"}`:  "",
		`@tool execute "Test" command="sudo go test ./a"`:     "",
		`@tool execute "Something that nobody can read"`:      "",
	} {
		res := turn(text)
		if len(res.Unasked) != 1 || res.Unasked[0].FreedBy != by {
			t.Errorf("%s: %+v, want it freed by %q", text, res.Unasked, by)
		}
		replayed, ok, err := r.Recorded(t.Context(), res.Input)
		if err != nil || !ok || len(replayed.Unasked) != 1 || !reflect.DeepEqual(replayed.Unasked[0], res.Unasked[0]) {
			t.Errorf("%s: recorded is %+v, %v", text, replayed.Unasked, err)
		}
	}
}

// TestRefusedBeforeAnybodyWasAsked checks tool calls with a question that no person could see. A failed call is not
// reported. A completed call is reported, unless a later question allowed it.
func TestRefusedBeforeAnybodyWasAsked(t *testing.T) {
	ask := func(rpc, tool, command string) string {
		return `@request session/request_permission {"sessionId":"$session","toolCall":{"toolCallId":"` + tool +
			`","kind":"execute","title":"` + command +
			`","rawInput":{"command":"` + command +
			`"}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]} wait=no rpcid=` + rpc + "\n"
	}
	reports := func(tool, command, status string) string {
		return `@tool execute "` + command + `" id=` + tool + ` command="` + command + `" steps=` + status + "\n"
	}
	twins := ask("7", "a", "make a") + ask("7", "b", "make b")
	for name, c := range map[string]struct {
		text string
		why  string // the recorded reason for tool b; empty means that nothing is recorded
	}{
		"failed":    {twins + reports("b", "make b", "failed"), ""},
		"under way": {twins + reports("b", "make b", "in_progress"), "it ran and nobody was asked"},
		"then failed": {twins + reports("b", "make b", "in_progress,failed"),
			"it was tried and failed, and nobody was asked"},
		"ran": {twins + reports("b", "make b", "completed"), "it ran although it was refused"},
		"allowed later": {twins + "@sleep 100ms\n" + ask("8", "b", "make b") + "@sleep 100ms\n" + reports("b", "make b",
			"completed"), ""},
		"another ran": {twins + "@sleep 100ms\n" + ask("8", "b", "make b") + "@sleep 100ms\n" + reports("b", "make c",
			"completed"), "it differs from the call that was allowed"},
		"not understood": {`@request session/request_permission {"sessionId":"$session","toolCall":{"toolCallId":"b","title":"make b"},"options":3} wait=no rpcid=7` + "\n" + reports("b", "make b", "failed"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRunner(t)
			var res record.Result
			// Try again if the second question came after the answer to the first, because it is no duplicate then.
			for try := 0; try < 20 && len(res.Warnings) == 0; try++ {
				conv := converse(t, r, "", "", "")
				var err error
				res, err = conv.Run(t.Context(), Turn{Input: Input{Text: c.text, Source: "test"}, Permissions: policy.ModeAllow,
					AnswerIn: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				closeConversation(t, conv)
			}
			why := ""
			for _, u := range res.Unasked {
				why += u.Why
			}
			if (why == "") != (c.why == "") || !strings.HasPrefix(why, c.why) || len(res.Warnings) == 0 {
				t.Errorf("%+v, warnings %+v; want %q", res.Unasked, res.Warnings, c.why)
			}
		})
	}
}

// TestOtherContentThanAllowed checks that a tool call is reported if its question did not show the written content.
// A call that ran before its question is reported, too.
func TestOtherContentThanAllowed(t *testing.T) {
	const ask = `@request session/request_permission {"sessionId":"$session","toolCall":{"toolCallId":"a",` +
		`"kind":"edit","title":"Write","content":[{"type":"diff","path":"a.txt","oldText":null,"newText":"harmless"}]},` +
		`"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]} rpcid=7` + "\n"
	wrote := func(text string) string { return `@tool edit "Write" id=a path=a.txt new=` + text + "\n" }
	for text, want := range map[string]string{
		ask + wrote("harmless"): "",
		ask + wrote("evil"):     "it differs from the call that was allowed: it wrote another content",
		wrote("harmless") + ask: "it ran before the agent asked about it",
	} {
		r := openRunner(t)
		c := converse(t, r, "", "", "")
		res, err := c.Run(t.Context(), Turn{Input: Input{Text: text, Source: "test"}, Permissions: policy.ModeAllow})
		closeConversation(t, c)
		why := ""
		for _, u := range res.Unasked {
			why += u.Why
		}
		if err != nil || why != want || res.Permissions.Allowed != 1 {
			t.Errorf("%s: %q, %+v, %v; want %q", text, why, res.Permissions, err, want)
		}
	}
}

// TestOwnChangesOfTheMode checks that a change of the mode by the agent is reported, also between two turns. A change
// that a person chose or allowed must not be reported.
func TestOwnChangesOfTheMode(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	defer closeConversation(t, c)
	if res := say(t, c, "@answer\n@sleep 300ms\n@mode auto"); len(res.Unasked) > 0 {
		t.Fatalf("%+v", res)
	}
	for {
		if o, _, _ := c.Offers(); o.Mode == "auto" { // the agent reports the mode after its turn
			break
		}
		runtime.Gosched()
	}
	if res := say(t, c, "hello"); len(res.Unasked) != 1 || res.Unasked[0].Title != "mode auto" {
		t.Errorf("between turns: %+v", res.Unasked)
	}
	if res := say(t, c, "@mode ask"); len(res.Unasked) != 1 || len(res.Warnings) > 0 {
		t.Errorf("in a turn: %+v %q", res.Unasked, res.Warnings)
	}
	if err := c.SetMode(t.Context(), "auto"); err != nil {
		t.Fatal(err)
	}
	if res := say(t, c, "@mode auto"); len(res.Unasked) > 0 {
		t.Errorf("what was chosen: %+v", res.Unasked)
	}
	if err := c.SetMode(t.Context(), "ask"); err != nil {
		t.Fatal(err)
	}
	res, err := c.Run(t.Context(), Turn{
		Input: Input{Text: `@ask switch_mode "Go on" options=auto:allow_once:Go,no:reject_once:No` +
			"\n@mode auto\n@mode yolo", Source: "test"},
		Permissions: policy.ModeAsk, AnswerIn: time.Minute, Show: choosing(t, r, "allow_once"),
	})
	if err != nil || len(res.Unasked) != 1 || res.Unasked[0].Title != "mode yolo" || len(res.Warnings) != 1 {
		t.Errorf("what was agreed to: %+v, %v", res.Unasked, err)
	}
}

// TestRevokedWhileItIsDecided checks that an approval does not answer a question if it is revoked during the decision.
func TestRevokedWhileItIsDecided(t *testing.T) {
	r := openRunner(t)
	a := policy.Approval{ID: uuid.NewString(), Effect: policy.Allow, Scope: policy.ScopeContext, Command: "make", By: "me"}
	append1(t, r, event.NewFact(event.ApprovalRemembered, "user", event.Refs{}, a))
	if err := r.opt.Vouchers.Add(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	reads := 0
	var err error
	r.policy, err = policy.New(nil, func() ([]policy.Approval, error) {
		list, lerr := r.approvals()
		if reads++; reads == 2 { // revokes the approvals during the second decision
			if err := r.RevokeApprovals(context.Background(), list, "me"); err != nil {
				t.Error(err)
			}
		}
		return list, lerr
	}, r.opt.Now)
	if err != nil {
		t.Fatal(err)
	}
	res, err := hostileTurn(t, r, `@ask execute T command="make"`+"\n"+`@ask execute T command="make"`, func(turn *Turn) {
		turn.Permissions, turn.AnswerIn = policy.ModeAsk, 0
	})
	if err != nil || res.Permissions.Allowed != 1 || res.Permissions.Unanswered != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	revoked := false
	for e, err := range r.log.Events(t.Context(), event.Query{Types: []event.Type{event.ApprovalRevoked,
		event.PolicyDecided}}) {
		if err != nil {
			t.Fatal(err)
		}
		d, _ := fact.Decode[fact.PolicyDecided](e)
		if revoked = revoked || e.Type == event.ApprovalRevoked; revoked && d.By == string(policy.ByStanding) {
			t.Errorf("event %d was decided by what was revoked", e.Seq)
		}
		if d.By == string(policy.ByStanding) && d.Approval != a.ID {
			t.Errorf("the approval is not named: %+v", d)
		}
	}
	if !revoked {
		t.Error("nothing was revoked")
	}
}

// TestToolBeforeThePrompt checks a tool that an agent starts after the begin of a turn and before its prompt. No
// question of the turn can concern it, so it counts as unasked.
func TestToolBeforeThePrompt(t *testing.T) {
	r := openRunner(t)
	agent := agents.Agent{Agent: provider.Agent{ID: agents.Predictable}}
	a, err := r.Attach(t.Context(), Attachment{Setup: Setup{Dir: t.TempDir(), Agent: agent},
		Opened: &provider.Session{ID: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	turn := newClient(&run{r: r, refs: a.refs()})
	defer turn.closeTurn()
	a.beginTurn(turn)
	tool := func(id acp.ToolCallId) {
		a.Update(provider.Update{Tool: &provider.ToolCall{ID: id, Title: "make", Kind: "execute", Status: "in_progress",
			RawInput: []byte(`{"command":"make"}`)}})
	}
	unasked := func() (n int) {
		if err := r.log.Sync(); err != nil {
			t.Fatal(err)
		}
		for _, err := range r.log.Events(t.Context(), event.Query{Types: []event.Type{event.PolicyUnasked}}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if tool("before"); unasked() != 1 {
		t.Errorf("%d tools are unasked before the prompt, want 1", unasked())
	}
	turn.sums.startTurn()
	if tool("after"); unasked() != 1 {
		t.Errorf("%d tools are unasked during the turn, want 1: the end of the turn reports the others", unasked())
	}
	a.finishTurn()
}
