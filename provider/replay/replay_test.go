package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorded returns records of real agents by name, from the test data of this package and of package provider.
func recorded(t *testing.T) map[string]iter.Seq2[Frame, error] {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "claude.frames"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]iter.Seq2[Frame, error]{"claude": Read(bytes.NewReader(b))}
	files, err := filepath.Glob(filepath.Join("..", "testdata", "frames", "*.ndjson"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = func(yield func(Frame, error) bool) {
			n := int64(0)
			for line := range bytes.Lines(b) {
				var l struct {
					From string
					Line json.RawMessage
				}
				err := json.Unmarshal(line, &l)
				if n++; !yield(Frame{Seq: n, Client: l.From == "client", Line: l.Line}, err) {
					return
				}
			}
		}
	}
	return all
}

// withID returns the line with another JSON-RPC id, and the old id.
func withID(t *testing.T, line []byte, id string) (changed string, was string) {
	t.Helper()
	m, err := parse(line)
	if err != nil {
		t.Fatal(err)
	}
	if m.id == nil {
		return string(line), ""
	}
	from, to := m.spanOf(m.id)
	return string(line[:from]) + id + string(line[to:]), string(m.id)
}

// TestRealAgents sends the lines of the recorded client with other ids. It checks that the replay writes the lines of
// the recorded agent, byte for byte except the ids and in the same order.
func TestRealAgents(t *testing.T) {
	for name, frames := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			s := serve(t, frames, Options{})
			asked := map[string]string{} // maps the recorded ids of the agent's requests to the current ids
			for f := range frames {
				m, err := parse(f.Line)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case f.Client && m.method == "":
					line, _ := withID(t, f.Line, asked[string(m.id)])
					s.sendLine("%s", line)
				case f.Client:
					line, _ := withID(t, f.Line, `"mine-`+string(m.id)+`"`)
					s.sendLine("%s", line)
				case m.method == "":
					line, _ := withID(t, f.Line, `"mine-`+string(m.id)+`"`)
					s.expectLines(line)
				default:
					got, id := withID(t, []byte(s.line()), string(m.id))
					if got != string(f.Line) {
						t.Fatalf("the replay says\n%s, recorded is\n%s", got, f.Line)
					}
					asked[string(m.id)] = id
				}
			}
			s.endClient()
		})
	}
}

const (
	begin = `
> {"id":0,"method":"initialize"}
< {"id":0,"result":{"protocolVersion":1}}
> {"id":1,"method":"session/new","params":{}}
< {"id":1,"result":{"sessionId":"s"}}
< {"method":"session/update","params":{"sessionId":"s","update":"new"}}
`
	asks = `
> {"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"ask"}]}}
< {"method":"session/update","params":{"sessionId":"s","update":"asking"}}
< {"id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"title":"rm"}}}
> {"id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}
< {"id":1,"method":"fs/read_text_file","params":{"sessionId":"s"}}
> {"id":1,"error":{"code":-32601,"message":"no"}}
< {"id":2,"result":{"stopReason":"end_turn"}}
< {"method":"session/update","params":{"sessionId":"s","update":"late"}}
`
	slow = `
> {"id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"slow"},{"type":"image"},{"type":"text","text":"down"}]}}
< {"method":"session/update","params":{"sessionId":"s","update":"slow"}}
> {"method":"session/cancel","params":{"sessionId":"s"}}
< {"method":"session/update","params":{"sessionId":"s","update":"cancelled"}}
< {"id":3,"result":{"stopReason":"cancelled","was":"so"}}
`
	dies = `
> {"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"die"}]}}
< {"method":"session/update","params":{"sessionId":"s","update":"dying"}}
`
)

