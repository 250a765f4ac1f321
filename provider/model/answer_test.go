package model

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

// answers are answers in forms that are rare in streams.
var answers = []struct {
	name    string
	api     API
	events  []string
	text    string
	stop    string
	tools   int
	warning bool
	files   string // kind, MIME type, and data or address of each
}{
	{name: "the text only at the end of the part", api: openAI, text: "Hello", stop: endTurn, events: []string{
		`{"type":"response.output_text.done","text":"Hello"}`,
		`{"type":"response.completed","response":{"status":"completed"}}`}},
	{name: "the text only in the item", api: openAI, text: "Hello", stop: endTurn, events: []string{
		`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hello"}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`}},
	{name: "the text only at the end", api: openAI, text: "Hello", stop: endTurn, tools: 1, events: []string{
		`{"type":"response.completed","response":{"output":[{"type":"reasoning","content":[{"text":"no"}]},{"type":"message","content":[{"text":"Hel"},{"text":"lo"}]},{"type":"function_call","name":"f"}]}}`}},
	{name: "everything twice", api: openAI, text: "Hello", stop: endTurn, tools: 1, events: []string{
		`{"type":"response.output_text.delta","delta":"Hel"}`, `{"type":"response.output_text.delta","delta":"lo"}`,
		`{"type":"response.output_text.done","text":"Hello"}`,
		`{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"Hello"}]}}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}`,
		`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"Hello"}]},{"type":"function_call","name":"f"}]}}`}},
	{name: "the last deltas are missing", api: openAI, text: "Hello", stop: endTurn, events: []string{
		`{"type":"response.output_text.delta","delta":"Hel"}`,
		`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"Hello"}]}]}}`}},
	{name: "a refusal only at the end", api: openAI, text: "No.", stop: refusal, events: []string{
		`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}}`}},
	{name: "completed, but incomplete", api: openAI, text: "Hel", stop: maxTokens, events: []string{
		`{"type":"response.output_text.delta","delta":"Hel"}`,
		`{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}},
	{name: "incomplete without a reason", api: openAI, stop: brokenOff,
		events: []string{`{"type":"response.incomplete","response":{"status":"incomplete"}}`}},
	{name: "incomplete with the bare reason", api: openAI, text: "Hel", stop: maxTokens, events: []string{
		`{"object":"response","status":"incomplete","incomplete_details":"max_output_tokens","output":[{"type":"message","content":[{"text":"Hel"}]}]}`}},
	{name: "incomplete for a reason in another form", api: openAI, text: "Hel", stop: brokenOff, events: []string{
		`{"object":"response","status":"incomplete","incomplete_details":{"reason":["x"]},"output":[{"type":"message","content":[{"text":"Hel"}]}]}`}},
	{name: "a whole response without its kind", api: openAI, text: "Hel", stop: maxTokens, events: []string{
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"text":"Hel"}]}]}`}},
	{name: "a status in another form", api: openAI, text: "Hel", stop: brokenOff, events: []string{
		`{"object":"response","status":7,"output":[{"type":"message","content":[{"text":"Hel"}]}]}`}},
	{name: "cancelled", api: openAI, stop: brokenOff, events: []string{`{"type":"response.cancelled","response":{}}`}},
	{name: "a whole response", api: openAI, text: "Hello", stop: endTurn, events: []string{
		`{"object":"response","status":"completed","output":[{"type":"message","content":[{"text":"Hello"}]}]}`}},
	{name: "an image", api: openAI, stop: endTurn, files: "image image/webp QUJD", events: []string{
		`{"type":"response.output_item.done","item":{"type":"image_generation_call","result":"QUJD","output_format":"webp"}}`,
		`{"type":"response.completed","response":{"output":[{"type":"image_generation_call","result":"QUJD"}]}}`}},

	{name: "a message in place of deltas", api: openAIChat, text: "Hello", stop: endTurn, tools: 1, events: []string{
		`{"choices":[{"message":{"content":"Hello","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":"stop"}]}`}},
	{name: "a message that grows next to the deltas", api: openAIChat, text: "Hello", stop: endTurn, events: []string{
		`{"choices":[{"delta":{"content":"Hel"},"message":{"content":"Hel"}}]}`,
		`{"choices":[{"delta":{"content":"lo"},"message":{"content":"Hello"},"finish_reason":"stop"}]}`}},
	{name: "a message after the deltas", api: openAIChat, text: "Hello", stop: endTurn, tools: 1, events: []string{
		`{"choices":[{"delta":{"content":"Hello","tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}`,
		`{"choices":[{"message":{"content":"Hello","tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"STOP"}]}`}},
	{name: "a completion of the older form", api: openAIChat, text: "Hello", stop: endTurn,
		events: []string{`{"choices":[{"text":"Hello","finish_reason":"eos"}]}`}},
	{name: "images in the deltas and again in the message", api: openAIChat, stop: endTurn,
		files: "resource_link https://example.org/a.png, image image/png QUJD", events: []string{
			`{"choices":[{"delta":{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}],"content":[{"type":"image_url","image_url":"https://example.org/a.png"}]}}]}`,
			`{"choices":[{"message":{"images":[{"image_url":{"url":"data:image/png;base64,QUJD"}}]},"finish_reason":"stop"}]}`}},
	{name: "its maker ran out of something", api: openAIChat, text: "Hel", stop: brokenOff, events: []string{
		`{"choices":[{"delta":{"content":"Hel"}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`}},
	{name: "an index in another form", api: openAIChat, text: "Hel", stop: endTurn, tools: 1, events: []string{
		`{"choices":[{"index":"0","delta":{"content":"Hel","tool_calls":[{"index":0.0,"id":"t","function":{"name":"f"}}]}}]}`,
		`{"choices":[{"index":0.0,"delta":{},"finish_reason":"stop"}]}`}},
	{name: "Mistral's limit", api: openAIChat, stop: maxTokens,
		events: []string{`{"choices":[{"delta":{},"finish_reason":"model_length"}]}`}},
	{name: "a filter", api: openAIChat, stop: refusal,
		events: []string{`{"choices":[{"delta":{},"finish_reason":"sensitive"}]}`}},
	{name: "a tool that is waited for", api: openAIChat, stop: endTurn, warning: true,
		events: []string{`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`}},

	{name: "a whole message", api: anthropic, text: "Hello", stop: maxTokens, tools: 1, events: []string{
		`{"type":"message","content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"max_tokens"}`}},
	{name: "an image", api: anthropic, stop: endTurn, files: "image image/png QUJD", events: []string{
		`{"type":"content_block_start","content_block":{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`}},
	{name: "a reason that is no text", api: anthropic, stop: brokenOff,
		events: []string{`{"type":"message_delta","delta":{"stop_reason":{"type":"end"}}}`, `{"type":"message_stop"}`}},
	{name: "a turn that pauses", api: anthropic, stop: brokenOff,
		events: []string{`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`, `{"type":"message_stop"}`}},
	{name: "no reason", api: anthropic, stop: endTurn, warning: true, events: []string{`{"type":"message_stop"}`}},

	{name: "a file of each kind", api: gemini, text: "Hello", stop: endTurn,
		files: "image image/png QUJD, audio audio/wav QUJD, resource application/pdf QUJD, resource_link gs://a/b",
		events: []string{
			`{"candidates":[{"content":{"parts":[{"text":"Hello"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}},{"inlineData":{"mimeType":"audio/wav","data":"QUJD"}},` +
				`{"inlineData":{"mimeType":"application/pdf","data":"QUJD"}},{"fileData":{"fileUri":"gs://a/b"}}]},"finishReason":"STOP"}]}`}},
	{name: "a call that is malformed", api: gemini, stop: brokenOff,
		events: []string{`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`}},
	{name: "a reason that is no text", api: gemini, text: "Hel", stop: brokenOff,
		events: []string{`{"candidates":[{"content":{"parts":[{"text":"Hel"}]},"finishReason":1}]}`}},
	{name: "a reason that is absent in another form", api: openAIChat, text: "Hello", stop: endTurn, events: []string{
		`{"choices":[{"delta":{"content":"Hel"},"finish_reason":false}]}`,
		`{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`}},
	{name: "a reason of tomorrow", api: gemini, text: "Hel", stop: brokenOff,
		events: []string{`{"candidates":[{"content":{"parts":[{"text":"Hel"}]},"finishReason":"SOLAR_STORM"}]}`}},
	{name: "a mark of another API", api: gemini, stop: refusal,
		events: []string{`{"candidates":[{"finishReason":"IMAGE_SAFETY"}]}`, `[DONE]`}},
}

