package agentside

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Message is a line: a request, a notification or a response. A missing member is nil.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// These are error codes of JSON-RPC and ACP.
const (
	CodeParse         = -32700
	CodeInvalid       = -32600
	CodeNoMethod      = -32601
	CodeInvalidParams = -32602
	CodeInternal      = -32603
	CodeAuthRequired  = -32000
	CodeNotFound      = -32002
)

// Parse reads a line of the client into its own memory. It accepts a message without "jsonrpc". A null counts as
// missing if it is an error or the id of a method. If Parse fails, the message has the members that were read.
func Parse(line []byte) (m Message, _ *Error) {
	err := json.Unmarshal(line, &m)
	if string(m.Error) == "null" {
		m.Error = nil
	}
	if m.Method != "" && string(m.ID) == "null" {
		m.ID = nil
	}
	switch {
	case err != nil && !json.Valid(line):
		return m, &Error{Code: CodeParse, Message: "not JSON: " + err.Error()}
	case err != nil, m.Method == "" && m.ID == nil:
		return m, &Error{Code: CodeInvalid, Message: "not a message of JSON-RPC 2.0"}
	}
	return m, nil
}

// Line returns the message as a line. The members keep their bytes, which may be no JSON.
func (m Message) Line() []byte {
	b := make([]byte, 0, len(m.ID)+len(m.Method)+len(m.Params)+len(m.Result)+len(m.Error)+64)
	b = append(b, `{"jsonrpc":"2.0"`...)
	if m.ID != nil {
		b = append(append(b, `,"id":`...), m.ID...)
	}
	if m.Method != "" {
		b = AppendString(append(b, `,"method":`...), m.Method)
	}
	if m.Params != nil {
		b = append(append(b, `,"params":`...), m.Params...)
	}
	if m.Result != nil {
		b = append(append(b, `,"result":`...), m.Result...)
	}
	if m.Error != nil {
		b = append(append(b, `,"error":`...), m.Error...)
	}
	return append(b, '}')
}

// AppendString appends s as a JSON string. Unlike encoding/json it escapes only the bytes that JSON requires, and
// keeps invalid UTF-8.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// Encode returns the JSON of a value that can be encoded.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a line without JSON: %v", err)) // every caller passes a value that can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
