package predictable

import (
	"context"
	"encoding/json"
)

// call sends a request to the client, waits for the response and writes it as a message. The result is nil
// after an error.
func (r *request) call(ctx context.Context, method, params, id string) (json.RawMessage, error) {
	answers := make(chan reply, 1)
	if err := r.agent.send(method, params, id, 0, answers); err != nil {
		return nil, err
	}
	select {
	case m := <-answers:
		if m.Error != nil {
			return nil, r.say(ctx, method+": "+describeError(m.Error)+"\n")
		}
		return m.Result, r.say(ctx, method+": result "+string(m.Result)+"\n")
	case <-ctx.Done():
		return nil, interrupted(ctx)
	}
}

// callStep returns a step that makes one request. The params begin with the session id.
func callStep(method string, fields func(o *object)) action {
	return func(ctx context.Context, r *request) error {
		o := (&object{}).str("sessionId", r.sid)
		fields(o)
		_, err := r.call(ctx, method, string(o.end()), "")
		return err
	}
}

func readFile(a *args) action {
	path := a.word("PATH")
	return callStep("fs/read_text_file", func(o *object) { o.str("path", path) })
}

func writeFile(a *args) action {
	path, text := a.word("PATH"), a.word("TEXT")
	return callStep("fs/write_text_file", func(o *object) { o.str("path", path).str("content", text) })
}

func elicit(a *args) action {
	message, schema, url := a.word("MESSAGE"), a.jsonKey("schema"), a.key("url", "")
	if url != "" {
		return callStep("elicitation/create", func(o *object) {
			o.str("mode", "url").str("message", message).str("elicitationId", "e-1").str("url", url)
		})
	}
	if schema == "" {
		schema = `{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}`
	}
	return callStep("elicitation/create", func(o *object) {
		o.str("mode", "form").str("message", message).raw("requestedSchema", schema)
	})
}

func terminal(a *args) action {
	command := a.rest("COMMAND")
	return func(ctx context.Context, r *request) error {
		o := (&object{}).str("sessionId", r.sid).str("command", command[0])
		o.raw("args", string(encode(command[1:])))
		made, err := r.call(ctx, "terminal/create", string(o.end()), "")
		if err != nil || made == nil {
			return err
		}
		var p struct {
			TerminalID string `json:"terminalId"`
		}
		// Without an id the client returns an error for the next requests.
		_ = json.Unmarshal(made, &p)
		params := string((&object{}).str("sessionId", r.sid).str("terminalId", p.TerminalID).end())
		for _, method := range []string{"terminal/wait_for_exit", "terminal/output", "terminal/release"} {
			if _, err := r.call(ctx, method, params, ""); err != nil {
				return err
			}
		}
		return nil
	}
}

// paramsArg takes the optional JSON params of a request or a notification.
func paramsArg(a *args) string {
	if len(a.words) > 0 {
		return a.next("JSON").json()
	}
	return `{"sessionId":"$session"}`
}

func sendRequest(a *args) action {
	method, params := a.word("METHOD"), paramsArg(a)
	wait, id := a.yes("wait"), a.jsonKey("rpcid")
	return func(ctx context.Context, r *request) error {
		if !wait {
			return r.agent.send(method, r.fill(params), id, 0, make(chan reply, 1))
		}
		_, err := r.call(ctx, method, r.fill(params), id)
		return err
	}
}

func notify(a *args) action {
	method, params := a.word("METHOD"), paramsArg(a)
	return plainStep(func(r *request) error {
		o := (&object{}).str("jsonrpc", "2.0").str("method", method).raw("params", r.fill(params))
		return r.agent.out.line(o.end())
	})
}
