package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestKeptSessions checks that the pages of an agent's list are requested in order and with the directory. An endless
// list is not requested for ever. An item of the wrong form is left out.
func TestKeptSessions(t *testing.T) {
	var endless []string
	for i := range provider.MostPages + 1 {
		endless = append(endless, fmt.Sprintf(`{"sessions":[],"nextCursor":"%d"}`, i))
	}
	for name, c := range map[string]struct {
		pages, ids []string
		more       bool
		asked      int
	}{
		"pages": {[]string{`{"sessions":[{"sessionId":"a","cwd":"/x"},{"cwd":"/x"},{"sessionId":7}],"nextCursor":"2"}`,
			`{"sessions":[{"sessionId":"b","cwd":"/x"}],"nextCursor":null}`}, []string{"a", "b"}, false, 2},
		"circle": {[]string{`{"sessions":[{"sessionId":"a","cwd":"/x"}],"nextCursor":"1"}`, `{"nextCursor":"2"}`,
			`{"nextCursor":"1"}`}, []string{"a"}, false, 3},
		"none":    {[]string{`{"sessions":[]}`}, nil, false, 1},
		"endless": {endless, nil, true, provider.MostPages},
	} {
		t.Run(name, func(t *testing.T) {
			var lies []string
			for i, page := range c.pages {
				lies = append(lies, "<", fmt.Sprintf(`>{"jsonrpc":"2.0","id":%d,"result":%s}`, i, page))
			}
			w := &watcher{}
			conn := start(t, child("liar", lies...), w)
			list, more, err := conn.KeptSessions(t.Context(), "/x")
			var ids []string
			for _, s := range list {
				ids = append(ids, string(s.SessionId))
			}
			if err != nil || !slices.Equal(ids, c.ids) || more != c.more {
				t.Errorf("%q, more %v, %v", ids, more, err)
			}
			asked := w.lines(true)
			if len(asked) != c.asked || !strings.Contains(asked[0], `"params":{"cwd":"/x"}`) {
				t.Errorf("%d requests: %.200q", len(asked), asked)
			}
			if c.asked > 1 && !strings.Contains(asked[1], `"cursor":`) {
				t.Errorf("the second page was not asked for: %s", asked[1])
			}
		})
	}
}
