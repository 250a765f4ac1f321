package provider_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/provider"
)

// prompts counts the session/prompt lines that were sent.
func (w *watcher) prompts() (n int) {
	for _, line := range w.lines(true) {
		if strings.Contains(line, "session/prompt") {
			n++
		}
	}
	return n
}

func TestSecondPrompt(t *testing.T) {
	t.Run("same call", func(t *testing.T) {
		w := &watcher{}
		s := open(t, start(t, child("ok"), w))
		call := provider.NewCall("r")
		if _, err := s.Prompt(call, text("one")).Answer(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(call, text("two")).Answer(); !errors.Is(err, provider.ErrSecondPrompt) {
			t.Errorf("got %v; want errors.Is(err, provider.ErrSecondPrompt)", err)
		}
		if w.prompts() != 1 || w.said() != "You said: one" {
			t.Errorf("%d prompts, %q", w.prompts(), w.said())
		}
	})
	t.Run("second call of a run", func(t *testing.T) {
		w := &watcher{}
		s := open(t, start(t, child("ok"), w))
		if _, err := s.Prompt(provider.NewCall("r"), text("one")).Answer(); err != nil {
			t.Fatal(err)
		}
		second := provider.NewCall("r")
		if _, err := s.Prompt(second, text("two")).Answer(); !errors.Is(err, provider.ErrSecondPrompt) ||
			second.MayHaveLeft() {
			t.Errorf("%v, left %v", err, second.MayHaveLeft())
		}
		if w.prompts() != 1 {
			t.Errorf("%d prompts", w.prompts())
		}
	})
	t.Run("same call on another connection", func(t *testing.T) {
		w := &watcher{}
		call := provider.NewCall("r")
		first := start(t, child("ok"), w)
		if _, err := open(t, first).Prompt(call, text("one")).Answer(); err != nil {
			t.Fatal(err)
		}
		end(t, first)
		if _, err := open(t, start(t, child("ok"), w)).Prompt(call, text("two")).
			Answer(); !errors.Is(err, provider.ErrSecondPrompt) {
			t.Errorf("got %v; want errors.Is(err, provider.ErrSecondPrompt)", err)
		}
		if w.prompts() != 1 {
			t.Errorf("%d prompts", w.prompts())
		}
	})
	t.Run("at once", func(t *testing.T) {
		w := &watcher{}
		s := open(t, start(t, child("ok"), w))
		calls := []*provider.Call{provider.NewCall("r"), provider.NewCall("r")}
		var ok, refused atomic.Int32
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				switch _, err := s.Prompt(calls[i%2], text("x")).Answer(); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, provider.ErrSecondPrompt):
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		if ok.Load() != 1 || refused.Load() != 19 || w.prompts() != 1 {
			t.Errorf("%d passed, %d were refused, %d were sent", ok.Load(), refused.Load(), w.prompts())
		}
	})
	t.Run("two runs", func(t *testing.T) {
		w := &watcher{}
		s := open(t, start(t, child("ok"), w))
		for _, r := range []string{"r1", "r2"} {
			if _, err := s.Prompt(provider.NewCall(r), text("@say "+r)).Answer(); err != nil {
				t.Error(err)
			}
		}
		if w.said() != "r1r2" || w.prompts() != 2 {
			t.Errorf(`got %q; want w.said() == "r1r2" && w.prompts() == 2`, w.said())
		}
	})
}

