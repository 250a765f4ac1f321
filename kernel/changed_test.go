package kernel

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// changing runs turns of the same session in the same folder.
type changing struct {
	t       *testing.T
	r       *Runner
	setup   Setup
	session event.SessionID
}

// run runs a turn. A person answers each question with an option of the kind in answer. If answer is empty, no person
// can be asked.
func (c *changing) run(mode policy.Mode, answer, script string) record.Result {
	c.t.Helper()
	turn := Turn{Input: Input{Text: script, Source: "test"}, Setup: c.setup, Permissions: mode}
	turn.Setup.Session = c.session
	if answer != "" {
		turn.AnswerIn, turn.Show = time.Minute, choosing(c.t, c.r, answer)
	}
	res, err := c.r.Run(c.t.Context(), turn)
	if err != nil {
		c.t.Fatal(err)
	}
	c.session = res.Session
	return res
}

// asked runs a turn in the mode allow. It returns the reason of the question that the turn asked, or "".
func (c *changing) asked(script string) string {
	c.t.Helper()
	res := c.run(policy.ModeAllow, "", script)
	why := ""
	for e, err := range c.r.log.Events(context.Background(), event.Query{Run: res.Run,
		Types: []event.Type{event.InteractionRequested}}) {
		if err != nil {
			c.t.Fatal(err)
		}
		q, err := fact.Decode[interaction.Question](e)
		if err != nil {
			c.t.Fatal(err)
		}
		why = q.Why
	}
	if (why == "") != (res.Permissions.Unanswered == 0) {
		c.t.Errorf("%+v, why %q", res.Permissions, why)
	}
	return why
}

