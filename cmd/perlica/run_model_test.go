//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const modelKey = "sk-0123456789-abcdefghijklmnop"

// captured is one connection to a model's server, byte for byte: the bytes to the server (there) and from it (back).
type captured struct{ there, back []byte }

// captures starts a server. Each connection has one request, and the function answer returns the response. The function
// "all" returns the bytes of all connections.
func captures(t *testing.T, answer func(conn net.Conn, r *http.Request) []byte) (url string, all func() []captured) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var list []captured
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var c captured
			var there bytes.Buffer
			r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &there)))
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err != nil {
				t.Error(err)
			}
			if c.back = answer(conn, r); c.back != nil {
				_, _ = conn.Write(c.back) // perlica may have ended.
			}
			_ = conn.Close() // All bytes were written before.
			c.there = there.Bytes()
			list = append(list, c)
		}
	})
	end := sync.OnceFunc(func() {
		_ = l.Close()
		serving.Wait()
	})
	t.Cleanup(end)
	return "http://" + l.Addr().String(), func() []captured { end(); return list }
}

// model configures the provider "mine": a model at an address.
func (w *world) model(api, url string) {
	w.config(fmt.Sprintf(
		"[providers.mine.model]\napi = %q\nname = \"m\"\nbase_url = %q\nkey_env = \"MODEL_KEY\"\n[runtime.logs]\nlevel = "+
			"\"debug\"\n", api, url))
	w.env = append(w.env, "MODEL_KEY="+modelKey)
}

// exchanged is one recorded request or response of the model's server.
type exchanged struct {
	Method, URL string
	Withheld    []string
	Headers     []struct{ Name, Value string }
	Status      string
	Body        string
	Base64      []byte
}

// exchange reads the lines with a method from the log.
func (w *world) exchange(method string) (list []exchanged) {
	w.t.Helper()
	events, err := readLog(logFile(w.project))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		var m struct {
			Method string
			Params exchanged
		}
		if json.Unmarshal(e.Payload, &m) == nil && m.Method == method {
			list = append(list, m.Params)
		}
	}
	return list
}

// fieldSet returns the fields of an HTTP header as sorted lines, with the names in lower case.
func fieldSet(head []byte) (set []string) {
	for _, line := range strings.Split(strings.TrimSpace(string(head)), "\r\n")[1:] {
		name, value, _ := strings.Cut(line, ":")
		set = append(set, strings.ToLower(name)+": "+strings.TrimSpace(value))
	}
	slices.Sort(set)
	return set
}

func (x exchanged) fields(more ...string) []string {
	for _, f := range x.Headers {
		more = append(more, strings.ToLower(f.Name)+": "+f.Value)
	}
	slices.Sort(more)
	return more
}

// modelStreams has a recorded stream for each API, and the HTTP header with the key.
var modelStreams = map[string]struct{ file, key string }{
	"anthropic":   {"anthropic-text", "x-api-key: " + modelKey},
	"openai":      {"openai-azure-text.1", "authorization: Bearer " + modelKey},
	"openai-chat": {"openai-chat-mistral-text", "authorization: Bearer " + modelKey},
	"gemini":      {"gemini-text", "x-goog-api-key: " + modelKey},
}

// modelAnswer returns an HTTP response that streams the recorded events in a file.
func modelAnswer(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "provider", "model", "testdata", "streams", file+".chunks"))
	if err != nil {
		t.Fatal(err)
	}
	answer := []byte(
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-B: 2\r\nX-A: 1\r\nX-A: 3\r\nContent-Length: ")
	var body []byte
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			body = fmt.Appendf(body, "data: %s\n\n", line)
		}
	}
	return append(fmt.Appendf(answer, "%d\r\n\r\n", len(body)), body...)
}

