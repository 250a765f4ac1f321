package strict_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
)

type place struct {
	Project string `json:"project"`
}

type message struct {
	place
	Text  string             `json:"text"`
	N     int8               `json:"n"`
	List  []place            `json:"list"`
	Named map[string]place   `json:"named"`
	At    time.Time          `json:"at"`
	Any   any                `json:"any"`
	Raw   json.RawMessage    `json:"raw"`
	Deep  *struct{ Key int } `json:"deep"`
	Not   string             `json:"-"`
}

// refused are texts that two programs may parse differently.
var refused = map[string]string{
	"a member twice":                     `{"text":"a","text":"b"}`,
	"a member twice, escaped":            `{"text":"a","te\u0078t":"b"}`,
	"an unknown member twice":            `{"x":1,"x":2}`,
	"a member twice, deep":               `{"raw":{"a":[{"b":1,"b":2}]}}`,
	"a member twice in a list":           `{"list":[{"project":"a","project":"b"}]}`,
	"another case":                       `{"TEXT":"a"}`,
	"another case beside it":             `{"text":"a","Text":"b"}`,
	"another case by folding":            "{\"li\u017ft\":[]}",
	"another case of an embedded member": `{"Project":"a"}`,
	"another case in a list":             `{"list":[{"PROJECT":"a"}]}`,
	"another case in a map":              `{"named":{"a":{"PROJECT":"a"}}}`,
	"another case behind a pointer":      `{"deep":{"key":1}}`,
	"the first half of a pair":           `{"text":"a\ud800b"}`,
	"the second half of a pair":          `{"text":"a\udc00"}`,
	"two first halves":                   `{"text":"\ud83d\ud83d"}`,
	"half a pair and an escape":          `{"text":"\ud83d\\udE00"}`,
	"half a pair in a name":              `{"\ud800":1}`,
	"bytes that are not UTF-8":           "{\"text\":\"a\xff\"}",
	"a surrogate in UTF-8":               "{\"text\":\"a\xed\xa0\x80\"}",
	"a second object":                    `{"text":"a"}{"text":"b"}`,
	"something behind it":                `{"text":"a"} x`,
	"a number out of range":              `{"any":1e400}`,
	"a number out of an int8's range":    `{"n":1000}`,
	"a number for a text":                `{"text":1}`,
	"too many levels":                    `{"any":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	"no end":                             `{"text":"a"`,
	"nothing":                            ``,
	"a byte order mark":                  "\ufeff{}",
}

// TestUnmarshalRefuses checks that Unmarshal refuses every text in "refused", also if the Go type does not have the
// members of the text.
func TestUnmarshalRefuses(t *testing.T) {
	for name, text := range refused {
		var m message
		if err := strict.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s: %s was read as %+v", name, text, m)
		}
		if err := strict.UnmarshalObject([]byte(text), &m); err == nil {
			t.Errorf("%s: %s was read as %+v", name, text, m)
		}
	}
	var m message
	for _, text := range []string{`{"x":1}`, `{"list":[{"x":1}]}`, `{"-":1}`, `{"Not":1}`, `null`, `[]`, `"a"`} {
		if err := strict.UnmarshalObject([]byte(text), &m); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// TestUnmarshalReads checks that Unmarshal parses all other texts as encoding/json does.
func TestUnmarshalReads(t *testing.T) {
	for _, text := range []string{
		`{}`, ` {"text":"a\ud83d\ude00\\ud800","project":"p","n":-3} `,
		`{"list":[{"project":"a"},{"project":"b"}],"any":{"a":[1,{"b":null}],"A":2}}`,
		`{"named":{"a":{"project":"x"},"A":{}},"at":"2026-01-02T03:04:05Z","raw":{"TEXT":1,"text":2},"deep":{"Key":4}}`,
		`{"any":` + strings.Repeat("[", 98) + strings.Repeat("]", 98) + `,"deep":null}`,
	} {
		var got, want message
		if err := strict.UnmarshalObject([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", text, got, want, err)
		}
	}
	var m message
	if err := strict.Unmarshal([]byte(`{"x":{"y":1},"text":"a","list":[{"z":2}]}`), &m); err != nil || m.Text != "a" {
		t.Errorf("unknown members: %+v, %v", m, err)
	}
}

// TestUnmarshalRepaired checks that broken characters become U+FFFD, and that every other fault is still refused.
func TestUnmarshalRepaired(t *testing.T) {
	for text, want := range map[string]string{
		`{"text":"a\ud800b"}`:               "a\uFFFDb",
		`{"text":"a\udc00"}`:                "a\uFFFD",
		`{"text":"\ud83d\ud83d\ude00"}`:     "\uFFFD\U0001F600",
		`{"text":"\ude00\ud83d\\udE00"}`:    "\uFFFD\uFFFD\\udE00",
		`{"text":"a","\ud800":1}`:           "a",
		"{\"text\":\"a\xff\xed\xa0\x80b\"}": "a\uFFFDb",
		`{"text":"\ud83d\ude00"}`:           "\U0001F600",
	} {
		var m message
		before := text
		if err := strict.UnmarshalRepaired([]byte(text), &m); err != nil || m.Text != want || text != before {
			t.Errorf("%s: got %q, %v; want %q", text, m.Text, err, want)
		}
	}
	for _, text := range []string{`{"text":"\ud800","text":"b"}`, `{"TEXT":"\ud800"}`, `{"text":"\ud800"`, `{} {}`, ``,
		`{"\ud800":1,"\udc00":2}`, `\ud800`} {
		var m message
		if err := strict.UnmarshalRepaired([]byte(text), &m); err == nil {
			t.Errorf("%s was read as %+v", text, m)
		}
	}
}

// FuzzUnmarshal checks that other programs read the same value from an accepted text, even if they compare the names of
// members exactly.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range refused {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want message
		if strict.Unmarshal(text, &got) != nil {
			return
		}
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v (%v)", got, want, err)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil {
			return
		}
		var exact string
		if raw, ok := members["text"]; ok && json.Unmarshal(raw, &exact) != nil || exact != got.Text {
			t.Fatalf("text %q, want %q", got.Text, exact)
		}
	})
}
