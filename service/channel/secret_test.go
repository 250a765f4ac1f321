package channel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// TestSecret checks that no printed form, no JSON and no log contains a secret, alone or as a member.
func TestSecret(t *testing.T) {
	const secret = "xoxb-4711"
	s := channel.Secret(secret)
	member := struct{ Token channel.Secret }{s}
	var out bytes.Buffer
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, s, member, &member)
	}
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("x", "token", s, "member", member)
	}
	b, err := json.Marshal(map[string]any{"token": s, "member": member})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	for _, text := range []string{secret, fmt.Sprintf("%x", secret)} {
		if strings.Contains(out.String(), text) {
			t.Errorf("%q is in %s", text, out.String())
		}
	}
}
