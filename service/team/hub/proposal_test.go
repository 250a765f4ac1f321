package hub

import (
	"strings"
	"testing"
)

// TestStatements checks that no value turns a statement into the text of another statement.
func TestStatements(t *testing.T) {
	empty := Hash(nil)
	seen := map[string]string{}
	for name, text := range map[string]string{
		"plain": Answer{Question: "q", Member: "m", Option: "o"}.SignedText("t", "w", "d"),
		// Without quoting, the next two statements would be equal. One has the extra lines in an option of the agent,
		// the other in the worker's name on the hub.
		"option": Answer{Question: "q", Member: "m", Option: "a\ntext " + empty +
			"\nquestion f\nshown d2\nmember m\noption yes"}.SignedText("t", "w", "d"),
		"worker": Answer{Question: "f", Member: "m", Option: "yes"}.SignedText("t",
			"w\nquestion q\nshown d\nmember m\noption a\ntext "+empty, "d2"),
		"quoted":         Answer{Question: "q", Member: "m", Option: `"o\n"`}.SignedText("t", "w", "d"),
		"to be quoted":   Answer{Question: "q", Member: "m", Option: "o\n"}.SignedText("t", "w", "d"),
		"no text":        Answer{Question: "q", Member: "m", Option: "\xff"}.SignedText("t", "w", "d"),
		"a mark":         Answer{Question: "q", Member: "m", Option: "�"}.SignedText("t", "w", "d"),
		"another worker": Answer{Question: "q", Member: "m", Option: "o"}.SignedText("t", "w2", "d"),
		"what was shown": Answer{Question: "q", Member: "m", Option: "o"}.SignedText("t", "w", "d2"),
	} {
		if other, ok := seen[text]; ok {
			t.Errorf("%s and %s are one text:\n%s", name, other, text)
		}
		seen[text] = name
		if n := strings.Count(text, "\n"); n != 8 {
			t.Errorf("%s has %d lines:\n%s", name, n, text)
		}
	}
	if text := (Cancel{Input: "a\nmember b", Member: "c"}).Text(
		"t"); text != "perlica team cancel 1\nteam t\ninput \"a\\nmember b\"\nmember c\n" {
		t.Errorf(`got %q; want text == "perlica team cancel 1\nteam t\ninput \"a\\nmember b\"\nmember c\n"`, text)
	}
}
