package model

import (
	"encoding/json"
	"net/url"
)

// geminiMapping is Google's generateContent with streaming, see https://ai.google.dev/api/generate-content.
// The key goes into a header, because servers on the way log addresses.
var geminiMapping = mapping{
	base: "https://generativelanguage.googleapis.com", header: "x-goog-api-key", sample: "gemini-2.5-flash",
	reserved: []string{"contents", "tools", "toolConfig"},
	path: func(model string) string {
		return "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
	},
	models:  "/v1beta/models?pageSize=1000",
	body:    geminiBody,
	answer:  func() reader { return &geminiReader{} },
	failure: nestedFailure,
}

func geminiBody(s Settings, history []turn) (map[string]any, error) {
	list, err := messages(history, "model", func(p part, _ bool) any {
		if p.mime == "" {
			return object{"text": p.text}
		}
		return object{"inlineData": object{"mimeType": p.mime, "data": p.data}}
	})
	for _, m := range list {
		m["parts"] = m["content"]
		delete(m, "content")
	}
	body := object{"contents": list}
	if s.system != "" {
		body["systemInstruction"] = object{"parts": []object{{"text": s.system}}}
	}
	if s.Schema != nil {
		body["generationConfig"] = object{"responseMimeType": "application/json", "responseJsonSchema": s.Schema}
	}
	return body, err
}

// geminiReader reads the chunks of a response.
type geminiReader struct{ reason stopReason }

type geminiChunk struct {
	Error      json.RawMessage `json:"error"`
	Candidates []struct {
		Index        count `json:"index"`
		FinishReason word  `json:"finishReason"`
		Content      struct {
			Parts []struct {
				Text         string     `json:"text"`
				Thought      bool       `json:"thought"`
				InlineData   geminiFile `json:"inlineData"`
				FileData     geminiFile `json:"fileData"`
				FunctionCall *struct {
					ID   string          `json:"id"`
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason word `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage loose[geminiUsage] `json:"usageMetadata"`
}

type geminiFile struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"`
	URI  string `json:"fileUri"`
}

type geminiUsage struct {
	Prompt     *count `json:"promptTokenCount"`
	Candidates *count `json:"candidatesTokenCount"`
	Cached     *count `json:"cachedContentTokenCount"`
	Thoughts   *count `json:"thoughtsTokenCount"`
	Tools      *count `json:"toolUsePromptTokenCount"`
}

// toUsage returns the usage in the chunk. The API leaves out a count of 0. It counts thoughts separately from
// the candidates.
func (g *geminiUsage) toUsage() usage {
	u := usage{known: true}
	add := func(to *int64, c *count) {
		if c != nil {
			*to += c.n
			u.known = u.known && c.known
		}
	}
	add(&u.input, g.Prompt)
	add(&u.input, g.Tools)
	add(&u.output, g.Candidates)
	add(&u.output, g.Thoughts)
	add(&u.thought, g.Thoughts)
	add(&u.cachedRead, g.Cached)
	u.cachedRead = min(u.cachedRead, u.input)
	return u
}

func (r *geminiReader) readEvent(e event) (out []piece, err error) {
	if string(e.data) == "[DONE]" { // some gateways send this
		return nil, nil
	}
	var v geminiChunk
	if err := decode(e, gemini, &v); err != nil {
		return nil, err
	}
	if len(v.Error) > 0 && string(v.Error) != "null" {
		return nil, failureOr(e.data)
	}
	for _, c := range v.Candidates {
		if c.Index.n != 0 {
			continue
		}
		for _, p := range c.Content.Parts {
			for _, f := range []geminiFile{p.InlineData, p.FileData} {
				if f.Data != "" || f.URI != "" {
					out = append(out, piece{kind: filePiece, file: answerFile{mime: f.MIME, data: f.Data, uri: f.URI,
						thought: p.Thought}})
				}
			}
			switch {
			case p.FunctionCall != nil:
				out = append(out, piece{kind: toolPiece, tool: toolCall{p.FunctionCall.ID, p.FunctionCall.Name,
					string(p.FunctionCall.Args)}})
			case p.Thought:
				out = append(out, say(thoughtPiece, p.Text)...)
			default:
				out = append(out, say(textPiece, p.Text)...)
			}
		}
		if c.FinishReason != "" {
			r.reason = stops(c.FinishReason)
		}
	}
	if b := v.PromptFeedback.BlockReason; b != "" {
		r.reason = stopReason{acp: refusal, warning: "the API blocked the prompt for the reason " + string(b)}
	}
	if u := v.Usage.v; u != nil {
		out = append(out, piece{kind: usagePiece, usage: u.toUsage()})
	}
	return out, nil
}

func (r *geminiReader) ending() (stopReason, bool) { return r.reason, r.reason.acp != "" }

// isLast returns false, so the agent reads until the server ends the stream. Any chunk may have the usage, and the
// server ends the stream after the last one.
func (*geminiReader) isLast() bool { return false }
