package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
)

// Host carries commands out. Its fields are set by the front end, which also keeps them true:
// after an [Effect] the conversation may be another one.
type Host struct {
	Runner       *kernel.Runner
	Conversation *kernel.Conversation
	Agents       agents.Resolver
	Workspace    config.Workspace
	Dirs         config.Dirs
	By           string              // who gives the commands
	Where        string              // from where: "chat", "phone"
	Origin       *interaction.Origin // the process that gives them; nil: they come over a channel

	// May says whether the user has a right. Nil: all of them.
	May func(Need) bool
	// Only is the one session that, with its questions and runs, is the business of the user who gives
	// the commands. Empty: all are.
	Only event.SessionID
	// Named says that an answer must name its question: there the only one that waits may be
	// another than the one that was read.
	Named bool
	// Cancel stops the turn under way and reports whether there was one. Nil: there never is.
	Cancel func(kernel.Stop) bool
}

// Effect is what the front end has to do after a command.
type Effect int

// The effects.
const (
	None     Effect = iota
	Exit            // leave
	Switch          // go on in Output.Session, or, if that is empty, in a new one with Output.Provider
	Recall          // put the last input back into the line
	Attach          // add Output.Path to the next input
	Discard         // as Exit, but the session goes off the lists when it is closed
	Thoughts        // show thoughts, or hide them again
	Export          // write the record of this session to Output.Path
)

// Output is what a command answers: text in Markdown, and what is to be done.
type Output struct {
	Text     string
	Effect   Effect
	Session  event.SessionID
	Provider string
	Path     string
}

// ErrRight says that the user may not give a command.
var ErrRight = errors.New("you may not do that here")

// A UsageError says how a command is used.
type UsageError struct{ Command Command }

func (e *UsageError) Error() string {
	return strings.TrimSpace("use it as /" + e.Command.Name + " " + e.Command.Args)
}

// Do carries out a command that Parse found. The error is for the user: it says what is
// wrong and, where that is not plain, what to do.
func (h *Host) Do(ctx context.Context, l Line) (Output, error) {
	c, ok := lookup(l.Name)
	if !ok {
		return Output{}, &UnknownError{Name: l.Name, Near: nearest(l.Name, nil)}
	}
	need := c.Need
	if l.Args == "" && need == Admin && !slices.Contains([]string{"save", "discard"}, l.Name) {
		need = Read // it only lists
	}
	if h.May != nil && !h.May(need) {
		return Output{}, fmt.Errorf("/%s: %w", l.Name, ErrRight)
	}
	if c.Args == "" && l.Args != "" { // "/discard that" means another session than this one
		return Output{}, &UsageError{c}
	}
	args := strings.Fields(l.Args)
	if l.Name == "attach" && l.Args != "" {
		args = []string{l.Args} // blanks are part of a path
	}
	out, err := c.do(h, ctx, args)
	if errors.Is(err, errUsage) {
		err = &UsageError{c}
	}
	return out, err
}

func (h *Host) attach(_ context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	return Output{Effect: Attach, Path: unquoted(args[0])}, nil
}

// unquoted is a path without the quotes that somebody put around it.
func unquoted(path string) string {
	if n := len(path); n > 2 && path[0] == '"' && path[n-1] == '"' {
		return path[1 : n-1]
	}
	return path
}

var errUsage = errors.New("that is not how it is used")

func effect(e Effect) func(*Host, context.Context, []string) (Output, error) {
	return func(*Host, context.Context, []string) (Output, error) { return Output{Effect: e}, nil }
}

func (h *Host) help(_ context.Context, args []string) (Output, error) {
	var b strings.Builder
	for _, c := range Commands() {
		if len(args) > 0 && c.Name != strings.TrimPrefix(args[0], "/") {
			continue
		}
		fmt.Fprintf(&b, "- `%s` — %s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), c.Help)
	}
	if b.Len() == 0 {
		name := strings.TrimPrefix(args[0], "/")
		return Output{}, &UnknownError{Name: name, Near: nearest(name, nil)}
	}
	if len(args) == 0 {
		if o, _, ok := h.offers(); ok && len(o.Commands) > 0 {
			b.WriteString("\nThe agent's own, sent to it as they are:\n\n")
			for _, c := range o.Commands {
				list(&b, false, agentsOwn(c.Name), literal(brief(c.Description)))
			}
		}
		b.WriteString("\n`//x` sends `/x` to the agent.\n")
	}
	return Output{Text: b.String()}, nil
}

// agentsOwn is how an agent's own command is typed: one that bears the name of a command of ours
// takes two slashes.
func agentsOwn(name string) string {
	if Known(name) {
		return "//" + name
	}
	return "/" + name
}

// brief is the first line of what an agent says of a command, at most 72 letters of it: some
// tell their models at length when to use it.
func brief(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(text); len(r) > 72 {
		return strings.TrimSpace(string(r[:71])) + "…"
	}
	return text
}

func (h *Host) exit(ctx context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{Effect: Exit}, nil
	}
	out, err := h.save(ctx, args)
	out.Effect = Exit
	return out, err
}

func (h *Host) cancel(ctx context.Context, args []string) (Output, error) {
	stop := kernel.Stop{By: "user", Why: "/cancel by " + h.By + " from the " + h.Where}
	if len(args) == 0 {
		if h.Cancel == nil || !h.Cancel(stop) {
			return Output{}, errors.New("no turn is under way here; /cancel RUN stops one elsewhere")
		}
		return Output{Text: "The agent was asked to stop."}, nil
	}
	run, err := h.findRun(ctx, args[0])
	if err != nil {
		return Output{}, err
	}
	if err := h.Runner.CancelRun(ctx, run, stop); err != nil {
		return Output{}, err
	}
	return Output{Text: "Its process was told to stop it."}, nil
}

// offers are the agent's; there are none while no agent has opened its session.
func (h *Host) offers() (kernel.Offers, string, bool) {
	if h.Conversation == nil {
		return kernel.Offers{}, "", false
	}
	return h.Conversation.Offers()
}

// list writes a list, with a mark at the chosen one.
func list(b *strings.Builder, chosen bool, name, text string) {
	mark := ""
	if chosen {
		mark = " (now)"
	}
	if text != "" {
		text = " — " + text
	}
	fmt.Fprintf(b, "- `%s`%s%s\n", name, mark, text)
}
