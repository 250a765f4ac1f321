// Package sdk reads recorded streams with Perlica and with the makers' Go SDKs, and compares the results. It is a
// module of its own, because Perlica needs none of the SDKs.
package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// read is the content of a stream in the form of expected.json.
type read struct {
	Text  string
	Usage struct{ InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens int64 }
	Stop  string
	Error string
}

// stream answers each request with the bytes of a stream.
type stream []byte

func (s stream) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(s)),
	}, nil
}

func (s stream) client() *http.Client { return &http.Client{Transport: s} }

func readAnthropic(s stream) (out read, err error) {
	c := anthropic.NewClient(anthropicoption.WithAPIKey("k"), anthropicoption.WithHTTPClient(s.client()), anthropicoption.WithMaxRetries(0))
	events := c.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{
		MaxTokens: 1, Model: "m", Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hi"))},
	})
	var m anthropic.Message
	for events.Next() {
		if err := m.Accumulate(events.Current()); err != nil {
			return out, err
		}
	}
	for _, b := range m.Content {
		out.Text += b.Text
	}
	u := m.Usage
	out.Usage.CachedReadTokens, out.Usage.CachedWriteTokens = u.CacheReadInputTokens, u.CacheCreationInputTokens
	out.Usage.InputTokens, out.Usage.OutputTokens = u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens
	out.Stop = map[anthropic.StopReason]string{"max_tokens": "max_tokens", "refusal": "refusal"}[m.StopReason]
	return out, events.Err()
}

func readChat(s stream) (out read, err error) {
	c := openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithHTTPClient(s.client()), openaioption.WithMaxRetries(0))
	chunks := c.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")}})
	for chunks.Next() {
		chunk := chunks.Current()
		for _, choice := range chunk.Choices {
			out.Text += choice.Delta.Content
			out.Stop = map[string]string{"length": "max_tokens", "content_filter": "refusal", "": out.Stop}[choice.FinishReason]
		}
		if u := chunk.Usage; u.TotalTokens > 0 {
			out.Usage.InputTokens, out.Usage.OutputTokens, out.Usage.CachedReadTokens = u.PromptTokens, u.CompletionTokens, u.PromptTokensDetails.CachedTokens
		}
	}
	return out, chunks.Err()
}

func readResponses(s stream) (out read, err error) {
	c := openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithHTTPClient(s.client()), openaioption.WithMaxRetries(0))
	events := c.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")}})
	for events.Next() {
		e := events.Current()
		switch e.Type {
		case "response.output_text.delta", "response.refusal.delta":
			out.Text += e.Delta
		case "response.completed", "response.incomplete", "response.failed":
			u := e.Response.Usage
			out.Usage.InputTokens, out.Usage.OutputTokens, out.Usage.CachedReadTokens = u.InputTokens, u.OutputTokens, u.InputTokensDetails.CachedTokens
			out.Stop = map[string]string{"max_output_tokens": "max_tokens", "content_filter": "refusal"}[e.Response.IncompleteDetails.Reason]
			out.Error = e.Response.Error.Message
		case "error":
			out.Error = e.Message
		}
	}
	return out, events.Err()
}

func readGemini(s stream) (out read, err error) {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: s.client()})
	if err != nil {
		return out, err
	}
	for r, err := range c.Models.GenerateContentStream(context.Background(), "m", genai.Text("Hi"), nil) {
		if err != nil {
			return out, err
		}
		for _, candidate := range r.Candidates {
			if candidate.Content != nil {
				for _, p := range candidate.Content.Parts {
					if !p.Thought {
						out.Text += p.Text
					}
				}
			}
			out.Stop = map[genai.FinishReason]string{"MAX_TOKENS": "max_tokens", "SAFETY": "refusal", "": out.Stop}[candidate.FinishReason]
		}
		if u := r.UsageMetadata; u != nil {
			out.Usage.InputTokens, out.Usage.CachedReadTokens = int64(u.PromptTokenCount), int64(u.CachedContentTokenCount)
			out.Usage.OutputTokens = int64(u.CandidatesTokenCount + u.ThoughtsTokenCount)
		}
	}
	return out, nil
}

// differs lists the streams that the maker's SDK cannot read, because the server of another vendor sent them. The value
// is the reason.
var differs = map[string]string{
	"openai-chat-mistral-reasoning.chunks": "Mistral's list of texts and thoughts is JSON in the SDK's text",
}

var update = flag.Bool("update", false, "write what the SDKs read to ../streams/sdk.json")

// agreed is the entry of a stream in sdk.json: the hash of its bytes, and the SDK's reading if Perlica reads the same.
type agreed struct {
	SHA256 string
	Read   *read  `json:",omitempty"`
	Why    string `json:",omitempty"` // the reason why Perlica does not read the same as the SDK
}

// TestSDKs checks that the makers' SDKs read the same text, usage and stop reason in the same bytes. It writes their
// readings to ../streams/sdk.json. Perlica's own tests compare this file, because compiling the SDKs takes minutes.
func TestSDKs(t *testing.T) {
	b, err := os.ReadFile("../streams/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]read
	if err := json.Unmarshal(b, &expected); err != nil {
		t.Fatal(err)
	}
	all := map[string]agreed{}
	for name, want := range expected {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("..", "streams", name))
			if err != nil {
				t.Fatal(err)
			}
			readers := []struct {
				prefix string
				read   func(stream) (read, error)
			}{{"anthropic", readAnthropic}, {"openai-chat", readChat}, {"openai", readResponses}, {"gemini", readGemini}}
			for _, r := range readers {
				if !strings.HasPrefix(name, r.prefix) {
					continue
				}
				got, err := r.read(events(name, b))
				if want.Stop == "end_turn" {
					want.Stop = ""
				}
				failed := got.Error != "" || err != nil
				want, got := want, got
				if (want.Error != "") != failed || !failed && errors.Is(err, io.EOF) {
					t.Errorf("error %q (%v), Perlica's %q", got.Error, err, want.Error)
				}
				want.Error, got.Error = "", ""
				if got != want && differs[name] == "" {
					t.Errorf("the SDK reads\n%+v, Perlica\n%+v", got, want)
				}
				if got == want && differs[name] != "" {
					t.Errorf("it does not differ: %s", differs[name])
				}
				a := agreed{SHA256: fmt.Sprintf("%x", sha256.Sum256(b)), Why: differs[name]}
				if a.Why == "" {
					a.Read = &got
				}
				all[name] = a
				return
			}
			t.Error("of which API is it?")
		})
	}
	b, err = json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "../streams/sdk.json"
	if *update {
		err = os.WriteFile(golden, append(b, '\n'), 0o644)
	} else if was, rerr := os.ReadFile(golden); rerr != nil || !bytes.Equal(was, append(b, '\n')) {
		err = fmt.Errorf("%s is stale: go test . -update (%v)", golden, rerr)
	}
	if err != nil {
		t.Error(err)
	}
}

// events returns the bytes of a stream. If the file has only the data of the events, one line each, events adds the
// names of the events, because Anthropic's SDK needs them.
func events(name string, b []byte) stream {
	if filepath.Ext(name) == ".sse" {
		return append(bytes.TrimRight(b, "\n"), "\n\n"...)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var v struct{ Type string }
		if json.Unmarshal(line, &v) == nil && v.Type != "" {
			fmt.Fprintf(&out, "event: %s\n", v.Type)
		}
		fmt.Fprintf(&out, "data: %s\n\n", line)
	}
	return out.Bytes()
}
