package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/provider/agentside"
)

// run is a running prompt. One goroutine owns it.
type run struct {
	agent   *agent
	session *session
	id      []byte // the id of the prompt's request
	turn    turn   // the prompt's message

	text  strings.Builder // the text of the answer
	files []string        // the files of the answer: the type or the address of each
	use   usage
	calls int // number of tool calls
}

// answerPrompt makes the only request, and returns a function that answers the prompt.
func (r *run) answerPrompt(ctx context.Context) (end func()) {
	reason, err := r.makeRequest(ctx)
	refuse := func(e *agentside.Error) func() { return func() { r.agent.conn.Refuse(r.id, e) } }
	var f *failure
	var input *inputError
	switch {
	case ctx.Err() != nil:
		reason = stopReason{acp: cancelled}
	case errors.As(err, &f):
		return refuse(f.rpc())
	case errors.As(err, &input):
		return refuse(&agentside.Error{Code: agentside.CodeInvalidParams, Message: input.what + "; nothing was sent"})
	case err != nil:
		return refuse(&agentside.Error{Code: agentside.CodeInternal, Message: err.Error()})
	}
	if text := r.historyText(); text != "" {
		r.session.history = append(r.session.history, r.turn, turn{true, []block{{Type: "text", Text: text}}})
	}
	result := object{"stopReason": reason.acp}
	if reason.warning != "" {
		result["_meta"] = object{metaKey: object{"warning": reason.warning}}
	}
	if r.use.known {
		result["usage"] = r.use.result()
	}
	return func() { r.agent.sendResult(r.id, result) }
}

// historyText returns the answer for the history of later prompts. It only names the files of the answer,
// because no API accepts them back.
func (r *run) historyText() string {
	lines := []string{}
	if r.text.Len() > 0 {
		lines = append(lines, r.text.String())
	}
	for _, f := range r.files {
		lines = append(lines, "[a file of the answer: "+f+"]")
	}
	return strings.Join(lines, "\n")
}

// makeRequest makes the request and returns the stop reason. If the client wants the exchange, nothing leaves before
// the client has agreed.
func (r *run) makeRequest(ctx context.Context) (stopReason, error) {
	s := r.agent.settings
	m := mappings[s.API]
	r.agent.mu.Lock()
	s.Model, s.system = r.session.model, r.session.system
	r.agent.mu.Unlock()
	history := append(r.session.history[:len(r.session.history):len(r.session.history)], r.turn)
	if s.Blind && r.turn.hasFiles() {
		return stopReason{}, &inputError{"the model takes no images and no PDFs, as model.images = false says"}
	}
	body, err := m.body(s, history)
	if err != nil {
		return stopReason{}, err
	}
	if s.system != "" {
		for _, name := range systemFields {
			if _, set := s.Options[name]; set && body[name] != nil {
				return stopReason{}, &inputError{fmt.Sprintf("the option %q takes the place of the session's system prompt", name)}
			}
		}
	}
	encoded, err := merged(body, s.Options)
	if err != nil {
		return stopReason{}, err
	}
	if s, err = r.agent.withKey(ctx, s); err != nil {
		return stopReason{}, err
	}
	x := newExchange(s, encoded)
	if err := r.agent.announceRequest(ctx, r.session.id, x); err != nil {
		return stopReason{}, err
	}
	resp, err := r.agent.doExchange(ctx, r.session.id, x)
	if err != nil {
		return stopReason{}, err
	}
	defer func() { _ = resp.Body.Close() }() // reading reports the errors
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
		r.agent.receivedEnd(r.session.id, err)
		return stopReason{}, judge(s, resp, b)
	}
	from, came := m.answer(), bufio.NewReader(resp.Body)
	if isStream(came) {
		return r.passStream(from, newEventReader(came), resp.Body)
	}
	b, err := io.ReadAll(io.LimitReader(came, maxEvent))
	r.agent.receivedEnd(r.session.id, err)
	pieces, whole := unstreamed(from, b)
	if !whole {
		return stopReason{}, judge(s, resp, b)
	}
	for _, p := range pieces {
		r.passPiece(p)
	}
	reason, _ := from.ending()
	return r.concludeAnswer(reason)
}

