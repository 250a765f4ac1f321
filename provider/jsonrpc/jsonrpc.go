// Package jsonrpc is a line as a message of JSON-RPC 2.0, judged by its Message alone. It looks at no
// method's parameters and promises nothing about them.
package jsonrpc

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-faster/jx"
)

// Kind says what a line is, judged by its Message alone.
type Kind string

// The kinds of lines. Oversized is a line of which only the beginning was kept.
const (
	Request      Kind = "request"
	Notification Kind = "notification"
	Response     Kind = "response"
	Malformed    Kind = "malformed"
	Oversized    Kind = "oversized"
)

// Frame is one line as it crossed the wire, without its line feed.
type Frame struct {
	Kind   Kind
	Method string // empty for a response
	ID     string // the JSON-RPC id as it was written: 7, "seven"
	Key    string // the Key of ID: by it a request and its answer find each other
	Line   []byte // never changed afterwards; the first 64 KiB of an oversized line
	// Session is the agent's session that the parameters name. It is set where a Peer's lines are
	// carried, and in no response.
	Session string

	Length int64  // of the whole line
	SHA256 []byte // of the whole line, if it is oversized
}

// Message is a line with its parts, as they were written. They point into the line; one that is
// missing is nil.
type Message struct {
	Frame
	Params, Result, Error []byte
}

// ErrMessage says that a line is no message.
var ErrMessage = errors.New("not a JSON-RPC message")

// Parse looks at a line's top level only. A line that is not one JSON object
// with the members of a JSON-RPC 2.0 message, each at most once, is Malformed. A missing
// "jsonrpc" is tolerated, as is an id of null, which makes a method a notification, and
// an id with neither result nor error, which is a response without a result: it is what
// JavaScript writes when a handler returns nothing.
func Parse(line []byte) Message {
	env := Message{Frame: Frame{Line: line, Length: int64(len(line))}}
	if err := env.parse(line); err != nil {
		return Message{Frame: Frame{Kind: Malformed, Line: line, Length: int64(len(line))}}
	}
	return env
}

// Divided reports whether some program would read the line as several: it has a line feed, or a carriage
// return that is not at its end.
func Divided(line []byte) bool {
	return bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\r")), "\r\n")
}

func (env *Message) parse(line []byte) error {
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(line)
	var id []byte
	var hasMethod bool
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		var part *[]byte
		switch string(key) {
		case "method":
			if hasMethod {
				return ErrMessage
			}
			hasMethod = true
			s, err := d.Str()
			env.Method = s
			return err
		case "id":
			part = &id
		case "params":
			part = &env.Params
		case "result":
			part = &env.Result
		case "error":
			part = &env.Error
		default:
			return d.Skip()
		}
		if *part != nil {
			return ErrMessage
		}
		raw, err := d.Raw()
		*part = raw
		return err
	})
	if err != nil {
		return err
	}
	// Something follows the object: Skip alone takes the beginning of another one for the end.
	if d.Next() != jx.Invalid || !errors.Is(d.Skip(), io.EOF) {
		return ErrMessage
	}
	if string(id) != "null" {
		env.ID = string(id)
		env.Key = Key(env.ID)
	}
	switch {
	case hasMethod && env.ID != "":
		env.Kind = Request
	case hasMethod:
		env.Kind = Notification
	case env.ID != "", id != nil && env.Error != nil:
		env.Kind = Response
	default:
		return ErrMessage
	}
	return nil
}
