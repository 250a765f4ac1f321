package provider

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-faster/jx"
)

// FrameKind classifies a line by the members of its message.
type FrameKind string

// These are the kinds of lines. An Oversized line has only its beginning.
const (
	Request      FrameKind = "request"
	Notification FrameKind = "notification"
	Response     FrameKind = "response"
	Malformed    FrameKind = "malformed"
	Oversized    FrameKind = "oversized"
)

// Frame is one line as it crossed the wire, without its line feed.
type Frame struct {
	Kind   FrameKind
	Method string // empty for a response
	ID     string // the JSON-RPC id as it was written: 7, "seven"
	Key    string // IDKey(ID), by which a response is matched to its request
	Line   []byte // never changed; the first 64 KiB of an oversized line
	// Session is the agent's session in the parameters. It is set only in requests and notifications of a
	// connection with a provider.Peer.
	Session string

	Length int64  // bytes of the whole line
	SHA256 []byte // hash of the whole line; set only for an oversized line
}

// Message is a line and its parts as they were written. The parts point into the line. A missing part is nil.
type Message struct {
	Frame
	Params, Result, Error []byte
}

// ErrMessage means that a line is not a message.
var ErrMessage = errors.New("not a JSON-RPC message")

// ParseMessage reads only the top level of a line. A line is Malformed unless it is one JSON object with the members
// of a JSON-RPC 2.0 message, each at most once. ParseMessage tolerates three deviations: a missing "jsonrpc"; an id
// of null, which makes a method a notification; and an id without result and error, which is a response without a
// result. JavaScript agents write such a response when a handler returns nothing.
func ParseMessage(line []byte) Message {
	env := Message{Frame: Frame{Line: line, Length: int64(len(line))}}
	if err := env.parseLine(line); err != nil {
		return Message{Frame: Frame{Kind: Malformed, Line: line, Length: int64(len(line))}}
	}
	return env
}

// Divided reports whether some programs would read the line as several lines. Such a line contains a line
// feed or a carriage return before its end.
func Divided(line []byte) bool {
	return bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\r")), "\r\n")
}

func (env *Message) parseLine(line []byte) error {
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
	// Refuse text after the object. Skip alone would accept the beginning of a second object.
	if d.Next() != jx.Invalid || !errors.Is(d.Skip(), io.EOF) {
		return ErrMessage
	}
	if string(id) != "null" {
		env.ID = string(id)
		env.Key = IDKey(env.ID)
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

// recognized describes an object that is not a message: the kinds of messages that it resembles, and its ids.
type recognized struct {
	answer, request bool
	ids             []string // each id that the object has, as it was written
}

// recognize looks only at the top level of a JSON object. It accepts a member that occurs twice.
func recognize(object []byte) (m recognized) {
	var protocol, result, method bool
	d := jx.DecodeBytes(object)
	_ = d.ObjBytes(func(d *jx.Decoder, key []byte) error { // ignore the error, because it only ends the reading
		switch string(key) {
		case "method":
			method = true
		case "jsonrpc":
			protocol = true
		case "result", "error":
			result = true
		case "id":
			id, err := d.Raw()
			if string(id) != "null" && !slices.Contains(m.ids, string(id)) {
				m.ids = append(m.ids, string(id))
			}
			return err
		}
		return d.Skip()
	})
	m.request = method && len(m.ids) > 0
	if len(m.ids) > 0 {
		m.answer = !method && (protocol || result)
	} else {
		m.answer = !method && protocol && result // "error" alone is not enough: a program's log line may have it
	}
	return m
}
