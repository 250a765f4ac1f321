package webhook

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestFieldsAreDocumented checks that docs/channel-webhook.md lists each field of received and
// posted bodies.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/channel-webhook.md")
	if err != nil {
		t.Fatal(err)
	}
	messages, replies, _ := strings.Cut(string(text), "\n## Replies\n")
	for part, v := range map[string]any{messages: message{}, replies: post{}} {
		rows := ""
		for line := range strings.Lines(part) {
			if names, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") {
				rows += names
			}
		}
		for f := range reflect.TypeOf(v).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Field(f).Tag.Get("json"), ",")
			if !strings.Contains(rows, "`"+name+"`") {
				t.Errorf("%T: the field %s has no row", v, name)
			}
		}
	}
}