// TestPromptByAnotherPath checks that a prompt can leave only as a Prompt with a Call. A disguised prompt is refused,
// too.
func TestPromptByAnotherPath(t *testing.T) {
	w := &watcher{}
	c := start(t, lies(lieEnd), w)
	s := open(t, c)
	before := len(w.lines(true))
	call := provider.NewCall("r")
	for line, want := range map[string]error{
		`{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}`:                                               provider.ErrSecondPrompt,
		`{"jsonrpc":"2.0","method":"session/prompt","params":{}}`:                                                      provider.ErrSecondPrompt,
		`{"jsonrpc":"2.0","id":9,"m\u0065thod":"session\/prompt","params":{}}`:                                         provider.ErrSecondPrompt,
		`{"jsonrpc":"2.0","id":9,"method":"x","method":"session/prompt","params":{}}`:                                  provider.ErrMessage,
		`[{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}]`:                                             provider.ErrMessage,
		`{"method":"x"}{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}`:                                 provider.ErrMessage,
		"{\"method\":\"x\",\"params\":\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/prompt\",\"params\":{}}\n}": provider.ErrMessage,
		"{\"method\":\"x\",\"params\":\r{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/prompt\",\"params\":{}}\r}": provider.ErrMessage,
		`{"method":"x","params":{"text":"{\"method\":\"session/prompt\"}"}}` + "\n" +
			`{"id":9,"method":"session/prompt"}`: provider.ErrMessage,
	} {
		if err := c.SendLine(line); !errors.Is(err, want) {
			t.Errorf("%q: got %v; want errors.Is(err, %v)", line, err, want)
		}
	}
	if _, err := c.CallAgent(t.Context(), "session/prompt", struct{}{}); !errors.Is(err, provider.ErrSecondPrompt) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrSecondPrompt)", err)
	}
	if n := len(w.lines(true)); n != before {
		t.Errorf("%d lines left: %q", n-before, w.lines(true)[before:])
	}
	c.SetNextID(2)
	if _, err := s.Prompt(call, text("x")).Answer(); err != nil { // the refused attempts have not used up the call
		t.Error(err)
	}
}

// big is a prompt that is larger than any pipe.
var big = strings.Repeat("x", 4<<20)

// deafSoon shortens the write timeout from now on. The earlier steps keep the long timeout, so that they do
// not depend on time.
func deafSoon(c *provider.Conn) { c.Options().WriteTimeout = 200 * time.Millisecond }

func isDeaf(t *testing.T, what string, err error) {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) || !errors.Is(err, provider.ErrDeaf) || e.Type != provider.TypeDeaf {
		t.Errorf("%s: got %#v; want errors.As(err, &e) && errors.Is(err, provider.ErrDeaf) && e.Type == provider.TypeDeaf",
			what, err)
	}
}

// TestDeaf checks that if an agent stops reading, every send ends, and MayHaveLeft reports whether any part of the
// prompt may have been read.
func TestDeaf(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<",
		`>{"id":1,"result":{"sessionId":"s"}}`,
		`>{"id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","kind":"allow_once"}]}}`, "hang"), w)
	s := open(t, c)
	deafSoon(c)
	w.waitFor(t, "the question", func() bool { return len(w.permissions) == 1 })
	partly, never := provider.NewCall("r1"), provider.NewCall("r2")
	first := promptAsync(s, partly, big)
	w.waitFor(t, "the prompt's record", func() bool { return len(w.wire) == 6 })
	second := promptAsync(s, never, "x")
	isDeaf(t, "cancel", s.Cancel())
	isDeaf(t, "answer", w.permissions[0].Select("y"))
	isDeaf(t, "prompt", (<-first).err)
	isDeaf(t, "second prompt", (<-second).err)
	if !partly.MayHaveLeft() || never.MayHaveLeft() {
		t.Errorf("may have left: %v (some of it was written), %v (none was)", partly.MayHaveLeft(), never.MayHaveLeft())
	}
	if w.prompts() != 1 {
		t.Errorf("%d prompts on record", w.prompts())
	}
	end(t, c)
	if e, ok := c.Exit(); !ok || e.Signal == "" && e.Code == 0 {
		t.Errorf("the agent was not ended: %v", e)
	}
}

