package provider_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// The files in testdata/frames are recordings of real agents: one line each, in the order of the record,
// {"from":"client"|"agent","line":…}, with the original bytes of the line. Paths were replaced, and most
// chunks of long answers were removed.

func init() { testChildren["replay"] = childReplay }

type recordedLine struct {
	From string          `json:"from"`
	Line json.RawMessage `json:"line"`
}

func readRecording(path string) (lines []recordedLine, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(b) {
		var l recordedLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// childReplay plays the agent's side of the recording in its first argument. It exits with 9 if the client's
// lines differ from the recording. The client's capabilities are not compared, because they have grown since
// the older recordings.
func childReplay(args []string) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for _, l := range must(readRecording(args[0])) {
		if l.From == "agent" {
			fmt.Printf("%s\n", l.Line)
			continue
		}
		got, err := in.ReadBytes('\n')
		if got = bytes.TrimSuffix(got, []byte("\n")); !bytes.Equal(got, l.Line) && !sameIntroduction(got, l.Line) {
			fmt.Fprintf(os.Stderr, "read %s (%v), recorded is %s\n", got, err, l.Line)
			os.Exit(9)
		}
	}
	in.ReadByte()
}

// sameIntroduction reports whether two lines are an initialize with the same members except the capabilities.
func sameIntroduction(a, b []byte) bool {
	var x, y struct {
		ID     json.RawMessage
		Method string
		Params map[string]any
	}
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x.Method != "initialize" {
		return false
	}
	delete(x.Params, "clientCapabilities")
	delete(y.Params, "clientCapabilities")
	return reflect.DeepEqual(x, y)
}

// replay repeats the client's actions of the recording at the same points, and returns the result of the
// prompt.
func replay(t *testing.T, path string, w *watcher) (a provider.Answer, perr error) {
	t.Helper()
	lines, err := readRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, child("replay", must(filepath.Abs(path))), w)
	var s *provider.Session
	var prompt <-chan prompted
	received := 0
	for _, l := range lines {
		if l.From == "agent" {
			received++
			continue
		}
		w.waitFor(t, "the agent's lines", func() bool {
			n := 0
			for _, f := range w.wire {
				if !f.sent {
					n++
				}
			}
			return n >= received || c.Err() != nil
		})
		var v struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ClientInfo acp.Implementation
				Cwd        string
				Prompt     json.RawMessage
				ModeID     string
				ConfigID   string
				Value      any
			}
			Result struct{ Outcome struct{ OptionID string } }
			Error  json.RawMessage
		}
		if err := json.Unmarshal(l.Line, &v); err != nil {
			t.Fatal(err)
		}
		switch err = nil; v.Method {
		case "initialize":
			_, err = c.Initialize(t.Context(), v.Params.ClientInfo.Version)
		case "session/new":
			s, err = c.NewSession(t.Context(), v.Params.Cwd, nil)
		case "session/set_mode":
			err = s.SetMode(t.Context(), v.Params.ModeID)
		case "session/set_config_option":
			err = s.SetOption(t.Context(), v.Params.ConfigID, strings.NewReplacer("true", "on", "false", "off").
				Replace(fmt.Sprint(v.Params.Value)))
		case "session/prompt":
			done := make(chan prompted, 1)
			go func() {
				a, err := s.Prompt(provider.NewCall("r"), provider.Prompt(v.Params.Prompt)).Answer()
				done <- prompted{a, err}
			}()
			prompt = done
		case "session/cancel":
			err = s.Cancel()
		case "session/close":
			got := <-prompt
			prompt, a, perr = nil, got.Answer, got.err
			err = s.Close(t.Context())
		case "":
			if v.Error != nil {
				break // the connection itself refuses this request, without asking the client
			}
			var p *provider.PermissionRequest
			w.waitFor(t, "the question", func() bool {
				i := slices.IndexFunc(w.permissions, func(p *provider.PermissionRequest) bool { return p.ID == string(v.ID) })
				if i >= 0 {
					p = w.permissions[i]
				}
				return p != nil || c.Err() != nil
			})
			if p == nil {
				t.Fatalf("got %v; want p != nil", c.Err())
			}
			if id := v.Result.Outcome.OptionID; id != "" {
				err = p.Select(acp.PermissionOptionId(id))
			} else {
				err = p.Cancel()
			}
		default:
			t.Fatalf("the client sent %s", l.Line)
		}
		if err != nil {
			t.Fatalf("%s: got %v; want err == nil", v.Method, err)
		}
	}
	if prompt != nil { // the agent does not know session/close
		got := <-prompt
		a, perr = got.Answer, got.err
	}
	leaves(t, c)
	if e, _ := c.Exit(); e.Code != 0 {
		t.Fatalf("the replay: %v; %s", e, c.StderrTail())
	}
	return a, perr
}

const codexWarning = "Warning: Model metadata for `test-model` not found. Defaulting to fallback metadata; this can degrade performance " +
	"and cause issues.\n\n"

