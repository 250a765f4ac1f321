package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-faster/jx"

	"github.com/perlica/perlica/provider/agentside"
)

const (
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodWithdraw   = "$/cancel_request"
	methodPermission = "session/request_permission"
)

// message has the top-level members of a JSON-RPC line. Its slices point into the line. A missing member is nil.
type message struct {
	line                      []byte
	method                    string
	id, params, result, fault []byte
}

var errNoMessage = errors.New("it is no JSON-RPC message")

// parse splits a line into its top-level members. It does not decode their values.
func parse(line []byte) (m message, err error) {
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(line)
	m.line = line
	err = d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		if string(key) == "method" {
			m.method, err = d.Str()
			return err
		}
		value, err := d.Raw()
		switch string(key) {
		case "id":
			m.id = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.fault = value
		}
		return err
	})
	if string(m.id) == "null" && m.method != "" {
		m.id = nil
	}
	switch {
	case err != nil, !errors.Is(d.Skip(), io.EOF), m.method == "" && m.id == nil, bytes.IndexByte(line, '\n') >= 0:
		return m, errNoMessage
	}
	return m, nil
}

// session returns the session id in the message as JSON, or nil.
func (m message) session() []byte {
	if m.method == "" {
		return member(m.result, "sessionId")
	}
	return member(m.params, "sessionId")
}

// spanOf returns the start and the end of a member in the line. The parameter "part" must be a slice of the line.
func (m message) spanOf(part []byte) (from, to int) {
	from = cap(m.line) - cap(part)
	return from, from + len(part)
}

// member returns the JSON value of a member of a JSON object, or nil.
func member(object []byte, name string) (value []byte) {
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(object)
	if d.Next() != jx.Object {
		return nil
	}
	_ = d.ObjBytes(func(d *jx.Decoder, key []byte) error { // parse has checked the JSON
		raw, err := d.Raw()
		if string(key) == name {
			value = raw
		}
		return err
	})
	return value
}

// text returns the string in a JSON value, or "" if the value is not a string.
func text(value []byte) (s string) {
	_ = json.Unmarshal(value, &s) // another value leaves s empty
	return s
}

func isSet(value []byte) bool { return value != nil && string(value) != "null" }

// promptText joins the text blocks in the params of a prompt, with line feeds.
func promptText(params []byte) string {
	var blocks []struct{ Type, Text string }
	_ = json.Unmarshal(member(params, "prompt"), &blocks) // params of another form have no text
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// outcome describes the client's answer to a request of the agent: an error, the chosen option, or any result. In a
// replay, this text must be the same as in the record.
func outcome(method string, m agentside.Message) string {
	if m.Error != nil {
		return "an error"
	}
	if method != methodPermission {
		return "a result"
	}
	o := member(m.Result, "outcome")
	if id := text(member(o, "optionId")); id != "" {
		return "option " + id
	}
	return text(member(o, "outcome"))
}
