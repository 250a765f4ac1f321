package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestApprovalByForm checks that the policy judges a form that asks for approval. A refused form is
// declined, and only the client accepts one.
func TestApprovalByForm(t *testing.T) {
	const form = `@request %s {"sessionId":"$session","mode":"form","message":"Run it?","requestedSchema":{"type":"object","properties":{}},"_meta":{%s}}`
	marked := func(command string) string {
		return fmt.Sprintf(`"codex_approval_kind":"mcp_tool_call","tool_params":{"command":%q}`, command)
	}
	for _, c := range []struct {
		method, meta string
		declined     bool
	}{
		{"elicitation/create", marked("sudo rm -rf /"), true},
		{"session/elicitation", marked("sudo rm -rf /"), true},
		{"elicitation/create", marked("make"), false},
		{"elicitation/create", `"tool_params":{"command":"sudo rm -rf /"}`, false},
	} {
		w := newWorld(t, nil, func(o *Options) {
			open := o.Open
			o.Open = func(ctx context.Context, dir string) (*Place, error) {
				p, err := open(ctx, dir)
				// The mode allow must not accept the form: only the client does.
				p.Turn.Permissions = "allow"
				return p, err
			}
		})
		id := w.prompt(w.session("one"), fmt.Sprintf(form, c.method, c.meta))
		passed, said := false, ""
		for m := w.next(); m.Method != "" || string(m.ID) != id; m = w.next() {
			if m.Method == c.method {
				passed = true
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, m.ID))
			}
			said += m.Params.Update.Content.Text
		}
		if passed == c.declined || strings.Contains(said, "decline") != c.declined ||
			strings.Contains(said, "accept") == c.declined {
			t.Errorf("%s %s: with the client: %v, the agent got %q", c.method, c.meta, passed, said)
		}
		if n := len(w.events("one", event.PolicyDecided)); n > 0 != c.declined {
			t.Errorf("%s %s: %d decisions on record", c.method, c.meta, n)
		}
	}
}

// TestSecretByForm checks that a form that asks for a secret is declined for every agent, because
// the client's answer would be on record.
func TestSecretByForm(t *testing.T) {
	const form = `@request elicitation/create {"sessionId":"$session","mode":"form","message":"%s","requestedSchema":{"type":"object","properties":{%s}}}`
	for _, c := range []struct {
		message, fields string
		declined        bool
	}{
		{"Log in", `"user":{"type":"string"},"password":{"type":"string"}`, true},
		{"Log in", `"odd":7,"apiKey":{"type":"string"}`, true},
		{"Your password, please", `"v":{"type":"string"}`, true},
		{"Keep the password?", `"v":{"type":"boolean"}`, false},
		{"Log in", `"user":{"type":"string"}`, false},
	} {
		w := newWorld(t, nil, func(*Options) {})
		id := w.prompt(w.session("one"), fmt.Sprintf(form, c.message, c.fields))
		passed, said := false, ""
		for m := w.next(); m.Method != "" || string(m.ID) != id; m = w.next() {
			if m.Method == "elicitation/create" {
				passed = true
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, m.ID))
			}
			said += m.Params.Update.Content.Text
		}
		if passed == c.declined || strings.Contains(said, "decline") != c.declined {
			t.Errorf("%s, %s: with the client: %v, the agent got %q", c.message, c.fields, passed, said)
		}
	}
}
