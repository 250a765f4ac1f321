package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-faster/jx"

	"github.com/perlica/perlica/eventlog/message"
)

// These errors are the possible faults of an agent. An Error wraps one of them where it applies.
var (
	ErrGone         = message.New("provider.gone", "the agent has ended")
	ErrDeaf         = message.New("provider.deaf", "the agent does not read its input")
	ErrTimeout      = message.New("provider.timeout", "the agent did not answer in time")
	ErrAuthRequired = message.New("provider.auth-required", "the agent wants a login")
	ErrProtocol     = message.New("provider.protocol", "the agent broke the protocol")
	ErrRecord       = message.New("provider.record", "the record could not be written")
	ErrSecondPrompt = message.New("provider.second-prompt", "a second session/prompt of one run was refused")
)

// These are the messages of an Error.
var (
	errEnded        = message.New("provider.ended", "Perlica ended the agent")
	errKilled       = message.New("provider.killed", "Perlica killed the agent")
	errLongLine     = message.New("provider.long-line", "the agent sent a line of %d bytes; the limit is %d")
	errForm         = message.New("provider.form", "the answer does not have the protocol's form: %s")
	errNotRPC       = message.New("provider.not-rpc", "an error in a form that JSON-RPC does not allow: %s")
	errWordless     = message.New("provider.wordless", "an error without a message")
	errNotRecorded  = message.New("provider.not-recorded", "the record could not be written: %s")
	errOutputClosed = message.New("provider.output-closed", "the agent closed its output")
	errInputClosed  = message.New("provider.input-closed", "the agent closed its input")
	errOutput       = message.New("provider.output", "the agent's output cannot be read: %s")
	errSignal       = message.New("provider.signal", "the agent was ended by %s")
	errExited       = message.New("provider.exited", "the agent exited with code %d")
	errLastWords    = message.New("provider.last-words", "%s; its last words: %s")
	errSameID       = message.New("provider.same-id", "two open requests of the client have the id %s")
	errNoAnswer     = message.New("provider.no-answer", "the agent did not answer within %s")
	errNoMessage    = message.New("provider.no-message", "%s; it wrote a line that is no message: %q")
	errVersion      = message.New("provider.version",
		"the agent speaks version %s of the protocol, Perlica speaks version %d")
	errNoSession  = message.New("provider.no-session", "the agent opened a session without an id")
	errNotReading = message.New("provider.not-reading", "the agent has stopped reading its input")
	errUnreadable = message.New("provider.unreadable",
		"the agent's answer is not one message on one line, or a member occurs twice: %q")
	errEcho = message.New("provider.echo", "%s sent our own request back: it does not speak ACP")
)

// ErrorType classifies errors by the party or the step that failed.
type ErrorType string

const (
	TypeStart    ErrorType = "start"    // the process could not be started
	TypeAgent    ErrorType = "agent"    // the agent answered with an error
	TypeAuth     ErrorType = "auth"     // the agent wants a login
	TypeGone     ErrorType = "gone"     // the process ended or closed its output
	typeDeaf     ErrorType = "deaf"     // the process stopped reading its input
	TypeTimeout  ErrorType = "timeout"  // a method's timeout passed
	TypeProtocol ErrorType = "protocol" // the agent broke the protocol
	TypeRecord   ErrorType = "record"   // our own log failed
	TypeStopped  ErrorType = "stopped"  // Perlica ended the agent
)

// Error describes a failure in the eight fields that the record keeps. Code, Subtype, RequestID and RawShape
// are empty if the agent did not supply them.
type Error struct {
	Provider  string    `json:"provider_id"`
	Message   string    `json:"error"`
	Type      ErrorType `json:"error_type"`
	Method    string    `json:"method"`
	Code      Code      `json:"code"`
	Subtype   string    `json:"subtype"`
	RequestID string    `json:"request_id"`
	RawShape  string    `json:"raw_shape"` // the error object with its values replaced by their types

	// Unknown means that the agent itself does not know whether the prompt was carried out.
	Unknown bool `json:"-"`

	// LoginVars lists the variables that the agent's logins need. It is set if the agent requires a login.
	LoginVars []string `json:"-"`

	// Said is the code of Message and its insertions, if Message is a sentence of Perlica's.
	Said message.Coded `json:"error_message,omitzero"`

	cause error
}

// Saying returns e with a sentence as its message.
func (e *Error) Saying(t *message.Text) *Error {
	e.Message, e.Said = t.Text, t.Coded
	return e
}

// Code is an agent's error code as it was written. It is null in JSON if the agent gave none.
type Code string

