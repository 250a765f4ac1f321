package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// modelRounds is the number of answers for the measurement of the first chunk.
const modelRounds = 100

// modelServer speaks Chat Completions. The only chunk of its answer contains the time of writing. The end of the
// answer follows after pause, so that a client shows the chunk first.
func modelServer(pause time.Duration) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		// The client may have closed the connection.
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", time.Now().UnixNano())
		if pause > 0 {
			w.(http.Flusher).Flush()
			time.Sleep(pause)
		}
		// The client may have closed the connection.
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
}

// models compares a run of a model with a run of the built-in agent. The model's server answers at once. It also
// compares the delay of the first chunk with the delay in a bare proxy that stores durable rows.
func models(dir string, opt options) {
	perlica := filepath.Join(dir, "perlica")
	build(perlica, "./cmd/perlica")
	modelRuns(perlica, dir, opt)
	modelChunks(perlica, dir)
}

func modelRuns(perlica, dir string, opt options) {
	server := modelServer(0)
	defer server.Close()
	project, home := filepath.Join(dir, "project"), filepath.Join(dir, "home")
	check(os.MkdirAll(filepath.Join(home, "config"), 0o700))
	check(os.Mkdir(project, 0o700))
	check(os.WriteFile(filepath.Join(home, "config", "config.toml"),
		fmt.Appendf(nil, "[providers.mine.model]\napi = \"openai-chat\"\nname = \"m\"\nbase_url = %q\n", server.URL), 0o600))
	command := func(argv ...string) time.Duration {
		cmd := exec.Command(perlica, argv...)
		cmd.Dir = project
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + home}
		start := time.Now()
		output(cmd)
		return time.Since(start)
	}
	var ours, hello []time.Duration
	for i := range opt.rounds + 2 { // The first two rounds make the files and fill the caches.
		a, b := command("run", "--provider", "mine", "hello"), command("run", "--provider", "predictable", "hello")
		if i >= 2 {
			ours, hello = append(ours, a), append(hello, b)
		}
	}
	ratio("perlica run with a model, whole process; run hello", ms(median(ours)), ms(median(hello)), "ms", "at most 1.3")
	if peak := modelPeak(perlica, server.URL); peak > 0 {
		fmt.Printf("%-52s %10.1f %10s %-9s              (at most 30)\n", "  the agent's peak of resident memory",
			float64(peak)/(1<<20), "", "MB")
	}
}

// modelPeak returns the peak resident memory of the agent in a session of a hundred prompts.
func modelPeak(perlica, url string) int64 {
	p := startCommand(exec.Command(perlica, "agent", "model", "--api", "openai-chat", "--model", "m", "--base-url", url))
	p.askLine(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	var v struct{ Result struct{ SessionID string } }
	check(json.Unmarshal(p.readLine(), &v))
	for range modelRounds {
		p.send(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"hello"}]}}`, v.Result.SessionID))
		for !bytes.Contains(p.readLine(), []byte(`"stopReason"`)) {
		}
	}
	p.end()
	return peakMemory(p.cmd.ProcessState)
}

func modelChunks(perlica, dir string) {
	server := modelServer(5 * time.Millisecond)
	defer server.Close()
	r, project := runner(dir, true)
	agent := agents.Agent{Agent: provider.Agent{ID: "bench", Model: true, Orderly: true,
		Command: []string{perlica, "agent", "model", "--api", "openai-chat", "--model", "m", "--base-url", server.URL}}}
	c := must(r.Converse(context.Background(), kernel.Setup{Agent: agent, Dir: project}, 0, "bench"))
	bare, p := openBare(dir), startPeer("ask", server.URL)
	var ours, theirs []time.Duration
	for i := range modelRounds + 10 {
		var late time.Duration
		res := must(c.Run(context.Background(), kernel.Turn{
			Input: kernel.Input{Text: "hello", Source: "bench", Sender: "bench"}, Permissions: policy.ModeDeny,
			Show: func(n record.Notice) {
				if u, ok := n.(record.Updated); ok && late == 0 && u.Text != "" {
					late = time.Since(stamp(fmt.Appendf(nil, `"text":"%s"`, u.Text)))
				}
			},
		}))
		if res.Outcome != record.OutcomeResponded {
			check(fmt.Errorf("outcome %s: %v", res.Outcome, res.Err))
		}
		p.send("hello")
		line := p.readLine()
		bare.commitRows(2, line)
		if bareLate := time.Since(stamp(line)); i >= 10 { // The first rounds make the files and fill the caches.
			ours, theirs = append(ours, late), append(theirs, bareLate)
		}
		p.readLine() // reads the line for the end of the answer
	}
	check(c.Close(context.Background()))
	check(r.Close())
	p.end()
	ratio("a model's first chunk, durable and shown", ms(median(ours)), ms(median(theirs)), "ms", "at most 1.2")
}

// ask is a bare proxy of a model's server. For each line on standard input it makes a request. It prints one line
// for the first chunk and one line for the end.
func ask(url string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		resp := must(client.Post(url, "application/json", bytes.NewReader(in.Bytes())))
		events := bufio.NewReader(resp.Body)
		_, text, _ := strings.Cut(must(events.ReadString('\n')), `"content":"`)
		text, _, _ = strings.Cut(text, `"`)
		fmt.Printf("{\"text\":\"%s\"}\n", text)
		for {
			if line := must(events.ReadString('\n')); strings.Contains(line, "[DONE]") {
				break
			}
		}
		check(resp.Body.Close())
		fmt.Println("end")
	}
}
