// Package command implements the slash commands that all front ends share, such as the chat and the phone.
//
// A typing mistake is never sent to an agent. A line that begins with a slash is a command, or an error with a
// suggestion. "//x" sends the text "/x" to the agent. A [Host] carries out a command and answers with text. If the
// front end itself must act, the answer also has an [Effect]. Free text approves nothing: /choose needs a number, an
// option's id or its exact label.
package command

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/sessions"
)

// Line is a line that a person typed: a message to the agent or a command.
type Line struct {
	// Text is the text of a message.
	Text string
	// Name is the name of a command, without its slash. Empty means that the line is a message.
	Name string
	// Args is the text after the name.
	Args string
}

// Need is the right that a command requires. Front ends that strangers can reach grant fewer rights.
type Need int

// These are the rights that commands require.
const (
	// Read is the right to look.
	Read Need = iota
	// Ask is the right to send inputs.
	Ask
	// Approve is the right to answer questions.
	Approve
	// Admin is the right to change permanent settings.
	Admin
)

// Command describes one command.
type Command struct {
	Name string
	// Args describes the arguments in the help text.
	Args string
	Help string
	Need Need
	do   func(*Host, context.Context, []string) (Output, error)
}

// Commands returns all commands in the order of the help text.
func Commands() []Command {
	return []Command{
		{"help", "[COMMAND]", "list these commands", Read, (*Host).help},
		{"pending", "", "the questions that wait for an answer", Read, (*Host).pending},
		{"choose", "[ID] N|TEXT", "answer a question with one of its options: number, id or exact label", Approve,
			(*Host).choose},
		{"allow", "[ID] [WORD]", "say yes to a question, this once", Approve, (*Host).allow},
		{"deny", "[ID]", "say no to a question, this once", Approve, (*Host).deny},
		{"cancel", "[RUN]", "stop the turn that is under way", Ask, (*Host).cancel},
		{"again", "", "put the last input back into the line; sending it is a new input", Ask, effect(Recall)},
		{"attach", "PATH", "add a file to the next input", Ask, (*Host).attach},
		{"queue", "", "the inputs that wait for the end of the turn", Read, effect(Queue)},
		{"unqueue", "[N]", "take an input that waits back into the line: that number, or the last", Ask, unqueue},
		{"withdraw", "[N]", "the same, as it is called on a phone", Ask, unqueue},
		{"send", "[N]", "send what is held: that number, or the only one", Ask, send},
		{"show", "[N]", "all that a tool did whose result was folded: that number, or the last", Read, unfold},
		{"session", "[list [--all]|new [NAME]|use REF|show [REF]|current|rename NAME|delete REF|export FILE]",
			"see and change sessions", Admin, (*Host).session},
		{"resume", "[REF]", "choose a session to go on with, or go on with that one", Admin, (*Host).resume},
		{"search", "WORDS", "find what was said in the record, and go on in its session", Admin, (*Host).search},
		{"save", "[NAME]", "keep this session on the lists", Admin, (*Host).save},
		{"discard", "", "take this session off every list; its events stay on the log", Admin, effect(Discard)},
		{"clear", "", "go on in a new session", Ask, effect(Switch)},
		{"provider", "[NAME]", "the agents; with a name, a new session with that one", Admin, (*Host).provider},
		{"mode", "[ID]", "the agent's modes; with an id, choose one", Admin, (*Host).mode},
		{"model", "[ID]", "the agent's models; with an id, choose one", Admin, (*Host).model},
		{"config", "[ID VALUE]", "the agent's options; with a value, set one", Admin, (*Host).option},
		{"policy", "[revoke ID]", "the standing approvals; or take one back", Admin, (*Host).policy},
		{"log", "[N|show REF|verify]", "the newest events of this session; a run as a story; check the record", Read,
			(*Host).log},
		{"thoughts", "", "show the agent's thoughts, or hide them again, where they can be shown", Read, effect(Thoughts)},
		{"status", "", "the session, its agent, model and mode, and where the record is", Read, (*Host).status},
		{"compact", "", "the agent's own command, if it has one: it shortens its context", Ask, (*Host).compact},
		{"usage", "", "turns, tokens and cost of this session", Read, (*Host).usage},
		{"budget", "", "the used amounts of the budgets, and the times of their renewal", Read, (*Host).budget},
		{"flow", "[RUN]", "the newest flow runs; with an id, the steps of one", Read, (*Host).flow},
		{"schedules", "[pause ID|resume ID]", "the schedules with their next times; pause one, or resume it", Admin,
			(*Host).schedules},
		{"copy", "", "copy the last answer to the clipboard, where the terminal can", Read, effect(Copy)},
		{"doctor", "", "what is broken", Read, (*Host).doctor},
		{"exit", "[NAME]", "leave, as /quit does; with a name, keep the session under it", Ask, (*Host).exit},
	}
}

