package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["model"] = cmdModel }

// cmdModel starts a server that speaks Chat Completions, and writes its address for BASE to a file. The server
// repeats the last message. For a prompt "status N" it answers with this HTTP status. For "error N WORDS" it answers
// with the API's own error, and for "break" with a stream that breaks. Each request is a line of the file
// "requests": its path, its Authorization and its body.
//
//	model FILE
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model FILE")
	}
	file, err := os.Create(ts.MkAbs("requests"))
	ts.Check(err)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		// If this write fails, the script notices the missing line.
		_, _ = fmt.Fprintf(file, "%s %s %s\n", r.URL.Path, r.Header.Get("Authorization"), body)
		mu.Unlock()
		var v struct{ Messages []struct{ Content any } } // Content is a text or a list of texts.
		if json.Unmarshal(body, &v) != nil || len(v.Messages) == 0 {
			http.Error(w, `{"error":{"message":"no messages"}}`, http.StatusBadRequest)
			return
		}
		said := fmt.Sprint(v.Messages[len(v.Messages)-1].Content)
		var code int
		if _, failure, ok := strings.Cut(said, "error "); ok {
			if _, err := fmt.Sscan(failure, &code); err == nil {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = fmt.Fprintf(w, `{"error":{"message":%q}}`, failure[4:])
				return
			}
		}
		if _, status, ok := strings.Cut(said, "status "); ok {
			if _, err := fmt.Sscan(status, &code); err == nil {
				http.Error(w, "no", code)
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(said, "call a tool") {
			_, _ = io.WriteString(w,
				`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"rm","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
			return
		}
		text, _ := json.Marshal("Model: " + said) // Marshalling a string cannot fail.
		if json.Valid([]byte(said)) {
			text, _ = json.Marshal(said)
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", text)
		if !strings.Contains(said, "break") {
			_, _ = io.WriteString(w,
				`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`+
					"\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}\n\ndata: [DONE]\n\n")
		}
	}))
	ts.Defer(func() {
		server.Close()
		_ = file.Close() // The file has no other content than the script's lines.
	})
	path := ts.MkAbs(args[0])
	text := strings.ReplaceAll(ts.ReadFile(path), "BASE", server.URL)
	ts.Check(os.WriteFile(path, []byte(text), 0o600))
}
