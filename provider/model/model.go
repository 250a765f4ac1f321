// Package model is an ACP agent on stdio that has no tools: a session/prompt becomes one HTTP
// request to a model's API, and what the model streams becomes the agent's updates.
//
// It promises that one prompt leaves as one HTTP request or as none, that it says which of the two
// is known, and that the client can have the exchange byte for byte without the key. It refuses to
// retry, to follow a redirect, to keep a connection, and to send tool definitions; a tool call that
// comes all the same is reported as failed.
//
// The one idea: an API is a [mapping], which turns messages into a body and a stream of server-sent
// events into pieces of an answer. All that concerns the request's one life is in transport.go.
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

// The APIs.
const (
	Anthropic  API = "anthropic"   // Messages
	OpenAI     API = "openai"      // Responses
	OpenAIChat API = "openai-chat" // Chat Completions
	Gemini     API = "gemini"      // generateContent, streamed
)

// APIs returns all APIs, in the order in which they are documented.
func APIs() []API { return []API{Anthropic, OpenAI, OpenAIChat, Gemini} }

// Settings is the model that is asked, and how.
type Settings struct {
	API     API
	Model   string // the maker's name of it
	BaseURL string // without the path of the endpoint; empty: the maker's
	Key     string // is sent in a header, and in nothing else; empty: none is sent
	// AskKey gets the key for the first request, where Key is empty; nil: there is no key to get.
	AskKey  func(context.Context) (string, error) `json:"-"`
	KeyFrom string                                // where the key comes from, in words for its owner; empty: it has no source
	Proxy   string                                // the address of a proxy for an https address; empty: what the environment says
	Blind   bool                                  // the model takes text alone
	// Options are members of the request's body, as they are.
	Options map[string]json.RawMessage
	// Schema is a JSON Schema that the answer is asked to have; nil: any text.
	Schema json.RawMessage
	system string // what the session has for the API's system field
	// Price is what tokens cost; nil: unknown.
	Price *Price
}

// Check says what is wrong with the settings: an API that is not known, a model without a name, an
// address that is no URL or would carry the key in clear text, an option that is Perlica's own.
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
		return s.Price.check()
	}
	return nil
}

// Address is the API's, without the path of its endpoint.
func (s Settings) Address() string { return s.base() }

// Local reports whether the API is on this machine.
func (s Settings) Local() bool {
	u, err := url.Parse(s.base())
	return err == nil && isLoopback(u.Hostname())
}

// proxySchemes are the schemes of the proxies that Go can use.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// checkProxy says what is wrong with the proxy for an address of the scheme. No error quotes it: it may
// hold a password.
func (s Settings) checkProxy(scheme string) error {
	if s.Proxy == "" {
		return nil
	}
	u, err := url.Parse(s.Proxy)
	switch {
	case err != nil || u.Host == "" || !oneOf(proxySchemes...)(u.Scheme):
		return errors.New("the proxy is no address like http://proxy.example.org:3128")
	case u.User != nil:
		return errors.New("the proxy's address holds a name or a password, which would stand in the list of processes: put it into HTTPS_PROXY")
	case scheme != "https":
		return errors.New("there is a proxy, and the API's address is not https: what is sent in clear text stays on this machine")
	}
	return nil
}

// base is the address without the path of the endpoint and without a slash at its end.
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
	for _, api := range APIs() {
		names = append(names, string(api))
	}
	return strings.Join(names, ", ")
}

// mapping is what differs between the APIs.
type mapping struct {
	base     string   // the maker's address
	reserved []string // members of the body that are not options
	header   string   // carries the key
	prefix   string   // stands before the key
	headers  []field  // every request has, too
	sample   string   // a model's name, for errors

	path    func(model string) string
	body    func(s Settings, history []turn) (map[string]any, error)
	answer  func() reader // for one stream
	failure func(body []byte) *apiError
	models  string // the path of the list of models
}

var mappings = map[API]mapping{
	Anthropic: anthropicMapping, OpenAI: responsesMapping, OpenAIChat: chatMapping, Gemini: geminiMapping,
}

// reader reads the events of one stream.
type reader interface {
	// event reads one event, and returns what it says. The error is an *apiError if the API says
	// in the stream that it failed, else one that says how the event breaks the protocol.
	event(e event) ([]piece, error)
	// stop returns the stop reason, and whether the stream says that the answer is whole.
	stop() (reason stopReason, whole bool)
	// last says whether nothing of the answer can follow.
	last() bool
}

// piece is a part of an answer, in the order of the stream.
type piece struct {
	kind  pieceKind
	text  string // of text and thought
	tool  toolCall
	usage usage
	file  answerFile
}

type pieceKind int

const (
	textPiece pieceKind = iota
	thoughtPiece
	toolPiece
	usagePiece // replaces what was known
	filePiece
)

// answerFile is a part of an answer that is not text.
type answerFile struct {
	mime, data string // in base64
	uri        string // of a file that is elsewhere; nothing opens it
	thought    bool   // it belongs to the thoughts
}

// toolCall is a call of a tool that the model was not offered.
type toolCall struct{ id, name, arguments string }

// turn is a message of the conversation.
type turn struct {
	assistant bool
	blocks    []block
}

// apiError is an API's own error object.
type apiError struct {
	Message string // the API's words
	Kind    string // its type or code
}

func (e *apiError) Error() string { return e.Message }

// field is a header field.
type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// merged is the body with the options, in the order of the members' names.
func merged(body map[string]any, options map[string]json.RawMessage) ([]byte, error) {
	for name, value := range options {
		ours, both := body[name].(map[string]any)
		var theirs map[string]any
		if both && json.Unmarshal(value, &theirs) == nil && theirs != nil { // gemini's generationConfig, openai's text
			for inner, v := range theirs {
				ours[inner] = v
			}
			continue
		}
		body[name] = value
	}
	return json.Marshal(body)
}

// oneOf returns a function that reports whether a text is among the words.
func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}
