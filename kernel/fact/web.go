package fact

// This file has the payloads about browsers and programs that connect over HTTP. They are in the user's own log.

// From is the origin of a request as the server sees it.
type From struct {
	Address string `json:"address,omitempty"`
	Browser string `json:"browser,omitempty"` // the User-Agent header
}

// WebPairingAttempted is the payload of web.pairing_attempted. A browser sent a code while a pairing was open.
type WebPairingAttempted struct {
	Pairing string `json:"pairing"`
	From
	// Handle is the SHA-256 of the token that names the browser until it is paired. Only a correct code has a
	// handle, and a correct code is used up.
	Handle []byte `json:"handle_sha256,omitempty"`
}

// WebPairingRequested is the payload of web.pairing_requested. The browser with the code sent its key.
type WebPairingRequested struct {
	Pairing string `json:"pairing"`
	From
	Name string `json:"name"`
	Key  []byte `json:"key"` // public, SubjectPublicKeyInfo
	// Word is the word that the browser shows too.
	Word string `json:"word"`
}

// DevicePaired is the payload of web.device_paired. A browser has a key, a program has a token.
type DevicePaired struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Rights  []Right `json:"rights"`
	Key     []byte  `json:"key,omitempty"`          // only for a browser
	Token   []byte  `json:"token_sha256,omitempty"` // only for a program
	Pairing string  `json:"pairing,omitempty"`
	From
	By string `json:"by"`
}

// DeviceRevoked is the payload of web.device_revoked.
type DeviceRevoked struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	By   string `json:"by"`
}

// WebRefused is the payload of web.refused.
type WebRefused struct {
	What string `json:"what"` // a pairing, a token, a signature or a request
	Why  string `json:"why"`
	// Pairing is the pairing that a person refused. It is over.
	Pairing string `json:"pairing,omitempty"`
	// Device is the id in the request.
	Device string `json:"device,omitempty"`
	From
	// By is a person.
	By string `json:"by,omitempty"`
	// Unrecorded counts the requests refused without an event before this one.
	Unrecorded int `json:"unrecorded,omitempty"`
}

// WebInput is the part of a request with an input that the next server needs to send the input.
type WebInput struct {
	Device string `json:"device"`
	// SHA256 is the digest of the request's body without its place.
	SHA256      string `json:"input_sha256"`
	Provider    string `json:"provider,omitempty"`
	Dir         string `json:"dir,omitempty"`
	Permissions string `json:"permissions,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"`
}
