// Package service is the messaging bridge: people drive their agent from a phone.
//
// The bridge records a message before it acknowledges it, makes at most one call for it, and keeps replies in order.
// After a crash it tells each affected person the outcome. It does not reply to strangers and never takes free text
// for a yes. It retries only polling and sending, never a call.
//
// Every fact that the bridge knows is an event, and its database is a view of the events. A
// [channel.Channel] carries messages and knows nothing else.
//
// # Goroutines and locks
//
//   - Bridge.Run starts a goroutine of pollChannel and one of menus for each channel, and one of
//     watchTeam for a team. It waits for them after its context has ended.
//   - Each contact has an inbox with two goroutines of handleQueue. One handles the inputs and
//     commands of inbox.queue and owns the conversation and the running turn. The other one
//     handles inbox.first: answers and commands that do not wait. inboxWG counts these goroutines,
//     the submission of answers to a team, and the reading of the log for followers.
//   - Each contact has an outbox with one goroutine that sends its messages in order, and a second
//     outbox for the ends of status messages. outboxWG counts them.
//   - A running turn has a status with up to two goroutines, one for the typing sign and one for
//     the message. status.wg counts them.
//   - Projects.Run starts a goroutine of serveProject for each project except the home.
//
// Locks are taken in this order: inbox.opening, Bridge.mu, inbox.mu, then slots.mu. Bridge.mu comes
// also before outbox.mu and before card.mu. served.mu and status.mu are taken last. No lock is held
// during I/O except inbox.opening, which is held while a conversation opens.
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

// Settings holds the settings that may change while the bridge runs.
type Settings struct {
	// Ack is the acknowledgement of a message. Empty disables it. AutoAck selects the standard acknowledgement of each
	// platform and language.
	Ack         string
	Stream      bool          // show the answer so far if the platform can delete messages
	Agents      int           // largest number of live agents
	Idle        time.Duration // idle time after which an agent is ended
	MaxAge      time.Duration // largest age of a message that is answered
	Grace       time.Duration // time for a turn to end when the bridge stops
	AnswerIn    time.Duration // time for which a question stays open
	Permissions policy.Mode
	Language    language.Language // for contacts without a chosen language
}

// Options configures Open.
type Options struct {
	Runner   *kernel.Runner
	Context  string // the context's name
	Version  string // Perlica's version
	View     string // the file of the view
	Lock     string // the file of the lock
	Files    string // a private folder
	Channels []channel.Channel
	LeftOut  []ChannelStatus // configured channels that cannot be served, with the reason
	Settings Settings
	// Setup returns the setup of a session. If the session is empty or unknown, the setup starts a
	// new one with the provider, or with the default provider.
	Setup func(session event.SessionID, provider string) (kernel.Setup, error)
	// Host carries out slash commands. The bridge sets its fields Conversation, By, Where, May,
	// Cancel and Only.
	Host command.Host
	// Team is a team. The bridge also shows the questions of its workers. Nil means no team. The caller closes it after
	// the bridge.
	Team    *team.Link
	Log     *slog.Logger // the operator's log; nil disables it
	Serving func()       // called when Run has taken over the state of an earlier bridge; may be nil
	Now     func() time.Time
	Backoff time.Duration // before the first further attempt to poll or send; doubled each time
}
