package provider_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestHalves checks that two halves of a character in two chunks are joined, and a single half becomes U+FFFD.
func TestHalves(t *testing.T) {
	const message, thought = provider.AgentMessageChunk, provider.AgentThoughtChunk
	type chunk struct{ kind, id, text string } // text is written as in JSON
	for _, tt := range []struct {
		name   string
		chunks []chunk
		want   string
	}{
		{"two chunks", []chunk{{message, "", `ok \ud83d`}, {message, "", `\ude00 done`}}, "ok |😀 done"},
		{"capitals", []chunk{{message, "", `\uD83D`}, {message, "", `\uDE00`}}, "|😀"},
		{"a row of them", []chunk{{message, "", `\ud83d`}, {message, "", `\ude00\ud83d`}, {message, "", `\ude01`}}, "|😀|😁"},
		{"a thought between", []chunk{{message, "", `\ud83d`}, {thought, "", `hm`}, {message, "", `\ude00`}}, "|hm|😀"},
		{"halves of a thought", []chunk{{thought, "", `\ud83d`}, {message, "", `a`}, {thought, "", `\ude00`}}, "|a|😀"},
		{"an empty chunk between", []chunk{{message, "", `\ud83d`}, {message, "", ``}, {message, "", `\ude00`}}, "||😀"},
		{"the first alone", []chunk{{message, "", `a\ud83d`}, {message, "", `b`}}, "a|\ufffdb"},
		{"the first alone at the end", []chunk{{message, "", `a\ud83d`}}, "a\ufffd"},
		{"the first of another message", []chunk{{message, "1", `a\ud83d`}, {message, "2", `\ude00`}}, "a|\ufffd\ufffd"},
		{"the second alone", []chunk{{message, "", `a`}, {message, "", `\ude00b`}}, "a|\ufffdb"},
		{"two firsts", []chunk{{message, "", `\ud83d`}, {message, "", `\ud83d`}, {message, "", `\ude00`}}, "|\ufffd|😀"},
		{"no half", []chunk{{message, "", `\ufffd`}, {message, "", `\ude00`}}, "\ufffd|\ufffd"},
		{"the text of an escape", []chunk{{message, "", `\\ud83d`}, {message, "", `\\ude00`}}, `\ud83d|\ude00`},
		{"whole", []chunk{{message, "", `\ud83d\ude00`}, {message, "", `\ude00`}}, "😀|\ufffd"},
	} {
		var h provider.Halves
		var got []string
		for _, c := range tt.chunks {
			raw := `{"sessionUpdate":"` + c.kind + `","messageId":"` + c.id + `","content":{"type":"text","text":"` + c.text +
				`"}}`
			u, ok := provider.ParseUpdate(updateLine(raw), "")
			if !ok {
				t.Fatalf("got %v; want ok", raw)
			}
			alone := h.Join(&u)
			got = append(got, alone+u.Text)
		}
		if text := strings.Join(got, "|") + h.Rest(); text != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.want)
		}
	}
}

// updateLine returns a session/update of session s as the agent writes it.
func updateLine(update string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + update + `}}`)
}
