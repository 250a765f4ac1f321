package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line   string
		kind   FrameKind
		method string
		id     string
	}{
		{`{"jsonrpc":"2.0","id":0,"method":"m","params":{}}`, Request, "m", "0"},
		{`{"id":"seven","method":"m"}`, Request, "m", `"seven"`},
		{`{"id": 7 ,"method":"m"}`, Request, "m", "7"},
		{`{"id":{"a":1},"method":"m"}`, Request, "m", `{"a":1}`},
		{`{"id":1,"method":"m","result":{}}`, Request, "m", "1"},
		{`{"method":"m"}`, Notification, "m", ""},
		{`{"id":null,"method":"m"}`, Notification, "m", ""},
		{`{"method":"session\/update"}`, Notification, "session/update", ""},
		{`{"m\u0065thod":"m"}`, Notification, "m", ""},
		{`{"method":""}`, Notification, "", ""},
		{" \t{\"method\":\"m\"} \r", Notification, "m", ""},
		{`{"id":1,"result":null}`, Response, "", "1"},
		{`{"id":1,"error":{}}`, Response, "", "1"},
		{`{"id":1}`, Response, "", "1"},
		{`{"id":1,"future":[1,{"x":null}],"result":5}`, Response, "", "1"},
		{`{"id":null,"error":{"code":-32700}}`, Response, "", ""},

		{`{"id":null,"result":{}}`, Malformed, "", ""},
		{`{"result":{}}`, Malformed, "", ""},
		{`{}`, Malformed, "", ""},
		{``, Malformed, "", ""},
		{"\r", Malformed, "", ""},
		{`[{"method":"m"}]`, Malformed, "", ""},
		{`"method"`, Malformed, "", ""},
		{`null`, Malformed, "", ""},
		{`{"method":"m"`, Malformed, "", ""},
		{`{"method":"m"}x`, Malformed, "", ""},
		{`{"method":"m"}}`, Malformed, "", ""},
		{`{"method":"m"} {"method":"n"}`, Malformed, "", ""},
		{`{"method":"m",}`, Malformed, "", ""},
		{`{"method":5}`, Malformed, "", ""},
		{`{"method":"m","method":"n"}`, Malformed, "", ""},
		{`{"method":"m","id":1,"id":2}`, Malformed, "", ""},
		{`{"id":01,"method":"m"}`, Malformed, "", ""},
		{`{"id":1,"result":{"a":nul}}`, Malformed, "", ""},
	} {
		env := ParseMessage([]byte(tt.line))
		if env.Kind != tt.kind || env.Method != tt.method || env.ID != tt.id {
			t.Errorf("%s: %s %q %q, want %s %q %q", tt.line, env.Kind, env.Method, env.ID, tt.kind, tt.method, tt.id)
		}
		if string(env.Line) != tt.line || env.Length != int64(len(tt.line)) {
			t.Errorf("%s: line %q of %d", tt.line, env.Line, env.Length)
		}
		if env.Kind == Malformed && (env.Params != nil || env.Result != nil || env.Error != nil) {
			t.Errorf("%s: malformed, with parts", tt.line)
		}
	}
}

func TestParts(t *testing.T) {
	env := ParseMessage([]byte(`{"id":1,"params": {"n": 9007199254740993} ,"result":[ 1 ],"error": null }`))
	for part, want := range map[string]string{
		string(env.Params): `{"n": 9007199254740993}`, string(env.Result): `[ 1 ]`, string(env.Error): `null`,
	} {
		if part != want {
			t.Errorf("part %q, want %q", part, want)
		}
	}
}

// FuzzParse checks that Parse accepts an object if and only if encoding/json accepts it and each member of a message
// occurs at most once. Method and id must be the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"a":[1,2.5e-3,"\ud83d\ude00"]}}`,
		`{"id":"x","result":null}`, `{"id":1,"error":{"code":"str"}}`, `{"method":"m"}x`, `{"method":"\ud83d"}`,
		"{\"method\":\"caf\xe9\"}",
		`{"id":-0.0,"method":"m","x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`, `[]`, ``,
		` {"id":1}` + "\r",
		`{"id":1}{"id":`, `{"id":1}{`, `{"id":1}"`, `{"id":1}nul`, `{"id":1}[`, `{"id":1}-`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		env := ParseMessage(line)
		if !bytes.Equal(line, before) || !bytes.Equal(env.Line, before) {
			t.Fatal("the line was changed")
		}
		if !utf8.Valid(line) {
			return // encoding/json would replace the invalid UTF-8
		}
		members, once := members(line)
		if members == nil {
			if env.Kind != Malformed {
				t.Fatalf("encoding/json refuses it, Parse says %s", env.Kind)
			}
			return
		}
		if !once {
			return
		}
		if want := kindOf(members); env.Kind != want {
			t.Fatalf("%s, want %s", env.Kind, want)
		}
		if env.Kind == Malformed {
			return
		}
		var method string
		if m, ok := members["method"]; ok && json.Unmarshal(m, &method) != nil || env.Method != method {
			t.Fatalf("method %q, want %q", env.Method, method)
		}
		if id := string(members["id"]); id != "null" && env.ID != id {
			t.Fatalf("id %q, want %q", env.ID, id)
		}
		for name, part := range map[string][]byte{"params": env.Params, "result": env.Result, "error": env.Error} {
			if want, ok := members[name]; string(part) != string(want) || ok != (part != nil) {
				t.Fatalf("%s %q, want %q", name, part, want)
			}
		}
	})
}

func kindOf(m map[string]json.RawMessage) FrameKind {
	method, hasMethod := m["method"]
	id, hasID := m["id"]
	named := hasID && string(id) != "null"
	_, hasError := m["error"]
	switch {
	case hasMethod && method[0] != '"':
		return Malformed
	case hasMethod && named:
		return Request
	case hasMethod:
		return Notification
	case named, hasID && hasError:
		return Response
	}
	return Malformed
}
