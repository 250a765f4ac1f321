// Package channeltest has the one table of cases for all channels.
//
// A stand-in of a platform implements [Platform], and [Run] runs the table over it. A platform may lack capabilities.
// A case that needs a missing capability then checks the expected fallback instead.
package channeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// Pause is the pause that a platform demands after a [RateLimit].
const Pause = 2 * time.Second

// A Subject is a channel with the stand-in of its platform.
type Subject struct {
	Name string
	// Secrets must not occur in an error of the channel.
	Secrets []string
	// Start starts a platform with one bot. The platform ends with the test.
	Start func(t testing.TB) Platform
	// Dial returns a channel to a started platform. A process other than the platform's may call Dial. files is the
	// private folder for received files.
	Dial func(address, files string) (channel.Channel, error)
	// Lacks has the reason for each missing capability.
	Lacks map[Capability]string
}

// A Capability is a property of a platform that not every platform has.
type Capability string

// These are the capabilities.
const (
	Buttons      Capability = "buttons"
	Texts        Capability = "texts of people"
	HalfPairs    Capability = "texts with half a surrogate pair"
	TextAnswers  Capability = "answers by text"
	Edits        Capability = "edits"
	FilesIn      Capability = "files of people"
	FilesOut     Capability = "files of the bot"
	Pictures     Capability = "pictures that people see themselves"
	Captions     Capability = "texts in the message of a file"
	Replies      Capability = "replies that name a message"
	Orders       Capability = "numbers that give the order of messages"
	Names        Capability = "names of people"
	Echoes       Capability = "echoes of the bot's own messages"
	Redeliveries Capability = "repeated deliveries"
	Reversals    Capability = "deliveries in another order"
	Connects     Capability = "a server to which the channel connects"
	Clocks       Capability = "a clock of the platform"
	RateLimits   Capability = "rate limits"
	ServerErrors Capability = "server errors"
	HalfAnswers  Capability = "half answers"
	Drops        Capability = "dropped connections"
	LostAnswers  Capability = "lost answers"
	Revocations  Capability = "tokens that end"
	Deletions    Capability = "chats that end"
)

// A Platform is a running stand-in with one bot. Each person has a private chat with the bot. The methods may be called
// from several goroutines.
type Platform interface {
	// Address returns the address for Subject.Dial.
	Address() string
	// Join adds a person.
	Join(name string) Person
	// Write adds a message of a person to the person's private chat. It returns the id of the expected channel.Inbound.
	Write(from Person, m Message) (id string)
	// Press adds the press of a button below a message of the bot. The parameter "sent" is the id of the message.
	Press(from Person, sent, data string)
	// Sent returns the messages of the bot in the order of sending, each in its last form.
	Sent() []Sent
	// Wait returns nil when ok returns true, and the error of ctx when ctx ends first. It calls ok after every change.
	Wait(ctx context.Context, ok func() bool) error
	// Fail injects these faults into the next calls of an operation, one fault into each call.
	Fail(on Operation, faults ...Fault)
	// Echo delivers the bot's last message to the bot.
	Echo()
	// Redeliver delivers all messages and presses of people once more.
	Redeliver()
	// Reverse delivers the messages that the function "write" writes in the reverse order, after write returns.
	Reverse(write func())
	// Skew changes the platform's clock by a duration.
	Skew(d time.Duration)
	// Revoke ends the validity of the bot's token.
	Revoke()
	// Delete deletes the private chat of a person.
	Delete(of Person)
}

// Threads is a platform with a group that has threads. A message of a person in a thread mentions the bot.
type Threads interface {
	Platform
	// Thread returns a person in the thread with this name.
	Thread(name string, of Person) Person
}

// Person is a person on a platform, as the channel names the person.
type Person struct {
	Name    string
	Contact string
	Chat    string
}

// Message is a message of a person.
type Message struct {
	Text    string
	ReplyTo string // the id of a message of the bot
	File    *File
}

