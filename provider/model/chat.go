package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// chatMapping is OpenAI's Chat Completions API, see https://platform.openai.com/docs/api-reference/chat. Many servers
// speak it with deviations.
var chatMapping = mapping{
	base: "https://api.openai.com/v1", header: "Authorization", prefix: "Bearer ", sample: "gpt-4o",
	reserved: []string{"model", "messages", "stream", "tools", "tool_choice", "functions", "function_call", "n"},
	path:     func(string) string { return "/chat/completions" },
	models:   "/models",
	body:     chatBody,
	answer:   func() reader { return &chatReader{tools: map[int]*toolCall{}} },
	failure:  nestedFailure,
}

func chatBody(s Settings, history []turn) (map[string]any, error) {
	list, err := messages(history, "assistant", func(p part, _ bool) any {
		switch {
		case p.mime == "":
			return object{"type": "text", "text": p.text}
		case p.isImage():
			return object{"type": "image_url", "image_url": object{"url": p.dataURL()}}
		}
		return object{"type": "file", "file": object{"filename": p.name, "file_data": p.dataURL()}}
	})
	for _, m := range list {
		m["content"] = plain(m["content"].([]any))
	}
	body := object{"model": s.Model, "messages": list, "stream": true, "stream_options": object{"include_usage": true}}
	if s.system != "" {
		body["messages"] = append([]object{{"role": "system", "content": s.system}}, list...)
	}
	if s.Schema != nil {
		body["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "answer", "schema": s.Schema, "strict": true}}
	}
	return body, err
}

// plain returns a single text content as a string, because every server accepts this form.
func plain(contents []any) any {
	if len(contents) != 1 {
		return contents
	}
	if p := contents[0].(object); p["type"] == "text" {
		return p["text"]
	}
	return contents
}

// chatReader reads the chunks of a completion.
type chatReader struct {
	tools         map[int]*toolCall
	text, thought strings.Builder // received in pieces
	extras        bool            // a file or a tool call came in pieces
	reason        word
	done          bool // [DONE] was received
}

// chatChunk is a chunk of a completion, or a whole completion.
type chatChunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index        count       `json:"index"`
		FinishReason word        `json:"finish_reason"`
		Delta        chatMessage `json:"delta"`
		Message      chatMessage `json:"message"` // instead of the deltas, or after them
		Text         string      `json:"text"`    // from servers with the older completions API
	} `json:"choices"`
	Usage loose[chatUsage] `json:"usage"`
}

