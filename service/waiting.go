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

// The data of the buttons below a message about one that waits: a prefix, and a token of that one.
const (
	sendPrefix = "s:"
	backPrefix = "w:"
)

// token names a message that waits, in the data of a button.
func token(input event.InputID) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:8])
}

// word is what a message that waits is called in a command: as much of its token as people type.
func word(input event.InputID) string { return token(input)[:6] }

func sendButton(say *language.Sentences, input event.InputID) fact.Button {
	return fact.Button{Label: say.SendIt, Data: sendPrefix + token(input)}
}

func backButton(say *language.Sentences, input event.InputID) fact.Button {
	return fact.Button{Label: say.TakeItBack, Data: backPrefix + token(input)}
}

// pressedWaiting reads a button below a message about one that waits, and reports whether it is one.
func (b *Bridge) pressedWaiting(who fact.Peer, m channel.Inbound, f *fact.BridgeReceived) bool {
	for prefix, kind := range map[string]fact.MessageKind{sendPrefix: kindSend, backPrefix: kindBack} {
		if which, ok := strings.CutPrefix(m.Button, prefix); ok {
			b.deskOf(who).mean(kind, f, func(in received) bool { return token(in.input) == which })
			return true
		}
	}
	return false
}

// saidWaiting reads a command about a message that waits: the one of that word or number, the one that is
// replied to, or the last one; of those that are held, the only one.
func (b *Bridge) saidWaiting(ctx context.Context, who fact.Peer, m channel.Inbound, kind fact.MessageKind, args string, f *fact.BridgeReceived) error {
	d, say := b.deskOf(who), b.say(who)
	list := d.inLine()
	switch n, err := strconv.Atoi(args); {
	case len(args) >= 4:
		d.mean(kind, f, func(in received) bool { return word(in.input) == strings.ToLower(args) })
	case args != "" && (err != nil || n < 1 || n > len(list)):
		f.Kind, f.Word = kindRefused, say.NothingUnder
	case args != "":
		d.mean(kind, f, func(in received) bool { return in.input == list[n-1].input })
	case m.ReplyTo != "":
		about, err := b.records.aboutOf(ctx, who.Channel, m.Chat, m.ReplyTo)
		if err != nil {
			return err
		}
		d.mean(kind, f, func(in received) bool { return in.Message == m.ReplyTo || in.input == about })
	case len(list) == 0:
		f.Kind, f.Word = kindRefused, say.NothingWaits
	case kind == kindBack:
		d.mean(kind, f, func(in received) bool { return in.input == list[len(list)-1].input })
	default:
		held := slices.DeleteFunc(list, func(in received) bool { return !in.Held })
		if len(held) == 1 {
			d.mean(kind, f, func(in received) bool { return in.input == held[0].input })
			break
		}
		f.Kind, f.Word = kindRefused, fmt.Sprintf(say.SeveralHeld, len(held))
	}
	return nil
}

// mean puts into f which message is meant, or why none is.
func (d *desk) mean(kind fact.MessageKind, f *fact.BridgeReceived, is func(received) bool) {
	list := d.inLine()
	i := slices.IndexFunc(list, is)
	switch {
	case i < 0:
		f.Kind, f.Word = kindRefused, d.b.say(d.key).NotWaiting
	case kind == kindSend && !list[i].Held:
		f.Kind, f.Word = kindRefused, d.b.say(d.key).NotHeld
	default:
		f.Kind, f.About = kind, list[i].input
	}
}

// inLine are the messages that wait for their turn or for their sender, in their order.
func (d *desk) inLine() (list []received) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending != nil && !d.decided {
		list = append(list, *d.pending)
	}
	return append(list, d.queue...)
}

// changes reports whether a command is carried out, or waits, that may go on in another session.
func (d *desk) changes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	isCommand := func(m received) bool { return m.Kind == kindCommand }
	return d.pending != nil && isCommand(*d.pending) || slices.ContainsFunc(d.queue, isCommand)
}

// waits has giveUp called if the pending message is taken back.
func (d *desk) waits(giveUp func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.giveUp = giveUp; d.decided {
		giveUp()
	}
}

// claim decides that the pending message is called now. It returns false if it was taken back.
func (d *desk) claim() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decided {
		return false
	}
	d.decided = true
	return true
}

// takeBack takes a message out of the line. It returns false if it does not wait there.
func (d *desk) takeBack(input event.InputID) (m received, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pending; p != nil && !d.decided && p.input == input {
		if d.decided = true; d.giveUp != nil {
			d.giveUp()
		}
		return *p, true
	}
	i := slices.IndexFunc(d.queue, func(in received) bool { return in.input == input })
	if i < 0 {
		return m, false
	}
	m = d.queue[i]
	d.queue = slices.Delete(d.queue, i, i+1)
	return m, true
}

// release has a message that was held wait for its turn.
func (d *desk) release(input event.InputID) {
	d.mu.Lock()
	for i := range d.queue {
		if d.queue[i].input == input {
			d.queue[i].Held = false
		}
	}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// waiting is how many messages wait for their turn, and how many for their sender. The caller holds mu.
func (d *desk) waiting() (queued, held int) {
	for _, m := range d.queue {
		if m.Held {
			held++
		} else {
			queued++
		}
	}
	if d.pending != nil && !d.decided {
		queued++
	}
	return queued, held
}

// place says where a message that comes now waits; empty: it does not.
func (d *desk) place() string {
	d.mu.Lock()
	ahead := 0
	if d.pending != nil {
		ahead++
	}
	for _, m := range d.queue {
		if !m.Held {
			ahead++
		}
	}
	d.mu.Unlock()
	if ahead > 0 {
		return fmt.Sprintf(d.b.say(d.key).InLine, ahead)
	}
	if others, full := d.b.slots.ahead(); full {
		return fmt.Sprintf(d.b.say(d.key).ForAgent, others+1)
	}
	return ""
}

// lined are the messages that wait, for their sender.
func (d *desk) lined() string {
	var t strings.Builder
	say := d.b.say(d.key)
	for i, m := range d.inLine() {
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