// halfPair in the text of a Message stands for half a surrogate pair. UTF-8 has no such character.
const halfPair = "\xed\xa0\xbd"

// JSON returns the text of a Message as a string of JSON.
func JSON(text string) json.RawMessage {
	var b bytes.Buffer
	for i, part := range strings.Split(text, halfPair) {
		quoted, err := json.Marshal(part)
		if err != nil {
			panic(err) // a string always encodes
		}
		if i > 0 {
			b.Truncate(b.Len() - 1) // without the closing quote
			b.WriteString(`\ud83d`)
			quoted = quoted[1:]
		}
		b.Write(quoted)
	}
	return b.Bytes()
}

// Sent is a message of the bot.
type Sent struct {
	ID       string // as channel.Channel.Send returned it
	Chat     string
	Text     string // in the platform's notation
	Shown    string // as a person reads it, without the notation
	Mentions int    // people or groups that the platform notifies because of the text
	Buttons  []channel.Button
	File     *File
	ReplyTo  string // the id of a channel.Inbound
	Edited   bool
	Removed  bool
}

// File is a file in either direction.
type File struct {
	Name    string
	Data    []byte
	Picture bool // of the bot; people see the picture itself
}

// An Operation is a group of calls that a channel makes to its platform.
type Operation string

// These are the operations.
const (
	Sending   Operation = "sending"
	Receiving Operation = "receiving"
	Fetching  Operation = "fetching"
)

// A Fault is the platform's misbehaviour in one call.
type Fault string

// These are the faults.
const (
	// RateLimit refuses the call with the platform's own notation of the [Pause].
	RateLimit Fault = "rate limit"
	// ServerError answers with a status from 500 on without any effect. LateServerError does so after the effect.
	ServerError     Fault = "server error"
	LateServerError Fault = "server error after the effect"
	// Half breaks off in the middle of the answer. A call that sends has its effect first.
	Half Fault = "half answer"
	// Drop cuts the connection without any effect. LateDrop cuts it after the effect.
	Drop     Fault = "dropped connection"
	LateDrop Fault = "connection dropped after the effect"
)

// Await is [Platform.Wait] for a platform that closes a channel at each change. The function "next" returns the channel
// that the next change closes.
func Await(ctx context.Context, next func() <-chan struct{}, ok func() bool) error {
	for {
		changed := next()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Faults are the faults of [Platform.Fail] that were not injected into a call yet. The zero value has none. Its
// methods may be called from several goroutines.
type Faults struct {
	mu      sync.Mutex
	waiting map[Operation][]Fault
}

// Fail sets the faults for the next calls of an operation. Earlier faults of the operation end. Otherwise they would
// pile up while the bridge waits longer and longer.
func (f *Faults) Fail(on Operation, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = map[Operation][]Fault{}
	}
	f.waiting[on] = faults
}

// Next removes the next fault of an operation and returns it. If no fault is left, Next returns "". It also returns
// "" if the function "fits" is not nil and refuses the fault.
func (f *Faults) Next(on Operation, fits func(Fault) bool) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.waiting[on]
	if len(list) == 0 || fits != nil && !fits(list[0]) {
		return ""
	}
	f.waiting[on] = list[1:]
	return list[0]
}

// needs lists the capability for each fault.
var needs = map[Fault]Capability{
	RateLimit: RateLimits, ServerError: ServerErrors, LateServerError: ServerErrors, Half: HalfAnswers, Drop: Drops,
	LateDrop: LostAnswers,
}

// Shows reports whether people see a picture itself. Otherwise it comes as a file.
func (s Subject) Shows() bool {
	_, lacks := s.Lacks[Pictures]
	return !lacks
}

// Has reports whether a subject's platform can misbehave in this way.
func (s Subject) Has(f Fault) bool {
	_, lacks := s.Lacks[needs[f]]
	return !lacks
}