type chatMessage struct {
	Content   chatContent `json:"content"`
	Refusal   string      `json:"refusal"`
	Reasoning string      `json:"reasoning"`         // OpenRouter, Groq, vLLM
	Thought   string      `json:"reasoning_content"` // DeepSeek, llama.cpp
	Images    []chatImage `json:"images"`            // OpenRouter
	ToolCalls []struct {
		Index    *count `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string    `json:"name"`
			Arguments arguments `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type chatUsage struct {
	Prompt        count `json:"prompt_tokens"`
	Completion    count `json:"completion_tokens"`
	Total         count `json:"total_tokens"`
	Reasoning     count `json:"reasoning_tokens"` // Perplexity
	PromptDetails loose[struct {
		Cached count `json:"cached_tokens"`
	}] `json:"prompt_tokens_details"`
	CompletionDetails loose[struct {
		Reasoning count `json:"reasoning_tokens"`
	}] `json:"completion_tokens_details"`
}

// toUsage returns the usage in the chunk.
func (u *chatUsage) toUsage() usage {
	var cached, thought count
	if d := u.PromptDetails.v; d != nil {
		cached = d.Cached
	}
	if thought = u.Reasoning; u.CompletionDetails.v != nil && u.CompletionDetails.v.Reasoning.known {
		thought = u.CompletionDetails.v.Reasoning
	}
	return counted(u.Prompt, u.Completion, cached, thought, u.Total)
}

// arguments are the arguments of a tool call. Most servers send a string of JSON, and some send the JSON
// itself.
type arguments string

// UnmarshalJSON reads either form.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		if string(b) != "null" {
			*a = arguments(b)
		}
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

// chatImage is an image of an answer. Its address is a string or a member of an object.
type chatImage struct {
	URL json.RawMessage `json:"image_url"`
}

// pieces returns the image if its address can be read.
func (i chatImage) pieces() []piece {
	var url string
	var nested struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(i.URL, &url) != nil {
		_ = json.Unmarshal(i.URL, &nested) // without an address there is no image
	}
	return fileAt(cmp.Or(url, nested.URL))
}

// chatContent is a text, or Mistral's list of texts, thoughts and images.
type chatContent struct {
	text, thought string
	images        []piece
}

// UnmarshalJSON reads either form. null is an empty text.
func (c *chatContent) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var list []struct {
		chatImage
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	err := json.Unmarshal(b, &list)
	for _, part := range list {
		c.text += part.Text
		for _, t := range part.Thinking {
			c.thought += t.Text
		}
		c.images = append(c.images, part.pieces()...)
	}
	return err
}

func (r *chatReader) readEvent(e event) (out []piece, err error) {
	if string(e.data) == "[DONE]" {
		r.done = true
		return r.calls(), nil
	}
	var v chatChunk
	if err := decode(e, openAIChat, &v); err != nil {
		return nil, err
	}
	if len(v.Error) > 0 && string(v.Error) != "null" {
		return nil, failureOr(e.data)
	}
	for _, c := range v.Choices {
		if c.Index.n != 0 { // ignore further answers, because only one was requested
			continue
		}
		out = append(out, r.messagePieces(c.Delta, c.Delta.Content.text+c.Text+c.Delta.Refusal,
			c.Delta.Content.thought+cmp.Or(c.Delta.Reasoning, c.Delta.Thought))...)
		if r.extras {
			c.Message.Content.images, c.Message.Images, c.Message.ToolCalls = nil, nil, nil // already received
		}
		out = append(out, r.messagePieces(c.Message, missing(c.Message.Content.text+c.Message.Refusal, r.text.String()),
			missing(c.Message.Content.thought+cmp.Or(c.Message.Reasoning, c.Message.Thought), r.thought.String()))...)
		if c.FinishReason != "" {
			r.reason = cmp.Or(r.reason, c.FinishReason)
			out = append(out, r.calls()...)
		}
	}
	if u := v.Usage.v; u != nil {
		out = append(out, piece{kind: usagePiece, usage: u.toUsage()})
	}
	return out, nil
}

// messagePieces returns the pieces of a message. text and thought are its new parts.
func (r *chatReader) messagePieces(m chatMessage, text, thought string) (out []piece) {
	r.text.WriteString(text)
	r.thought.WriteString(thought)
	out = append(say(thoughtPiece, thought), say(textPiece, text)...)
	out = append(out, m.Content.images...)
	for _, i := range m.Images {
		out = append(out, i.pieces()...)
	}
	r.extras = r.extras || len(m.Content.images)+len(m.Images)+len(m.ToolCalls) > 0
	if m.Refusal != "" {
		r.reason = "content_filter"
	}
	for i, t := range m.ToolCalls {
		if t.Index != nil {
			i = int(t.Index.n)
		}
		call := r.tools[i]
		if call == nil {
			call = &toolCall{}
			r.tools[i] = call
		}
		call.id, call.name = cmp.Or(call.id, t.ID), cmp.Or(call.name, t.Function.Name)
		call.arguments += string(t.Function.Arguments)
	}
	return out
}

// calls returns the complete tool calls, each only once.
func (r *chatReader) calls() (out []piece) {
	for _, i := range slices.Sorted(maps.Keys(r.tools)) {
		out = append(out, piece{kind: toolPiece, tool: *r.tools[i]})
	}
	clear(r.tools)
	return out
}

func (r *chatReader) ending() (stopReason, bool) {
	return stops(r.reason), r.reason != "" || r.done
}

func (r *chatReader) isLast() bool { return r.done }
