package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// doors are the ways in which an input reaches Perlica. Each function opens a door. It returns the function that sends
// an input, and the function that closes the door after the answers.
var doors = map[string]func(d *doorWorld) (send func(text string), leave func()){
	"run":      func(d *doorWorld) (func(string), func()) { return d.byCommand("run", "--wait-permissions", "5m") },
	"team":     (*doorWorld).openTeam,
	"chat":     (*doorWorld).openChat,
	"acp":      (*doorWorld).openACP,
	"service":  (*doorWorld).openService,
	"web":      (*doorWorld).openWeb,
	"flow":     (*doorWorld).openFlow,
	"schedule": (*doorWorld).openSchedule,
}

// byCommand sends each input with its own process.
func (d *doorWorld) byCommand(args ...string) (func(string), func()) {
	return func(text string) { d.start(append(slices.Clone(args), text)...) }, func() {}
}

func (d *doorWorld) openTeam() (func(string), func()) {
	s, database := hubtest.Shared(d.t)
	d.env = append(d.env, "PERLICA_TEAM_URL="+s.URL(hubtest.Lead, database))
	d.run("team", "init").exits(0)
	d.run("team", "join", "alice").exits(0)
	worker := d.start("team", "work")
	send, _ := d.byCommand("run", "--team")
	return send, func() { d.stop(worker) }
}

func (d *doorWorld) openChat() (func(string), func()) {
	s := d.chat()
	return func(text string) { s.press(text + "\r") }, s.bye
}

func (d *doorWorld) openACP() (func(string), func()) {
	cmd := d.command("acp", "--agent", "perlica agent predictable")
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	j, id := d.startCmd(cmd), 0
	request := func(method string, params any) {
		id++
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err == nil {
			_, err = in.Write(append(b, '\n'))
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	request("initialize", map[string]any{"protocolVersion": 1})
	request("session/new", map[string]any{"cwd": d.project, "mcpServers": []any{}})
	d.eventually("the session is open", func() error {
		if out := j.stdout.String(); !strings.Contains(out, "session-1") {
			return errors.New(out)
		}
		return nil
	})
	send := func(text string) {
		request("session/prompt", map[string]any{"sessionId": "session-1",
			"prompt": []any{map[string]any{"type": "text", "text": text}}})
	}
	return send, func() {
		_ = in.Close() // The process reads the end of its input.
		j.exits(0)
	}
}

func (d *doorWorld) openService() (func(string), func()) {
	bridge := d.service()
	return d.phone("alice", "ask,approve").says, func() { d.stop(bridge) }
}

func (d *doorWorld) openWeb() (func(string), func()) {
	j, at := d.webServer()
	made := d.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	send := func(text string) {
		in := map[string]any{"project": d.project, "text": text}
		res := d.asks(d.t.Context(), token, "POST", at+"/v1/inputs", in, "")
		defer res.Body.Close()
		if b, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
			d.t.Fatalf("%d %s", res.StatusCode, b)
		}
	}
	return send, func() { d.stop(j) }
}

func (d *doorWorld) openFlow() (func(string), func()) {
	send := func(text string) {
		file := filepath.Join(d.home, fmt.Sprintf("flow%d.toml", len(text)))
		d.write(file, "name = \"f\"\n[[step]]\nid = \"one\"\npermissions = \"ask\"\ntext = '"+text+"'\n", 0o600)
		d.start("flow", "run", file)
	}
	return send, func() {}
}

func (d *doorWorld) openSchedule() (func(string), func()) {
	send := func(text string) {
		d.start("schedule", "run-now", map[string]string{askCheck: "check", askWipe: "wipe"}[text])
	}
	return send, func() {}
}

// stop ends a process that serves.
func (d *doorWorld) stop(j *job) {
	d.t.Helper()
	j.signal(syscall.SIGTERM)
	j.exits(0)
}

// These are the inputs. The program allows both requests, and no mode allows the second one without a person.
const (
	askCheck = `@ask execute "Check" command="make check"`
	askWipe  = `@ask execute "Wipe" command="rm -rf /"`
)

const doorConfig = `
[[hook]]
on = ["llm.responded"]
command = ["bin/hook", "DIR", "CONTEXT", "HOME/got"]
timeout = "2m"
[[policy.program]]
command = ["bin/judge"]
timeout = "1m"
[[schedule]]
id = "check"
cron = "0 0 1 1 *"
text = '` + askCheck + `'
permissions = "ask"
[[schedule]]
id = "wipe"
cron = "0 0 1 1 *"
text = '` + askWipe + `'
permissions = "ask"
`

// These are the programs. The hook adds an event to a file. It marks an event that is not on the log.
const (
	doorHook = `#!/bin/sh
export PERLICA_HOME="$HOME/.perlica"
event=$(cat)
seq=${event#*'"seq":'}
seq=${seq%%[,\}]*}
cd "$1" && perlica log tail --context "$2" --json -n 1000 --type llm.responded | grep -q "\"seq\":$seq[,}]" ||
	event="not on disk: $event"
printf '%s\n' "$event" >>"$3"
`
	doorJudge = `#!/bin/sh
cat >/dev/null
echo '{"decision":"allow","reason":"the judge says so"}'
`
)

// doorWorld is a world whose log may be the log of a team.
type doorWorld struct {
	*world
	dir, context string
}

// TestHooksThroughEachDoor sends inputs through each front end. A hook must get each event once, after the event is on
// disk. A policy program's yes must be on record, without a question to a person. The same yes must not count for a
// command that no mode allows.
func TestHooksThroughEachDoor(t *testing.T) {
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			d := &doorWorld{world: newWorld(t), context: "default"}
			d.dir = d.project
			if name == "team" {
				d.dir, d.context = filepath.Join(d.home, ".perlica", "state", "teams"), "team"
			}
			d.write(filepath.Join(d.home, ".perlica/config/bin/hook"), doorHook, 0o700)
			d.write(filepath.Join(d.home, ".perlica/config/bin/judge"), doorJudge, 0o700)
			d.config(strings.NewReplacer("DIR", d.dir, "CONTEXT", d.context, "HOME", d.home).Replace(doorConfig))
			send, leave := open(d)
			send(askCheck)
			d.answered(1)
			send(askWipe)
			d.answered(2)
			leave()
			d.checkRulings()
			d.checkHook()
		})
	}
}

