package model

import (
	"cmp"
	"encoding/json"
)

// anthropicMapping is Anthropic's Messages API, see https://platform.claude.com/docs/en/api/messages and
// https://platform.claude.com/docs/en/build-with-claude/streaming.
var anthropicMapping = mapping{
	base: "https://api.anthropic.com", header: "x-api-key", sample: "claude-sonnet-4-5",
	reserved: []string{"model", "messages", "stream", "tools", "tool_choice"},
	headers:  []field{{"anthropic-version", "2023-06-01"}},
	path:     func(string) string { return "/v1/messages" },
	models:   "/v1/models?limit=1000",
	body:     anthropicBody,
	answer:   func() reader { return &anthropicReader{} },
	failure:  nestedFailure,
}

// anthropicMaxTokens is the default of max_tokens, which this API requires.
const anthropicMaxTokens = 8192

func anthropicBody(s Settings, history []turn) (map[string]any, error) {
	list, err := messages(history, "assistant", func(p part, _ bool) any {
		switch {
		case p.mime == "":
			return object{"type": "text", "text": p.text}
		case p.isImage():
			return object{"type": "image", "source": object{"type": "base64", "media_type": p.mime, "data": p.data}}
		}
		return object{"type": "document", "source": object{"type": "base64", "media_type": p.mime, "data": p.data}}
	})
	body := object{"model": s.Model, "messages": list, "stream": true, "max_tokens": anthropicMaxTokens}
	if s.system != "" {
		body["system"] = s.system
	}
	if s.Schema != nil {
		body["output_config"] = object{"format": object{"type": "json_schema", "schema": s.Schema}}
	}
	return body, err
}

// anthropicReader reads the stream of a message.
type anthropicReader struct {
	plain  anthropicUsage // the latest value of each count
	tools  map[int]*toolCall
	reason word
	whole  bool
}

// anthropicEvent holds the used members of all events.
type anthropicEvent struct {
	Type         string         `json:"type"`
	Index        count          `json:"index"`
	ContentBlock anthropicBlock `json:"content_block"`
	Delta        struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Partial    string `json:"partial_json"`
		StopReason word   `json:"stop_reason"`
	} `json:"delta"`
	Message anthropicMessage      `json:"message"`
	Usage   loose[anthropicUsage] `json:"usage"`
}

// anthropicBlock is a block of the content, either its beginning in a stream or the whole block.
type anthropicBlock struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"`
	Source   struct {
		MIME string `json:"media_type"`
		Data string `json:"data"`
		URL  string `json:"url"`
	} `json:"source"`
}

// pieces returns the parts of the block other than a tool call.
func (b anthropicBlock) pieces() []piece {
	out := append(say(thoughtPiece, b.Thinking), say(textPiece, b.Text)...)
	if s := b.Source; s.Data != "" || s.URL != "" {
		out = append(out, piece{kind: filePiece, file: answerFile{mime: s.MIME, data: s.Data, uri: s.URL}})
	}
	return out
}

// anthropicMessage is the message, either its beginning in a stream or the whole message.
type anthropicMessage struct {
	Content    []anthropicBlock      `json:"content"`
	StopReason word                  `json:"stop_reason"`
	Usage      loose[anthropicUsage] `json:"usage"`
}

type anthropicUsage struct {
	Input      *count `json:"input_tokens"`
	Output     *count `json:"output_tokens"`
	CacheRead  *count `json:"cache_read_input_tokens"`
	CacheWrite *count `json:"cache_creation_input_tokens"`
}

