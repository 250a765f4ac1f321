package model

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"unicode/utf8"
)

// bodyOf returns the body of a request for these turns.
func bodyOf(api API, options map[string]json.RawMessage, schema json.RawMessage, history ...turn) ([]byte, error) {
	s := Settings{API: api, Model: "m", Schema: schema, Options: options}
	body, err := mappings[api].body(s, history)
	if err != nil {
		return nil, err
	}
	return merged(body, options)
}

// texts returns all texts of a JSON value.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			list = append(list, texts(x)...)
		}
	case map[string]any:
		for _, x := range v {
			list = append(list, texts(x)...)
		}
	}
	return list
}

// FuzzBodies checks that for any input, the body of each API is one JSON object with the unchanged texts, files and
// options, and without tools.
func FuzzBodies(f *testing.F) {
	for i := range allAPIs() {
		f.Add(i, "caf\u00e9 <&> \u2028", "image/png", []byte("\x89PNG"), "dot \"x\".png", "temperature", `{"a":[1e400,"x"]}`)
		f.Add(i, "", "application/pdf", []byte{}, "", "generationConfig", `{"topK":1}`)
	}
	f.Fuzz(func(t *testing.T, i int, text, mime string, data []byte, uri, option, value string) {
		api := allAPIs()[(i%4+4)%4]
		if !utf8.ValidString(text + mime + uri + option + value) {
			return // JSON cannot represent this text
		}
		options := map[string]json.RawMessage{}
		if json.Valid([]byte(value)) && !oneOf(mappings[api].reserved...)(option) {
			options[option] = json.RawMessage(value)
		}
		encoded := base64.StdEncoding.EncodeToString(data)
		history := []turn{
			{blocks: []block{{Type: "text", Text: text}}}, {true, []block{{Type: "text", Text: "said " + text}}},
			{blocks: []block{{Type: "text", Text: "again " + text}, {Type: "image", MimeType: mime, Data: encoded, URI: uri}}},
		}
		b, err := bodyOf(api, options, json.RawMessage(`{"type":"object"}`), history...)
		if err != nil {
			if _, ferr := file(mime, encoded, uri); ferr == nil {
				t.Errorf("%s: got %v; want ferr != nil", api, err)
			}
			return
		}
		var v map[string]any
		// A number such as 1e400 is valid JSON, but Go cannot represent it.
		if err := json.Unmarshal(b, &v); err != nil && !strings.Contains(value, "e") && !strings.Contains(value, "E") {
			t.Fatalf("%s: %v: %s", api, err, b)
		}
		if v == nil {
			return
		}
		all := strings.Join(texts(v), "\x00")
		if _, replaced := options["messages"]; !replaced && option != "input" && option != "contents" {
			for _, want := range []string{text, "said " + text, "again " + text, encoded} {
				if !strings.Contains(all, want) {
					t.Errorf("%s: %q is not in %s", api, want, b)
				}
			}
		}
		for _, none := range []string{"tools", "tool_choice", "functions", "toolConfig"} {
			if _, has := v[none]; has && option != none {
				t.Errorf("%s: %s", api, b)
			}
		}
		if want, has := options[option]; has && v[option] != nil && !bytes.Contains(b, compact(want)) &&
			option != "generationConfig" && option != "text" && option != "output_config" && option != "response_format" &&
			option != "stream_options" {
			t.Errorf("%s: the option %s is not in %s", api, want, b)
		}
	})
}

func compact(b []byte) []byte {
	again, err := json.Marshal(json.RawMessage(b))
	if err != nil {
		return b
	}
	return again
}

