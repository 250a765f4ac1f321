package project_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider/predictable"
)

// frontEnd returns an HTTP handler that lists runs and questions, follows the log as server-sent events, accepts
// answers and sends inputs. A real front end would authenticate its users.
func frontEnd(p *project.Project, r *kernel.Runner) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /runs", func(w http.ResponseWriter, req *http.Request) {
		runs, err := r.Log().OpenRuns(req.Context())
		reply(w, runs, err)
	})
	mux.HandleFunc("GET /questions", func(w http.ResponseWriter, req *http.Request) {
		questions, err := r.PendingQuestions(req.Context())
		reply(w, questions, err)
	})
	mux.HandleFunc("POST /questions/{id}", func(w http.ResponseWriter, req *http.Request) {
		questions, err := r.PendingQuestions(req.Context())
		for _, q := range questions {
			if string(q.ID) == req.PathValue("id") {
				err = r.AnswerQuestion(req.Context(), q, interaction.Answer{Option: req.FormValue("option"), By: "me",
					Where: "http"})
			}
		}
		reply(w, "answered", err)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		after, _ := strconv.ParseInt(req.Header.Get("Last-Event-ID"), 10, 64) // without the header: 0
		for e, err := range r.FollowLog(req.Context(), event.Seq(after)) {
			b, jerr := json.Marshal(streamjson.NewEntryLine(e))
			if err != nil || jerr != nil {
				return
			}
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, b)
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("POST /inputs", func(w http.ResponseWriter, req *http.Request) {
		agent, err := p.Agent(project.Choice{Provider: req.FormValue("provider")}, sessions.Session{})
		turn := kernel.Turn{Setup: p.Setup(project.Choice{}, agent, sessions.Session{})}
		turn.Input = kernel.Input{ID: event.InputID(req.FormValue("id")), Text: req.FormValue("text"), Source: "http",
			Sender: "me"}
		turn.Permissions, turn.AnswerIn = p.Answering(true, 0)
		var res record.Result
		if err == nil {
			res, err = r.Run(context.WithoutCancel(req.Context()), turn)
		}
		reply(w, streamjson.NewResult(res, err, "perlica"), err)
	})
	return mux
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// Example_http opens a project and uses it over HTTP: it sends an input, follows the events, and answers the question.
func Example_http() {
	home, err := os.MkdirTemp("", "perlica-http")
	check(err)
	defer os.RemoveAll(home)
	dir := filepath.Join(home, "project")
	check(os.Mkdir(dir, 0o700))

	ctx := context.Background()
	p, err := project.Find(dir, append(os.Environ(), "PERLICA_HOME="+home), nil)
	check(err)
	r, done, err := p.Open(ctx, "example")
	check(err)
	server := httptest.NewServer(frontEnd(p, r))

	stream, err := http.Get(server.URL + "/events")
	check(err)
	input := make(chan []byte, 1)
	go func() {
		input <- post(server.URL+"/inputs",
			"provider=predictable&id=job-1&text=@say+Hello.%0A@ask+execute+Build+command=make")
	}()
	events := bufio.NewScanner(stream.Body)
	for events.Scan() {
		line, data := strings.CutPrefix(events.Text(), "data: ")
		if !data {
			continue
		}
		var e struct {
			Type, Text, Title, ID string
			Options               []struct{ ID, Kind string }
		}
		check(json.Unmarshal([]byte(line), &e))
		if strings.HasPrefix(e.Type, "session.") {
			continue // these lines depend on the time at which the follower checks the lock
		}
		fmt.Println(strings.TrimSpace(e.Type + " " + e.Title + e.Text))
		if e.Type == "question" {
			fmt.Printf("%d run, %d question: %s", count(server.URL+"/runs"), count(server.URL+"/questions"),
				post(server.URL+"/questions/"+e.ID, "option="+e.Options[0].ID))
		}
		if e.Type == "run.finished" {
			break
		}
	}
	var res streamjson.Result
	check(json.Unmarshal(<-input, &res))
	fmt.Println(res.Type, res.Outcome, res.Calls)
	fmt.Printf("%d runs, %d questions\n", count(server.URL+"/runs"), count(server.URL+"/questions"))
	check(stream.Body.Close())
	server.Close()
	check(done())
	// Output:
	// run.received @say Hello.
	// @ask execute Build command=make
	// run.started
	// text Hello.
	// tool
	// question Build
	// 1 run, 1 question: "answered"
	// answer
	// text permission: allow-once
	// tool
	// tool
	// run.finished
	// result responded 1
	// 0 runs, 0 questions
}

// count fetches a JSON list and returns its length.
func count(url string) int {
	res, err := http.Get(url)
	check(err)
	var list []json.RawMessage
	check(json.Unmarshal(body(res), &list))
	return len(list)
}

func post(url, form string) []byte {
	res, err := http.Post(url, "application/x-www-form-urlencoded", strings.NewReader(form))
	check(err)
	return body(res)
}

func body(res *http.Response) []byte {
	defer res.Body.Close()
	var b bytes.Buffer
	_, err := b.ReadFrom(res.Body)
	check(err)
	return b.Bytes()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// TestMain runs the built-in agent if a test starts this executable as the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		check(predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, predictable.Options{}))
		return
	}
	os.Exit(m.Run())
}