// count returns the words of a counting agent: b0 b1 b2.
func count(word string, from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprint(&b, word, i, " ")
	}
	return b.String()
}

// TestRealAgents checks that with the recordings of real agents, texts, questions, refusals and answers come out the
// same and in the same order. The client's lines equal the recorded lines byte for byte.
func TestRealAgents(t *testing.T) {
	const echo = "TEST-OK Hello there, please echo this: naïve ca"
	claude := []string{"allow_always allow_always", "allow allow_once", "reject reject_once"}
	codex := []string{"allow_once allow_once", "accept_execpolicy_amendment allow_always", "cancel reject_once"}
	cline := []string{"allow_once allow_once", "allow_always allow_always", "reject_once reject_once"}
	gemini := []string{"proceed_always allow_always", "proceed_once allow_once", "cancel reject_once"}
	qwen := []string{"proceed_always_project allow_always", "proceed_always_user allow_always", "proceed_once allow_once",
		"cancel reject_once"}
	vendor := []string{"unknown_method"}
	const done, pi = "TEST-DONE after tool result: ", "pi v0.87.1\n---\n"
	opencode := []string{"once allow_once", "always allow_always", "reject reject_once"}
	for name, tt := range map[string]struct {
		text    string
		stop    string
		err     *provider.Error
		options []string // the options of the only question
		blocked []string
		warned  []string
	}{
		"claude_text": {text: echo, stop: "end_turn"},
		"claude_write_yes": {text: "TEST-DONE after tool result: File created successfully at: /project/out.",
			stop: "end_turn", options: claude},
		"claude_write_no": {text: "TEST-DONE after tool result: User refused permission to run tool", stop: "end_turn",
			options: claude},
		"claude_shell":       {text: "TEST-DONE after tool result: hello", stop: "end_turn"},
		"claude_slow_cancel": {text: count("slow", 0, 51), stop: "cancelled"},
		"claude_error": {text: "API Error: 400 test error 400",
			err: &provider.Error{Type: provider.TypeAgent, Code: "-32603", Subtype: "unknown",
				Message: "Internal error: API Error: 400 test error 400"}},
		"claude_burst": {text: count("b", 0, 118) + count("b", 2989, 2999), stop: "end_turn"},

		"codex_text": {text: codexWarning + echo, stop: "end_turn"},
		"codex_write_yes": {text: codexWarning +
			"TEST-DONE after tool result: Chunk ID: b74d56\nWall time: 0.0000 seconds\nProcess exited wi", stop: "end_turn",
			options: codex},
		"codex_write_no": {text: codexWarning, stop: "cancelled", options: codex},
		"codex_shell": {text: codexWarning +
			"TEST-DONE after tool result: Chunk ID: 9ebdf5\nWall time: 0.0000 seconds\nProcess exited wi", stop: "end_turn",
			options: codex},
		"codex_slow_cancel": {text: codexWarning + count("slow", 0, 54), stop: "cancelled"},
		"codex_error": {text: codexWarning +
			`{"error":{"code":400,"message":"test error 400","type":"test_error"},"type":"error"}` + "\n\n\n", stop: "end_turn"},
		"codex_burst": {text: codexWarning + count("b", 0, 118) + count("b", 2989, 2999), stop: "end_turn"},

		"opencode_text": {text: echo, stop: "end_turn"},
		"opencode_write_yes": {text: "TEST-DONE after tool result: Wrote file successfully.", stop: "end_turn",
			options: opencode, blocked: []string{"fs/write_text_file"}},
		"opencode_write_no":    {stop: "end_turn", options: opencode},
		"opencode_shell":       {text: "TEST-DONE after tool result: hello\n", stop: "end_turn", options: opencode},
		"opencode_slow_cancel": {text: count("slow", 0, 29), stop: "cancelled"},
		"opencode_error": {err: &provider.Error{Type: provider.TypeAgent, Code: "-32603", Subtype: "APIError",
			Message: "Internal error: test error 400"}},
		"opencode_burst": {text: count("b", 0, 119) + count("b", 2990, 2999), stop: "end_turn"},

		"gemini_text": {text: echo, stop: "end_turn"},
		"gemini_write_yes": {text: done + `{"id":"fc_test000001","name":"write_file","response":{"outpu`, stop: "end_turn",
			options: gemini},
		"gemini_write_no": {text: done + `{"id":"fc_test000001","name":"write_file","response":{"error`, stop: "end_turn",
			options: gemini},
		"gemini_shell": {text: done + `{"id":"fc_test000001","name":"run_shell_command","response":`, stop: "end_turn",
			options: gemini},
		"gemini_slow_cancel": {text: count("slow", 0, 9), stop: "cancelled"},
		"gemini_error": {err: &provider.Error{Type: provider.TypeAgent, Code: "400",
			Message: `{"error":{"code":400,"message":"test error 400","type":"test_error"},"type":"error"}`}},

		"qwen_text": {text: echo, stop: "end_turn"},
		"qwen_write_yes": {text: done + "Successfully created and wrote to new file: /project/ye", stop: "end_turn",
			options: gemini, warned: vendor},
		"qwen_write_no": {stop: "end_turn", options: gemini, warned: vendor},
		"qwen_shell": {text: done + "Command: echo hello > sh.txt\nDirectory: (root)\nOutput: (empt", stop: "end_turn",
			options: qwen, warned: vendor},
		"qwen_slow_cancel": {text: count("slow", 0, 26), stop: "cancelled"},
		"qwen_error": {err: &provider.Error{Type: provider.TypeAgent, Code: "-32603",
			Message: "Internal error: 400 test error 400"}},

		"copilot_text": {text: echo, stop: "end_turn"},
		"copilot_write_yes": {text: "Info: /project/yes.txt" + done + "Created file /project/yes.txt with 5 characters",
			stop: "end_turn", options: cline},
		"copilot_write_no":    {text: "Info: Operation cancelled by user", stop: "end_turn", options: cline},
		"copilot_shell":       {text: done + "\n<shellId: 0 completed with exit code 0>", stop: "end_turn", options: cline},
		"copilot_slow_cancel": {text: count("slow", 0, 7), stop: "cancelled"},
		"copilot_error":       {text: "Error: 400 test error 400", stop: "end_turn"},

		"cline_text": {text: echo, stop: "end_turn"},
		"cline_write_yes": {text: done + `{"query":"apply_patch","result":"Successfully applied patch `, stop: "end_turn",
			options: cline},
		"cline_write_no": {text: done + `{"error":"User rejected the tool call -- NOT a tool or syste`, stop: "end_turn",
			options: cline},
		"cline_shell": {text: done + `[{"query":"echo hello > sh.txt","result":"","success":true}]`, stop: "end_turn",
			options: cline},
		"cline_slow_cancel": {text: count("slow", 0, 5), stop: "cancelled"},
		"cline_error": {err: &provider.Error{Type: provider.TypeAgent, Code: "-32603",
			Message: "Internal error: test error 400"}},

		"pi_text":        {text: pi + echo, stop: "end_turn"},
		"pi_write_yes":   {text: pi + done + "Successfully wrote to /project/yes.txt", stop: "end_turn"},
		"pi_shell":       {text: pi + done + "(no output)", stop: "end_turn"},
		"pi_slow_cancel": {text: pi + count("slow", 0, 9), stop: "cancelled"},
		"pi_error":       {text: pi, stop: "end_turn"}, // this equals an empty answer
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			path := filepath.Join("testdata", "frames", name+".ndjson")
			answer, err := replay(t, path, w)
			var e *provider.Error
			if tt.err == nil && err != nil || tt.err != nil && (!errors.As(err, &e) || e.Type != tt.err.Type ||
				e.Code != tt.err.Code || e.Subtype != tt.err.Subtype || e.Message != tt.err.Message) {
				t.Errorf("%#v, want %#v", err, tt.err)
			}
			if answer.StopReason != tt.stop {
				t.Errorf("stop reason %q, want %q", answer.StopReason, tt.stop)
			}
			if w.said() != tt.text {
				t.Errorf("text\n%q, want\n%q", w.said(), tt.text)
			}
			var options, blocked []string
			for _, p := range w.permissions {
				for _, o := range p.Options {
					options = append(options, fmt.Sprint(o.OptionId, " ", o.Kind))
				}
			}
			for _, b := range w.blocked {
				blocked = append(blocked, b.Method)
			}
			if !slices.Equal(options, tt.options) || !slices.Equal(blocked, tt.blocked) {
				t.Errorf("options %q, want %q; blocked %q, want %q", options, tt.options, blocked, tt.blocked)
			}
			if warns := w.warned(); !slices.Equal(warns, tt.warned) {
				t.Errorf("warnings %v", w.warnings)
			}
			sameAsRecorded(t, path, w)
		})
	}
}

// sameAsRecorded compares the agent's lines and the updates with the recording, decoded by encoding/json.
func sameAsRecorded(t *testing.T, path string, w *watcher) {
	t.Helper()
	var lines, updates []string
	for _, l := range must(readRecording(path)) {
		if l.From != "agent" {
			continue
		}
		lines = append(lines, string(l.Line))
		var v struct {
			Method string
			Params struct{ Update json.RawMessage }
		}
		if err := json.Unmarshal(l.Line, &v); err != nil {
			t.Fatal(err)
		}
		if v.Method == "session/update" {
			updates = append(updates, string(v.Params.Update))
		}
	}
	if !slices.Equal(w.lines(false), lines) {
		t.Error("the agent's lines are not those of the recording")
	}
	var got []string
	for _, u := range w.updates {
		got = append(got, string(u.Raw))
	}
	if !slices.Equal(got, updates) {
		t.Errorf("%d updates, want %d:\n%s", len(got), len(updates), strings.Join(got, "\n"))
	}
}