func (r *anthropicReader) readEvent(e event) ([]piece, error) {
	if string(e.data) == "[DONE]" { // some gateways send this
		return nil, nil
	}
	var v anthropicEvent
	if err := decode(e, anthropic, &v); err != nil {
		return nil, err
	}
	switch cmp.Or(v.Type, e.name) {
	case "error":
		return nil, failureOr(e.data)
	case "message_start":
		return r.readMessage(v.Message), nil
	case "message": // a response without a stream
		var m anthropicMessage
		if err := decode(e, anthropic, &m); err != nil {
			return nil, err
		}
		r.whole = true
		return r.readMessage(m), nil
	case "content_block_start":
		if v.ContentBlock.Type == "tool_use" {
			if r.tools == nil {
				r.tools = map[int]*toolCall{}
			}
			r.tools[int(v.Index.n)] = &toolCall{id: v.ContentBlock.ID, name: v.ContentBlock.Name}
		}
		return v.ContentBlock.pieces(), nil
	case "content_block_delta":
		if t := r.tools[int(v.Index.n)]; t != nil {
			t.arguments += v.Delta.Partial
		}
		return append(say(textPiece, v.Delta.Text), say(thoughtPiece, v.Delta.Thinking)...), nil
	case "content_block_stop":
		if t := r.tools[int(v.Index.n)]; t != nil {
			delete(r.tools, int(v.Index.n))
			return []piece{{kind: toolPiece, tool: *t}}, nil
		}
	case "message_delta":
		r.reason = cmp.Or(v.Delta.StopReason, r.reason)
		return r.readCounts(v.Usage), nil
	case "message_stop":
		r.whole = true
	}
	return nil, nil
}

// readMessage returns the pieces of a message, which may be only its beginning.
func (r *anthropicReader) readMessage(m anthropicMessage) (out []piece) {
	r.reason = cmp.Or(m.StopReason, r.reason)
	for _, b := range m.Content {
		out = append(out, b.pieces()...)
		if b.Type == "tool_use" {
			out = append(out, piece{kind: toolPiece, tool: toolCall{b.ID, b.Name, string(b.Input)}})
		}
	}
	return append(out, r.readCounts(m.Usage)...)
}

// readCounts reads a token report. Each count is a total of the whole message, so a later count replaces an earlier
// one. The API's input_tokens do not include cached tokens.
func (r *anthropicReader) readCounts(l loose[anthropicUsage]) []piece {
	if l.v == nil {
		return nil
	}
	p := &r.plain
	p.Input, p.Output = cmp.Or(l.v.Input, p.Input), cmp.Or(l.v.Output, p.Output)
	p.CacheRead, p.CacheWrite = cmp.Or(l.v.CacheRead, p.CacheRead), cmp.Or(l.v.CacheWrite, p.CacheWrite)
	u := usage{known: p.Input != nil && p.Output != nil}
	for to, from := range map[*int64]*count{&u.input: p.Input, &u.output: p.Output, &u.cachedRead: p.CacheRead,
		&u.cachedWrite: p.CacheWrite} {
		if from != nil {
			*to, u.known = from.n, u.known && from.known
		}
	}
	u.input += u.cachedRead + u.cachedWrite
	return []piece{{kind: usagePiece, usage: u}}
}

func (r *anthropicReader) ending() (stopReason, bool) { return stops(r.reason), r.whole }

func (r *anthropicReader) isLast() bool { return r.whole }

// say returns a piece with the text, or nothing for an empty text.
func say(kind pieceKind, text string) []piece {
	if text == "" {
		return nil
	}
	return []piece{{kind: kind, text: text}}
}

// nestedFailure reads {"error":{"type":…,"code":…,"message":…}}, which all four APIs use with small
// differences. Gemini may put it into an array.
func nestedFailure(body []byte) *apiError {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var v struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	return readFailure(v.Error)
}

// readFailure reads an error object. It returns nil if raw is not an error object.
func readFailure(raw json.RawMessage) *apiError {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" { // Ollama's form
		return &apiError{Message: text}
	}
	var v struct {
		Type, Status string
		Message      string
		Code         any
	}
	if json.Unmarshal(raw, &v) != nil || v.Message == "" && v.Type == "" && v.Code == nil {
		return nil
	}
	code, _ := v.Code.(string)
	return &apiError{Message: cmp.Or(v.Message, v.Type), Kind: cmp.Or(v.Type, v.Status, code)}
}

// failureOr returns the error in an event of a stream, or a general error if the event names none.
func failureOr(data []byte) *apiError {
	if e := nestedFailure(data); e != nil {
		return e
	}
	if e := readFailure(data); e != nil {
		return e
	}
	return &apiError{Message: "the API said in its stream that it failed, and not why"}
}
