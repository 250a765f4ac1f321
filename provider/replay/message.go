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

// message is the envelope of a line. Its parts point into the line. A missing part is nil.
type message struct {
	line                      []byte
	method                    string
	id, params, result, fault []byte
}

var errNoMessage = errors.New("it is no JSON-RPC message")

// parse reads only a line's top level.
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

// session returns the session id in the message.
func (m message) session() []byte {
	if m.method == "" {
		return member(m.result, "sessionId")
	}
	return member(m.params, "sessionId")
}

// spanOf returns the position of a part in the line.
func (m message) spanOf(part []byte) (from, to int) {
	from = cap(m.line) - cap(part)
	return from, from + len(part)
}

// member returns the value of a member of an object as it is written, or nil.
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

// text returns the string in value, or "" for another value.
func text(value []byte) (s string) {
	_ = json.Unmarshal(value, &s) // another value leaves s empty
	return s
}

func isSet(value []byte) bool { return value != nil && string(value) != "null" }

// promptText joins the text blocks of a prompt.
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

// outcome returns the part of an answer to the agent that must equal the record: whether the answer is an
// error, and the chosen option.
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