// Waits reports whether the front end must delay a command until the current turn ends. Such a command changes the
// session, the agent or the next line.
func (l Line) Waits() bool {
	switch l.Name {
	case "again", "attach", "discard", "clear", "exit", "thoughts", "resume", "search", "show":
		return true
	case "provider", "mode", "model", "config":
		return l.Args != ""
	case "session":
		verb, _, _ := strings.Cut(l.Args, " ")
		return slices.Contains([]string{"new", "use", "delete", "export"}, verb)
	}
	return false
}

// unknownError means that a command does not exist, so nothing was sent.
type unknownError struct {
	Name string
	// Near is an existing command with a similar name, or "".
	Near string
}

func (e *unknownError) Error() string { return e.In(language.English.Sentences()) }

// In returns the error's text. The parameter "say" decides the language.
func (e *unknownError) In(say *language.Sentences) string {
	if e.Near != "" {
		return fmt.Sprintf(say.NoCommandNear, e.Name, e.Near)
	}
	return fmt.Sprintf(say.NoCommand, e.Name)
}

// Parse separates commands from messages. agents has the names of the agent's own commands, which Parse passes on as
// text. A slash alone, or before a space or another slash in the first word, is an error. So "/usr/bin is full" is an
// error, too.
func Parse(line string, agents ...string) (Line, error) {
	rest, slash := strings.CutPrefix(line, "/")
	if !slash {
		return Line{Text: line}, nil
	}
	if strings.HasPrefix(rest, "/") {
		return Line{Text: rest}, nil
	}
	name, args, _ := strings.Cut(rest, " ")
	if name = strings.TrimSpace(name); !slices.Contains(agents, name) {
		var ahead string
		name, ahead = unaliased(name)
		args = ahead + " " + args
	}
	if known(name) && (name != givesWay || !slices.Contains(agents, name)) {
		return Line{Name: name, Args: strings.TrimSpace(args)}, nil
	}
	if slices.Contains(agents, name) {
		return Line{Text: line}, nil
	}
	return Line{}, &unknownError{Name: name, Near: nearest(name, agents)}
}

// unaliased returns the command for an alias, and the argument that the alias adds first. For "sessions" these are
// "session" and "list".
func unaliased(name string) (command, ahead string) {
	switch name {
	case "quit":
		return "exit", ""
	case "stop":
		return "cancel", ""
	case "new":
		return "clear", ""
	case "sessions":
		return "session", "list"
	case "export":
		return "session", "export"
	case "cost":
		return "usage", ""
	}
	return name, ""
}

// givesWay is the name of a command that Perlica leaves to the agent, if the agent has a command with this name.
const givesWay = "compact"

// known reports whether name is a command.
func known(name string) bool {
	_, ok := lookup(name)
	return ok
}

func lookup(name string) (Command, bool) {
	all := Commands()
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return all[i], true
}

// nearest returns the name of the command that was probably meant, or "". The returned name begins with the typed name,
// or at most one letter in three is wrong.
func nearest(name string, agents []string) string {
	best, least := "", math.MaxInt
	names := append(slices.Clone(agents), each(Commands(), func(c Command) string { return c.Name })...)
	for _, n := range names {
		d, ok := 1, len(name) >= 3 && strings.HasPrefix(n, name)
		if !ok {
			d, ok = mistakes([]rune(name), []rune(n))
		}
		if ok && d < least {
			best, least = n, d
		}
	}
	return best
}

