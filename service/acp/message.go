package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-faster/jx"
)

// rewrite returns a JSON object with the values of its members as f has them; what f returns nil
// for is left out. The others keep their bytes and their order; an object of which nothing changes is
// returned as it is.
func rewrite(object []byte, f func(name string, value []byte) []byte) ([]byte, error) {
	d := jx.DecodeBytes(object)
	out, changed := []byte{'{'}, false
	err := d.ObjBytes(func(d *jx.Decoder, name []byte) error {
		key := string(name)
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		value := f(key, raw)
		changed = changed || !bytes.Equal(value, raw)
		if value == nil {
			return nil
		}
		quoted, err := json.Marshal(key)
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), value...)
		return err
	})
	if !changed {
		return object, err
	}
	return append(out, '}'), err
}

// steered are the methods by which a client starts or steers a turn in another way than a prompt. None
// goes on.
var steered = []string{"_session/steering", "_session/goal", "_codex/session/goal_control"}

// unannounced is an object without what announces steered methods: the member "steering", and what
// names one of them as its control method.
func unannounced(object []byte) []byte {
	out, err := rewrite(object, func(name string, value []byte) []byte {
		var v struct {
			ControlMethod string `json:"controlMethod"`
		}
		if name == "steering" || json.Unmarshal(value, &v) == nil && slices.Contains(steered, v.ControlMethod) {
			return nil
		}
		if value[0] == '{' {
			return unannounced(value)
		}
		return value
	})
	if err != nil {
		return object
	}
	return out
}

// initializedLine is the agent's answer to initialize as it goes on.
func initializedLine(line []byte) []byte {
	out, err := rewrite(line, func(name string, value []byte) []byte {
		if name != "result" || value[0] != '{' {
			return value
		}
		return unannounced(value)
	})
	if err != nil {
		return line
	}
	return out
}

// initializeLine is the client's initialize as it goes on: the version is 1, and some capabilities are
// not announced.
func initializeLine(line []byte, withheld []string) ([]byte, error) {
	return rewrite(line, func(name string, value []byte) []byte {
		if name != "params" {
			return value
		}
		params, err := rewrite(value, func(name string, value []byte) []byte {
			switch name {
			case "protocolVersion":
				return []byte("1")
			case "clientCapabilities":
				can, err := rewrite(value, func(name string, value []byte) []byte {
					if slices.Contains(withheld, name) {
						return nil
					}
					return value
				})
				if err == nil {
					return can
				}
			}
			return value
		})
		if err != nil {
			return value
		}
		return params
	})
}

// withHTTP is the client's initialize as Perlica's own model agent gets it: it is to describe its HTTP
// requests.
func withHTTP(line []byte) ([]byte, error) {
	return with(line, []string{"params", "clientCapabilities", "_meta", "perlica.dev"}, []byte(`{"http":true}`))
}

// with is an object with a value at a path; what is on the way and no object is replaced.
func with(object []byte, path []string, value []byte) ([]byte, error) {
	if len(path) == 0 {
		return value, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	inner, err := with(members[path[0]], path[1:], value)
	if err != nil {
		return nil, err
	}
	members[path[0]] = inner
	return json.Marshal(members)
}

// errorLine is the answer to a request that failed.
func errorLine(id string, code int, message string) []byte {
	return marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", json.RawMessage(id), struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, message}})
}

// JSON-RPC's codes, and ACP's.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
)

func resultLine(id string, result any) []byte {
	return marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", json.RawMessage(id), result})
}

func notificationLine(method string, params any) []byte {
	return marshal(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// updateLine is a session/update of Perlica's own; marked says so in its _meta.
func updateLine(session string, update map[string]any) []byte {
	return notificationLine("session/update", map[string]any{"sessionId": session, "update": update})
}

// saysLine is a message in a session, of the agent as the client shows it; Perlica's own words are
// marked.
func saysLine(session, text string, own bool) []byte {
	update := map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": text}}
	if own {
		update["_meta"] = map[string]any{metaPrefix + "notice": true}
	}
	return updateLine(session, update)
}

// The updates by which an agent says in which mode it is.
const (
	modeChanged    = "current_mode_update"
	optionsChanged = "config_option_update"
)

// metaPrefix begins the names of Perlica's own members of _meta.
const metaPrefix = "perlica.dev/"

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // ids are JSON when they come, and all else is ours
	}
	return b
}

// promptParams are the parameters of session/prompt, as far as Perlica reads them.
type promptParams struct {
	Session string          `json:"sessionId"`
	Prompt  json.RawMessage `json:"prompt"`
	Meta    json.RawMessage `json:"_meta"`
}

// text is the text in a prompt's content blocks.
func (p promptParams) text() string {
	var blocks []json.RawMessage
	if json.Unmarshal(p.Prompt, &blocks) != nil {
		return ""
	}
	text := ""
	for _, raw := range blocks {
		var b struct {
			Type, Text, URI string
			Resource        struct{ URI string }
		}
		if json.Unmarshal(raw, &b) != nil {
			continue
		}
		switch {
		case b.Type == "text":
			text += b.Text
		case b.URI != "":
			text += "[" + b.URI + "]"
		case b.Resource.URI != "":
			text += "[" + b.Resource.URI + "]"
		default:
			text += "[" + b.Type + "]"
		}
	}
	return text
}

// inputID is the id that a client gives its input, if it does.
func (p promptParams) inputID() (string, error) {
	var meta map[string]json.RawMessage // of the other members not even the numbers need a form in Go
	_ = json.Unmarshal(p.Meta, &meta)   // what is no object gives no id
	v, ok := meta[metaPrefix+"inputId"]
	if !ok {
		return "", nil
	}
	var id string
	if json.Unmarshal(v, &id) != nil || id == "" {
		return "", errors.New(`_meta["perlica.dev/inputId"] must be a string that is not empty`)
	}
	return id, nil
}