// TestAnswers checks that text, files and stop reason are read from every form, each only once.
func TestAnswers(t *testing.T) {
	for _, a := range answers {
		t.Run(string(a.api)+" "+a.name, func(t *testing.T) {
			stream := "data: " + strings.Join(a.events, "\n\ndata: ") + "\n\n"
			got := readStream(a.api, strings.NewReader(stream))
			if bare := readStream(a.api, strings.NewReader(strings.TrimRight(stream, "\n"))); !reflect.DeepEqual(bare, got) {
				t.Errorf("without the end of its last line: %+v", bare)
			}
			if got.Text != a.text || got.Stop != a.stop || !got.Whole || got.Error != "" || len(got.Tools) != a.tools ||
				(got.Warning != "") != a.warning {
				t.Errorf("%+v", got)
			}
			if files := strings.Join(got.Files, ", "); files != a.files {
				t.Errorf("the files %q, want %q", files, a.files)
			}
		})
	}
}

// TestFilesAreRemembered checks that the client gets an image of an answer as ACP content, and the next prompt mentions
// the image.
func TestFilesAreRemembered(t *testing.T) {
	s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
		if s.readRequest(r) != nil {
			_, _ = io.WriteString(c, streamHead+"\r\ndata: "+
				`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]},"finishReason":"STOP"}]}`+"\n\n")
		}
	})
	p := connect(t, Settings{API: gemini, Model: "m", BaseURL: s.url}, true)
	id := p.session()
	for _, text := range []string{"Draw.", "Again."} {
		if m := p.awaitAnswer(p.sendPrompt(id, text), nil); outcome(m) != "answered" {
			t.Fatalf(`got %+v; want outcome(m) == "answered"`, m.Error)
		}
	}
	if got := string(agentside.Encode(
		p.updates[0])); got != `{"content":{"data":"QUJD","mimeType":"image/png","type":"image"},"sessionUpdate":"agent_message_chunk"}` {
		t.Error(got)
	}
	if !strings.Contains(s.bodies[1], "a file of the answer: image/png") || !strings.Contains(s.bodies[1], "Draw.") {
		t.Error(s.bodies[1])
	}
}

