package schedule

import (
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/record"
)

// These are the sentences of Slash.
var (
	unknownID = message.New("schedule.unknown", "there is no schedule %s: send /schedules")
	line      = message.New("schedule.line", "%s: %s")
	lineLast  = message.New("schedule.line-last", "%s: %s; last at %s: %s")
	nextAt    = message.New("schedule.next-at", "next at %s")
	noNext    = message.New("schedule.no-next", "no next time")
	isPaused  = message.New("schedule.is-paused", "paused")
)

// outcomes are the words for outcomes of planned times.
var outcomes = map[string]*message.Text{
	string(record.OutcomeResponded):     message.New("schedule.answered", "answered"),
	string(record.OutcomeProviderError): message.New("schedule.failed", "failed"),
	string(record.OutcomeUnknown):       message.New("schedule.outcome-unknown", "outcome unknown"),
	notCalled:                           message.New("schedule.not-called", "not called"),
	running:                             message.New("schedule.running", "running"),
	fact.MissedLate:                     message.New("schedule.missed", "missed"),
	fact.MissedRunning:                  message.New("schedule.left-out", "left out"),
	fact.MissedCalled:                   message.New("schedule.called-before", "called before"),
	fact.FlowDone:                       message.New("schedule.flow-done", "flow done"),
	fact.FlowFailed:                     message.New("schedule.flow-failed", "flow failed"),
	fact.FlowCancelled:                  message.New("schedule.flow-cancelled", "flow cancelled"),
	string(flow.Asked):                  message.New("schedule.flow-asks", "flow asks"),
	string(flow.Unknown):                message.New("schedule.flow-unknown", "flow with an unknown outcome"),
	"stopped":                           message.New("schedule.flow-stopped", "flow stopped"),
	fact.MissedRefused:                  message.New("schedule.not-accepted", "not accepted"),
}

// OutcomeWords returns the words for an outcome in an Overview or in a result.
func OutcomeWords(outcome string) *message.Text { return outcomes[outcome] }
