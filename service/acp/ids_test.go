package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestIDsByValue checks that each side may write the id of the other side's request in any JSON notation.
func TestIDsByValue(t *testing.T) {
	for sent, answered := range map[string]string{`"x/1"`: `"\\u0078\\/1"`, "7": "7.0", "1e400": "10e399",
		"9007199254740993": "9007199254740993.0"} {
		w := newWorld(t, nil, nil)
		s := w.session("one")
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, answered)
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":%s}`, sent,
			js(promptOf(s, "@line "+line+"\n@hang"))))
		if m := w.next(); m.line != strings.ReplaceAll(line, `\\`, `\`) {
			t.Errorf("%s: %s", sent, m.line)
		}
		if n := len(w.events("one", event.Responded)); n != 1 {
			t.Errorf("%s: %d outcomes", sent, n)
		}
	}
	w := newWorld(t, nil, nil)
	id, _ := w.ask("@ask execute Build command=make wait=no rpcid=\"q\"\n@request _x/go rpcid=9")
	answer := `{"jsonrpc":"2.0","id":"\u0071","result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`
	w.send(answer)
	w.send(strings.Replace(answer, `\u0071`, "q", 1)) // the same answer again
	w.send(`{"jsonrpc":"2.0","id":9,"result":{}}`)    // an answer that may come before its request
	w.until(id)
	if read := w.agentRead(); !slices.Contains(read, answer) || len(w.answers(`"q"`)) != 0 {
		t.Errorf("the agent got %q", read)
	}
}

// TestOwnIDs checks that an id of Perlica's requests is an error from either side.
func TestOwnIDs(t *testing.T) {
	w := newWorld(t, []string{"PERLICA_PREDICTABLE=[session/new]\n@set modes.currentModeId \"auto\"\n"}, nil)
	s := w.session("one")
	w.until(w.prompt(s, "@say a"))
	own := ""
	for _, line := range w.agentRead() {
		if _, rest, ok := strings.Cut(line, `"id":"perlica-`); ok {
			rest, _, _ = strings.Cut(rest, `"`)
			own = `"perlica-` + rest + `9"`
		}
	}
	if own == "" {
		t.Fatal("Perlica made no request")
	}
	escaped := strings.Replace(own, "p", `\u0070`, 1)
	for _, id := range []string{own, escaped} {
		if m, before := w.until(w.prompt(s, "@request _x/go rpcid="+id)); !strings.Contains(text(before), "-32600") {
			t.Error(m.line, before)
		}
		lines := []string{
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"from":"the client"}}`, id),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s,"from":"the client"}}`, id),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"_x/y","params":{"from":"the client"}}`, id),
		}
		for _, line := range lines {
			w.send(line)
		}
		if m := w.next(); m.Error == nil || m.Error.Code != codeInvalid {
			t.Error(m.line)
		}
		var kept []string
		for _, e := range w.events("home", event.ClientReceived) {
			kept = append(kept, string(e.Payload))
		}
		for _, line := range lines {
			if !slices.Contains(kept, line) {
				t.Errorf("not on record: %s", line)
			}
		}
	}
	if read := strings.Join(w.agentRead(), "\n"); strings.Contains(read, "from") {
		t.Errorf("the agent got %s", read)
	}
}
