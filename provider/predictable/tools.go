package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perlica/perlica/provider/agentside"
)

// toolArgs is the form of the arguments that describe a tool call, for the documentation.
const toolArgs = "[id=ID] [command=TEXT] [input=JSON] [path=PATH] [line=N] [old=TEXT] [new=TEXT] [announce=no]"

// toolCall is the description of a tool call in the arguments of a directive.
type toolCall struct {
	kind, title, id, input, path, line string
	old, new                           word
	diff, announce                     bool
}

func toolCallArgs(a *args) toolCall {
	t := toolCall{kind: a.word("KIND"), title: a.word("TITLE"), id: a.key("id", ""), path: a.key("path", "")}
	if c, ok := a.takeKey("command"); ok {
		t.input = `{"command":` + quote(c.s) + `}`
	}
	if in := a.jsonKey("input"); in != "" {
		t.input = in
	}
	if l, ok := a.takeKey("line"); ok {
		t.line = strconv.Itoa(a.parseNumber("line", l.s, 0, 1<<31-1))
	}
	var before, after bool
	t.old, before = a.takeKey("old")
	t.new, after = a.takeKey("new")
	t.diff = before || after
	if t.diff && t.path == "" {
		a.setError(errors.New("old= and new= need path="))
	}
	t.announce = a.yes("announce")
	return t
}

// appendFields appends the fields that a tool call and a question about it share.
func (t toolCall) appendFields(o *object, status string) *object {
	o.addString("toolCallId", t.id).addString("title", t.title).addString("kind", t.kind).addOptional("status", status)
	if t.diff {
		d := (&object{}).addString("type", "diff").addString("path", t.path)
		if t.old.s != "" {
			d.addString("oldText", t.old.s)
		} else {
			d.addRaw("oldText", "null")
		}
		o.addRaw("content", "["+string(d.addString("newText", t.new.s).endObject())+"]")
	}
	if t.path != "" {
		l := (&object{}).addString("path", t.path).addRaw("line", t.line)
		o.addRaw("locations", "["+string(l.endObject())+"]")
	}
	return o.addRaw("rawInput", t.input)
}

// progress returns a tool_call_update with the status, and with the output and the exit code if they are not empty.
func (t toolCall) progress(status, output, exit string) []byte {
	o := (&object{}).addString("sessionUpdate", "tool_call_update").addString("toolCallId", t.id).
		addString("status", status)
	if output != "" {
		text := (&object{}).addString("type", "text").addString("text", output).endObject()
		o.addRaw("content", "["+string((&object{}).addString("type", "content").addRaw("content", string(text)).endObject())+
			"]")
	}
	if output != "" || exit != "" {
		o.addRaw("rawOutput", string((&object{}).addOptional("output", output).addRaw("exit_code", exit).endObject()))
	}
	return o.endObject()
}

// numbered returns a copy of the call with an id. If the script gives no id, this is the next free one. Otherwise the
// parameter i, the number of the call within its directive, keeps the ids apart: the calls of the id "x" get "x", "x-2"
// and "x-3".
func (t toolCall) numbered(a *agent, i int) toolCall {
	if t.id == "" {
		a.mu.Lock()
		a.calls++
		t.id = "call-" + strconv.Itoa(a.calls)
		a.mu.Unlock()
	} else if i > 0 {
		t.id += "-" + strconv.Itoa(i+1)
	}
	return t
}

func tool(a *args) action {
	t := toolCallArgs(a)
	steps := strings.Split(a.key("steps", "pending,in_progress,completed"), ",")
	output, exit := a.key("text", ""), ""
	if e, ok := a.takeKey("exit"); ok {
		exit = strconv.Itoa(a.parseNumber("exit", e.s, 0, 255))
	}
	return func(ctx context.Context, r *request) error {
		t := t.numbered(r.agent, 0)
		for i, status := range steps {
			u := t.progress(status, "", "")
			switch {
			case i == 0 && t.announce:
				u = t.appendFields((&object{}).addString("sessionUpdate", "tool_call"), status).endObject()
			case i == len(steps)-1:
				u = t.progress(status, output, exit)
			}
			if err := r.updateSession(ctx, u); err != nil {
				return err
			}
		}
		return nil
	}
}

// option is one answer that a permission request offers.
type option struct{ id, kind, name string }

const defaultOptions = "allow-once:allow_once:Allow once,allow-always:allow_always:Always allow,reject-once:reject_once:Reject"

// question is the permission request of @ask, and the number of times that @ask sends it.
type question struct {
	toolCall
	options []option
	count   int
	wait    bool
	rpcID   string
}