// TestModelExchange checks that the log has the HTTP exchange byte for byte as the server captured it, except the
// key. No file has the key. Only the processes that need the key have it. The replay agent repeats the answer.
func TestModelExchange(t *testing.T) {
	for _, api := range slices.Sorted(maps.Keys(modelStreams)) {
		t.Run(api, func(t *testing.T) {
			w := newWorld(t)
			stream := modelStreams[api]
			answer := modelAnswer(t, stream.file)
			url, all := captures(t, func(net.Conn, *http.Request) []byte {
				w.noProcessKnows(modelKey)
				return answer
			})
			w.model(api, url)
			j := w.run("run", "--provider=mine", "caf\u00e9 <&> \U0001F44B")
			j.exits(0)
			list := all()
			sent, received := w.exchange("_perlica.dev/http/send"), w.exchange("_perlica.dev/http/received")
			if len(list) != 1 || len(sent) != 1 || len(received) < 3 {
				t.Fatalf("%d captured, %d sent, %d received", len(list), len(sent), len(received))
			}
			head, body, _ := bytes.Cut(list[0].there, []byte("\r\n\r\n"))
			line, _, _ := strings.Cut(string(head), "\r\n")
			if want := "POST " + strings.TrimPrefix(sent[0].URL, url) + " HTTP/1.1"; line != want ||
				sent[0].Body != string(body) {
				t.Errorf("%q with %q captured, the log has %q with %q", line, body, want, sent[0].Body)
			}
			if got, want := fieldSet(head), sent[0].fields(stream.key); !slices.Equal(got, want) || len(sent[0].Withheld) != 1 {
				t.Errorf("captured\n%q, the log has\n%q", got, want)
			}
			head, body, _ = bytes.Cut(answer, []byte("\r\n\r\n"))
			var back []byte
			for _, r := range received {
				back = append(append(back, r.Body...), r.Base64...)
			}
			if got, want := received[0].fields(), fieldSet(head); !slices.Equal(got, want) || received[0].Status != "200 OK" ||
				!bytes.Equal(back, body) {
				t.Errorf("%q %q with %d bytes, want %q with %d", received[0].Status, got, len(back), want, len(body))
			}
			w.noFileHas(modelKey)
			w.replays(j.stdout.String())
			w.audit()
		})
	}
}

// replays lets the replay agent repeat the answer of the newest run.
func (w *world) replays(text string) {
	w.t.Helper()
	record := filepath.Join(w.t.TempDir(), "record")
	j := w.run("log", "export", "--output="+record)
	j.exits(0)
	j = w.run("run", "--agent=perlica agent replay "+record, "caf\u00e9 <&> \U0001F44B")
	if j.exits(0); j.stdout.String() != text {
		w.t.Errorf("replayed is %q, said was %q", j.stdout.String(), text)
	}
}

// noProcessKnows fails if a command line contains the key. It also fails if an environment contains it. The
// exceptions are the model agent and the perlica that got the key.
func (w *world) noProcessKnows(key string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // Glob fails only for an invalid pattern.
	agents := 0
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // The process may have ended.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(line, []byte(key)) {
			w.t.Errorf("the key is in the command line %q", line)
		}
		if !bytes.Contains(environ, []byte("HOME="+w.home)) || !bytes.Contains(environ, []byte(key)) {
			continue
		}
		if bytes.Contains(line, []byte("agent\x00model")) {
			agents++
		} else if !bytes.Contains(line, []byte("run\x00")) {
			w.t.Errorf("the key is in the environment of %q", line)
		}
	}
	if agents != 1 {
		w.t.Errorf("%d model agents have the key", agents)
	}
}

// noFileHas fails if a text is in a file below the home or the project, or in an export.
func (w *world) noFileHas(text string) {
	w.t.Helper()
	for _, args := range [][]string{{"log", "export"}, {"log", "show", "--last"}, {"provider", "list", "--json"},
		{"provider", "show", "mine"}, {"config", "show"}} {
		j := w.start(args...)
		j.wait()
		if strings.Contains(j.stdout.String()+j.stderr.String(), text) {
			w.t.Errorf("%q prints it", args)
		}
	}
	for _, dir := range []string{w.home, w.project} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(text)) {
				w.t.Errorf("it is in %s", path)
			}
			return err
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// TestModelEchoesKey lets the server send the key back, in a header or in an error's body. No file and no screen may
// show the key.
func TestModelEchoesKey(t *testing.T) {
	w := newWorld(t)
	body := `{"error":{"message":"Incorrect API key provided: ` + modelKey + `","type":"invalid_request_error","code":"` +
		modelKey + `"}}`
	url, all := captures(t, func(net.Conn, *http.Request) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 401 no %s\r\nX-Key: %s\r\nX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
			modelKey, modelKey, modelKey, len(body), body)
	})
	w.model("openai", url)
	j := w.run("run", "--provider=mine", "hello")
	j.exits(8)
	j.says("Incorrect API key provided: [key]")
	j.says("put the right key there")
	if strings.Contains(j.stderr.String(), "provider login") {
		t.Error("a model without an agent has no login")
	}
	if strings.Contains(j.stderr.String(), modelKey) || len(all()) != 1 {
		t.Errorf("%d requests; standard error: %q", len(all()), j.stderr.String())
	}
	w.noFileHas(modelKey)
	w.audit()
}