func prompt(id int, session, text string) string {
	return fmt.Sprintf(
		`{"id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session,
		text)
}

// TestConversations checks the lines of the replay for a table of records and lines of the client.
func TestConversations(t *testing.T) {
	const said = `{"method":"session/update","params":{"sessionId":"s","update":`
	const question = `"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"title":"rm"}}}`
	for name, tt := range map[string]struct {
		record string
		opt    Options
		talk   string // the lines of the client and the replay, in the form that record reads
	}{
		"what is not JSON": {record: begin, talk: `
> {"id":
< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON: unexpected end of JSON input"}}`},
		"methods": {record: begin, talk: `
> {"id":"a","method":"initialize"}
< {"id":"a","result":{"protocolVersion":1}}
> {"id":"b","method":"initialize"}
< {"jsonrpc":"2.0","id":"b","error":{"code":-32601,"message":"replay: the record has initialize only as often as it was given: 1"}}
> {"id":"c","method":"session/list"}
< {"jsonrpc":"2.0","id":"c","error":{"code":-32601,"message":"replay: the record has no answer to session/list"}}
> {"method":"session/nothing"}
> {"id":null,"method":"session/nothing"}
> {"id":"d","result":{}}
> {"id":"e","method":"session/new"}
< {"id":"e","result":{"sessionId":"s"}}
< ` + said + `"new"}}`},
		"prompts": {record: begin + asks + slow, talk: `
> ` + prompt(7, "s", "other") + `
< {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"replay: the record has no turn for the prompt \"other\"; expected is \"ask\"","data":{"expected":["ask","slow\ndown"]}}}
> ` + prompt(8, "s", "slow\ndown") + `
< ` + said + `"slow"}}
> {"method":"session/cancel","params":{"sessionId":"other"}}
> {"id":"not yet","method":"session/list"}
< {"jsonrpc":"2.0","id":"not yet","error":{"code":-32601,"message":"replay: the record has no answer to session/list"}}
> {"method":"session/cancel","params":{"sessionId":"s"}}
< ` + said + `"cancelled"}}
< {"id":8,"result":{"stopReason":"cancelled","was":"so"}}
> ` + prompt(9, "s", "slow\ndown") + `
< {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"replay: the record has no turn for the prompt \"slow\\ndown\"; expected is \"ask\"","data":{"expected":["ask"]}}}`},
		"in order": {record: begin + asks + slow + dies, opt: Options{InOrder: true, AnyAnswer: true}, talk: `
> ` + prompt(7, "s", "slow\ndown") + `
< ` + said + `"slow"}}
< ` + said + `"cancelled"}}
< {"id":7,"result":{"stopReason":"cancelled","was":"so"}}
> ` + prompt(8, "s", "anything") + `
< ` + said + `"dying"}}
< {"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"replay: the record ends in this session/prompt: the agent's answer is not in it"}}
> ` + prompt(9, "s", "anything") + `
< {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"replay: the record has no turn for the prompt \"anything\"; expected is \"ask\"","data":{"expected":["ask"]}}}
> ` + prompt(9, "s", "ask") + `
< ` + said + `"asking"}}
< {"id":0,` + question + `
> {"id":0,"result":{"outcome":{"outcome":"cancelled"}}}
< {"id":1,"method":"fs/read_text_file","params":{"sessionId":"s"}}
> {"id":1,"result":{}}
< {"id":9,"result":{"stopReason":"end_turn"}}
< ` + said + `"late"}}
> ` + prompt(10, "s", "ask") + `
< {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"replay: the record has no turn for the prompt \"ask\"; all of its turns (3) were given","data":{"expected":[]}}}`},
		"another option": {record: asks, talk: `
> ` + prompt(7, "s", "ask") + `
< ` + said + `"asking"}}
< {"id":0,` + question + `
> {"id":0,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}
< {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"replay: session/request_permission \"rm\" was answered with option no; in the record it is option yes","data":{"expected":"option yes","got":"option no"}}}
> {"id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`},
		"a result for an error": {record: asks, talk: `
> ` + prompt(7, "s", "ask") + `
< ` + said + `"asking"}}
< {"id":0,` + question + `
> {"id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}
< {"id":1,"method":"fs/read_text_file","params":{"sessionId":"s"}}
> {"id":1,"result":{"content":""}}
< {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"replay: fs/read_text_file was answered with a result; in the record it is an error","data":{"expected":"an error","got":"a result"}}}`},
		"a cancel that was not recorded": {record: asks, talk: `
> ` + prompt(7, "s", "ask") + `
< ` + said + `"asking"}}
< {"id":0,` + question + `
> {"method":"session/cancel","params":{"sessionId":"s"}}
< {"jsonrpc":"2.0","id":7,"result":{"stopReason":"cancelled"}}
> {"id":0,"result":{"outcome":{"outcome":"cancelled"}}}`},
		"a cancel before its time": {record: strings.Replace(slow, "}]}}\n",
			"}]}}\n< {\"id\":5,\"method\":\"x/ask\"}\n> {\"id\":5,\"result\":{}}\n", 1), talk: `
> ` + prompt(7, "s", "slow\ndown") + `
< {"id":0,"method":"x/ask"}
> {"method":"session/cancel","params":{"sessionId":"s"}}
< ` + said + `"cancelled"}}
< {"id":7,"result":{"stopReason":"cancelled","was":"so"}}
> {"id":0,"error":{}}`},
		"sessions of one name, side by side": {record: begin + asks + begin +
			strings.ReplaceAll(asks, `"ask"`, `"ask again"`), talk: `
> {"id":1,"method":"session/new","params":{}}
< {"id":1,"result":{"sessionId":"s"}}
< ` + said + `"new"}}
> {"id":2,"method":"session/new","params":{}}
< {"id":2,"result":{"sessionId":"s-2"}}
< {"method":"session/update","params":{"sessionId":"s-2","update":"new"}}
> ` + prompt(3, "s-2", "ask") + `
< {"method":"session/update","params":{"sessionId":"s-2","update":"asking"}}
< {"id":0,"method":"session/request_permission","params":{"sessionId":"s-2","toolCall":{"title":"rm"}}}
> ` + prompt(4, "s", "ask again") + `
< ` + said + `"asking"}}
< {"id":1,` + question + `
> {"id":1,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}
< {"id":2,"method":"fs/read_text_file","params":{"sessionId":"s"}}
> {"id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}
< {"id":3,"method":"fs/read_text_file","params":{"sessionId":"s-2"}}
> {"id":3,"error":{"code":1,"message":"no"}}
< {"id":3,"result":{"stopReason":"end_turn"}}
< {"method":"session/update","params":{"sessionId":"s-2","update":"late"}}`},
		"a cancel that was not waited for": {opt: Options{AnyAnswer: true},
			record: strings.Replace(slow, "< {\"id\":3",
				"< {\"id\":5,\"method\":\"x/ask\"}\n> {\"id\":5,\"result\":{}}\n< {\"id\":3", 1), talk: `
> ` + prompt(7, "s", "slow\ndown") + `
< ` + said + `"slow"}}
< ` + said + `"cancelled"}}
< {"id":0,"method":"x/ask"}
> {"method":"session/cancel","params":{"sessionId":"s"}}
> {"id":0,"error":{}}
< {"id":7,"result":{"stopReason":"cancelled","was":"so"}}`},
		"an agent that died, and one after it": {record: begin + dies + begin + `
> {"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}
< {"id":4,"result":{}}
> {"id":5,"method":"session/set_mode","params":{"sessionId":"s"}}
< {"method":"session/update","params":{"sessionId":"s","update":"mode"}}
< {"id":5,"result":{}}`, talk: `
> {"id":1,"method":"session/new"}
< {"id":1,"result":{"sessionId":"s"}}
< ` + said + `"new"}}
> {"id":2,"method":"session/new"}
< {"id":2,"result":{"sessionId":"s-2"}}
< {"method":"session/update","params":{"sessionId":"s-2","update":"new"}}
> {"id":3,"method":"session/set_mode","params":{"sessionId":"s"}}
< ` + said + `"mode"}}
< {"id":3,"result":{}}`},
		"a line of another session": {record: begin + `
> {"id":2,"method":"session/prompt","params":{"sessionId":"u","prompt":[]}}
< {"method":"session/update","params":{"sessionId":"s","update":"late"}}
< {"method":"session/update","params":{"sessionId":"v","update":"unknown"}}
< {"id":2,"result":{}}
> {"id":3,"method":"session/load","params":{"sessionId":"s"}}
< {"id":3,"result":{}}`, talk: `
> {"id":1,"method":"session/load","params":{"sessionId":"mine"}}
< {"id":1,"result":{}}
> ` + prompt(2, "other", "") + `
< {"method":"session/update","params":{"sessionId":"mine","update":"late"}}
< {"method":"session/update","params":{"sessionId":"v","update":"unknown"}}
< {"id":2,"result":{}}`},
		"a session made of another": {record: begin + `
> {"id":2,"method":"session/fork","params":{"sessionId":"s"}}
< {"id":2,"result":{"sessionId":"fork"}}
< {"method":"session/update","params":{"sessionId":"fork","update":"forked"}}`, talk: `
> {"id":2,"method":"session/fork","params":{"sessionId":"t"}}
< {"id":2,"result":{"sessionId":"fork"}}
< {"method":"session/update","params":{"sessionId":"fork","update":"forked"}}`},
		"a question that is withdrawn": {record: `
< {"method":"_hello"}
> {"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}
< {"id":41,"method":"elicitation/create","params":{"sessionId":"s"}}
< {"id":42,"method":"elicitation/create","params":{"sessionId":"s"}}
< {"method":"$/cancel_request","params":{"requestId":42}}
> {"id":41,"result":{}}
< {"id":2,"result":{"stopReason":"end_turn"}}`, talk: `
< {"method":"_hello"}
> ` + prompt(5, "t", "") + `
< {"id":0,"method":"elicitation/create","params":{"sessionId":"t"}}
< {"id":1,"method":"elicitation/create","params":{"sessionId":"t"}}
< {"method":"$/cancel_request","params":{"requestId":1}}
> {"id":0,"result":{}}
< {"id":5,"result":{"stopReason":"end_turn"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, record(tt.record), tt.opt)
			for f := range record(tt.talk) {
				if f.Client {
					s.sendLine("%s", f.Line)
				} else {
					s.expectLines(string(f.Line))
				}
			}
			s.endClient()
		})
	}
}

// TestLeave checks that Serve ends if the client ends during a turn, and if the context ends.
func TestLeave(t *testing.T) {
	s := serve(t, record(asks), Options{})
	s.sendLine("%s", prompt(7, "s", "ask"))
	s.expectLines("…", "…")
	s.endClient()

	r, err := New(record(asks))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in, w := io.Pipe()
	defer w.Close()
	if err := Serve(ctx, in, io.Discard, r, Options{}); err != nil {
		t.Error(err)
	}
}

// anHourAfter yields the frames. All frames after the line seq are one hour later.
func anHourAfter(seq int64, frames iter.Seq2[Frame, error]) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for f, err := range frames {
			if f.Seq > seq {
				f.Millis += time.Hour.Milliseconds()
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// TestSpeed checks that Options.Speed divides the recorded delays of the agent. The replay does not repeat the delays
// of the client.
func TestSpeed(t *testing.T) {
	const turn = `
> {"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}
< {"method":"session/update","params":{"sessionId":"s","update":1}}
< {"method":"session/update","params":{"sessionId":"s","update":2}}
< {"id":1,"result":{"stopReason":"end_turn"}}`
	s := serve(t, record(turn), Options{Speed: 0.5})
	start := time.Now()
	s.sendLine("%s", prompt(1, "s", ""))
	for i, line := range []string{`…1}}`, `…2}}`, `{"id":1,…`} {
		s.expectLines(line)
		if at, least := time.Since(start), time.Duration(i+1)*20*time.Millisecond; at < least {
			t.Errorf("line %d came after %v, before %v", i+1, at, least)
		}
	}
	s.endClient()

	// In this record the person needed an hour to answer. The replay does not wait for an hour.
	s = serve(t, anHourAfter(3, record(asks)), Options{Speed: 1})
	s.sendLine("%s", prompt(1, "s", "ask"))
	s.expectLines("…", "…")
	s.sendLine(`{"id":0,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`)
	s.expectLines(`{"id":1,"method":"fs/read_text_file"…`)
	s.endClient()

	// In this record, a cancel came after the answer. It has no effect.
	s = serve(t, anHourAfter(2, record(`
> {"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}
< {"id":1,"result":{"stopReason":"end_turn"}}
< {"method":"session/update","params":{"sessionId":"s"}}`)), Options{Speed: 1})
	s.sendLine("%s", prompt(1, "s", ""))
	s.expectLines(`{"id":1,…`)
	s.sendLine(`{"method":"session/cancel","params":{"sessionId":"s"}}`)
	s.endClient()

	// A cancel also ends a turn while the replay waits for the time of its next line.
	s = serve(t, record(strings.ReplaceAll(turn, `"end_turn"`, `"end"`)), Options{Speed: 1e-9})
	s.sendLine("%s", prompt(1, "s", ""))
	s.sendLine(`{"method":"session/cancel","params":{"sessionId":"s"}}`)
	s.expectLines(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`)
	s.endClient()
}
