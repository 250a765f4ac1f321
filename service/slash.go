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

// immediate lists the commands that do not wait for the running turn.
var immediate = []string{"help", "pending", "choose", "allow", "deny", "cancel", "log", "usage", "doctor", "exit",
	"queue", "again", "attach", "thoughts", "status", speakCommand, followCommand, projectCommand}

// These commands exist only on a phone.
const (
	speakCommand   = "language"
	followCommand  = "follow"
	projectCommand = "project"
)

// parse reads a message as a command. The parameter "agents" has the names of the agent's own commands.
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

// classifyMessage finds out whether a message is an answer, a command or an input.
func (b *Bridge) classifyMessage(ctx context.Context, ch channel.Channel, c Contact, m channel.Inbound,
	f *fact.BridgeReceived) error {
	if m.Quoted {
		f.Kind = kindInput
		return nil
	}
	if b.pressedWaiting(c.key(), m, f) {
		return nil
	}
	r := b.newAnswerReader(ch, c.key(), m)
	if err := r.readAnswer(ctx, f); err != nil || f.Kind != "" {
		return err
	}
	f.Kind = kindInput
	text := strings.TrimSpace(m.Text)
	if !strings.HasPrefix(text, "/") {
		return nil
	}
	l, err := parse(text, b.agentCommands(c.key(), m.Chat)...)
	switch {
	case err != nil:
		f.Kind, f.Word = kindRefused, b.inboxOf(c.key()).faultText(err)
	case l.Name == "withdraw", l.Name == "unqueue":
		return b.saidWaiting(ctx, c.key(), m, kindBack, l.Args, f)
	case l.Name == "send":
		return b.saidWaiting(ctx, c.key(), m, kindSend, l.Args, f)
	case r.ch.Limits().Forgeable && (l.Name == "allow" || l.Name == "deny" || l.Name == "choose"):
		f.Kind, f.Word = kindRefused, r.say.OnlyByLink
	case l.Name == "allow", l.Name == "deny", l.Name == "choose":
		did, err := r.toTeam(ctx, l, f)
		if !did && err == nil {
			f.Kind = kindCommand
			// The command means the only question of this moment. When the command is carried out,
			// another question may be the only one.
			f.Question, err = r.pinQuestion(ctx, l)
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

// agentCommands returns the slash commands of the contact's running agent in a chat.
func (b *Bridge) agentCommands(who fact.Peer, chat string) (names []string) {
	b.mu.Lock()
	ib := b.inboxByPeer[who]
	b.mu.Unlock()
	if ib == nil {
		return nil
	}
	conv := ib.opened(chat)
	if conv == nil {
		return nil
	}
	o, _, _ := conv.Offers()
	for _, c := range o.Commands {
		// If the bot serves several projects, an agent's command of the same name must not hide the bot's own /project.
		if c.Name != projectCommand || b.projects == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// runCommand carries out a slash command within the contact's rights.
func (ib *inbox) runCommand(c Contact, m received) {
	text, err := ib.carryOut(ib.b.hard, c, m)
	how := endDone
	if err != nil {
		if ib.b.log().Err() != nil {
			ib.b.fail(err)
			return
		}
		how, text = endRefused, ib.faultText(err)
	}
	if strings.TrimSpace(text) == "" {
		text = ib.b.sentencesFor(ib.key).Done
	}
	ib.finishMessage(m, event.Refs{}, fact.BridgeFinished{How: how}, text)
}

// faultText returns the reply about a failed command.
func (ib *inbox) faultText(err error) string {
	say := ib.b.sentencesFor(ib.key)
	var in interface {
		error
		In(*language.Sentences) string
	}
	if errors.As(err, &in) {
		return in.In(say)
	}
	return say.Fault(err)
}

func (ib *inbox) carryOut(ctx context.Context, c Contact, m received) (string, error) {
	l, err := parse(m.Text)
	switch {
	case err != nil:
		return "", err
	case l.Name == speakCommand:
		return ib.changeLanguage(ctx, l.Args)
	case l.Name == followCommand:
		return ib.followElsewhere(ctx, c, l.Args)
	case l.Name == projectCommand:
		return ib.changeProject(ctx, l.Args)
	}
	if l.Name == "exit" { // this command cannot name a session either
		return "", language.Said(ib.b.sentencesFor(ib.key).NoExit)
	}
	conv, done, err := ib.useConversation(ctx, m.Chat)
	if err != nil {
		return "", err
	}
	defer done()
	host := ib.b.opt.Host
	host.Conversation, host.By, host.Where = conv, c.Label(), ib.key.Channel
	host.May = func(n command.Need) bool { return may(c.Rights, n) }
	host.Cancel, host.Named, host.Say = ib.stopTurn, true, ib.b.sentencesFor(ib.key)
	if m.Question != "" {
		l.Args = string(m.Question) + " " + l.Args
	}
	if !c.Rights.Has(access.Admin) {
		if host.Only, err = ib.b.records.sessions(ctx, ib.key); err != nil {
			return "", err
		}
		host.Only = append(host.Only, conv.Session())
	}
	out, err := host.Do(ctx, l)
	if err != nil {
		return "", err
	}
	if l.Name == "pending" {
		out.Text = ib.pendingTeamQuestions(out.Text)
	}
	if where := ib.b.name(); l.Name == "status" && where != "" {
		out.Text = fmt.Sprintf(ib.b.sentencesFor(ib.key).InProject, literal(where)) + "\n" + out.Text
	}
	return ib.applyEffect(ctx, conv, m, out)
}

// changeLanguage changes the contact's language, or reports it.
func (ib *inbox) changeLanguage(ctx context.Context, name string) (string, error) {
	say := ib.b.sentencesFor(ib.key)
	if name == "" {
		return say.Languages, nil
	}
	l, ok := language.Find(name)
	if !ok {
		return "", language.Said(fmt.Sprintf(say.NoLanguage, name))
	}
	f := fact.ContactChanged{Peer: ib.key, Language: string(l), By: ib.key.Channel + ":" + ib.key.Contact}
	if err := ib.b.commitEvents(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return "", err
	}
	ib.b.mu.Lock()
	ib.b.spoken[ib.key] = l
	ib.b.mu.Unlock()
	return l.Sentences().LanguageIs, nil
}

// may reports whether the rights of a contact allow a command with this need.
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

// applyEffect carries out the part of a command that belongs to the front end.
func (ib *inbox) applyEffect(ctx context.Context, conv *kernel.Conversation, m received,
	out command.Output) (string, error) {
	say := ib.b.sentencesFor(ib.key)
	switch out.Effect {
	case command.Thoughts:
		return "", language.Said(say.NoThoughts)
	case command.Attach:
		return "", language.Said(say.NoAttach)
	case command.Resume:
		return "", language.Said(say.NoResume)
	case command.Queue:
		return ib.lined(), nil
	case command.Unfold:
		return "", language.Said(say.NoFolds)
	case command.Copy:
		return "", language.Said(say.NoCopy)
	case command.Export:
		return "", language.Said(fmt.Sprintf(say.NoExport, conv.Session()))
	case command.Recall:
		e, ok, err := ib.b.log().Last(ctx, event.Query{Session: conv.Session(), Types: []event.Type{event.MessageReceived}})
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
		if err := ib.moveSession(ctx, m.Chat, out.Session, out.Provider); err != nil {
			return "", err
		}
		return say.OtherSession, nil
	case command.Discard:
		if err := ib.moveSession(ctx, m.Chat, "", ""); err != nil {
			return "", err
		}
		return say.Discarded, ib.b.opt.Runner.DeleteSession(ctx, conv.Session())
	}
	return out.Text, nil
}
