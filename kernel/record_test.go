package kernel

import (
	"reflect"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// TestContentOnRecord checks that the result, the recorded result, the applied events and recovery have the same text
// and the same other parts. The data of these parts must be on the record.
func TestContentOnRecord(t *testing.T) {
	r := openRunner(t)
	chunk := `@update {"sessionUpdate":"agent_message_chunk","messageId":"`
	c := converse(t, r, "", "", "")
	res, err := c.Run(t.Context(), Turn{Input: Input{Source: "test",
		Text: chunk + `1","content":{"type":"text","text":"one"}}` + "\n" +
			chunk + `2","content":{"type":"image","mimeType":"image/png","data":"aGVsbG8="}}` + "\n" +
			chunk + `2","content":{"type":"resource_link","uri":"file:///etc/passwd","name":"pw"}}` + "\n" +
			chunk + `2","content":{"type":"text","text":"two"}}`}})
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Block{{Kind: "image", MIME: "image/png", Size: 5},
		{Kind: "resource_link", URI: "file:///etc/passwd", Name: "pw"}}
	if res.Text != "one\ntwo" || !reflect.DeepEqual(res.Content, want) {
		t.Errorf("the run has %q, %+v", res.Text, res.Content)
	}
	result, err := record.ReadResult(t.Context(), &r.log.Reader, res.Run)
	if err != nil || result.Text != res.Text || !reflect.DeepEqual(result.Content, want) {
		t.Errorf("its result has %q, %+v, %v", result.Text, result.Content, err)
	}
	rec, err := record.Read(t.Context(), &r.log.Reader, res.Run, event.Query{})
	if err != nil || rec.Said.Text() != res.Text || !reflect.DeepEqual(rec.Said.Blocks, want) {
		t.Errorf("its events have %q, %+v, %v", rec.Said.Text(), rec.Said.Blocks, err)
	}
	var held []string
	for b, err := range record.Content(t.Context(), &r.log.Reader, res.Run) {
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, string(b.Data))
	}
	if !reflect.DeepEqual(held, []string{"hello", ""}) {
		t.Errorf("the record holds %q", held)
	}
	closeConversation(t, c)
}

// TestHalvesOnRecord checks an emoji that comes as two halves in two updates, and half an emoji alone. The result, the
// shown notices and the applied events must have the same text.
func TestHalvesOnRecord(t *testing.T) {
	r := openRunner(t)
	chunk := func(text string) string {
		return `@update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}`
	}
	shown := ""
	c := converse(t, r, "", "", "")
	res, err := c.Run(t.Context(), Turn{
		Input: Input{Source: "test", Text: strings.Join([]string{chunk(`a\ud83d`), chunk(`\ude00 b`), chunk(`\ud83d`)},
			"\n")},
		Show: func(n record.Notice) {
			if u, ok := n.(record.Updated); ok && u.Kind == provider.AgentMessageChunk {
				shown += u.Text
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "a😀 b\ufffd"
	if res.Text != want || shown != want {
		t.Errorf("the run has %q and shows %q", res.Text, shown)
	}
	rec, followed := &record.Record{Result: record.Result{Run: res.Run}}, ""
	for e, err := range r.log.Events(t.Context(), event.Query{Run: res.Run}) {
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := rec.Notice(e).(record.Updated); ok && u.Kind == provider.AgentMessageChunk {
			followed += u.Text
		}
	}
	if rec.Text != want || rec.Said.Text() != want || followed != want {
		t.Errorf("its result has %q, its events %q, its notices %q", rec.Text, rec.Said.Text(), followed)
	}
	closeConversation(t, c)
}
