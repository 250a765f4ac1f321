package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

// TestTheExchange checks that the client gets the exchange as it crossed the wire, without the key.
func TestTheExchange(t *testing.T) {
	const secret = "sk-a-very-secret-key"
	for _, api := range allAPIs() {
		t.Run(string(api), func(t *testing.T) {
			stream := hello + "data: caf\xc3\xa9 \xff\n\n" // not UTF-8
			var head http.Header
			var host string
			s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
				if req := s.readRequest(r); req != nil {
					head, host = req.Header, req.Host
					head.Set("Content-Length", fmt.Sprint(req.ContentLength))
					_, _ = io.WriteString(c, streamHead+"X-A: b\r\n\r\n"+stream)
				}
			})
			p := connect(t, Settings{API: api, Model: "m", BaseURL: s.url, Key: secret}, true)
			p.awaitAnswer(p.sendPrompt(p.session(), "Hi \U0001F44B"), nil)
			var sent struct {
				Method, URL, Body string
				Headers           []field
				Withheld          []string
			}
			if len(p.sent) != 1 || json.Unmarshal(p.sent[0], &sent) != nil || sent.Body != s.bodies[0] ||
				sent.Method != "POST" || !strings.HasPrefix(sent.URL, s.url) {
				t.Fatalf("%s, the server got %q", p.sent, s.bodies)
			}
			head.Set("Host", host)
			for _, name := range sent.Withheld {
				if !strings.Contains(head.Get(name), secret) {
					t.Errorf("%s has no key", name)
				}
				head.Del(name)
			}
			for _, f := range sent.Headers {
				if head.Get(f.Name) != f.Value {
					t.Errorf("%s: %q, the server got %q", f.Name, f.Value, head.Get(f.Name))
				}
				head.Del(f.Name)
			}
			if len(head) > 0 || len(sent.Withheld) != 1 {
				t.Errorf("besides: %v; withheld %q", head, sent.Withheld)
			}
			var body []byte
			for _, r := range p.received {
				var v struct {
					Body   string
					Base64 []byte
				}
				if err := json.Unmarshal(r, &v); err != nil {
					t.Error(err)
				}
				body = append(append(body, v.Body...), v.Base64...)
			}
			if string(body) != stream {
				t.Errorf("%q came, %q is passed on", stream, body)
			}
			if all := fmt.Sprintf("%s %s", p.sent, p.received); strings.Contains(all, secret) {
				t.Error("the key is passed on")
			}
		})
	}
}

// TestEchoedKey checks that a key never reaches the client if the server echoes it. The data may be split at any place.
// All other data reaches the client.
func TestEchoedKey(t *testing.T) {
	const key = "sk-0123456789abcdef"
	for name, answer := range map[string]string{
		"a status": "HTTP/1.1 401 no " + key + "\r\nContent-Length: 0\r\n\r\n",
		"a header": status("401 Unauthorized", "X-Key: "+key+"\r\nRequest-Id: "+key+"\r\nRetry-After: "+key+"\r\n", ""),
		"an error": status("401 Unauthorized", "", `{"error":{"type":"`+key+`","message":"Incorrect API key provided: `+
			key+`"}}`),
		"a page":     status("500 x", "", "<h1>"+key+key[:4]+"</h1>"),
		"a redirect": status("302 Found", "Location: https://example.com/?key="+key+"\r\n", ""),
		"a text": status("200 OK", "Content-Type: text/event-stream\r\n",
			`data: {"choices":[{"delta":{"content":"sk-01 `+key+` sk-01"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"),
		"a failure": status("200 OK", "Content-Type: text/event-stream\r\n",
			`data: {"error":{"message":"`+key+`"}}`+"\n\n"),
		"no JSON":     status("200 OK", "Content-Type: text/event-stream\r\n", "data: "+key+"\n\n"),
		"early hints": "HTTP/1.1 103 Early Hints\r\nLink: " + key + "\r\n\r\n" + status("500 x", "", ""),
		"no HTTP":     key + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
				if s.readRequest(r) == nil {
					return
				}
				if err := c.(*net.TCPConn).SetNoDelay(true); err != nil {
					t.Error(err)
				}
				for i := range answer {
					if _, err := io.WriteString(c, answer[i:i+1]); err != nil {
						return // the agent closes the connection early
					}
				}
			})
			p := connect(t, Settings{API: openAIChat, Model: "m", BaseURL: s.url, Key: key}, true)
			m := p.awaitAnswer(p.sendPrompt(p.session(), "Hi"), nil)
			if all := fmt.Sprintf("%+v %s %s %s", p.updates, p.received, m.Result,
				agentside.Encode(m.Error)); strings.Contains(all, key) || strings.Contains(all, key[3:]) {
				t.Errorf("the key is in %s", all)
			}
			if name == "a text" && p.text() != "sk-01 [key] sk-01" {
				t.Errorf("the text is %q", p.text())
			}
		})
	}
}
