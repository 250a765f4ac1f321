package web

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/access"
)

// TestStrictBodies sends every ambiguous body to each route that has a body. Two programs could
// read such a body differently.
func TestStrictBodies(t *testing.T) {
	w := newWorld(t, 1)
	project, err := json.Marshal(w.dirs[0])
	check(t, err)
	start := `{"project":` + string(project) + `,"text":"@say no"`
	bodies := map[string]string{
		"a member twice":             start + `,"text":"other"}`,
		"a member twice, escaped":    start + `,"te\u0078t":"other"}`,
		"another case":               start + `,"TEXT":"other"}`,
		"only another case":          strings.Replace(start, "text", "Text", 1) + `}`,
		"an unknown member":          start + `,"other":1}`,
		"half a surrogate pair":      start + `,"provider":"a\ud800"}`,
		"half a pair in a name":      start + `,"\udc00":"a"}`,
		"bytes that are not UTF-8":   start + ",\"provider\":\"a\xff\"}",
		"a second object":            start + `}{"text":"x"}`,
		"something behind it":        start + `} x`,
		"a number out of range":      start + `,"attachments":1e999}`,
		"too many levels":            start + `,"attachments":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		"a list":                     `[` + start + `}]`,
		"null":                       `null`,
		"nothing":                    ``,
		"a byte order mark":          "\ufeff" + start + `}`,
		"a member twice in a member": start + `,"attachments":[{"a":1,"a":2}]}`,
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	check(t, json.Unmarshal(description, &doc))
	token := w.newToken("all", access.Read, access.Ask, access.Approve, access.Admin)
	n := 0
	for path, methods := range doc.Paths {
		if methods["post"] == nil {
			continue
		}
		n++
		path = strings.NewReplacer("{id}", "x", "{pairing}", "x").Replace(path)
		for name, body := range bodies {
			req := w.request("POST", path, object{})
			req.Header.Set("Authorization", "Bearer "+token)
			req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
			res, err := w.http.Client().Do(req)
			check(t, err)
			text, _ := io.ReadAll(res.Body) // a part is enough for the error message
			check(t, res.Body.Close())
			if res.StatusCode != http.StatusBadRequest || !bytes.Contains(text, []byte("the body")) {
				t.Errorf("POST %s, %s: %d %s", path, name, res.StatusCode, text)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d routes take a body", n)
	}
	if runs := items(w.do("GET", "/v1/runs", nil).object(), "runs"); len(runs) > 0 {
		t.Errorf("something was sent: %v", runs)
	}
}
