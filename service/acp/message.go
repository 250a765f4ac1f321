package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-faster/jx"

	"github.com/perlica/perlica/provider/exception"
)

// rewrite returns a JSON object with the values that the function f returns for its members. It omits a member if f
// returns nil. The other members keep their bytes and their order. An unchanged object is returned as it is.
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

// unannounced removes the announcements of methods that steer a running turn, because Perlica refuses such inputs. It
// removes the member "steering", and each member that names such a method as its control method.
func unannounced(object []byte) []byte {
	out, err := rewrite(object, func(name string, value []byte) []byte {
		var v struct {
			ControlMethod string `json:"controlMethod"`
		}
		// An error is ignored, because only an object can have a control method.
		_ = json.Unmarshal(value, &v)
		if name == "steering" || exception.Of(exception.Client, v.ControlMethod).Does == exception.Steers {
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

// initializedLine returns the agent's answer to initialize without the announcements that the client must not see.
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

// initializeLine returns the client's initialize as the agent gets it. The version is 1, and the withheld capabilities
// are missing.
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

// withHTTP returns the client's initialize with a member that asks Perlica's own model agent to describe its HTTP
// requests.
func withHTTP(line []byte) ([]byte, error) {
	return with(line, []string{"params", "clientCapabilities", "_meta", "perlica.dev"}, []byte(`{"http":true}`))
}

// with returns an object with a value at a path. It replaces every value on the path that is not an
// object.
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

// errorLine returns the answer to a failed request.
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

// These are codes of JSON-RPC and ACP.
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

// updateLine returns a session/update of Perlica.
func updateLine(session string, update map[string]any) []byte {
	return notificationLine("session/update", map[string]any{"sessionId": session, "update": update})
}

// saysLine returns a message in a session. The client shows it as a message of the agent. Perlica's
// own words are marked.
func saysLine(session, text string, own bool) []byte {
	update := map[string]any{"sessionUpdate": "agent_message_chunk",
		"content": map[string]string{"type": "text", "text": text}}
	if own {
		update["_meta"] = map[string]any{metaPrefix + "notice": true}
	}
	return updateLine(session, update)
}

// These are the updates by which an agent reports its mode.
const (
	modeChanged    = "current_mode_update"
	optionsChanged = "config_option_update"
)

// metaPrefix begins the names of Perlica's own members of _meta.
const metaPrefix = "perlica.dev/"

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// This cannot happen: an id is JSON already, and the other values are Perlica's own.
		panic(err)
	}
	return b
}

// promptParams holds the parameters of session/prompt that Perlica reads.
type promptParams struct {
	Session string          `json:"sessionId"`
	Prompt  json.RawMessage `json:"prompt"`
	Meta    json.RawMessage `json:"_meta"`
}

// text returns the text of a prompt's content blocks.
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

// inputID returns the id that a client gives its input, or "".
func (p promptParams) inputID() (string, error) {
	var meta map[string]json.RawMessage // raw values: a number of another member may be unreadable in Go
	// An error is ignored, because another form of _meta has no input id.
	_ = json.Unmarshal(p.Meta, &meta)
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