// TestShapes checks rare kinds of answers, such as an empty answer or a refusal, in the form of each API. No recorded
// stream contains them.
func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		stream     map[API]string
		text, stop string
	}{
		"an empty answer": {map[API]string{
			anthropic: `data: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` +
				"\n\n",
			openAI: `data: {"type":"response.completed","response":{"output":[]}}` + "\n\n",
			openAIChat: `data: {"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":"stop"}]}` +
				"\n\ndata: [DONE]\n\n",
			gemini: `data: {"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}` + "\n\n",
		}, "", endTurn},
		"a refusal": {map[API]string{
			anthropic: `data: {"type":"message_delta","delta":{"stop_reason":"refusal"}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
			openAI: `data: {"type":"response.refusal.delta","delta":"no"}` + "\n\n" +
				`data: {"type":"response.completed","response":{}}` + "\n\n",
			openAIChat: `data: {"choices":[{"delta":{"refusal":"no"}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n",
			gemini: `data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n",
		}, "?", refusal},
		"pings, comments, citations and what is not known": {map[API]string{
			anthropic: ": hello\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}` + "\n\n" + `data: {"type":"new_thing","x":[1]}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
			openAI: ": hello\n\n" + `data: {"type":"response.output_text.delta","delta":"Hi"}` + "\n\n" +
				`data: {"type":"response.output_text.annotation.added","annotation":{"type":"url_citation","url":"x"}}` + "\n\n" +
				`data: {"type":"keepalive"}` + "\n\n" + `data: {"type":"response.completed","response":{}}` + "\n\n",
			openAIChat: ": OPENROUTER PROCESSING\n\n" +
				`data: {"citations":["https://example.org"],"choices":[{"delta":{"content":"Hi","annotations":[{"type":"url_citation"}]}}]}` + "\n\n" + `data: {"object":"new.thing"}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n",
			gemini: `data: {"candidates":[{"content":{"parts":[{"text":"Hi"},{"newThing":{}}]},"citationMetadata":{"citationSources":[{}]},"finishReason":"STOP"}],"newThing":1}` + "\n\n",
		}, "Hi", endTurn},
	} {
		for api, stream := range c.stream {
			got := readStream(api, strings.NewReader(stream))
			if !got.Whole || got.Stop != c.stop || got.Error != "" || c.text != "?" && got.Text != c.text {
				t.Errorf("%s, %s: %+v", name, api, got)
			}
		}
	}
}

// TestEmptyAnswer checks that an empty answer is valid, and the session continues.
func TestEmptyAnswer(t *testing.T) {
	s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
		if s.readRequest(r) != nil {
			_, _ = io.WriteString(c, streamHead+"\r\n"+`data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}`+
				"\n\ndata: [DONE]\n\n")
		}
	})
	p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: s.url}, true)
	id := p.session()
	for range 2 {
		if m := p.awaitAnswer(p.sendPrompt(id, "Hi"), nil); outcome(m) != "answered" || p.text() != "" {
			t.Errorf(`got %+v; want outcome(m) == "answered" && p.text() == ""`, m)
		}
	}
}

// TestSystemPrompt checks that the text is in the API's own field before all turns, and an option cannot replace it
// silently.
func TestSystemPrompt(t *testing.T) {
	turns := []turn{{blocks: []block{{Type: "text", Text: "hi"}}}}
	for api, want := range map[API]string{
		anthropic:  `"system":"Be brief."`,
		openAI:     `"instructions":"Be brief."`,
		openAIChat: `"messages":[{"content":"Be brief.","role":"system"},{"content":"hi","role":"user"}]`,
		gemini:     `"systemInstruction":{"parts":[{"text":"Be brief."}]}`,
	} {
		for system, n := range map[string]int{"Be brief.": 1, "": 0} {
			body, err := mappings[api].body(Settings{API: api, Model: "m", system: system}, turns)
			b, merr := merged(body, nil)
			if err != nil || merr != nil || strings.Count(string(b), want) != n || n == 0 &&
				strings.Contains(string(b), "ystem") {
				t.Errorf("%s: %s, %v, %v", api, b, err, merr)
			}
		}
	}
	p := connect(t, Settings{API: anthropic, Model: "m", BaseURL: "http://127.0.0.1:1",
		Options: map[string]json.RawMessage{"system": json.RawMessage(`"Be long."`)}}, true)
	m := p.call("session/new",
		`{"cwd":"/","mcpServers":[],"systemPrompt":{"mode":"append","content":[{"type":"text","text":"Be brief."}]}}`)
	var opened struct{ SessionID string }
	if err := json.Unmarshal(m.Result, &opened); err != nil {
		t.Fatal(err)
	}
	if m := p.awaitAnswer(p.sendPrompt(opened.SessionID, "hi"), nil); m.Error == nil ||
		!strings.Contains(m.Error.Message, `the option "system" takes the place`) {
		t.Errorf("%+v", m)
	}
}
