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
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// immediate are the commands that do not wait for the turn under way.
var immediate = []string{"help", "pending", "choose", "allow", "deny", "cancel", "log", "usage", "doctor", "exit", "queue", "again", "attach", "thoughts", "status", speakCommand, followCommand, projectCommand}

// The commands that there are on a phone only.
const (
	speakCommand   = "language"
	followCommand  = "follow"
	projectCommand = "project"
)

// parse reads a message as a command. agents are the names of the agent's own.
func parse(text string, agents ...string) (command.Line, error) {
	text = strings.TrimSpace(text)
	for _, name := range []string{speakCommand, followCommand, projectCommand} {
		if words := strings.Fields(text); len(words) > 0 && words[0] == "/"+name && !slices.Contains(agents, name) {
			return command.Line{Name: name, Args: strings.Join(words[1:], " ")}, nil
		}
	}
	return command.Parse(text, agents...)
}

func isImmediate(text string) bool {
	l, err := parse(text)
	return err == nil && slices.Contains(immediate, l.Name)
}

// classify finds out what a message is: an answer, a command, or an input.
func (b *Bridge) classify(ctx context.Context, ch channel.Channel, c Contact, m channel.Inbound, f *fact.BridgeReceived) error {
	if m.Quoted {
		f.Kind = kindInput
		return nil
	}
	if b.pressedWaiting(c.key(), m, f) {
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
	l, err := parse(text, b.agentCommands(c.key())...)
	switch {
	case err != nil:
		f.Kind, f.Word = kindRefused, b.deskOf(c.key()).fault(err)
	case l.Name == "withdraw", l.Name == "unqueue":
		return b.saidWaiting(ctx, c.key(), m, kindBack, l.Args, f)
	case l.Name == "send":
		return b.saidWaiting(ctx, c.key(), m, kindSend, l.Args, f)
	case l.Name == "allow", l.Name == "deny", l.Name == "choose":
		did, err := r.toTeam(ctx, l, f)
		if !did && err == nil {
			f.Kind = kindCommand
			// The question that is meant is the one of this moment: when the command is carried out,
			// another one may be the only one.
			f.Question, err = r.pin(ctx, l)
		}
		var soon *tooSoonError
		if errors.As(err, &soon) {
			f.Kind, f.Word, err = kindRefused, soon.text, nil
		}
		return err
	case l.Name != "":
		f.Kind = kindCommand
	default:
		f.Text = l.Text
	}
	return nil
}

// agentCommands are the slash commands of the contact's agent, as far as it runs.
func (b *Bridge) agentCommands(who fact.Peer) (names []string) {
	b.mu.Lock()
	d := b.desk[who]
	b.mu.Unlock()
	if d == nil || d.opened() == nil {
		return nil
	}
	o, _, _ := d.opened().Offers()
	for _, c := range o.Commands {
		if c.Name != projectCommand || b.projects == nil { // where there are several it must lead back
			names = append(names, c.Name)
		}
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
		how, text = endRefused, d.fault(err)
	}
	if strings.TrimSpace(text) == "" {
		text = d.b.say(d.key).Done
	}
	d.finish(m, event.Refs{}, fact.BridgeFinished{How: how}, text)
}

// fault says to the contact what is wrong with a command.
func (d *desk) fault(err error) string {
	say := d.b.say(d.key)
	var in interface {
		error
		In(*language.Sentences) string
	}
	if errors.As(err, &in) {
		return in.In(say)
	}
	return say.Fault(err)
}

func (d *desk) obey(ctx context.Context, c Contact, m received) (string, error) {
	l, err := parse(m.Text)
	switch {
	case err != nil:
		return "", err
	case l.Name == speakCommand:
		return d.speak(ctx, l.Args)
	case l.Name == followCommand:
		return d.follow(ctx, c, l.Args)
	case l.Name == projectCommand:
		return d.project(ctx, l.Args)
	}
	if l.Name == "exit" { // nor is the session named by it
		return "", language.Said(d.b.say(d.key).NoExit)
	}
	conv, err := d.conversation(ctx, c)
	if err != nil {
		return "", err
	}
	host := d.b.opt.Host
	host.Conversation, host.By, host.Where = conv, c.Label(), d.key.Channel
	host.May = func(n command.Need) bool { return may(c.Rights, n) }
	host.Cancel, host.Named, host.Say = d.stopTurn, true, d.b.say(d.key)
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
	if l.Name == "pending" {
		out.Text = d.pendingThere(out.Text)
	}
	if where := d.b.name(); l.Name == "status" && where != "" {
		out.Text = fmt.Sprintf(d.b.say(d.key).InProject, literal(where)) + "\n" + out.Text
	}
	return d.effect(ctx, conv, m, out)
}

// speak changes the language in which the contact is spoken to, or says which it is.
func (d *desk) speak(ctx context.Context, name string) (string, error) {
	say := d.b.say(d.key)
	if name == "" {
		return say.Languages, nil
	}
	l, ok := language.Find(name)
	if !ok {
		return "", language.Said(fmt.Sprintf(say.NoLanguage, name))
	}
	f := fact.ContactChanged{Peer: d.key, Language: string(l), By: d.key.Channel + ":" + d.key.Contact}
	if err := d.b.commit(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return "", err
	}
	d.b.mu.Lock()
	d.b.spoken[d.key] = l
	d.b.mu.Unlock()
	return l.Sentences().LanguageIs, nil
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
	say := d.b.say(d.key)
	switch out.Effect {
	case command.Thoughts:
		return "", language.Said(say.NoThoughts)
	case command.Attach:
		return "", language.Said(say.NoAttach)
	case command.Resume:
		return "", language.Said(say.NoResume)
	case command.Queue:
		return d.lined(), nil
	case command.Unfold:
		return "", language.Said(say.NoFolds)
	case command.Copy:
		return "", language.Said(say.NoCopy)
	case command.Export:
		return "", language.Said(fmt.Sprintf(say.NoExport, conv.Session()))
	case command.Recall:
		e, ok, err := d.b.log().Last(ctx, event.Query{Session: conv.Session(), Types: []event.Type{event.MessageReceived}})
		var last struct {
			Text string `json:"text"`
		}
		if err == nil && ok {
			err = e.Decode(&last)
		}
		if err == nil && last.Text == "" {
			err = language.Said(say.NoEarlierInput)
		}
		return fmt.Sprintf(say.LastInput, last.Text), err
	case command.Switch:
		if err := d.move(ctx, out.Session, out.Provider); err != nil {
			return "", err
		}
		return say.OtherSession, nil
	case command.Discard:
		if err := d.move(ctx, "", ""); err != nil {
			return "", err
		}
		return say.Discarded, d.b.opt.Runner.DeleteSession(ctx, conv.Session())
	}
	return out.Text, nil
}