// TestNothingLeft checks that an agent that has gone or has closed its input gets no byte of a prompt.
func TestNothingLeft(t *testing.T) {
	for name, a := range map[string]provider.Agent{
		"gone": child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<",
			`>{"id":1,"result":{"sessionId":"s"}}`, "exit 4"),
		"input closed": child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<", "deaf",
			`>{"id":1,"result":{"sessionId":"s"}}`, "hang"),
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, a, &watcher{})
			s := open(t, c)
			if name == "gone" {
				<-c.Gone()
			}
			call := provider.NewCall("r")
			_, err := s.Prompt(call, text("x")).Answer()
			var e *provider.Error
			if !errors.As(err, &e) || !errors.Is(err, provider.ErrGone) || e.Type != provider.TypeGone || call.MayHaveLeft() {
				t.Errorf("%#v, may have left: %v", err, call.MayHaveLeft())
			}
		})
	}
}

// TestPromptIsAwaited checks that no caller is told that a prompt has not left, as long as the writer may still write
// it.
func TestPromptIsAwaited(t *testing.T) {
	var returned, early atomic.Bool
	var c *provider.Conn
	w := &watcher{sent: func(f provider.Frame) error {
		if f.Method == "session/prompt" {
			c.Kill()
			for range 10_000 {
				runtime.Gosched()
			}
			early.Store(returned.Load())
		}
		return nil
	}}
	c = start(t, child("ok"), w)
	s := open(t, c)
	call := provider.NewCall("r")
	_, err := s.Prompt(call, text("x")).Answer()
	returned.Store(true)
	end(t, c) // this waits for the writer, too
	var e *provider.Error
	if !errors.As(err, &e) || e.Type != provider.TypeStopped || call.MayHaveLeft() || early.Load() {
		t.Errorf("%#v; may have left: %v; returned early: %v", err, call.MayHaveLeft(), early.Load())
	}
}

// TestFloodOfRequests checks an agent that keeps asking and reads no answer. Perlica must treat this agent as one that
// has stopped reading.
func TestFloodOfRequests(t *testing.T) {
	w := &watcher{}
	c := start(t, lies(`*1000000 {"jsonrpc":"2.0","id":#,"method":"fs/read_text_file","params":{}}`), w)
	s := open(t, c)
	deafSoon(c)
	call := provider.NewCall("r")
	_, err := s.Prompt(call, text("x")).Answer()
	isDeaf(t, "prompt", err)
	if !call.MayHaveLeft() {
		t.Error("the prompt had left")
	}
}

