package model

import (
	"cmp"
	"encoding/json"
	"strings"
)

// responsesMapping is openAI's Responses API, see https://platform.openai.com/docs/api-reference/responses
// and https://platform.openai.com/docs/api-reference/responses-streaming.
var responsesMapping = mapping{
	base: "https://api.openai.com/v1", header: "Authorization", prefix: "Bearer ", sample: "gpt-5",
	reserved: []string{"model", "input", "stream", "tools", "tool_choice", "background", "previous_response_id",
		"conversation"},
	path:    func(string) string { return "/responses" },
	models:  "/models",
	body:    responsesBody,
	answer:  func() reader { return &responsesReader{} },
	failure: nestedFailure,
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
	summary int             // number of received parts of the reasoning's summary
	text    strings.Builder // received in deltas
	done    string          // the complete texts, sent at the end of their parts
	items   []responsesItem // the finished items
}

type responsesEvent struct {
	Type     string          `json:"type"`
	Object   string          `json:"object"` // "response" if the event is a whole response
	Delta    string          `json:"delta"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	Item     responsesItem   `json:"item"`
	Response responsesObject `json:"response"`
}

// responsesItem is an item of the output.
type responsesItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Result    string `json:"result"`        // an image in base64
	Format    string `json:"output_format"` // the image's format
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

type responsesObject struct {
	Status            word            `json:"status"`
	Error             *apiErrorBody   `json:"error"`
	Output            []responsesItem `json:"output"`
	IncompleteDetails incomplete      `json:"incomplete_details"`
	Usage             loose[struct {
		Input   count `json:"input_tokens"`
		Output  count `json:"output_tokens"`
		Total   count `json:"total_tokens"`
		Details loose[struct {
			Cached count `json:"cached_tokens"`
		}] `json:"input_tokens_details"`
		OutputDetails loose[struct {
			Reasoning count `json:"reasoning_tokens"`
		}] `json:"output_tokens_details"`
	}] `json:"usage"`
}

// incomplete is the reason why a response is incomplete. The API sends it as {"reason":"max_output_tokens"} or as the
// string alone.
type incomplete struct{ reason word }

// UnmarshalJSON reads the reason from any JSON value.
func (i *incomplete) UnmarshalJSON(b []byte) error {
	var v struct{ Reason word }
	if json.Unmarshal(b, &v) == nil {
		i.reason = v.Reason
		return nil
	}
	return i.reason.UnmarshalJSON(b)
}

type apiErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *responsesReader) readEvent(e event) ([]piece, error) {
	if string(e.data) == "[DONE]" { // some gateways send this
		return nil, nil
	}
	var v responsesEvent
	if err := decode(e, openAI, &v); err != nil {
		return nil, err
	}
	switch cmp.Or(v.Type, e.name) {
	case "error":
		return nil, failureOr(e.data)
	case "response.output_text.delta":
		return r.textPieces(v.Delta), nil
	case "response.refusal.delta":
		r.refused = true
		return r.textPieces(v.Delta), nil
	case "response.output_text.done", "response.refusal.done":
		r.refused = r.refused || v.Refusal != ""
		r.done += v.Text + v.Refusal
	case "response.reasoning_summary_part.added":
		if r.summary++; r.summary > 1 {
			return say(thoughtPiece, "\n\n"), nil
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return say(thoughtPiece, v.Delta), nil
	case "response.output_item.done":
		r.items = append(r.items, v.Item)
		return v.Item.pieces(), nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		return r.readEnd(v.Response, strings.TrimPrefix(cmp.Or(v.Type, e.name), "response."))
	case "": // a response without a stream
		if err := decode(e, openAI, &v.Response); err != nil {
			return nil, err
		}
		if v.Object == "response" || v.Response.Status != "" && v.Response.Output != nil {
			return r.readEnd(v.Response, "")
		}
	}
	return nil, nil
}

// textPieces handles a delta of the text.
func (r *responsesReader) textPieces(delta string) []piece {
	r.text.WriteString(delta)
	return say(textPiece, delta)
}

// pieces returns the parts of an item other than text.
func (i responsesItem) pieces() []piece {
	switch {
	case oneOf("function_call", "custom_tool_call")(i.Type):
		return []piece{{kind: toolPiece, tool: toolCall{i.CallID, i.Name, cmp.Or(i.Arguments, i.Input)}}}
	case i.Type == "image_generation_call" && i.Result != "":
		return []piece{{kind: filePiece, file: answerFile{mime: "image/" + cmp.Or(i.Format, "png"), data: i.Result}}}
	}
	return nil
}

// readEnd reads the final response, which repeats the whole output. Its status, or otherwise the event's name,
// tells how it ended.
func (r *responsesReader) readEnd(v responsesObject, name string) (out []piece, err error) {
	items := v.Output
	if len(items) == 0 {
		items = r.items
	}
	text := ""
	for _, i := range items {
		for _, c := range i.Content {
			if i.Type == "message" {
				r.refused = r.refused || c.Refusal != ""
				text += c.Text + c.Refusal
			}
		}
		if len(r.items) == 0 {
			out = append(out, i.pieces()...)
		}
	}
	out = append(out, r.textPieces(missing(cmp.Or(text, r.done), r.text.String()))...)
	if u := v.Usage.v; u != nil {
		var cached, thought count
		if u.Details.v != nil {
			cached = u.Details.v.Cached
		}
		if u.OutputDetails.v != nil {
			thought = u.OutputDetails.v.Reasoning
		}
		out = append(out, piece{kind: usagePiece, usage: counted(u.Input, u.Output, cached, thought, u.Total)})
	}
	r.whole = true
	switch status := cmp.Or(v.Status, word(name)); {
	case status == "failed" && v.Error != nil:
		return out, &apiError{Message: cmp.Or(v.Error.Message, v.Error.Code), Kind: v.Error.Code}
	case status == "failed":
		return out, failureOr(nil)
	case status == "incomplete":
		r.reason = stops(cmp.Or(v.IncompleteDetails.reason, status))
	case r.refused && status == "completed":
		r.reason = stops(refusal)
	default:
		r.reason = stops(status)
	}
	return out, nil
}

func (r *responsesReader) ending() (stopReason, bool) { return r.reason, r.whole }

func (r *responsesReader) isLast() bool { return r.whole }
