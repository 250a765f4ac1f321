package kernel

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/provider"
)

// TestRecordOfAnything checks that an event without a readable payload counts by its type, in any order, and
// that Apply returns an error exactly for the types that it reads.
func TestRecordOfAnything(t *testing.T) {
	for _, typ := range event.Known().Types() {
		r := &Record{}
		for _, payload := range [][]byte{nil, []byte(`"no object"`)} {
			e := event.Event{Seq: 1, Type: typ, Class: typ.Class(), Payload: payload,
				Refs: event.Refs{Run: "r", Interaction: "q"}}
			if err := r.Apply(e); (err != nil) != (payload != nil && readers[typ] != nil) {
				t.Errorf("%s: %v", typ, err)
			}
			if payload == nil && !r.Withheld {
				t.Errorf("%s: that the payload is withheld is not known", typ)
			}
		}
		if ends := r.Outcome != ""; ends != typ.Outcome() {
			t.Errorf("%s: outcome %q", typ, r.Outcome)
		}
		if opens := typ.Step() == event.Opens; opens != r.Intended {
			t.Errorf("%s: intended: %v", typ, r.Intended)
		}
		if typ.Outcome() && !slices.Contains(resulting, typ) {
			t.Errorf("%s is no part of a result", typ)
		}
		if r.Counted(); r.Progress() == "" {
			t.Errorf("%s: nothing is known", typ)
		}
	}
}

// TestJoin checks that a new message begins a line.
func TestJoin(t *testing.T) {
	type piece struct{ id, text string }
	for want, pieces := range map[string][]piece{
		"ab":     {{"1", "a"}, {"1", "b"}},
		"a\nb":   {{"1", "a"}, {"2", "b"}},
		"a\n\nb": {{"1", "a\n\n"}, {"2", "b"}},
		"abc":    {{"", "a"}, {"1", "b"}, {"", "c"}},
		"a\nbc":  {{"1", "a"}, {"", ""}, {"2", ""}, {"2", "b"}, {"2", "c"}},
	} {
		var j joiner
		got := ""
		for _, p := range pieces {
			u := provider.Update{Kind: provider.AgentMessageChunk, Message: p.id, Text: p.text}
			j.joinText(&u)
			thought := provider.Update{Kind: provider.AgentThoughtChunk, Message: "t", Text: "hm"}
			j.joinText(&thought)
			got += u.Text
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestContentOnRecord checks that the run, its result, a reader of its events and recovery agree on the text
// and on the parts that are not text. The record has their data.
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
	result, err := ReadResult(t.Context(), &r.log.Reader, res.Run)
	if err != nil || result.Text != res.Text || !reflect.DeepEqual(result.Content, want) {
		t.Errorf("its result has %q, %+v, %v", result.Text, result.Content, err)
	}
	rec, err := ReadRecord(t.Context(), &r.log.Reader, res.Run, event.Query{})
	if err != nil || rec.Said.String() != res.Text || !reflect.DeepEqual(rec.Blocks, want) {
		t.Errorf("its events have %q, %+v, %v", rec.Said.String(), rec.Blocks, err)
	}
	var held []string
	for b, err := range r.Content(t.Context(), res.Run) {
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

// TestHalvesOnRecord checks that the run, its result, its notices and its events agree on an emoji in two
// halves, and on a half without the other.
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
		Show: func(n Notice) {
			if u, ok := n.(Updated); ok && u.Kind == provider.AgentMessageChunk {
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
	rec, followed := &Record{Result: Result{Run: res.Run}}, ""
	for e, err := range r.log.Events(t.Context(), event.Query{Run: res.Run}) {
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := rec.Notice(e).(Updated); ok && u.Kind == provider.AgentMessageChunk {
			followed += u.Text
		}
	}
	if rec.Text != want || rec.Said.String() != want || followed != want {
		t.Errorf("its result has %q, its events %q, its notices %q", rec.Text, rec.Said.String(), followed)
	}
	closeConversation(t, c)
}