// TestCounts checks that token counts of any form are read or count as unknown, and no cost is below 0.
func TestCounts(t *testing.T) {
	price := &Price{Input: 1, Output: 10, CachedInput: 0.1, Per: 1}
	for _, c := range []struct {
		api   API
		usage string
		cost  float64 // -1 means unknown
	}{
		{openAIChat, `{"prompt_tokens":1000.0,"completion_tokens":1e1}`, 1100},
		{openAIChat, `{"prompt_tokens":"1000","completion_tokens":"10"}`, 1100},
		{openAIChat, `{"prompt_tokens":0.6,"completion_tokens":0}`, 1},
		{openAIChat, `{"prompt_tokens":-1,"completion_tokens":-1}`, -1},
		{openAIChat, `{"prompt_tokens":1e300,"completion_tokens":1}`, -1},
		{openAIChat, `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, -1},
		{openAIChat, `{"prompt_tokens":null,"completion_tokens":1}`, -1},
		{openAIChat, `{"completion_tokens":1}`, -1},
		{openAIChat, `{"prompt_tokens":{},"completion_tokens":true}`, -1},
		{openAIChat, `[]`, -1},
		{openAIChat, `"none"`, -1},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":50}}`, 11},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":[],"completion_tokens_details":"x"}`,
			20},
		// openAI includes thoughts in the completion. xAI, Perplexity and Gemini in this form count them
		// separately.
		{openAIChat,
			`{"prompt_tokens":10,"completion_tokens":105,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}`, 1060},
		{openAIChat,
			`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}`,
			1060},
		{openAIChat,
			`{"prompt_tokens":10,"completion_tokens":100,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":5}}`,
			1060},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":100}}`, 1060},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"reasoning_tokens":100}`, 1060},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}`, 1060},
		{openAIChat, `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":-7}`, 60},
		{openAI, `{"input_tokens":10.0,"output_tokens":"5","output_tokens_details":{"reasoning_tokens":4}}`, 60},
		{openAI, `{"input_tokens":10,"output_tokens":5,"total_tokens":115,"output_tokens_details":{"reasoning_tokens":100}}`,
			1060},
		{openAI, `{"input_tokens":-10,"output_tokens":5}`, -1},
		{anthropic, `{"input_tokens":"10","output_tokens":5.0,"cache_read_input_tokens":10}`, 61},
		{anthropic, `{"input_tokens":10,"output_tokens":-5}`, -1},
		{anthropic, `{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":1}`, -1},
		{gemini, `{"promptTokenCount":10}`, 10},
		{gemini, `{"promptTokenCount":8,"toolUsePromptTokenCount":2,"candidatesTokenCount":"5","thoughtsTokenCount":100}`,
			1060},
		{gemini, `{"promptTokenCount":10,"candidatesTokenCount":-5}`, -1},
		{gemini, `{"promptTokenCount":10,"cachedContentTokenCount":99}`, 1},
	} {
		stream := map[API]string{
			openAIChat: `{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}],"usage":%s}`,
			openAI:     `{"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"Hello"}]}],"usage":%s}}`,
			anthropic:  `{"type":"message","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":%s}`,
			gemini:     `{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":%s}`,
		}[c.api]
		got, cost := readStream(c.api, strings.NewReader("data: "+fmt.Sprintf(stream, c.usage)+"\n\n")), float64(-1)
		if amount, known := price.cost(got.use); known {
			cost = amount
		}
		if !got.Whole || got.Text != "Hello" || got.Error != "" || math.Abs(cost-c.cost) > 1e-9 {
			t.Errorf("%s %s: cost %v, want %v: %+v", c.api, c.usage, cost, c.cost, got)
		}
	}
	price.CacheWrite = 1.25
	if amount, known := price.cost(usage{input: 30, cachedRead: 10, cachedWrite: 8, known: true}); !known ||
		amount != 12+1+10 {
		t.Errorf("with a price for writes: %v, %v", amount, known)
	}
	price.Output = -1
	if err := (Settings{API: openAI, Model: "m", Price: price}).Check(); err == nil {
		t.Error("a price below 0 passes")
	}
}