// TestBurstOfRequests checks an agent that sends many requests before it reads the answers. Perlica must not treat this
// agent as one that has stopped reading.
func TestBurstOfRequests(t *testing.T) {
	const n = 1000
	w := &watcher{sent: func(f provider.Frame) error { // slower than the reader
		sum := sha256.Sum256(make([]byte, 50_000))
		_ = sum
		return nil
	}}
	_, got := run(t, lies(fmt.Sprintf(`*%d {"jsonrpc":"2.0","id":#,"method":"fs/read_text_file","params":{}}`, n),
		fmt.Sprint("<", n), lieEnd), w, "x")
	if got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
	if len(w.blocked) != n || w.blocked[n-1].ID != fmt.Sprint(n-1) || w.blocked[0].Method != "fs/read_text_file" ||
		string(w.blocked[0].Params) != "{}" {
		t.Errorf("%d were reported", len(w.blocked))
	}
	answers := w.lines(true)[3:]
	for i, line := range answers {
		if want := fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"Perlica does not offer fs/read_text_file"}}`,
			i); line != want {
			t.Fatalf("%s, want %s", line, want)
		}
	}
	if len(answers) != n {
		t.Errorf("%d answers", len(answers))
	}
}

// TestFloodOfUpdates checks that a slow client slows the agent down. Memory does not grow, and no update is lost.
func TestFloodOfUpdates(t *testing.T) {
	const n = 100_000
	var heap []uint64
	next := 0
	w := &watcher{forgetful: true}
	w.update = func(u provider.Update) {
		if got := strings.TrimLeft(strings.Fields(u.Text)[0], "0"); got != strings.TrimLeft(fmt.Sprint(next), "0") {
			t.Errorf("update %d begins with %.20q", next, u.Text)
		}
		next++
		sha256.Sum256(make([]byte, 4000))
		if next%(n/4) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc)
		}
	}
	_, got := run(t, child("ok"), w, fmt.Sprintf("@stream %d 200", n))
	if got.err != nil || next != n {
		t.Fatalf("%d updates, %v", next, got.err)
	}
	if len(heap) != 4 || heap[3] > heap[0]+2<<20 {
		t.Errorf("the heap grew: %d", heap)
	}
}

// TestRecordFails checks that if a line cannot be recorded, it does not leave, and the agent is ended.
func TestRecordFails(t *testing.T) {
	full := errors.New("disk full")
	isRecord := func(t *testing.T, err error) {
		t.Helper()
		var e *provider.Error
		if !errors.As(err, &e) || !errors.Is(err, provider.ErrRecord) || !errors.Is(err, full) ||
			e.Type != provider.TypeRecord {
			t.Errorf("%#v", err)
		}
	}
	t.Run("sent", func(t *testing.T) {
		w := &watcher{sent: func(f provider.Frame) error {
			if f.Method == "session/prompt" {
				return full
			}
			return nil
		}}
		c := start(t, child("ok", "[session/prompt]\n@say never"), w)
		s := open(t, c)
		call := provider.NewCall("r")
		_, err := s.Prompt(call, text("x")).Answer()
		isRecord(t, err)
		isRecord(t, s.Cancel())
		if call.MayHaveLeft() {
			t.Error("the prompt may have left")
		}
		end(t, c)
		if e, _ := c.Exit(); e.Signal == "" && e.Code == 0 || w.said() != "" {
			t.Errorf("the agent said %q and ended so: %v", w.said(), e)
		}
	})
	t.Run("received", func(t *testing.T) {
		w := &watcher{received: func(f provider.Frame) error {
			if strings.Contains(string(f.Line), "second") {
				return full
			}
			return nil
		}}
		c := start(t, lies(lieSay("first"), lieSay("second"), lieSay("third"), lieEnd), w)
		call := provider.NewCall("r")
		_, err := open(t, c).Prompt(call, text("x")).Answer()
		isRecord(t, err)
		end(t, c)
		if w.said() != "first" || len(w.lines(true)) != 3 || len(w.lines(false)) != 3 || !call.MayHaveLeft() {
			t.Errorf("%q; %d lines sent, %d received", w.said(), len(w.lines(true)), len(w.lines(false)))
		}
	})
}

// TestKillAndEnd checks that Kill and End may run concurrently and repeatedly.
func TestKillAndEnd(t *testing.T) {
	w := &watcher{}
	c := start(t, child("ok"), w)
	s := open(t, c)
	done := promptAsync(s, provider.NewCall("r"), "@stream 1000000 100")
	w.waitFor(t, "an update", func() bool { return len(w.updates) > 0 })
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				c.Kill()
			case 1:
				if err := c.End(context.Background()); err != nil {
					t.Error(err)
				}
			case 2:
				s.Cancel()
			}
		})
	}
	wg.Wait()
	var e *provider.Error
	got := <-done
	cancelled := got.err == nil && got.StopReason == "cancelled" // the agent answered Cancel before it was killed
	if !cancelled && (!errors.As(got.err, &e) || e.Type != provider.TypeStopped) {
		t.Errorf("%+v", got)
	}
	c.Kill()
	if err := c.End(t.Context()); err != nil {
		t.Error(err)
	}
	if !errors.As(c.Err(), &e) || e.Type != provider.TypeStopped {
		t.Errorf("got %v; want errors.As(c.Err(), &e) && e.Type == provider.TypeStopped", c.Err())
	}
	if _, err := s.Prompt(provider.NewCall("r2"), text("x")).Answer(); !errors.As(err, &e) ||
		e.Type != provider.TypeStopped {
		t.Errorf("got %v; want errors.As(err, &e) && e.Type == provider.TypeStopped", err)
	}
}
