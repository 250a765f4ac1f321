// Package model is an ACP agent on stdio without tools. It turns a session/prompt into one HTTP request to a
// model's API, and the stream of the model into updates.
//
// The package makes three promises. A prompt becomes at most one HTTP request. The answer says whether the
// request has left, if that is known. The client can get the exchange byte for byte without the key. The
// agent never retries, follows no redirect, keeps no connection and offers no tools. It reports an unexpected
// tool call as failed.
//
// The central idea is the [mapping] of an API. It turns messages into a body, and a stream of server-sent
// events into pieces of an answer. transport.go sends the request.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// API names the protocol of a model's HTTP API.
type API string

// These are the supported APIs.
const (
	anthropic  API = "anthropic"   // Messages
	openAI     API = "openai"      // Responses
	openAIChat API = "openai-chat" // Chat Completions
	gemini     API = "gemini"      // generateContent, streamed
)

// allAPIs returns all APIs, in the order of the documentation.
func allAPIs() []API { return []API{anthropic, openAI, openAIChat, gemini} }

// Settings names a model and the way to ask it.
type Settings struct {
	API     API
	Model   string // the vendor's name of the model
	BaseURL string // without the path of the endpoint; empty means the vendor's
	Key     string // sent only in a header; empty means that no key is sent
	// AskKey returns the key for the first request if Key is empty. It may be nil.
	AskKey  func(context.Context) (string, error) `json:"-"`
	KeyFrom string                                // describes the source of the key to its owner; empty without a source
	Proxy   string                                // the proxy for an https address; empty means the environment's
	Blind   bool                                  // the model accepts only text
	// Options are additional members of the request's body.
	Options map[string]json.RawMessage
	// Schema is the JSON Schema that the answer must have. nil means any text.
	Schema json.RawMessage
	system string // the session's text for the API's system field
	// Price is the price of tokens. nil means unknown.
	Price *Price
}

// Check returns an error for wrong settings: an unknown API, a model without a name, a bad address, an
// address that would carry the key in clear text, or a reserved option.
func (s Settings) Check() error {
	m, ok := mappings[s.API]
	if !ok {
		return fmt.Errorf("there is no model API %q; there are %s", s.API, apiNames())
	}
	if strings.TrimSpace(s.Model) == "" {
		return errors.New("no model is named")
	}
	u, err := url.Parse(s.base())
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is no address of an API: it must look like %s", s.base(), m.base)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
	default:
		return fmt.Errorf("%q is not https: keys and prompts are sent in clear text to this machine only", s.base())
	}
	if err := s.checkProxy(u.Scheme); err != nil {
		return err
	}
	for _, name := range m.reserved {
		if _, set := s.Options[name]; set {
			return fmt.Errorf("the option %q is Perlica's to set", name)
		}
	}
	if s.Schema != nil && !json.Valid(s.Schema) {
		return errors.New("the schema is no JSON")
	}
	if s.Price != nil {
		return s.Price.checkNumbers()
	}
	return nil
}

// Address returns the address of the API without the path of its endpoint.
func (s Settings) Address() string { return s.base() }

// Local reports whether the API is on this machine.
func (s Settings) Local() bool {
	u, err := url.Parse(s.base())
	return err == nil && isLoopback(u.Hostname())
}

// proxySchemes are the schemes of the proxies that Go can use.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// checkProxy returns an error if the proxy cannot be used for an address of the scheme. No error quotes the
// proxy, because it may contain a password.
func (s Settings) checkProxy(scheme string) error {
	if s.Proxy == "" {
		return nil
	}
	u, err := url.Parse(s.Proxy)
	switch {
	case err != nil || u.Host == "" || !oneOf(proxySchemes...)(u.Scheme):
		return errors.New("the proxy is no address like http://proxy.example.org:3128")
	case u.User != nil:
		return errors.New(
			"the proxy's address holds a name or a password, which would stand in the list of processes: put it into " +
				"HTTPS_PROXY")
	case scheme != "https":
		return errors.New(
			"there is a proxy, and the API's address is not https: what is sent in clear text stays on this machine")
	}
	return nil
}

// base returns the address without the path of the endpoint and without a slash at its end.
func (s Settings) base() string {
	if s.BaseURL == "" {
		return mappings[s.API].base
	}
	return strings.TrimRight(s.BaseURL, "/")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func apiNames() string {
	var names []string
	for _, api := range allAPIs() {
		names = append(names, string(api))
	}
	return strings.Join(names, ", ")
}

// mapping holds the differences between the APIs.
type mapping struct {
	base     string   // the vendor's address
	reserved []string // members of the body that options cannot set
	header   string   // the name of the header field with the key
	prefix   string   // text before the key
	headers  []field  // further header fields of every request
	sample   string   // an example of a model's name, for errors

	path    func(model string) string
	body    func(s Settings, history []turn) (map[string]any, error)
	answer  func() reader // returns a reader for one stream
	failure func(body []byte) *apiError
	models  string // the path of the list of models
}

var mappings = map[API]mapping{
	anthropic: anthropicMapping, openAI: responsesMapping, openAIChat: chatMapping, gemini: geminiMapping,
}

// reader reads the events of one stream.
type reader interface {
	// readEvent reads one event and returns its pieces. The error is an *apiError if the API reports a failure in
	// the stream. Otherwise the error describes the breach of the protocol.
	readEvent(e event) ([]piece, error)
	// ending returns the stop reason, and whether the stream has marked the answer as complete.
	ending() (reason stopReason, whole bool)
	// isLast reports whether no part of the answer can follow.
	isLast() bool
}

// piece is a part of an answer, in the order of the stream.
type piece struct {
	kind  pieceKind
	text  string // the text of a piece that is a text or a thought
	tool  toolCall
	usage usage
	file  answerFile
}

type pieceKind int

const (
	textPiece pieceKind = iota
	thoughtPiece
	toolPiece
	usagePiece // replaces the earlier usage
	filePiece
)

// answerFile is a part of an answer other than text.
type answerFile struct {
	mime, data string // data is base64
	uri        string // the address of a file elsewhere; Perlica never opens it
	thought    bool   // the file belongs to the thoughts
}

// toolCall is a tool call in the model's answer. It is a mistake of the model, because Perlica offers no tools.
type toolCall struct{ id, name, arguments string }

// turn is a message of the conversation.
type turn struct {
	assistant bool
	blocks    []block
}

// apiError is an API's own error object.
type apiError struct {
	Message string // the API's words
	Kind    string // the API's type or code
}

func (e *apiError) Error() string { return e.Message }

// field is a header field.
type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// merged returns the body with the options. The members are in the order of their names.
func merged(body map[string]any, options map[string]json.RawMessage) ([]byte, error) {
	for name, value := range options {
		ours, both := body[name].(map[string]any)
		var theirs map[string]any
		if both && json.Unmarshal(value, &theirs) == nil && theirs != nil { // for example openai's object "text"
			for inner, v := range theirs {
				ours[inner] = v
			}
			continue
		}
		body[name] = value
	}
	return json.Marshal(body)
}

// oneOf returns a function that reports whether a text is one of the words.
func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}
