package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// chatMapping is OpenAI's Chat Completions API, by https://platform.openai.com/docs/api-reference/chat,
// which many servers speak in a form of their own.
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

// plain is a content of one text as that text: the form that every server takes.
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
	tools  map[int]*toolCall
	reason string
	done   bool // [DONE] came
}

type chatChunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index        int    `json:"index"`
		FinishReason string `json:"finish_reason"`
		Delta        struct {
			Content   chatContent `json:"content"`
			Refusal   string      `json:"refusal"`
			Reasoning string      `json:"reasoning"`         // OpenRouter, Groq, vLLM
			Thought   string      `json:"reasoning_content"` // DeepSeek, llama.cpp
			ToolCalls []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

// chatContent is a text, or, as Mistral writes it, a list of texts and thoughts.
type chatContent struct{ text, thought string }

// UnmarshalJSON reads either form; null is no text.
func (c *chatContent) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var list []struct {
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
	}
	return err
}

func (r *chatReader) event(e event) (out []piece, err error) {
	if string(e.data) == "[DONE]" {
		r.done = true
		return r.calls(), nil
	}
	var v chatChunk
	if err := decode(e, OpenAIChat, &v); err != nil {
		return nil, err
	}
	if len(v.Error) > 0 && string(v.Error) != "null" {
		return nil, failureOr(e.data)
	}
	for _, c := range v.Choices {
		if c.Index != 0 { // one answer was asked for
			continue
		}
		out = append(out, say(thoughtPiece, cmp.Or(c.Delta.Reasoning, c.Delta.Thought)+c.Delta.Content.thought)...)
		out = append(out, say(textPiece, c.Delta.Content.text+c.Delta.Refusal)...)
		if c.Delta.Refusal != "" {
			r.reason = "content_filter"
		}
		for _, t := range c.Delta.ToolCalls {
			call := r.tools[t.Index]
			if call == nil {
				call = &toolCall{}
				r.tools[t.Index] = call
			}
			call.id, call.name = cmp.Or(call.id, t.ID), cmp.Or(call.name, t.Function.Name)
			call.arguments += t.Function.Arguments
		}
		if oneOf("error", "abort")(c.FinishReason) {
			return out, &apiError{Message: "the model ended its answer with the reason " + c.FinishReason, Kind: c.FinishReason}
		}
		if c.FinishReason != "" {
			r.reason = cmp.Or(r.reason, c.FinishReason)
			out = append(out, r.calls()...)
		}
	}
	if u := v.Usage; u != nil {
		out = append(out, piece{kind: usagePiece, usage: usage{
			input: u.Prompt, output: u.Completion, cachedRead: u.PromptDetails.Cached, thought: u.CompletionDetails.Reasoning, known: true,
		}})
	}
	return out, nil
}

// calls are the tool calls that are whole, once.
func (r *chatReader) calls() (out []piece) {
	for _, i := range slices.Sorted(maps.Keys(r.tools)) {
		out = append(out, piece{kind: toolPiece, tool: *r.tools[i]})
	}
	clear(r.tools)
	return out
}

func (r *chatReader) stop() (stopReason, bool) {
	if r.reason == "" && r.done {
		return stopReason{acp: endTurn, warning: "the model's server ended the stream without a reason"}, true
	}
	return stops(map[string]string{"stop": endTurn, "length": maxTokens, "content_filter": refusal}, r.reason), r.reason != ""
}

func (r *chatReader) last() bool { return r.done }
