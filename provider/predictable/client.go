package predictable

import (
	"context"
	"encoding/json"

	"github.com/perlica/perlica/provider/agentside"
)

// callClient sends a request to the client and waits for the response. It describes the response in a message chunk and
// returns the result, or nil if the response is an error.
func (r *request) callClient(ctx context.Context, method, params, id string) (json.RawMessage, error) {
	answers := make(chan agentside.Message, 1)
	received := func(m agentside.Message) { answers <- m }
	if err := r.agent.conn.Request(method, json.RawMessage(params), id, received); err != nil {
		return nil, err
	}
	select {
	case m := <-answers:
		if m.Error != nil {
			return nil, r.sayChunk(ctx, method+": "+describeError(m.Error)+"\n")
		}
		return m.Result, r.sayChunk(ctx, method+": result "+string(m.Result)+"\n")
	case <-ctx.Done():
		return nil, interrupted(ctx)
	}
}

// callStep returns a step that sends one request to the client. The params are the session id and the fields that the
// function "fields" adds.
func callStep(method string, fields func(o *object)) action {
	return func(ctx context.Context, r *request) error {
		o := (&object{}).addString("sessionId", r.sid)
		fields(o)
		_, err := r.callClient(ctx, method, string(o.endObject()), "")
		return err
	}
}

func readFile(a *args) action {
	path := a.word("PATH")
	return callStep("fs/read_text_file", func(o *object) { o.addString("path", path) })
}

func writeFile(a *args) action {
	path, text := a.word("PATH"), a.word("TEXT")
	return callStep("fs/write_text_file", func(o *object) { o.addString("path", path).addString("content", text) })
}

func elicit(a *args) action {
	message, schema, url := a.word("MESSAGE"), a.jsonKey("schema"), a.key("url", "")
	if url != "" {
		return callStep("elicitation/create", func(o *object) {
			o.addString("mode", "url").addString("message", message).addString("elicitationId", "e-1").addString("url", url)
		})
	}
	if schema == "" {
		schema = `{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}`
	}
	return callStep("elicitation/create", func(o *object) {
		o.addString("mode", "form").addString("message", message).addRaw("requestedSchema", schema)
	})
}

func terminal(a *args) action {
	command := a.remainingWords("COMMAND")
	return func(ctx context.Context, r *request) error {
		o := (&object{}).addString("sessionId", r.sid).addString("command", command[0])
		o.addRaw("args", string(agentside.Encode(command[1:])))
		made, err := r.callClient(ctx, "terminal/create", string(o.endObject()), "")
		if err != nil || made == nil {
			return err
		}
		var p struct {
			TerminalID string `json:"terminalId"`
		}
		// If the result has no terminal id, the client returns errors for the following requests.
		_ = json.Unmarshal(made, &p)
		params := string((&object{}).addString("sessionId", r.sid).addString("terminalId", p.TerminalID).endObject())
		for _, method := range []string{"terminal/wait_for_exit", "terminal/output", "terminal/release"} {
			if _, err := r.callClient(ctx, method, params, ""); err != nil {
				return err
			}
		}
		return nil
	}
}

// paramsArg removes and returns the optional argument with the JSON params of a request or a notification.
func paramsArg(a *args) string {
	if len(a.words) > 0 {
		return a.nextWord("JSON").json()
	}
	return `{"sessionId":"$session"}`
}

func sendRequest(a *args) action {
	method, params := a.word("METHOD"), paramsArg(a)
	wait, id := a.yes("wait"), a.jsonKey("rpcid")
	return func(ctx context.Context, r *request) error {
		if !wait {
			return r.agent.conn.Request(method, json.RawMessage(r.fillIDs(params)), id, func(agentside.Message) {})
		}
		_, err := r.callClient(ctx, method, r.fillIDs(params), id)
		return err
	}
}

func notify(a *args) action {
	method, params := a.word("METHOD"), paramsArg(a)
	return plainStep(func(r *request) error {
		return r.agent.conn.Send(agentside.Message{Method: method, Params: json.RawMessage(r.fillIDs(params))})
	})
}
