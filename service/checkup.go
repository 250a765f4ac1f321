package service

import (
	"context"
	"fmt"
	"time"

	"github.com/perlica/perlica/kernel/checkup"
)

// Checkup examines a bridge for 'perlica doctor' without changing it.
type Checkup struct {
	Records *Records // nil means that the log does not exist or cannot be read
	Lock    string   // the file of the lock
	Setups  []Setup  // the setups of the configured channels

	Projects []Setup // the bot's further projects
}

// Setup reports whether a channel has its requirements.
type Setup struct {
	Name string
	Err  error  // the missing requirement
	Hint string // the remedy
	Left bool   // this system cannot serve the channel, and the bridge starts without it
}

// Run calls the function "report" with each result.
func (c Checkup) Run(ctx context.Context, report func(checkup.Check)) {
	tell := func(name string, status checkup.Status, hint, format string, args ...any) {
		report(checkup.Check{Name: name, Status: status, Detail: fmt.Sprintf(format, args...), Hint: hint})
	}
	held, err := Holder(c.Lock)
	if err != nil {
		tell("bridge", checkup.Fail, "", "%v", err)
		return
	}
	var s Status
	if c.Records != nil {
		if s, err = c.Records.Status(ctx); err != nil {
			tell("bridge", checkup.Fail, "", "%v", err)
			return
		}
	}
	used := held != nil || !s.Since.IsZero() || len(s.Contacts)+len(s.Unconfirmed) > 0
	switch {
	case held != nil:
		tell("bridge", checkup.OK, "", "runs: process %d, since %s", held.PID, held.Since.Local().Format(time.DateTime))
	case s.Waiting > 0:
		tell("bridge", checkup.Warn, "start it with 'perlica service'", "does not run, and %s waiting for an answer",
			are(s.Waiting, "message"))
	case used:
		tell("bridge", checkup.OK, "", "does not run")
	default:
		tell("bridge", checkup.OK, "", "was never used here")
	}
	c.channels(s, used, tell)
	for _, p := range c.Projects {
		if p.Err != nil {
			tell("bridge-project", checkup.Warn, p.Hint, "%s is not served: %v", p.Name, p.Err)
			continue
		}
		tell("bridge-project", checkup.OK, "", "%s is one of the bot's projects", p.Name)
	}
	if !used {
		return
	}
	if n := len(s.Unconfirmed); n > 0 {
		tell("bridge-unconfirmed", checkup.Warn, Confirming(s.Unconfirmed[0]),
			"%s named by the log that you did not pair here, and without rights", are(n, "contact"))
	}
	if len(s.Contacts) == 0 {
		tell("bridge-contacts", checkup.Warn, "'perlica service pair' shows a code; send it to a channel", "no one is paired")
	} else {
		tell("bridge-contacts", checkup.OK, "", "%s paired", are(len(s.Contacts), "contact"))
	}
	reportOutbox(s, held != nil, tell)
}

// tell reports a result.
type tell = func(name string, status checkup.Status, hint, format string, args ...any)

// channels reports the setup and the state of each channel.
func (c Checkup) channels(s Status, used bool, tell tell) {
	faults := map[string]ChannelStatus{}
	for _, ch := range s.Channels {
		if ch.Error != "" {
			faults[ch.Name] = ch
		}
	}
	for _, ch := range c.Setups {
		name := "channel-" + ch.Name
		fault, ill := faults[ch.Name]
		switch {
		case ch.Left:
			tell(name, checkup.Warn, fmt.Sprintf("'perlica service channel disable %s'", ch.Name), "left out: %v", ch.Err)
		case ch.Err != nil:
			tell(name, checkup.Fail, ch.Hint, "not set up: %v", ch.Err)
		case ill:
			tell(name, checkup.Warn, "it is tried again and again, at most five minutes apart, or as the platform wants",
				"cannot be read since %s: %s", fault.Since.Local().Format(time.DateTime), fault.Error)
		case used:
			tell(name, checkup.OK, "", "enabled and set up")
		}
	}
}

// reportOutbox reports the messages that wait to be sent, and the failed messages.
func reportOutbox(s Status, running bool, tell tell) {
	detail := are(s.Unsent, "message") + " waiting to be sent"
	if s.Unknown > 0 {
		detail += fmt.Sprintf(", of which %d may have been sent before", s.Unknown)
	}
	if s.LastWhy != "" {
		detail += "; the last attempt failed: " + s.LastWhy
	}
	if s.Failed > 0 {
		detail += fmt.Sprintf("; %d given up so far, see 'perlica service logs'", s.Failed)
	}
	switch {
	case s.Unsent > 0 && !running:
		tell("bridge-outbox", checkup.Warn, "start the bridge with 'perlica service'", "%s", detail)
	case s.LastWhy != "":
		tell("bridge-outbox", checkup.Warn, "it is tried again, at most five minutes apart, or as the platform wants", "%s",
			detail)
	default:
		tell("bridge-outbox", checkup.OK, "", "%s", detail)
	}
}

// are counts things with their verb: "1 message is".
func are(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}