// MarshalJSON writes the code exactly as the agent wrote it.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return []byte(c), nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (c *Code) UnmarshalJSON(b []byte) error {
	var n json.Number
	err := json.Unmarshal(b, &n) // null leaves n empty
	*c = Code(n)
	return err
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider + ": ")
	}
	if e.Method != "" {
		b.WriteString(e.Method + ": ")
	}
	b.WriteString(e.Message)
	if e.Code != "" {
		fmt.Fprintf(&b, " (code %s)", e.Code)
	}
	return b.String()
}

// Unwrap returns the cause, and the sentence of the message.
func (e *Error) Unwrap() []error {
	var list []error
	if e.Said.Code != "" {
		list = append(list, &message.Text{Text: e.Message, Coded: e.Said})
	}
	if e.cause != nil {
		list = append(list, e.cause)
	}
	return list
}

// Translated returns the error in another language. Words without a code stay unchanged.
func (e *Error) Translated(read func(string, message.Coded) string) *Error {
	if e == nil {
		return nil
	}
	translated := *e
	translated.Message = read(e.Message, e.Said)
	return &translated
}

// Masked returns the error without the secrets that mask replaces. An error with a secret loses its code and its
// insertions, because an insertion may hold the secret.
func (e *Error) Masked(mask func(string) string) *Error {
	if e == nil {
		return nil
	}
	masked := *e
	masked.Message = mask(e.Message)
	if args := fmt.Sprint(e.Said.Args...); masked.Message != e.Message || mask(args) != args {
		masked.Said = message.Coded{}
	}
	return &masked
}

// codeAuthRequired is ACP's error code for "authentication required".
const codeAuthRequired = "-32000"

// agentError makes an Error from the error object of a response. An object that does not have JSON-RPC's form
// breaks the protocol, but it is still the agent's answer.
func agentError(method, id string, raw []byte) *Error {
	e := &Error{Type: TypeAgent, Method: method, RequestID: id, RawShape: shape(raw)}
	var v struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		e.Type, e.Subtype, e.cause = TypeProtocol, "undecodable_error", ErrProtocol
		return e.Saying(errNotRPC.With(clip(string(raw), 500)))
	}
	e.Code, e.Message = Code(v.Code), clip(v.Message, 4000)
	if detail := errorDetail(v.Data); !strings.Contains(v.Message, detail) {
		e.Message += ": " + detail
	}
	if e.Message == "" {
		e = e.Saying(errWordless)
	}
	e.Subtype = errorSubtype(v.Data)
	var more struct {
		RequestID string `json:"requestId"` // the id that the model's vendor gave
		Outcome   string `json:"perlica.dev/outcome"`
	}
	if json.Unmarshal(v.Data, &more) == nil {
		e.RequestID = cmp.Or(clip(more.RequestID, 200), e.RequestID)
		e.Unknown = more.Outcome == "unknown"
	}
	if v.Code == codeAuthRequired {
		e.Type, e.cause = TypeAuth, ErrAuthRequired
	}
	return e
}

// errorDetail finds the explanation that many agents put into an error's data.
func errorDetail(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return clip(text, 500)
	}
	var v struct{ Details, Message, Error, Reason string }
	if json.Unmarshal(data, &v) != nil {
		return ""
	}
	return clip(cmp.Or(v.Details, v.Message, v.Error, v.Reason), 500)
}

// errorSubtype finds the error class that many agents put into an error's data.
func errorSubtype(data json.RawMessage) string {
	var v struct{ Subtype, ErrorKind, ErrorName, Type string }
	if json.Unmarshal(data, &v) != nil {
		return ""
	}
	return clip(cmp.Or(v.Subtype, v.ErrorKind, v.ErrorName, v.Type), 80)
}

// clip cuts s to about n bytes at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

const shapeLimit = 400

// shape describes a JSON value without its contents: {"code":number,"data":{"x":string}}.
func shape(raw []byte) string {
	var b strings.Builder
	if err := writeShape(&b, jx.DecodeBytes(raw), 0); err != nil {
		b.WriteString("…")
	}
	return clip(b.String(), shapeLimit)
}

func writeShape(b *strings.Builder, d *jx.Decoder, depth int) error {
	if depth > 4 || b.Len() > shapeLimit {
		b.WriteString("…")
		return d.Skip()
	}
	switch d.Next() {
	case jx.Object:
		b.WriteByte('{')
		first := true
		err := d.Obj(func(d *jx.Decoder, key string) error {
			if !first {
				b.WriteByte(',')
			}
			first = false
			fmt.Fprintf(b, "%q:", key)
			return writeShape(b, d, depth+1)
		})
		b.WriteByte('}')
		return err
	case jx.Array:
		b.WriteString("array")
	default:
		b.WriteString(d.Next().String())
	}
	return d.Skip()
}
