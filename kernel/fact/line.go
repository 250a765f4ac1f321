package fact

// OversizedLine is the payload of acp.line.oversized, which stands for a frame that is too
// long to be kept whole.
type OversizedLine struct {
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
	Head   []byte `json:"head"` // the first 64 KiB
}

// RequestTimeout is the payload of acp.request.timeout.
type RequestTimeout struct {
	Method string `json:"method"`
	After  string `json:"after"`
}
