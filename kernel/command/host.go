package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/language"
)

// Host carries commands out. Its fields are set by the front end, which also keeps them true:
// after an [Effect] the conversation may be another one.
type Host struct {
	Runner       *kernel.Runner // nil: only /pending, /allow, /deny and /choose can be given, for questions of Team
	Conversation *kernel.Conversation
	Agents       agents.Resolver
	Workspace    config.Workspace
	Dirs         config.Dirs
	By           string              // who gives the commands
	Where        string              // from where: "chat", "phone"
	Origin       *interaction.Origin // the process that gives them; nil: they come over a channel
	Say          *language.Sentences // in which it answers; nil: English

	// May says whether the user has a right. Nil: all of them.
	May func(Need) bool
	// Only is the one session that, with its questions and runs, is the business of the user who gives
	// the commands. Empty: all are.
	Only event.SessionID
	// Named says that an answer must name its question: there the only one that waits may be
	// another than the one that was read.
	Named bool
	// Team has the questions of a team's workers. Nil: there are none.
	Team Team
	// Now is the clock. Nil means that of the system.
	Now func() time.Time
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
	Resume          // let the person choose a session to go on with, among those in which the words of Output.Path were said
	Queue           // show the inputs that wait; or, with Output.Path, take the one of that number back into the line, or the "last", or "send" those that are held
	Copy            // copy the last answer to the clipboard
	Unfold          // show all that a tool call led to: the one of the number Output.Path, or the "last"
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

// A usageError says how a command is used.
type usageError struct{ Command Command }

func (e *usageError) Error() string { return e.In(language.English.Sentences()) }

// In is what the error says in a language.
func (e *usageError) In(say *language.Sentences) string {
	return say.Usage(e.Command.Name, e.Command.Args)
}

// Do carries out a command that Parse found. The error is for the user: it says what is
// wrong and, where that is not plain, what to do.
func (h *Host) Do(ctx context.Context, l Line) (Output, error) {
	c, ok := lookup(l.Name)
	if !ok {
		return Output{}, &unknownError{Name: l.Name, Near: nearest(l.Name, nil)}
	}
	need := c.Need
	if l.Args == "" && need == Admin && !slices.Contains([]string{"save", "discard"}, l.Name) {
		need = Read // it only lists
	}
	if h.May != nil && !h.May(need) {
		return Output{}, fmt.Errorf("/%s: %w", l.Name, ErrRight)
	}
	if c.Args == "" && l.Args != "" { // "/discard that" means another session than this one
		return Output{}, &usageError{c}
	}
	args := strings.Fields(l.Args)
	if l.Name == "attach" && l.Args != "" {
		args = []string{l.Args} // blanks are part of a path
	}
	out, err := c.do(h, ctx, args)
	if errors.Is(err, errUsage) {
		err = &usageError{c}
	}
	return out, err
}

func (h *Host) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// say returns the sentences in which the host answers.
func (h *Host) say() *language.Sentences { return cmp.Or(h.Say, language.English.Sentences()) }

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

func (h *Host) resume(ctx context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{Effect: Resume}, nil
	}
	return h.sessionUse(ctx, args)
}

func (h *Host) search(_ context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	return Output{Effect: Resume, Path: strings.Join(args, " ")}, nil
}

func unqueue(_ *Host, _ context.Context, args []string) (Output, error) {
	return Output{Effect: Queue, Path: cmp.Or(strings.Join(args, " "), "last")}, nil
}

func send(*Host, context.Context, []string) (Output, error) {
	return Output{Effect: Queue, Path: "send"}, nil
}

func unfold(_ *Host, _ context.Context, args []string) (Output, error) {
	return Output{Effect: Unfold, Path: cmp.Or(strings.Join(args, " "), "last")}, nil
}

var errUsage = errors.New("that is not how it is used")

func effect(e Effect) func(*Host, context.Context, []string) (Output, error) {
	return func(*Host, context.Context, []string) (Output, error) { return Output{Effect: e}, nil }
}

// headings stand before the first command of a group, where help tells of all commands.
var headings = map[string]string{"pending": "Questions", "cancel": "Inputs", "session": "Sessions", "provider": "The agent", "log": "The record and the rest"}

func (h *Host) help(_ context.Context, args []string) (Output, error) {
	var b strings.Builder
	for _, c := range h.listed() {
		if len(args) > 0 && !same(c.Name, strings.TrimPrefix(args[0], "/")) {
			continue
		}
		if heading := headings[c.Name]; heading != "" && h.Say == nil && len(args) == 0 {
			b.WriteString("\n**" + heading + "**\n\n")
		}
		fmt.Fprintf(&b, "- `%s` — %s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), c.Help)
	}
	if b.Len() == 0 {
		name := strings.TrimPrefix(args[0], "/")
		return Output{}, &unknownError{Name: name, Near: nearest(name, nil)}
	}
	if len(args) == 0 {
		if o, _, ok := h.offers(); ok && len(o.Commands) > 0 {
			b.WriteString(h.say().AgentsOwn)
			for _, c := range o.Commands {
				h.list(&b, false, agentsOwn(c.Name), h.literal(brief(c.Description)))
			}
		}
		b.WriteString(h.say().SlashSlash)
	}
	return Output{Text: b.String()}, nil
}

// same reports whether two names are those of one command.
func same(a, b string) bool {
	a, aheadA := unaliased(a)
	b, aheadB := unaliased(b)
	return a == b && aheadA == aheadB
}

// listed are the commands of which help tells: those of a phone, which has fewer and may speak another
// language, as far as the contact may give them; else all.
func (h *Host) listed() (list []language.Command) {
	if h.Say != nil {
		return h.allowed()
	}
	for _, c := range Commands() {
		list = append(list, language.Command{Name: c.Name, Args: c.Args, Help: c.Help})
	}
	return list
}

// allowed are the commands of a phone that its contact may give: also one that only lists without arguments.
func (h *Host) allowed() (list []language.Command) {
	for _, c := range h.Say.Commands {
		name, _ := unaliased(c.Name)
		known, ok := lookup(name)
		need := known.Need
		if c.Args != "" && need == Admin {
			need = Read
		}
		if !ok || h.May == nil || h.May(need) {
			list = append(list, c)
		}
	}
	return list
}

// agentsOwn is how an agent's own command is typed: one that bears the name of a command of ours
// takes two slashes.
func agentsOwn(name string) string {
	if known(name) && name != givesWay {
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
	stop := kernel.Stop{By: "user", Why: "/cancel by " + h.By + " from the " + h.Where, Person: h.By}
	if len(args) == 0 {
		if h.Cancel == nil || !h.Cancel(stop) {
			return Output{}, errors.New("no turn is under way here; /cancel RUN stops one elsewhere")
		}
		return Output{Text: h.say().AskedToStop}, nil
	}
	run, err := h.findRun(ctx, args[0])
	if err != nil {
		return Output{}, err
	}
	if err := h.Runner.CancelRun(ctx, run, stop); err != nil {
		return Output{}, err
	}
	return Output{Text: h.say().StopsElsewhere}, nil
}

// offers are the agent's; there are none while no agent has opened its session.
func (h *Host) offers() (kernel.Offers, string, bool) {
	if h.Conversation == nil {
		return kernel.Offers{}, "", false
	}
	return h.Conversation.Offers()
}

// list writes a list, with a mark at the chosen one.
func (h *Host) list(b *strings.Builder, chosen bool, name, text string) {
	mark := ""
	if chosen {
		mark = h.say().Now
	}
	if text != "" {
		text = " — " + text
	}
	fmt.Fprintf(b, "- `%s`%s%s\n", name, mark, text)
}
