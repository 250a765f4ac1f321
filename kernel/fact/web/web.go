// Package web has the payloads of the facts about browsers and programs that come in over HTTP. They
// are in the user's own log. It decides nothing and writes nothing.
package web

import "github.com/perlica/perlica/kernel/fact/bridge"

// From is where something came from over the network, as far as the server can see.
type From struct {
	Address string `json:"address,omitempty"`
	Browser string `json:"browser,omitempty"` // what it says of itself
}

// Attempt is the payload of web.pairing_attempted: somebody sent a code while a pairing was open.
type Attempt struct {
	Pairing string `json:"pairing"`
	From
	// Handle is the SHA-256 of what the browser is known by until it is paired, where the code was
	// right: then it is used up.
	Handle []byte `json:"handle_sha256,omitempty"`
}

// Request is the payload of web.pairing_requested: the browser that had the code sent its key.
type Request struct {
	Pairing string `json:"pairing"`
	From
	Name string `json:"name"`
	Key  []byte `json:"key"`  // public, SubjectPublicKeyInfo
	Word string `json:"word"` // which the browser shows, too
}

// Paired is the payload of web.device_paired: a browser with a key, or a program with a token.
type Paired struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Rights  []bridge.Right `json:"rights"`
	Key     []byte         `json:"key,omitempty"`          // of a browser
	Token   []byte         `json:"token_sha256,omitempty"` // of a program
	Pairing string         `json:"pairing,omitempty"`
	From
	By string `json:"by"`
}

// Revoked is the payload of web.device_revoked.
type Revoked struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	By   string `json:"by"`
}

// Refused is the payload of web.refused.
type Refused struct {
	What    string `json:"what"` // a pairing, a token, a signature, a request
	Why     string `json:"why"`
	Pairing string `json:"pairing,omitempty"` // which a person refused: it is over
	Device  string `json:"device,omitempty"`  // the id that was named
	From
	By         string `json:"by,omitempty"`         // a person
	Unrecorded int    `json:"unrecorded,omitempty"` // how many were refused without an event before this one
}