// isStream reports whether a body begins like a stream of server-sent events. It does not use the
// Content-Type, because gateways leave it out or change it. An empty body is a stream without an event.
func isStream(body *bufio.Reader) bool {
	for n := 1; ; n++ {
		b, err := body.Peek(n)
		text := strings.TrimLeft(strings.TrimPrefix(string(b), "\uFEFF"), "\r\n")
		name, _, whole := strings.Cut(text, ":")
		switch {
		case err != nil:
			return oneOf("", "data", "event", "id", "retry")(strings.TrimSpace(name))
		case whole:
			return oneOf("", "data", "event", "id", "retry")(name)
		case len(text) > len("event") && !strings.ContainsAny(text, "\r\n"), n == body.Size():
			return false
		}
	}
}

// unstreamed reads an answer that came as one JSON document, which some servers send instead of a stream. The result
// "whole" reports whether the document is a complete answer.
func unstreamed(from reader, body []byte) (all []piece, whole bool) {
	list := []json.RawMessage{body}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && json.Unmarshal(body, &list) != nil {
		return nil, false
	}
	for _, data := range list {
		pieces, err := from.readEvent(event{data: data})
		if err != nil {
			return nil, false
		}
		all = append(all, pieces...)
	}
	_, whole = from.ending()
	return all, whole
}

// doExchange makes a request that was announced to the client, and passes the response on while it is read. The
// caller must close the body.
func (a *agent) doExchange(ctx context.Context, session string, x *exchange) (*http.Response, error) {
	if a.wantsHTTP() {
		x.early = func(status string, header http.Header) error {
			return a.receivedHead(session, true, a.hidden().text(status), fields(a.hidden().header(header)))
		}
	}
	resp, err := x.sendOnce(ctx)
	if err != nil {
		f := &failure{message: a.hidden().text(err.Error()), unknown: x.left.Load()}
		if !f.unknown && ctx.Err() == nil {
			f.message += fmt.Sprintf("; nothing was sent (is model.base_url %q right, and its server running?)",
				a.settings.base())
		}
		return nil, f
	}
	resp.Status, resp.Header = a.hidden().text(resp.Status), a.hidden().header(wireHeader(resp))
	if err := a.receivedHead(session, false, resp.Status, fields(resp.Header)); err != nil {
		_ = resp.Body.Close() // the body has no reader
		return nil, &failure{message: err.Error(), unknown: true}
	}
	resp.Body = tee{a.hidden().body(decoded(resp)), func(b []byte) error { return a.receivedBody(session, b) }}
	return resp, nil
}

// lateEnd is the time that a server has to end a stream after the answer is complete.
const lateEnd = 2 * time.Second

// passStream reads the answer and passes it on. It closes the body if the end is late.
func (r *run) passStream(from reader, events *eventReader, body io.ReadCloser) (stopReason, error) {
	for {
		e, err := events.nextEvent()
		if err != nil {
			return r.endStream(from, err)
		}
		pieces, err := from.readEvent(e)
		for _, p := range pieces {
			r.passPiece(p)
		}
		_, whole := from.ending()
		var said *apiError
		switch {
		case errors.As(err, &said):
			r.agent.receivedEnd(r.session.id, nil)
			r.agent.reportCost(r.session, r.use)
			return stopReason{}, &failure{message: "the API failed in its stream: " + said.Message, kind: said.Kind}
		case err != nil && whole: // the answer is complete: an error in the rest does not matter
			return r.endStream(from, err)
		case err != nil:
			r.agent.receivedEnd(r.session.id, err)
			return stopReason{}, &failure{message: err.Error(), unknown: true}
		case from.isLast():
			stop := time.AfterFunc(lateEnd, func() { _ = body.Close() })
			_, _ = io.Copy(io.Discard, body) // records the rest; the answer is already complete
			stop.Stop()
			return r.endStream(from, io.EOF)
		}
	}
}

// endStream handles the end of a stream.
func (r *run) endStream(from reader, err error) (stopReason, error) {
	r.agent.receivedEnd(r.session.id, err)
	reason, whole := from.ending()
	switch {
	case !whole && errors.Is(err, io.EOF):
		return reason, &failure{message: "the stream ended before the answer did", unknown: true}
	case !whole:
		return reason, &failure{message: "the stream broke before the answer ended: " + r.agent.hidden().text(err.Error()),
			unknown: true}
	case !errors.Is(err, io.EOF) && reason.warning == "":
		reason.warning = "the stream broke after the end of the answer"
	}
	return r.concludeAnswer(reason)
}

