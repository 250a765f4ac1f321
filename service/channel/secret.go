package channel

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a token, a key or another secret of a platform. It is hidden in every printed form, in JSON and in logs.
type Secret string

const hidden = "(secret)"

// Format writes a placeholder for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue returns a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