func ask(a *args) action {
	q := question{toolCall: toolCallArgs(a), wait: a.yes("wait"), rpcID: a.jsonKey("rpcid")}
	q.count = a.parseNumber("count", a.key("count", "1"), 1, 10_000)
	if list := a.key("options", defaultOptions); list != "" {
		for _, o := range strings.Split(list, ",") {
			id, rest, ok := strings.Cut(o, ":")
			if !ok {
				a.setError(errors.New("an option is ID:KIND or ID:KIND:NAME"))
			}
			kind, name, _ := strings.Cut(rest, ":")
			if name == "" {
				name = id
			}
			q.options = append(q.options, option{id, kind, name})
		}
	}
	return q.askAndReport
}

// reply is the client's answer to one of several questions.
type reply struct {
	index int
	agentside.Message
}

func (q question) askAndReport(ctx context.Context, r *request) error {
	calls := make([]toolCall, q.count)
	answers := make(chan reply, q.count)
	mustAsk := r.sess == nil || r.agent.modeOf(r.sess) != "auto"
	for i := range calls {
		calls[i] = q.toolCall.numbered(r.agent, i)
		if q.announce {
			if err := r.updateSession(ctx, calls[i].appendFields((&object{}).addString("sessionUpdate", "tool_call"), "pending").
				endObject()); err != nil {
				return err
			}
		}
		if mustAsk {
			received := func(m agentside.Message) { answers <- reply{i, m} }
			params := q.params(r.sid, calls[i])
			if err := r.agent.conn.Request("session/request_permission", params, q.rpcID, received); err != nil {
				return err
			}
		}
	}
	if !mustAsk {
		return q.reportUnasked(ctx, r, calls)
	}
	if !q.wait {
		return nil
	}
	for range calls {
		// A cancel does not end this wait, because the protocol requires the client to answer even then.
		select {
		case m := <-answers:
			outcome, allowed := q.outcome(m.Message)
			if err := q.reportOutcome(ctx, r, calls[m.index], outcome, allowed); err != nil {
				return err
			}
		case <-r.agent.gone:
			return errGone
		}
	}
	return nil
}

func (a *agent) modeOf(s *session) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.mode
}

func (q question) params(sid string, t toolCall) json.RawMessage {
	options := make([]string, len(q.options))
	for i, o := range q.options {
		options[i] = string((&object{}).addString("optionId", o.id).addString("name", o.name).
			addString("kind", o.kind).endObject())
	}
	call := t.appendFields(&object{}, "pending").endObject()
	return (&object{}).addString("sessionId", sid).addRaw("toolCall", string(call)).
		addRaw("options", "["+strings.Join(options, ",")+"]").endObject()
}

// outcome returns a text about the client's answer and reports whether the answer allows the tool call.
func (q question) outcome(m agentside.Message) (string, bool) {
	if m.Error != nil {
		return describeError(m.Error), false
	}
	var p struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(m.Result, &p); err != nil || p.Outcome.Outcome == "" {
		return "not understood: " + string(m.Result), false
	}
	if p.Outcome.Outcome != "selected" {
		return p.Outcome.Outcome, false
	}
	for _, o := range q.options {
		if o.id == p.Outcome.OptionID {
			return o.id, strings.HasPrefix(o.kind, "allow")
		}
	}
	return "no such option: " + p.Outcome.OptionID, false
}

func (q question) reportUnasked(ctx context.Context, r *request, calls []toolCall) error {
	for _, t := range calls {
		if err := q.reportOutcome(ctx, r, t, "not asked", true); err != nil {
			return err
		}
	}
	return nil
}

// reportOutcome sends a message chunk with the outcome of a question, and an update that ends its tool call.
func (q question) reportOutcome(ctx context.Context, r *request, t toolCall, outcome string, allowed bool) error {
	// The script also reports the client's answer in a cancelled turn.
	ctx = context.WithoutCancel(ctx)
	head := "permission"
	if q.count > 1 {
		head += " " + t.id
	}
	if err := r.sayChunk(ctx, head+": "+outcome+"\n"); err != nil || !q.announce {
		return err
	}
	if !allowed {
		return r.updateSession(ctx, t.progress("failed", "", ""))
	}
	if err := r.updateSession(ctx, t.progress("in_progress", "", "")); err != nil {
		return err
	}
	return r.updateSession(ctx, t.progress("completed", "Nothing was done: this agent only claims to.", ""))
}

func describeError(raw json.RawMessage) string {
	var e struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return "error not understood: " + string(raw)
	}
	return fmt.Sprintf("error %s %s", e.Code, e.Message)
}