// concludeAnswer counts the cost of an answer that has ended. If the API says that it broke the answer off, the
// prompt fails with that reason, although its text was passed on.
func (r *run) concludeAnswer(reason stopReason) (stopReason, error) {
	r.agent.reportCost(r.session, r.use)
	if reason.acp == brokenOff {
		return reason, &failure{message: fmt.Sprintf("the model did not finish its answer: its API says %q", reason.why),
			kind: reason.why}
	}
	return reason, nil
}

// passPiece passes a piece on as an update.
func (r *run) passPiece(p piece) {
	switch p.kind {
	case textPiece:
		r.text.WriteString(p.text)
		r.agent.sendUpdate(r.session.id, object{"sessionUpdate": "agent_message_chunk",
			"content": object{"type": "text", "text": p.text}})
	case thoughtPiece:
		r.agent.sendUpdate(r.session.id, object{"sessionUpdate": "agent_thought_chunk",
			"content": object{"type": "text", "text": p.text}})
	case filePiece:
		kind := "agent_message_chunk"
		if p.file.thought {
			kind = "agent_thought_chunk"
		}
		r.files = append(r.files, cmp.Or(p.file.mime, p.file.uri))
		r.agent.sendUpdate(r.session.id, object{"sessionUpdate": kind, "content": p.file.content()})
	case usagePiece:
		if p.usage.known && p.usage.input+p.usage.output > 0 || !r.use.known { // no numbers: keep the earlier report
			r.use = p.usage
		}
	case toolPiece:
		r.calls++
		why := fmt.Sprintf("the model called the tool %q, which it was not offered; it was not run", p.tool.name)
		r.agent.sendUpdate(r.session.id, object{
			"sessionUpdate": "tool_call", "toolCallId": cmp.Or(p.tool.id, "call-"+strconv.Itoa(r.calls)), "title": p.tool.name,
			"kind": "other", "status": "failed",
			"rawInput": object{"arguments": p.tool.arguments},
			"content":  []any{object{"type": "content", "content": object{"type": "text", "text": why}}},
			"_meta":    object{metaKey: object{"blocked": why}},
		})
	}
}

// announceRequest describes the request to the client and waits for the client's answer. The description names the
// key's header field without its value.
func (a *agent) announceRequest(ctx context.Context, session string, x *exchange) error {
	if !a.wantsHTTP() {
		return nil
	}
	withheld := []string{}
	if x.key.Name != "" {
		withheld = append(withheld, x.key.Name)
	}
	err := a.requestClient(ctx, "_perlica.dev/http/send", object{
		"sessionId": session, "method": x.method, "url": x.url, "headers": x.sentHeader(), "withheld": withheld,
		"body": string(x.body),
	})
	if err != nil {
		return &failure{message: "the client did not agree to the request: " + err.Error() + "; nothing was sent"}
	}
	return nil
}

// wireHeader returns the header as it was received. It puts the fields back that Go removes, such as Transfer-Encoding.
func wireHeader(resp *http.Response) http.Header {
	header := resp.Header.Clone()
	for _, v := range resp.TransferEncoding {
		header.Add("Transfer-Encoding", v)
	}
	for name := range resp.Trailer {
		header.Add("Trailer", name)
	}
	return header
}

// fields returns the fields of a header, in the order of their names.
func fields(header http.Header) []field {
	out := []field{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, v := range header[name] {
			out = append(out, field{name, v})
		}
	}
	return out
}

// receivedHead passes on a status and its header. If early is true, it is an informational response, such as 103, and
// the final response follows.
func (a *agent) receivedHead(session string, early bool, status string, header []field) error {
	o := object{"sessionId": session, "status": status, "headers": header}
	if early {
		o["early"] = true
	}
	return a.sendReceived(o)
}

// receivedBody passes on bytes of the body, as text if they are UTF-8.
func (a *agent) receivedBody(session string, b []byte) error {
	if utf8.Valid(b) {
		return a.sendReceived(object{"sessionId": session, "body": string(b)})
	}
	return a.sendReceived(object{"sessionId": session, "base64": b})
}

// receivedEnd reports the end of the body to the client.
func (a *agent) receivedEnd(session string, err error) {
	end := object{"sessionId": session, "end": true}
	if err != nil && !errors.Is(err, io.EOF) {
		end["error"] = a.hidden().text(err.Error())
	}
	_ = a.sendReceived(end) // ignore the error, because Serve ends if the client has gone
}
