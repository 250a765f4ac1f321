package provider_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestCapabilities checks that initialize announces exactly the capabilities that the options set.
func TestCapabilities(t *testing.T) {
	const least = `"auth":{},"fs":{},"session":{"configOptions":{"boolean":{}}`
	for name, tt := range map[string]struct {
		change func(*provider.Options)
		want   string
	}{
		"least":   {func(*provider.Options) {}, `{` + least + `}}`},
		"notices": {func(o *provider.Options) { o.Notices = true }, `{` + least + `,"notices":{},"compaction":{}}}`},
		"forms": {func(o *provider.Options) { o.Forms = true },
			`{"auth":{},"elicitation":{"form":{},"url":{}},"fs":{},"session":{"configOptions":{"boolean":{}}}}`},
		"logins": {func(o *provider.Options) { o.TerminalLogins = true },
			`{"auth":{"terminal":true},"fs":{},"session":{"configOptions":{"boolean":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`), w, tt.change)
			if _, err := c.Initialize(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			var v struct {
				Params struct{ ClientCapabilities json.RawMessage }
			}
			if err := json.Unmarshal([]byte(w.lines(true)[0]), &v); err != nil ||
				string(v.Params.ClientCapabilities) != tt.want {
				t.Errorf("%s, %v; want %s", v.Params.ClientCapabilities, err, tt.want)
			}
		})
	}
}

// TestSwitches checks that a boolean option is set to on or off, and any other option by the id of its value.
func TestSwitches(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "<",
		`>{"id":0,"result":{"sessionId":"s","configOptions":[{"id":"fast","name":"Fast","type":"boolean","currentValue":false},`+
			`{"id":"all","name":"All","type":"select","currentValue":"off","options":[{"value":"on","name":"On"},{"value":"off","name":"Off"}]}]}}`,
		"<", `>{"id":1,"result":{}}`, "<", `>{"id":2,"result":{}}`, "<", `>{"id":3,"result":{}}`, "<",
		`>{"id":4,"result":{}}`), w)
	s, err := c.NewSession(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range [][2]string{{"fast", "on"}, {"fast", "off"}, {"fast", "maybe"}, {"all", "on"}} {
		if err := s.SetOption(t.Context(), o[0], o[1]); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, line := range w.lines(true)[1:] {
		_, params, _ := strings.Cut(line, `"params":`)
		got = append(got, strings.TrimSuffix(params, "}"))
	}
	want := []string{
		`{"configId":"fast","sessionId":"s","type":"boolean","value":true}`,
		`{"configId":"fast","sessionId":"s","type":"boolean","value":false}`,
		`{"configId":"fast","sessionId":"s","value":"maybe"}`,
		`{"configId":"all","sessionId":"s","value":"on"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
