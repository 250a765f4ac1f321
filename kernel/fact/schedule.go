package fact

import (
	"time"

	"github.com/perlica/perlica/eventlog/message"
)

// These are the values of ScheduleStarted.Why and ScheduleMissed.Why.
const (
	StartNew     = "new"     // no process has seen the schedule before
	StartChanged = "changed" // the schedule has other times than before
	StartClock   = "clock"   // the clock went back

	MissedLate    = "late"    // no process looked at the schedule in time
	MissedRunning = "overlap" // the schedule's earlier input was still running
	MissedCalled  = "called"  // the input of this time was called before the clock went back
	MissedRefused = "refused" // the input was not accepted, and nothing was sent
	MissedStopped = "stopped" // the flow run has begun, and the schedule left it before its end
)

// ScheduleStarted is the payload of schedule.started. The schedule makes inputs only for its times after From.
type ScheduleStarted struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	Rule     string    `json:"rule"` // the rule of the times, such as "cron 0 8 * * 1-5 Europe/Berlin"
	Why      string    `json:"why"`
}

// SchedulePlanned is the payload of schedule.planned. The input of this time is about to be called.
type SchedulePlanned struct {
	Schedule string    `json:"schedule"`
	Time     time.Time `json:"time"`
	// Digest is the digest of the input's text, the same as Requested.Input. If Flow is set, Digest is empty.
	Digest      string `json:"input_sha256,omitempty"`
	Flow        string `json:"flow,omitempty"` // the file of the flow
	Provider    string `json:"provider,omitempty"`
	Permissions string `json:"permissions"`
	Rule        string `json:"rule"`
}

// ScheduleMissed is the payload of schedule.missed. The times from First to Last make no input.
type ScheduleMissed struct {
	Schedule string `json:"schedule"`
	// Count is the number of the times. If it is the largest number that Perlica counts, there may be more.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Why   string    `json:"why"`
	Error string    `json:"error,omitempty"` // the error of a refused input or of a stopped flow run
	message.Coded
	Rule string `json:"rule"`
}

// SchedulePaused is the payload of schedule.paused. The schedule has no times until it is resumed.
type SchedulePaused struct {
	Schedule string `json:"schedule"`
	By       string `json:"by"`
}

// ScheduleResumed is the payload of schedule.resumed. The schedule makes inputs only for its times after From.
type ScheduleResumed struct {
	Schedule string    `json:"schedule"`
	By       string    `json:"by"`
	From     time.Time `json:"from"`
	Rule     string    `json:"rule"`
}
