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
	// Handle is the SHA-256 of the token that identifies the browser until it is paired. It is set only if the code was
	// correct. A correct code cannot be used again.
	Handle []byte `json:"handle_sha256,omitempty"`
}

// WebPairingRequested is the payload of web.pairing_requested: a browser with a correct code sent its key.
type WebPairingRequested struct {
	Pairing string `json:"pairing"`
	From
	Name string `json:"name"`
	Key  []byte `json:"key"` // the public key, as SubjectPublicKeyInfo
	// Word is the word that the browser shows for comparison.
	Word string `json:"word"`
}

// DevicePaired is the payload of web.device_paired. A device is a browser with a key or a program with a token.
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
	What string `json:"what"` // "pairing", "token", "signature" or "request"
	Why  string `json:"why"`
	// Pairing is the id of the pairing that a person refused. The pairing has ended.
	Pairing string `json:"pairing,omitempty"`
	// Device is the device id in the request.
	Device string `json:"device,omitempty"`
	From
	// By is the name of a person.
	By string `json:"by,omitempty"`
	// Unrecorded is the number of refused requests after the previous event of this type. These requests have no event
	// of their own.
	Unrecorded int `json:"unrecorded,omitempty"`
}

// WebInput has the parts of a request that a restarted server needs to send the waiting input.
type WebInput struct {
	Device string `json:"device"`
	// SHA256 identifies the content of the request's body. So a different body with the same input id is noticed.
	SHA256      string `json:"input_sha256"`
	Provider    string `json:"provider,omitempty"`
	Dir         string `json:"dir,omitempty"`
	Permissions string `json:"permissions,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"`
}