// mistakes returns the number of wrong, missing and extra letters. Two swapped letters are one mistake. ok is false if
// the number is too high for a typing mistake.
func mistakes(typed, meant []rune) (n int, ok bool) {
	most := max(len(typed), len(meant)) / 3
	if max(len(typed)-len(meant), len(meant)-len(typed)) > most {
		return 0, false // the typed text may be very long
	}
	n = levenshtein.Distance(string(typed), string(meant), nil)
	for i := 1; i < len(typed); i++ {
		swapped := slices.Clone(typed)
		swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
		n = min(n, 1+levenshtein.Distance(string(swapped), string(meant), nil))
	}
	return n, n <= most
}

// Complete returns possible replacements for the last word of a command line: command names, the agent's own commands,
// or arguments. It returns nil for a line without a slash.
func (h *Host) Complete(ctx context.Context, line string) []string {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return nil
	}
	words := strings.Split(rest, " ")
	last := words[len(words)-1]
	if len(words) == 1 {
		return starting(h.names(), "/"+last)
	}
	return starting(h.arguments(ctx, words[0], words[1:len(words)-1]), last)
}

func each[T any](list []T, name func(T) string) (names []string) {
	for _, x := range list {
		names = append(names, name(x))
	}
	return names
}

func starting(all []string, prefix string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

func (h *Host) names() []string {
	list := each(Commands(), func(c Command) string { return "/" + c.Name })
	o, _, _ := h.offers()
	for _, c := range o.Commands {
		if !known(c.Name) {
			list = append(list, "/"+c.Name)
		}
	}
	return list
}

// arguments returns the possible next words of a command line. The parameter "before" has the words so far.
func (h *Host) arguments(ctx context.Context, name string, before []string) []string {
	o, _, _ := h.offers()
	if verbs := map[string][]string{
		"session": {"list", "new", "use", "show", "current", "rename", "delete", "export"}, "log": {"show", "verify"},
		"policy": {"revoke"}, "schedules": {"pause", "resume"},
	}[name]; verbs != nil && len(before) == 0 {
		return verbs
	}
	switch {
	case name == "resume" && len(before) == 0:
		return h.sessionNames(ctx)
	case name == "session" && len(before) == 1 && slices.Contains([]string{"use", "show", "delete"}, before[0]):
		return h.sessionNames(ctx)
	case len(before) > 0 && name != "config":
		return nil
	}
	var list []string
	switch name {
	case "help":
		return each(Commands(), func(c Command) string { return c.Name })
	case "provider":
		return each(h.Agents.List(), func(l agents.Listing) string { return l.ID })
	case "mode":
		for _, m := range o.Modes {
			list = append(list, string(m.Id))
		}
	case "model":
		_, list, _ = o.Models()
	case "config":
		for _, opt := range o.Options {
			id, _, _, values := agents.DescribeOption(opt)
			if len(before) == 0 {
				list = append(list, id)
			} else if len(before) == 1 && before[0] == id {
				return values
			}
		}
	case "allow", "deny", "choose":
		open, _ := h.openQuestions(ctx) // if the list cannot be read, there are no completions
		return append(each(open, func(q interaction.Question) string { return short(string(q.ID)) }),
			each(h.shown(), func(q asked) string { return short(string(q.ID)) })...)
	}
	return list
}

func (h *Host) sessionNames(ctx context.Context) (names []string) {
	_ = h.viewSessions(ctx, func(v *sessions.View) error { // if the list cannot be read, there are no completions
		sessions, err := v.List(ctx, true)
		for _, s := range sessions {
			if s.Name != "" {
				names = append(names, s.Name)
			} else {
				names = append(names, short(string(s.ID)))
			}
		}
		return err
	})
	return names
}
