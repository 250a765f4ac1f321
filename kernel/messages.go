package kernel

import "github.com/perlica/perlica/eventlog/message"

// These are the sentences of the kernel's errors and stops.
var (
	emptyName     = message.New("kernel.empty-name", "a session's name cannot be empty")
	endedAtOnce   = message.New("kernel.ended-at-once", "ended at once")
	inputDiffers  = message.New("kernel.input-differs", "the input %s was called before with another text or other attachments: sha256 %s is recorded, %s was given")
	logFailed     = message.New("kernel.log-failed", "the event log failed while the input waited; nothing was sent")
	longName      = message.New("kernel.long-name", "a session's name is at most 200 bytes without control characters")
	noDelete      = message.New("kernel.no-delete", "%s does not offer to delete its sessions")
	noTurn        = message.New("kernel.no-turn", "no turn is under way")
	notRegular    = message.New("kernel.not-regular", "it is not a regular file")
	stopped       = message.New("kernel.stopped", "stopped: %s")
	stoppedEarly  = message.New("kernel.stopped-early", "stopped before the prompt was sent: %s")
	turnCancelled = message.New("kernel.turn-cancelled", "the turn was cancelled")
)
