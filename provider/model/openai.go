package model

import "cmp"

// responsesMapping is OpenAI's Responses API, by https://platform.openai.com/docs/api-reference/responses
// and https://platform.openai.com/docs/api-reference/responses-streaming.
var responsesMapping = mapping{
	base: "https://api.openai.com/v1", header: "Authorization", prefix: "Bearer ", sample: "gpt-5",
	reserved: []string{"model", "input", "stream", "tools", "tool_choice", "background", "previous_response_id", "conversation"},
	path:     func(string) string { return "/responses" },
	models:   "/models",
	body:     responsesBody,
	answer:   func() reader { return &responsesReader{} },
	failure:  nestedFailure,
}

func responsesBody(s Settings, history []turn) (map[string]any, error) {
	list, err := messages(history, "assistant", func(p part, assistant bool) any {
		switch {
		case assistant:
			return object{"type": "output_text", "text": p.text}
		case p.mime == "":
			return object{"type": "input_text", "text": p.text}
		case p.isImage():
			return object{"type": "input_image", "image_url": p.dataURL()}
		}
		return object{"type": "input_file", "filename": p.name, "file_data": p.dataURL()}
	})
	body := object{"model": s.Model, "input": list, "stream": true, "store": false}
	if s.system != "" {
		body["instructions"] = s.system
	}
	if s.Schema != nil {
		body["text"] = object{"format": object{"type": "json_schema", "name": "answer", "schema": s.Schema, "strict": true}}
	}
	return body, err
}

// responsesReader reads the stream of a response.
type responsesReader struct {
	reason  stopReason
	whole   bool
	refused bool
	summary int // parts of the summary of the reasoning that came
}

type responsesEvent struct {
	Type  string `json:"type"`
	Delta string `json:"delta"`
	Item  struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Input     string `json:"input"`
	} `json:"item"`
	Response struct {
		Error             *apiErrorBody `json:"error"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int64 `json:"input_tokens"`
			Output  int64 `json:"output_tokens"`
			Details struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

type apiErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *responsesReader) event(e event) ([]piece, error) {
	if string(e.data) == "[DONE]" { // some gateways end with it, too
		return nil, nil
	}
	var v responsesEvent
	if err := decode(e, OpenAI, &v); err != nil {
		return nil, err
	}
	switch cmp.Or(v.Type, e.name) {
	case "error":
		return nil, failureOr(e.data)
	case "response.failed":
		if f := v.Response.Error; f != nil {
			return r.used(v), &apiError{Message: cmp.Or(f.Message, f.Code), Kind: f.Code}
		}
		return r.used(v), failureOr(nil)
	case "response.output_text.delta":
		return say(textPiece, v.Delta), nil
	case "response.refusal.delta":
		r.refused = true
		return say(textPiece, v.Delta), nil
	case "response.reasoning_summary_part.added":
		if r.summary++; r.summary > 1 {
			return say(thoughtPiece, "\n\n"), nil
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return say(thoughtPiece, v.Delta), nil
	case "response.output_item.done":
		if oneOf("function_call", "custom_tool_call")(v.Item.Type) {
			return []piece{{kind: toolPiece, tool: toolCall{v.Item.CallID, v.Item.Name, cmp.Or(v.Item.Arguments, v.Item.Input)}}}, nil
		}
	case "response.completed":
		r.whole, r.reason = true, stopReason{acp: endTurn}
		return r.used(v), nil
	case "response.incomplete":
		r.whole = true
		r.reason = stops(map[string]string{"max_output_tokens": maxTokens, "content_filter": refusal}, v.Response.IncompleteDetails.Reason)
		return r.used(v), nil
	}
	return nil, nil
}

func (r *responsesReader) used(v responsesEvent) []piece {
	u := v.Response.Usage
	if u == nil {
		return nil
	}
	return []piece{{kind: usagePiece, usage: usage{
		input: u.Input, output: u.Output, cachedRead: u.Details.Cached, thought: u.OutputDetails.Reasoning, known: true,
	}}}
}

func (r *responsesReader) stop() (stopReason, bool) {
	if r.refused && r.reason.acp == endTurn {
		r.reason.acp = refusal
	}
	return r.reason, r.whole
}

func (r *responsesReader) last() bool { return r.whole }