// TestModelKilled kills Perlica as soon as the server gets the request. The request must be on the log.
func TestModelKilled(t *testing.T) {
	w := newWorld(t)
	started := make(chan *job, 1)
	url, all := captures(t, func(net.Conn, *http.Request) []byte {
		j := <-started
		j.signal(syscall.SIGKILL)
		j.wait()
		return nil
	})
	w.model("anthropic", url)
	j := w.start("run", "--input-id=once", "--provider=mine", "hello")
	started <- j
	if code := j.wait(); code != -1 {
		t.Fatalf("exit code %d: %s", code, j.stderr.String())
	}
	w.gone()
	if sent := w.exchange("_perlica.dev/http/send"); len(sent) != 1 || !strings.Contains(sent[0].Body, "hello") {
		t.Errorf("the log has %+v", sent)
	}
	w.run("run", "--input-id=once", "--provider=mine", "hello").exits(6) // The same input must not be sent again.
	if n := len(all()); n != 1 {
		t.Errorf("%d requests", n)
	}
	w.audit()
}

// TestModelDurable checks with the system calls that the request is synced before Perlica connects to the server.
func TestModelDurable(t *testing.T) {
	if out, err := exec.Command("strace", "-f", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a model's request is synced before it leaves: strace is missing or may not trace: %v, %.200s",
			err, out)
	}
	w := newWorld(t)
	answer := modelAnswer(t, "anthropic-text")
	url, _ := captures(t, func(net.Conn, *http.Request) []byte { return answer })
	w.model("anthropic", url)
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := w.command("run", "--provider=mine", "hello")
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append([]string{"strace", "-f", "-y", "-s", "100000", "-o", trace, "-e",
		"trace=pwrite64,fsync,fdatasync,connect", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = path
	w.startCmd(cmd).exits(0)
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	connects := regexp.MustCompile(`connect\(.*htons\(` + port + `\)`).FindIndex(b)
	described := bytes.Index(b, []byte("_perlica.dev/http/send"))
	if connects == nil || described < 0 || described > connects[0] {
		t.Fatalf("written at %d, connected at %v of the trace", described, connects)
	}
	if !regexp.MustCompile(`f(data)?sync\(.*-wal`).Match(b[described:connects[0]]) {
		t.Errorf("not synced between: %s", regexp.MustCompile(`(?m)^.*(sync|connect)\(.*$`).FindAll(b, -1))
	}
}

// TestModelChat checks that the chat lists the API's models when the person asks, and uses the chosen model. The
// record must have the exchange between the turns.
func TestModelChat(t *testing.T) {
	w := newWorld(t)
	answer := modelAnswer(t, "openai-chat-mistral-text")
	url, all := captures(t, func(_ net.Conn, r *http.Request) []byte {
		if r.Method == http.MethodGet {
			list := `{"data":[{"id":"m"},{"id":"maker/other"}]}`
			return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				len(list), list)
		}
		return answer
	})
	w.model("openai-chat", url)
	s := w.terminal(nil, "chat", "--provider=mine")
	const ready = `mine( m| maker/other)? ❯ \x1b\[K`
	s.finds(ready)
	for _, line := range [][2]string{
		{"Good morning", "This is a test response."}, {"/model", "maker/other"},
		{"/model maker/other", "The agent uses the model"}, {"Again", "This is a test response."},
	} {
		s.press(line[0] + "\r")
		s.expect(line[1])
		s.finds(ready)
	}
	s.bye()
	list := all()
	if len(list) != 3 || !bytes.HasPrefix(list[1].there, []byte("GET /models HTTP/1.1\r\n")) ||
		!bytes.Contains(list[2].there, []byte(`"model":"maker/other"`)) {
		t.Errorf("captured: %q", list)
	}
	if sent := w.exchange("_perlica.dev/http/send"); len(sent) != 3 || sent[1].Method != "GET" || sent[1].Body != "" {
		t.Errorf("the log has %+v", sent)
	}
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.noFileHas(modelKey)
	w.audit()
}
