package channel

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

// A ConflictError says that a message came with the id of an earlier one, and with another text,
// another button or other files, or that this cannot be said because no digest of the earlier one is
// on record. Nothing of it was used.
type ConflictError struct {
	ID              string // the platform's
	Recorded, Given string // the digests, as kernel.Runner.Digest makes them; Recorded may be empty
}

func (e *ConflictError) Error() string {
	if e.Recorded == "" {
		return fmt.Sprintf("the message %s was received before; whether with this text and these files is not on record any more", e.ID)
	}
	return fmt.Sprintf("the message %s was received before with another text or other files: sha256 %s is recorded, %s was given", e.ID, e.Recorded, e.Given)
}
