package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lists has the pages of each API's list of models, by query, and the expected names.
var lists = map[API]struct {
	pages map[string]string
	names []string
}{
	anthropic: {map[string]string{
		"/v1/models?limit=1000":              `{"data":[{"type":"model","id":"one","display_name":"One"}],"has_more":true,"first_id":"one","last_id":"one"}`,
		"/v1/models?limit=1000&after_id=one": `{"data":[{"type":"model","id":"two"}],"has_more":false,"last_id":"two"}`,
	}, []string{"one", "two"}},
	openAI: {map[string]string{"/models": `{"object":"list","data":[{"id":"one","object":"model"},{"id":"two"}]}`},
		[]string{"one", "two"}},
	openAIChat: {map[string]string{"/models": `{"data":[{"id":"maker/one"}],"has_more":true,"last_id":"x"}`},
		[]string{"maker/one"}},
	gemini: {map[string]string{
		"/v1beta/models?pageSize=1000":                 `{"models":[{"name":"models/one","supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a/b"}`,
		"/v1beta/models?pageSize=1000&pageToken=a%2Fb": `{"models":[{"name":"models/two","supportedGenerationMethods":["generateContent","countTokens"]}]}`,
	}, []string{"one", "two"}},
}

// TestList checks that an API's models are listed on request, page by page, and the client is told about each request
// first. A prompt then goes to the selected model.
func TestList(t *testing.T) {
	for api, want := range lists {
		t.Run(string(api), func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
				req, err := http.ReadRequest(r)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				asked = append(asked, req.Method+" "+req.RequestURI)
				mu.Unlock()
				page, ok := want.pages[req.RequestURI]
				if !ok {
					page = status("404 Not Found", "", `{"error":{"message":"no such path"}}`)
				} else {
					page = status("200 OK", "Content-Type: application/json\r\n", page)
				}
				_, _ = io.WriteString(c, page) // the agent may have closed the connection
			})
			p := connect(t, Settings{API: api, Model: "mine", BaseURL: s.url, Key: "sk-0123456789abcdef"}, true)
			id := p.session()
			if c, _ := s.counts(); c != 0 {
				t.Error("a list that nobody asked for")
			}
			names := listed(t, p.call("_perlica.dev/model/list", fmt.Sprintf(`{"sessionId":%q}`, id)))
			if !slices.Equal(names, append([]string{"mine"}, want.names...)) || len(asked) != len(want.pages) ||
				len(p.sent) != len(asked) || len(p.received) < 3*len(asked) {
				t.Errorf("%q by %q, %d sent, %d received", names, asked, len(p.sent), len(p.received))
			}
			m := p.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"model","value":"other"}`, id))
			if names := listed(t, m); names[0] != "other" {
				t.Errorf("chosen of %q: %s", names, m.Result)
			}
			p.awaitAnswer(p.sendPrompt(id, "Hi"), nil)
			if last := string(p.sent[len(p.sent)-1]); !strings.Contains(last, `other`) || strings.Contains(last, `mine`) {
				t.Errorf("asked is %s", last)
			}
		})
	}
}

// listed returns the models in an answer.
func listed(t *testing.T, m message) (names []string) {
	t.Helper()
	var v struct {
		ConfigOptions []struct{ Options []struct{ Value string } }
	}
	if err := json.Unmarshal(m.Result, &v); err != nil || len(v.ConfigOptions) != 1 {
		t.Fatalf("got %s %+v; want err == nil && len(v.ConfigOptions) == 1", m.Result, m.Error)
	}
	for _, o := range v.ConfigOptions[0].Options {
		names = append(names, o.Value)
	}
	return names
}

// TestNoList checks that if the list fails, the error names the reason.
func TestNoList(t *testing.T) {
	for answer, want := range map[string]string{
		status("401 Unauthorized", "", `{"error":{"message":"bad key"}}`):         "401 Unauthorized: bad key",
		status("404 Not Found", "Content-Type: text/html\r\n", "<h1>no</h1>"):     "404 Not Found: <h1>no</h1>",
		status("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", ""): "not followed",
		status("200 OK", "", "<h1>hello</h1>"):                                    "no list of models",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{":                           "broke",
		"": "EOF",
	} {
		s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
			if s.readRequest(r) != nil {
				_, _ = io.WriteString(c, answer) // the agent may have closed the connection
			}
		})
		p := connect(t, Settings{API: openAIChat, Model: "mine", BaseURL: s.url}, true)
		m := p.call("_perlica.dev/model/list", fmt.Sprintf(`{"sessionId":%q}`, p.session()))
		if c, n := s.counts(); m.Error == nil || !strings.Contains(m.Error.Message, want) || c != 1 || n != 1 {
			t.Errorf("%q: %+v, %d connections, %d requests", want, m.Error, c, n)
		}
	}
}