// reopen opens the log with a new Runner, which knows the changed files from the log alone.
func (c *changing) reopen() {
	c.t.Helper()
	if err := c.r.Close(); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if c.r, err = Open(c.t.Context(), c.r.opt); err != nil {
		c.t.Fatal(err)
	}
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	c := &changing{t: t, r: openAlone(t)}
	c.setup = testSetup(t, c.r)
	t.Cleanup(func() {
		if err := c.r.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

const (
	runsScript  = `@ask execute "Run" command="./x.sh"`
	wroteScript = `@tool edit "Write" path=x.sh new=ls`
)

// TestRunsWhatTheSessionChanged checks that Perlica asks about a command if the agent has changed the file that the
// command runs. The change may be in the same turn, in an earlier turn, or before the process started. Changes of
// other sessions and unchanged files lead to no question.
func TestRunsWhatTheSessionChanged(t *testing.T) {
	c := newChanging(t)
	if why := c.asked(runsScript); why != "" {
		t.Errorf("untouched: %q", why)
	}
	const want = "runs x.sh, which this session changed: ./x.sh"
	if why := c.asked(wroteScript + "\n" + runsScript); why != want {
		t.Errorf("in the same turn: %q", why)
	}
	if why := c.asked(runsScript); why != want {
		t.Errorf("in the next turn: %q", why)
	}
	c.reopen()
	if why := c.asked(runsScript); why != want {
		t.Errorf("in another process: %q", why)
	}
	if why := c.asked(`@ask execute "Run" command="./y.sh"`); why != "" {
		t.Errorf("another file: %q", why)
	}
	c.session = ""
	if why := c.asked(runsScript); why != "" {
		t.Errorf("in another session: %q", why)
	}
}

// TestWhatCountsAsChanged tries the ways in which an agent changes a file. If a person allowed an edit, Perlica does
// not ask about the file later. It does ask if the effect went beyond the permission, or if only the mode allowed the
// edit.
func TestWhatCountsAsChanged(t *testing.T) {
	for name, test := range map[string]struct {
		mode   policy.Mode
		answer string // the person's answer in the first turn
		script string // the first turn
		asked  bool   // the second turn must ask about ./x.sh
	}{
		"a person allowed it":      {policy.ModeAsk, "allow_once", `@ask edit "Write" path=x.sh new=ls`, false},
		"a person refused it":      {policy.ModeAsk, "reject_once", `@ask edit "Write" path=x.sh new=ls`, false},
		"the mode allowed it":      {policy.ModeAllow, "", `@ask edit "Write" path=x.sh new=ls`, true},
		"allowed and not reported": {policy.ModeAllow, "", `@ask edit "Write" announce=no path=x.sh new=ls`, true},
		"nobody was asked":         {policy.ModeAsk, "allow_once", wroteScript, true},
		"it wrote another text": {policy.ModeAsk, "allow_once",
			`@ask edit "Write" id=a path=x.sh new=ls` + "\n" + `@tool edit "Write" id=a path=x.sh new=id`, true},
		"it wrote another file": {policy.ModeAsk, "allow_once",
			`@ask edit "Write" id=a path=y.sh new=ls` + "\n" + `@tool edit "Write" id=a path=x.sh new=ls`, true},
		"an earlier change stays": {policy.ModeAsk, "allow_once",
			wroteScript + "\n" + `@ask edit "Write" path=x.sh new=ls`, true},
		"a command wrote it":         {policy.ModeAllow, "", `@ask execute "Write" command="echo ls > x.sh"`, true},
		"a command wrote it unasked": {policy.ModeAllow, "", `@tool execute "Write" command="sed -i s/a/b/ x.sh"`, true},
		"a person allowed the command": {policy.ModeAsk, "allow_once", `@ask execute "Write" command="echo ls > x.sh"`,
			false},
		"a command wrote another": {policy.ModeAllow, "", `@tool execute "Write" command="echo ls > y.sh"`, false},
		"moved there":             {policy.ModeAllow, "", `@tool execute "Move" command="mv y.sh x.sh"`, true},
		"read":                    {policy.ModeAllow, "", `@tool read "Read" path=x.sh`, false},
		"a tool of another kind": {policy.ModeAllow, "",
			`@tool other "Tool" input={"file_path":"x.sh","content":"ls"}`, true},
		"it failed, but was tried": {policy.ModeAllow, "",
			`@tool edit "Write" path=x.sh new=ls steps=in_progress,failed`, true},
		"announced and not begun": {policy.ModeAllow, "", `@tool edit "Write" path=x.sh new=ls steps=pending`, false},
		"refused, and done all the same": {policy.ModeAsk, "reject_once",
			`@ask edit "Write" id=a path=x.sh new=ls` + "\n" + `@tool edit "Write" id=a path=x.sh new=ls`, true},
		"asked, and done before the answer": {policy.ModeAsk, "reject_once",
			`@ask edit "Write" id=a path=x.sh new=ls announce=no wait=no` + "\n" +
				`@update {"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}` + "\n" +
				`@ask edit "Write another" id=b path=y.sh new=ls`, true},
		"the agent's own always": {policy.ModeAsk, "allow_always", `@ask edit "Write" path=x.sh new=ls`, false},
		"freed by the agent's own always": {policy.ModeAsk, "allow_always",
			`@ask edit "Write" path=y.sh new=ls` + "\n" + wroteScript, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChanging(t)
			c.run(test.mode, test.answer, test.script)
			if why := c.asked(runsScript); (why != "") != test.asked || test.asked &&
				!strings.Contains(why, "x.sh, which this session changed") {
				t.Errorf("asked because %q, want asked %v", why, test.asked)
			}
		})
	}
}

// TestEditedSources checks that a build tool needs no question for changed source files, but needs one for a changed
// recipe such as package.json.
func TestEditedSources(t *testing.T) {
	c := newChanging(t)
	edits := `@tool edit "Write" path=main.go new=x` + "\n" + `@tool edit "Write" path=src/a.test.js new=x` + "\n"
	for _, command := range []string{"go test ./...", "npm test", "make -j4"} {
		if why := c.asked(edits + `@ask execute "Test" command="` + command + `"`); why != "" {
			t.Errorf("%s: %s", command, why)
		}
	}
	if why := c.asked(`@tool edit "Write" path=package.json new={}` + "\n" +
		`@ask execute "Test" command="npm test"`); why != "runs package.json, which this session changed: npm test" {
		t.Errorf("npm test: %q", why)
	}
}

// TestReplayedToolCalls checks that a person's permission stays valid when the agent repeats the call during
// session/load. It also checks that a file is changed by a tool call between two turns.
func TestReplayedToolCalls(t *testing.T) {
	const noResume = "[initialize]\n@unset agentCapabilities.sessionCapabilities.resume\n[session/load]\n"
	for name, test := range map[string]struct {
		between int // the number of turns before the agent repeats its calls
		loads   string
		asked   bool
	}{
		"told again":                {0, `@tool edit "Write" id=told path=x.sh new=ls`, false},
		"told again much later":     {maxRuns + 1, `@tool edit "Write" id=told path=x.sh new=ls`, false},
		"written between the turns": {0, `@tool edit "Write" id=own path=x.sh new=ls`, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, state := newChanging(t), t.TempDir()
			open := func(scenario string) *Conversation {
				setup := c.setup
				setup.Session, setup.Budget = c.session, 10_000
				setup.Agent.Env = append(setup.Agent.Env, stateVar)
				c.r.opt.Environ = append(os.Environ(), scenarioVar+"=#\n"+scenario, stateVar+"="+state, "GORACE=atexit_sleep_ms=0")
				conv, err := c.r.Converse(t.Context(), setup, 0, "test")
				if err != nil {
					t.Fatal(err)
				}
				c.session = conv.Session()
				return conv
			}
			conv := open("")
			turn := func(text string, mode policy.Mode, wait time.Duration) record.Result {
				res, err := conv.Run(t.Context(), Turn{
					Input: Input{Text: text, Source: "test"}, Permissions: mode, AnswerIn: wait, Show: choosing(t, c.r, "allow_once"),
				})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			if res := turn(`@ask edit "Write" id=told path=x.sh new=ls`, policy.ModeAsk,
				time.Minute); res.Permissions.Allowed != 1 {
				t.Fatalf("%+v", res)
			}
			for range test.between {
				turn("hello", policy.ModeAllow, 0)
			}
			closeConversation(t, conv)
			c.reopen()
			conv = open(noResume + test.loads + "\n")
			defer func() { closeConversation(t, conv) }()
			if res := turn(runsScript, policy.ModeAllow, time.Minute); res.Permissions.Allowed != 1 {
				t.Fatalf("%+v", res)
			}
			questions := 0
			for _, err := range c.r.log.Events(t.Context(), event.Query{Types: []event.Type{event.InteractionRequested}}) {
				if err != nil {
					t.Fatal(err)
				}
				questions++
			}
			if (questions == 2) != test.asked {
				t.Errorf("%d questions, want the second: %v", questions, test.asked)
			}
		})
	}
}
