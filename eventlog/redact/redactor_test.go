package redact

import (
	"bytes"
	"encoding/json"
	"testing"
)

func newRedactor(t testing.TB, patterns ...string) *Redactor {
	t.Helper()
	r, err := New(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedactorText(t *testing.T) {
	r := newRedactor(t, `CUST-[0-9]{4}`, `(?i)codename (\w+)`, `redacted`)
	for in, want := range map[string]string{
		"nothing here":               "nothing here",
		"CUST-1234, CUST-12":         "[redacted], CUST-12",
		"Codename Bluebird flies":    "Codename [redacted] flies",
		"password=hunter2 CUST-1234": "password=[redacted] [redacted]",
		"it was redacted":            "it was [redacted]",
		"[redacted]":                 "[redacted]",
		"CUST-CUST-12345":            "CUST-[redacted]5",
	} {
		if got := r.Text(in); got != want || r.Text(got) != got {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	var none *Redactor
	if got := none.Text("password=hunter2 CUST-1234"); got != "password=[redacted] CUST-1234" {
		t.Errorf("without patterns: %q", got)
	}
}

func TestRedactorPayload(t *testing.T) {
	r := newRedactor(t, `CUST-[0-9]{4}`, `"quoted"`, `^\d+$`, `method`, `grün`)
	for _, c := range []struct{ in, want string }{
		{``, ``},
		{`{"a":"CUST-1234"}`, `{"a":"[redacted]"}`},
		{`{"a": "say \"quoted\" now"}`, `{"a": "say [redacted] now"}`},
		{`{"a":"gr\u00fcn"}`, `{"a":"[redacted]"}`},
		{`{"method":"a method","n":1234,"s":"1234"}`, `{"method":"a [redacted]","n":1234,"s":"[redacted]"}`},
		{`{"CUST-1234" : 1}`, `{"CUST-1234" : 1}`},
		{`{"password":"x","a":"<&>"}`, `{"password":"[redacted]","a":"<&>"}`},
		{`"CUST-1234"`, `"[redacted]"`},
		{`["CUST-1234","CUST-1234","\\"]`, `["[redacted]","[redacted]","\\"]`},
		{`{"a":"<CUST-1234>"}`, `{"a":"<[redacted]>"}`},
		{"loading CUST-1234", "loading [redacted]"},
		{"\xff CUST-1234", "\xff [redacted]"},
		{`{"a":"CUST-1234"`, `{"a":"[redacted]"`}, // an incomplete line of JSON is a text
	} {
		got := string(r.Payload([]byte(c.in)))
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
		if r.Changes([]byte(c.in)) != (c.in != c.want) || r.Changes([]byte(got)) {
			t.Errorf("%s: Changes is wrong", c.in)
		}
	}
	if in := []byte(`{"a":"b"}`); &r.Payload(in)[0] != &in[0] {
		t.Error("what holds no secret was copied")
	}
	var none *Redactor
	got := none.Payload([]byte(`{"token":"sk-ant-api03-abcdefghijkl","a":"CUST-1234"}`))
	if string(got) != `{"token":"sk-ant-…[redacted]","a":"CUST-1234"}` {
		t.Errorf("without patterns: %s", got)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, p := range []string{`(`, `a*`, ``, `x|`} {
		if _, err := New(p); err == nil {
			t.Errorf("%q is taken", p)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add([]byte(`{"a":"CUST-1234 \"quoted\" \u00fc","b":[1,"redacted"]}`))
	f.Add([]byte("CUST-1234"))
	r := newRedactor(f, `CUST-[0-9]{4}`, `"quoted"`, `redact`, `[a-c]+(d+)`, `\d{3,}`)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got := r.Payload(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the payload itself was changed")
		}
		if json.Valid(b) && !json.Valid(got) {
			t.Fatalf("%q is no JSON any more: %q", b, got)
		}
		if again := r.Payload(got); !bytes.Equal(again, got) {
			t.Fatalf("%q: %q, and again %q", b, got, again)
		}
	})
}
