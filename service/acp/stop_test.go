package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// count returns how often the agent has read a line.
func (w *world) count(line string) (n int) {
	w.t.Helper()
	for _, read := range w.agentRead() {
		if read == line {
			n++
		}
	}
	return n
}

// cancelled waits until all prompts are answered as cancelled, in any order.
func (w *world) cancelled(ids ...string) {
	w.t.Helper()
	for len(ids) > 0 {
		m := w.next()
		i := slices.Index(ids, string(m.ID))
		if i < 0 || m.Method != "" {
			continue
		}
		if m.Result.StopReason != "cancelled" {
			w.t.Error(m.line)
		}
		ids = slices.Delete(ids, i, i+1)
	}
}

func cancelLine(session string, i int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q,"_meta":{"n":%d}}}`, session,
		i)
}

// TestStopOnce checks that each line by which the client stops turns passes once, after the record
// of the stop, for any number of open prompts.
func TestStopOnce(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	ids := []string{w.prompt(s, "@ignore cancel\n@request _x/go")}
	for range 3 {
		ids = append(ids, w.prompt(s, "@say never"))
	}
	m, _ := w.meet()
	for i := range 3 {
		w.send(cancelLine(s, i))
	}
	w.cancelled(ids[1:]...) // these prompts only waited
	w.let(m)
	w.until(ids[0])
	w.until(w.prompt(s, "@say after")) // after this, the agent has read the earlier lines
	for i := range 3 {
		if n := w.count(cancelLine(s, i)); n != 1 {
			t.Errorf("the agent got line %d %d times", i, n)
		}
	}
	if n := w.prompts(); n != 2 {
		t.Errorf("the agent got %d prompts", n)
	}
	var order []string
	for _, e := range w.events("one", event.CancelRequested, event.NotificationSent) {
		order = append(order, string(e.Type))
	}
	want := []string{string(event.CancelRequested), string(event.NotificationSent), string(event.NotificationSent),
		string(event.NotificationSent)}
	if !slices.Equal(order, want) {
		t.Error(order)
	}
}

// TestStopBetween checks that a stop passes once if it comes just before or after the agent's
// answer, while the outcome is not on disk.
func TestStopBetween(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	const n = 30
	for i := range n {
		id := w.prompt(s, "@request _x/go")
		m, _ := w.meet()
		w.let(m)
		w.send(cancelLine(s, i))
		w.until(id)
	}
	w.until(w.prompt(s, "@say after"))
	for i := range n {
		if got := w.count(cancelLine(s, i)); got != 1 {
			t.Errorf("the agent got line %d %d times", i, got)
		}
	}
}

// starting is an agent with a first session in a mode in which it does not ask. It waits for the
// client before it reports that it has left this mode.
const starting = "PERLICA_PREDICTABLE=[session/new 1]\n@set modes.currentModeId \"auto\"\n[session/set_mode 1]\n@request _x/go\n"

// TestWhileChoosing checks that only a session's own prompts and choices wait while its mode is
// chosen. They pass in their order. A cancelled prompt is answered at once.
func TestWhileChoosing(t *testing.T) {
	w := newWorld(t, []string{starting}, nil)
	s := w.session("one")
	m, _ := w.meet()
	first := w.prompt(s, "@say first")
	choice := w.request("session/set_mode", map[string]string{"sessionId": s, "modeId": "auto"})
	second := w.prompt(s, "@say never")
	w.until(w.prompt(w.another("two"), "@say other")) // no other session waits
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, second))
	if m, _ := w.until(second); m.Result.StopReason != "cancelled" {
		t.Error(m.line)
	}
	before := w.agentRead()
	w.let(m)
	for answered := map[string]bool{}; !answered[first] || !answered[choice]; {
		answered[string(w.next().ID)] = true
	}
	at := func(lines []string, id string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"id":`+id+`,"method"`) })
	}
	if at(before, first) >= 0 || at(before, choice) >= 0 {
		t.Errorf("the agent got %q before it had another mode", before)
	}
	read := w.agentRead()
	if at(read, first) < 0 || at(read, first) > at(read, choice) || at(read, second) >= 0 {
		t.Errorf("the agent got %q", read)
	}
	for _, line := range read {
		if strings.Contains(line, "cancel_request") {
			t.Errorf("the agent got %s for a prompt that it has not", line)
		}
	}
}

// TestStopWaiting checks that a stop of waiting prompts is recorded and passes once. No waiting
// prompt is sent.
func TestStopWaiting(t *testing.T) {
	for _, method := range []string{"session/cancel", "session/close"} {
		w := newWorld(t, []string{starting}, nil)
		s := w.session("one")
		m, _ := w.meet()
		ids := []string{w.prompt(s, "@say never"), w.prompt(s, "@say never")}
		line := cancelLine(s, 1)
		if method == "session/close" {
			line = fmt.Sprintf(`{"jsonrpc":"2.0","id":"c","method":"session/close","params":{"sessionId":%q}}`, s)
		}
		w.send(line)
		w.cancelled(ids...)
		w.let(m)
		w.until(w.prompt(w.another("two"), "@say other"))
		if w.count(line) != 1 || w.prompts() != 1 {
			t.Errorf("%s: the agent got %q", method, w.agentRead())
		}
		n := 0
		for _, e := range w.events("one", event.ClientReceived) {
			if string(e.Payload) == line {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: it is %d times on record", method, n)
		}
	}
}
