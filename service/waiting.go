package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/channel"
)

// These prefixes begin the data of the buttons below a reply about a waiting message. A token of
// the message follows.
const (
	sendPrefix = "s:"
	backPrefix = "w:"
)

// token names a waiting message in the data of a button.
func token(input event.InputID) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:8])
}

// word returns the name of a waiting message in a command: the beginning of its token.
func word(input event.InputID) string { return token(input)[:6] }

func sendButton(say *language.Sentences, input event.InputID) fact.Button {
	return fact.Button{Label: say.SendIt, Data: sendPrefix + token(input)}
}

func backButton(say *language.Sentences, input event.InputID) fact.Button {
	return fact.Button{Label: say.TakeItBack, Data: backPrefix + token(input)}
}

// pressedWaiting reads a button below a reply about a waiting message. It reports whether it is
// such a button.
func (b *Bridge) pressedWaiting(who fact.Peer, m channel.Inbound, f *fact.BridgeReceived) bool {
	for prefix, kind := range map[string]fact.MessageKind{sendPrefix: kindSend, backPrefix: kindBack} {
		if which, ok := strings.CutPrefix(m.Button, prefix); ok {
			b.inboxOf(who).meanMessage(kind, f, func(in received) bool { return token(in.input) == which })
			return true
		}
	}
	return false
}

// saidWaiting reads a command about a waiting message. The command names it by its word or number
// or by a reply. Without a name it means the last waiting message or, to release one, the only held
// message.
func (b *Bridge) saidWaiting(ctx context.Context, who fact.Peer, m channel.Inbound, kind fact.MessageKind, args string,
	f *fact.BridgeReceived) error {
	ib, say := b.inboxOf(who), b.sentencesFor(who)
	list := ib.inLine()
	switch n, err := strconv.Atoi(args); {
	case len(args) >= 4:
		ib.meanMessage(kind, f, func(in received) bool { return word(in.input) == strings.ToLower(args) })
	case args != "" && (err != nil || n < 1 || n > len(list)):
		f.Kind, f.Word = kindRefused, say.NothingUnder
	case args != "":
		ib.meanMessage(kind, f, func(in received) bool { return in.input == list[n-1].input })
	case m.ReplyTo != "":
		about, err := b.records.aboutOf(ctx, who.Channel, m.Chat, m.ReplyTo)
		if err != nil {
			return err
		}
		ib.meanMessage(kind, f, func(in received) bool { return in.Message == m.ReplyTo || in.input == about })
	case len(list) == 0:
		f.Kind, f.Word = kindRefused, say.NothingWaits
	case kind == kindBack:
		ib.meanMessage(kind, f, func(in received) bool { return in.input == list[len(list)-1].input })
	default:
		held := slices.DeleteFunc(list, func(in received) bool { return !in.Held })
		if len(held) == 1 {
			ib.meanMessage(kind, f, func(in received) bool { return in.input == held[0].input })
			break
		}
		f.Kind, f.Word = kindRefused, fmt.Sprintf(say.SeveralHeld, len(held))
	}
	return nil
}

// meanMessage stores in f the message that the command names. If the command names no such message, meanMessage stores
// the reason.
func (ib *inbox) meanMessage(kind fact.MessageKind, f *fact.BridgeReceived, is func(received) bool) {
	list := ib.inLine()
	i := slices.IndexFunc(list, is)
	switch {
	case i < 0:
		f.Kind, f.Word = kindRefused, ib.b.sentencesFor(ib.key).NotWaiting
	case kind == kindSend && !list[i].Held:
		f.Kind, f.Word = kindRefused, ib.b.sentencesFor(ib.key).NotHeld
	default:
		f.Kind, f.About = kind, list[i].input
	}
}

// inLine returns the messages that wait for their turn or for their sender, in order.
func (ib *inbox) inLine() (list []received) {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.pending != nil && !ib.decided {
		list = append(list, *ib.pending)
	}
	return append(list, ib.queue...)
}

// changes reports whether the contact has a running or waiting command. Such a command may change the session.
func (ib *inbox) changes() bool {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	isCommand := func(m received) bool { return m.Kind == kindCommand }
	return ib.pending != nil && isCommand(*ib.pending) || slices.ContainsFunc(ib.queue, isCommand)
}

// setGiveUp sets the function that is called if the pending message is taken back.
func (ib *inbox) setGiveUp(giveUp func()) {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.giveUp = giveUp; ib.decided {
		giveUp()
	}
}

// claimPending decides that the call for the pending message begins now. It returns false if the message was taken
// back.
func (ib *inbox) claimPending() bool {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.decided {
		return false
	}
	ib.decided = true
	return true
}

// takeBack removes a message from the queue. It returns false if the message does not wait in the queue.
func (ib *inbox) takeBack(input event.InputID) (m received, ok bool) {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if p := ib.pending; p != nil && !ib.decided && p.input == input {
		if ib.decided = true; ib.giveUp != nil {
			ib.giveUp()
		}
		return *p, true
	}
	i := slices.IndexFunc(ib.queue, func(in received) bool { return in.input == input })
	if i < 0 {
		return m, false
	}
	m = ib.queue[i]
	ib.queue = slices.Delete(ib.queue, i, i+1)
	return m, true
}

// releaseHeld marks a held message as no longer held, so that the agent gets the message in its turn.
func (ib *inbox) releaseHeld(input event.InputID) {
	ib.mu.Lock()
	for i := range ib.queue {
		if ib.queue[i].input == input {
			ib.queue[i].Held = false
		}
	}
	ib.mu.Unlock()
	select {
	case ib.wake <- struct{}{}:
	default:
	}
}

// waiting returns two numbers: the messages that wait for their turn, and the messages that wait for their sender. The
// caller holds mu.
func (ib *inbox) waiting() (queued, held int) {
	for _, m := range ib.queue {
		if m.Held {
			held++
		} else {
			queued++
		}
	}
	if ib.pending != nil && !ib.decided {
		queued++
	}
	return queued, held
}

// place describes the position of a message that arrives now. The text is empty if the message does not wait.
func (ib *inbox) place() string {
	ib.mu.Lock()
	ahead := 0
	if ib.pending != nil {
		ahead++
	}
	for _, m := range ib.queue {
		if !m.Held {
			ahead++
		}
	}
	ib.mu.Unlock()
	if ahead > 0 {
		return fmt.Sprintf(ib.b.sentencesFor(ib.key).InLine, ahead)
	}
	if others, full := ib.b.slots.ahead(); full {
		return fmt.Sprintf(ib.b.sentencesFor(ib.key).ForAgent, others+1)
	}
	return ""
}

// lined lists the waiting messages for their sender.
func (ib *inbox) lined() string {
	var t strings.Builder
	say := ib.b.sentencesFor(ib.key)
	for i, m := range ib.inLine() {
		text := []rune(strings.Join(strings.Fields(m.Text), " "))
		if len(text) > 60 {
			text = append(text[:60], '…')
		}
		fmt.Fprintf(&t, "%d. %s", i+1, literal(string(text)))
		if m.Held {
			t.WriteString(say.HeldMark)
		}
		t.WriteString("\n")
	}
	if t.Len() == 0 {
		return say.NothingWaits
	}
	t.WriteString(say.HowToTakeBack)
	return t.String()
}
