package service

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotSent says that a message has certainly not been sent: it may be sent again.
var ErrNotSent = errors.New("the message was not sent")

// A RateLimitError says that the platform wants no more for a while; the message was not sent.
type RateLimitError struct{ After time.Duration }

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("the platform wants no more messages for %s", e.After)
}

// Unwrap makes it an ErrNotSent.
func (e *RateLimitError) Unwrap() error { return ErrNotSent }

// A RejectedError says that the platform refuses a message for good, and why.
type RejectedError struct{ Why string }

func (e *RejectedError) Error() string { return "the platform refuses the message: " + e.Why }
