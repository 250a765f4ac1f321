package team

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestGoldenPayloads: what is on record is read whole and written again as the same bytes.
func TestGoldenPayloads(t *testing.T) {
	text, err := os.ReadFile("../testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	fresh := map[string]func() any{
		"team.joined": func() any { return &Joined{} }, "team.member": func() any { return &Member{} },
		"team.claimed": func() any { return &Claimed{} }, "team.refused": func() any { return &Refused{} }, "team.cosigned": func() any { return &Cosigned{} },
		"team.answered": func() any { return &Answered{} }, "team.stop_requested": func() any { return &Stopped{} },
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if fresh[name] == nil {
			continue
		}
		seen[name] = true
		v := fresh[name]()
		err := json.Unmarshal([]byte(payload), v)
		if got, merr := json.Marshal(v); err != nil || merr != nil || !bytes.Equal(got, []byte(payload)) {
			t.Errorf("%s:\n%s, want\n%s: %v, %v", name, got, payload, err, merr)
		}
	}
	if len(seen) != len(fresh) {
		t.Errorf("golden payloads of %v only", seen)
	}
}
