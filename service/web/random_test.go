package web

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// TestRandomRequests sends requests made from the description. Their parameters, headers and bodies
// fit the description or deviate from it, and their values are arbitrary. All answers must be as
// described and never an internal error of the server.
func TestRandomRequests(t *testing.T) {
	w := newWorld(t, 1)
	sent := w.ask(w.dirs[0], "@say Hello")
	doc, err := libopenapi.NewDocument(description)
	check(t, err)
	model, err := doc.BuildV3Model()
	check(t, err)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	z := &randomizer{rnd: rand.New(rand.NewPCG(seed, 1)), values: append([]string{
		w.dirs[0], sent["run_id"].(string), sent["session_id"].(string),
	}, anywhere...), bodies: map[string]int{}}
	taken := 0
	for range 40 {
		for path, item := range model.Model.Paths.PathItems.FromOldest() {
			for method, op := range item.GetOperations().FromOldest() {
				if path == "/v1/pairing/{pairing}" || path == "/readyz" && z.rnd.IntN(8) > 0 { // these routes take long
					continue
				}
				at, change := z.parameters(path, op)
				var body any
				if op.RequestBody != nil {
					body = z.body(path, op)
				}
				got := w.do(strings.ToUpper(method), at, body, json_, change)
				if got.status >= 500 {
					t.Errorf("%s %s: %d %s", method, at, got.status, got.body)
				}
				if method == "post" && got.status < 300 {
					taken++
				}
			}
		}
	}
	t.Logf("members that were sent: %v; %d requests were taken", z.bodies, taken)
	for _, name := range []string{"text", "attachments", "wait", "endpoint", "kty", "shown", "data", "option"} {
		if z.bodies[name] == 0 {
			t.Errorf("no body has %q: the description has no such member any more, or it is not read", name)
		}
	}
}

// anywhere lists values for any parameter, header or member.
var anywhere = []string{
	"", "0", "-1", "1", "9999999999999999999", "true", "x", "default", "open", "all", "%", "\x00", "\n", "../..", "🙂",
	"\u202e",
	"2026-11-23T00:00:00Z", "input", "hello", strings.Repeat("a", 5000), `{"a":1}`, "eyJCZWZvcmUiOjF9", "a.b.c", "-.-",
	"predictable",
	"https://example.org/push", "bytes=0-1", "gzip", "application/json", "text/html, */*;q=0", `"etag"`,
}

// randomizer makes requests.
type randomizer struct {
	rnd    *rand.Rand
	values []string
	bodies map[string]int // uses of each member in bodies
}

func (z *randomizer) pick() string { return z.values[z.rnd.IntN(len(z.values))] }

// headers lists headers that a client may send in addition to the described ones. Only the headers
// that the guard judges may have an effect. (net/http itself answers an Expect header.)
var headers = []string{
	"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Content-Type", "Content-Encoding", "Accept-Language",
	"Accept-Encoding", "Range", "If-None-Match",
	"If-Modified-Since", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host", "X-Http-Method-Override", "Forwarded", "Cookie",
	"Signature", "Signature-Input",
	"Content-Digest", "Authorization",
}

// parameters returns the address of a request and a function that sets its headers.
func (z *randomizer) parameters(path string, op *v3.Operation) (at string, change func(*http.Request)) {
	query, set := url.Values{}, map[string]string{}
	for _, p := range op.Parameters {
		switch v := z.pick(); {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(strings.Trim(v, "./")+"x"))
		case z.rnd.IntN(2) == 0:
		case p.In == "query":
			query.Set(p.Name, v)
		case p.In == "header":
			set[p.Name] = v
		}
	}
	if z.rnd.IntN(3) == 0 {
		set[headers[z.rnd.IntN(len(headers))]] = z.pick()
	}
	return path + "?" + query.Encode(), func(r *http.Request) {
		for name, value := range set {
			// Go's client does not send such values.
			if !strings.ContainsAny(value, "\x00\n") {
				r.Header.Set(name, value)
			}
		}
	}
}

// body returns a body for an operation. It usually fits the description.
func (z *randomizer) body(path string, op *v3.Operation) any {
	for _, media := range op.RequestBody.Content.FromOldest() {
		o, ok := z.value(media.Schema.Schema()).(object)
		if !ok {
			return z.junk()
		}
		// Make this input valid, so that it may be called.
		if path == "/v1/inputs" && z.rnd.IntN(3) == 0 {
			o["project"], o["text"] = z.values[0], "hello"
		}
		return o
	}
	return nil
}

// value returns a value of a schema, and now and then another value.
func (z *randomizer) value(s *base.Schema) any {
	if z.rnd.IntN(8) == 0 {
		return z.junk()
	}
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	switch {
	case len(s.Enum) > 0 && z.rnd.IntN(4) > 0:
		return s.Enum[z.rnd.IntN(len(s.Enum))].Value
	case kind == "object":
		o := object{}
		for name, of := range s.Properties.FromOldest() {
			if z.rnd.IntN(3) > 0 {
				o[name] = z.value(of.Schema())
				z.bodies[name]++
			}
		}
		if z.rnd.IntN(8) == 0 {
			o[z.pick()] = z.pick()
		}
		return o
	case kind == "array":
		list := []any{}
		for range z.rnd.IntN(4) {
			list = append(list, z.value(s.Items.A.Schema()))
		}
		return list
	case kind == "integer", kind == "number":
		return z.rnd.IntN(100)
	case kind == "boolean":
		return z.rnd.IntN(2) == 0
	}
	return z.pick()
}

// junk returns a value of any type.
func (z *randomizer) junk() any {
	return []any{z.pick(), z.rnd.IntN(10), -1, 1e300, nil, true, []string{z.pick()},
		object{z.pick(): z.pick()}}[z.rnd.IntN(8)]
}
