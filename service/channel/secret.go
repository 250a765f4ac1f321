package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
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

// WithoutSecrets returns err, or an error of the same kind without the secrets if its text contains one. A proxy or the
// caller's own transport may have put a secret there.
func WithoutSecrets(err error, secrets ...Secret) error {
	text := err.Error()
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, string(s), hidden)
		}
	}
	if text == err.Error() {
		return err
	}
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		return &RejectedError{Why: text}
	}
	e := &cleaned{text: text}
	for _, kind := range []error{ErrNotSent, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			e.kinds = append(e.kinds, kind)
		}
	}
	return e
}

// cleaned is an error without its secrets.
type cleaned struct {
	text  string
	kinds []error
}

func (e *cleaned) Error() string { return e.text }

func (e *cleaned) Unwrap() []error { return e.kinds }
