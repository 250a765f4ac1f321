// Package service is the messaging bridge: people drive their agent from a phone.
//
// It promises that a message is on disk before it is acknowledged, that it makes at most one
// call, that replies keep their order, and that after a crash everybody is told the truth. It
// refuses strangers without a word, takes no free text for a yes, and retries only polling and
// sending, never a call.
//
// The one idea: everything that the bridge knows is an event, and its database a view of them.
// A [channel.Channel] carries messages and knows nothing else.
package service

import (
	"log/slog"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/team"
)

// Settings are what may change while the bridge runs.
type Settings struct {
	// Ack is what a message is acknowledged with; empty: nothing; AutoAck: as each platform and language
	// has it.
	Ack         string
	Stream      bool          // an answer is shown as it comes, where the platform can take that back
	Agents      int           // that live at a time
	Idle        time.Duration // after which an agent is ended
	MaxAge      time.Duration // of a message that is answered
	Grace       time.Duration // of a turn when the bridge stops
	AnswerIn    time.Duration // how long a question stays open
	Permissions policy.Mode
	Language    language.Language // in which those are spoken to who have chosen none
}

// Options of Open.
type Options struct {
	Runner   *kernel.Runner
	Context  string // the context's name
	Version  string // of Perlica
	View     string // the file of the view
	Lock     string // the file of the lock
	Files    string // a private folder
	Channels []channel.Channel
	LeftOut  []ChannelStatus // that are to be served and cannot be, and why
	Settings Settings
	// Setup returns what answers in a session, or, if it is empty or not there, in a new one:
	// with that provider, or with the default one.
	Setup func(session event.SessionID, provider string) (kernel.Setup, error)
	// Host carries out slash commands; Conversation, By, Where, May, Cancel and Only are the
	// bridge's to set.
	Host    command.Host
	Team    *team.Link   // whose workers' questions are asked, too; nil: no team's. It is the caller's to close, behind the bridge
	Log     *slog.Logger // what happens, for the operator; nil: nowhere
	Serving func()       // called when Run has taken up what an earlier bridge left; may be nil
	Now     func() time.Time
	Backoff time.Duration // before the first further attempt to poll or send; doubled each time
}