// events returns the events of these types.
func (d *doorWorld) events(types ...event.Type) []event.Event {
	d.t.Helper()
	all, err := readLog(filepath.Join(d.dir, ".perlica_config", "contexts", d.context, "eventlog.db"))
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e event.Event) bool { return !slices.Contains(types, e.Type) })
}

// answered waits until the log has n answers of the agent. It denies each open question.
func (d *doorWorld) answered(n int) {
	d.t.Helper()
	d.eventually(fmt.Sprint(n, " answers"), func() error {
		if got := len(d.events(event.Responded)); got >= n {
			return nil
		}
		closed := d.events(event.InteractionAnswered, event.InteractionLapsed)
		if len(d.events(event.InteractionRequested)) > len(closed) {
			cmd := d.command("pending", "deny", "--context", d.context)
			cmd.Dir = d.dir
			d.startCmd(cmd).wait() // The front end may have closed the question in the meantime.
		}
		return errors.New("not yet")
	})
}

// checkRulings checks the decisions on record: one yes of the program, for the harmless command, and no question about
// that command.
func (d *doorWorld) checkRulings() {
	d.t.Helper()
	allowed := 0
	for _, e := range d.events(event.PolicyDecided, event.InteractionRequested) {
		text := string(e.Payload)
		byProgram := strings.Contains(text, `"by":"program"`) && strings.Contains(text, `"effect":"allow"`)
		switch {
		case byProgram && strings.Contains(text, "rm -rf"):
			d.t.Errorf("the program allowed it: %s", text)
		case byProgram && strings.Contains(text, `"reason":"the judge says so"`) && strings.Contains(text, `"sha256":"`):
			allowed++
		case e.Type == event.InteractionRequested && strings.Contains(text, "make check"):
			d.t.Errorf("a person was asked: %s", text)
		}
	}
	answers := d.events(event.Responded)
	if allowed != 1 || !strings.Contains(string(answers[0].Payload), "permission: allow") ||
		!strings.Contains(string(answers[1].Payload), "permission: reject") {
		d.t.Errorf("%d decisions, answers %s and %s", allowed, answers[0].Payload, answers[1].Payload)
	}
}

// checkHook waits for the hook and checks that it got each answer once, in the order of the log.
func (d *doorWorld) checkHook() {
	d.t.Helper()
	if d.context == "default" {
		d.run("hook", "deliver").exits(0)
	} else {
		d.run("hook", "deliver", "--team", d.context).exits(0)
	}
	d.checkGot(d.events(event.Responded))
}

// checkGot checks that the hook got these events and no others.
func (w *world) checkGot(want []event.Event) {
	w.t.Helper()
	got, err := os.ReadFile(filepath.Join(w.home, "got"))
	if err != nil {
		w.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if len(lines) != len(want) {
		w.t.Fatalf("the hook got %d events, want %d: %s", len(lines), len(want), got)
	}
	for i, line := range lines {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != want[i].Seq {
			w.t.Errorf("the hook got %s, want the event %d: %v", line, want[i].Seq, err)
		}
	}
}

// TestTwoDeliverers starts two processes that deliver to one hook. The hook kills the process that delivers the third
// event. The other process must deliver that event again and then the later ones, without a gap.
func TestTwoDeliverers(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.run("run", "hello").exits(0)
	}
	w.write(filepath.Join(w.home, ".perlica/config/bin/hook"), `#!/bin/sh
cat >>"$1"
test "$(wc -l <"$1")" -ne 3 || kill -9 $PPID
`, 0o700)
	w.config("[[hook]]\non = [\"llm.responded\"]\ncommand = [\"bin/hook\", \"" + w.home + "/got\"]\n")
	one, other := w.start("hook", "deliver", "--after", "0"), w.start("hook", "deliver", "--after", "0")
	if a, b := one.wait(), other.wait(); min(a, b) != -1 || max(a, b) != 0 {
		t.Errorf("exit codes %d and %d: %s%s", a, b, one.stderr.String(), other.stderr.String())
	}
	events, err := readLog(logFile(w.project))
	if err != nil {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e event.Event) bool { return e.Type != event.Responded })
	w.checkGot(slices.Insert(events, 2, events[2]))
	w.audit()
}
