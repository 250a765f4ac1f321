package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// immediate are the commands that do not wait for the turn under way.
var immediate = []string{"help", "pending", "choose", "allow", "deny", "cancel", "log", "usage", "doctor", "exit", "again", "attach", "thoughts"}

func isImmediate(text string) bool {
	l, err := command.Parse(strings.TrimSpace(text))
	return err == nil && slices.Contains(immediate, l.Name)
}

// classify finds out what a message is: an answer, a command, or an input.
func (b *Bridge) classify(ctx context.Context, ch channel.Channel, c Contact, m channel.Inbound, f *bridge.Received) error {
	if m.Quoted {
		f.Kind = kindInput
		return nil
	}
	r := b.reading(ch, c.key(), m)
	if err := r.answer(ctx, f); err != nil || f.Kind != "" {
		return err
	}
	f.Kind = kindInput
	text := strings.TrimSpace(m.Text)
	if !strings.HasPrefix(text, "/") {
		return nil
	}
	l, err := command.Parse(text, b.agentCommands(c.key())...)
	switch {
	case err != nil:
		f.Kind, f.Word = kindRefused, err.Error()
	case l.Name == "allow", l.Name == "deny", l.Name == "choose":
		f.Kind = kindCommand
		// The question that is meant is that of this moment: when the command is carried out
		// another one may be the only one.
		f.Question, err = r.pin(ctx, l)
		return err
	case l.Name != "":
		f.Kind = kindCommand
	default:
		f.Text = l.Text
	}
	return nil
}

// agentCommands are the slash commands of the contact's agent, as far as it runs.
func (b *Bridge) agentCommands(who bridge.Peer) (names []string) {
	b.mu.Lock()
	d := b.desk[who]
	b.mu.Unlock()
	if d == nil || d.opened() == nil {
		return nil
	}
	o, _, _ := d.opened().Offers()
	for _, c := range o.Commands {
		names = append(names, c.Name)
	}
	return names
}

// command carries a slash command out, within the contact's rights.
func (d *desk) command(c Contact, m received) {
	text, err := d.obey(d.b.hard, c, m)
	how := endDone
	if err != nil {
		if d.b.log().Err() != nil {
			d.b.fail(err)
			return
		}
		how, text = endRefused, err.Error()
	}
	if strings.TrimSpace(text) == "" {
		text = "Done."
	}
	d.finish(m, event.Refs{}, bridge.Finished{How: how}, text)
}

func (d *desk) obey(ctx context.Context, c Contact, m received) (string, error) {
	l, err := command.Parse(strings.TrimSpace(m.Text))
	if err != nil {
		return "", err
	}
	if l.Name == "exit" { // nor is the session named by it
		return "", errors.New("there is nothing to leave here: the bridge goes on; /clear begins a new session")
	}
	conv, err := d.conversation(ctx, c)
	if err != nil {
		return "", err
	}
	host := d.b.opt.Host
	host.Conversation, host.By, host.Where = conv, c.Label(), d.key.Channel
	host.May = func(n command.Need) bool { return may(c.Rights, n) }
	host.Cancel, host.Named = d.stopTurn, true
	if m.Question != "" {
		l.Args = string(m.Question) + " " + l.Args
	}
	if !c.Rights.Has(access.Admin) {
		host.Only = conv.Session()
	}
	out, err := host.Do(ctx, l)
	if err != nil {
		return "", err
	}
	return d.effect(ctx, conv, m, out)
}

// may translates the rights of contacts into those of commands.
func may(rights access.Rights, n command.Need) bool {
	switch n {
	case command.Read:
		return true
	case command.Ask:
		return rights.Has(access.Ask)
	case command.Approve:
		return rights.Has(access.Approve)
	}
	return rights.Has(access.Admin)
}

// effect does what a command leaves to the front end.
func (d *desk) effect(ctx context.Context, conv *kernel.Conversation, m received, out command.Output) (string, error) {
	switch out.Effect {
	case command.Thoughts:
		return "", errors.New("thoughts are not sent to a phone; they are on the record")
	case command.Attach:
		return "", errors.New("send the file with the message instead")
	case command.Export:
		return "", fmt.Errorf("the record is written where Perlica runs: perlica session export %s", conv.Session())
	case command.Recall:
		e, ok, err := d.b.log().Last(ctx, event.Query{Session: conv.Session(), Types: []event.Type{event.MessageReceived}})
		var last struct {
			Text string `json:"text"`
		}
		if err == nil && ok {
			err = e.Decode(&last)
		}
		if err == nil && last.Text == "" {
			err = errors.New("there is no earlier input in this session")
		}
		return "Your last input, to send again:\n\n" + last.Text, err
	case command.Switch:
		if err := d.move(ctx, out.Session, out.Provider); err != nil {
			return "", err
		}
		return "From here on this is another session.", nil
	case command.Discard:
		if err := d.move(ctx, "", ""); err != nil {
			return "", err
		}
		return "The session is off every list; this is a new one.", d.b.opt.Runner.DeleteSession(ctx, conv.Session())
	}
	return out.Text, nil
}
