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
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
)

// Host carries out commands. The front end sets the fields and updates them: after an [Effect] it may replace the
// conversation.
type Host struct {
	// Runner may be nil. In that case only /pending, /allow, /deny and /choose work, and only for questions of Team.
	Runner       *kernel.Runner
	Conversation *kernel.Conversation
	Agents       agents.Resolver
	Workspace    config.Workspace
	Dirs         config.Dirs
	// By is the name of the person that gives the commands.
	By string
	// Where is the front end of that person: "chat" or "phone".
	Where string
	// Origin is the process that gives the commands. Nil means that the commands come from a messaging channel.
	Origin *interaction.Origin
	// Say holds the sentences for the answers in the user's language. Nil means English.
	Say *language.Sentences

	// May reports whether the user has a right. Nil grants all rights.
	May func(Need) bool
	// Only limits the user to these sessions, with their questions and runs. Nil means all sessions.
	Only []event.SessionID
	// Named means that an answer must name its question. On such a channel, a newer question may be waiting when the
	// person answers the question on the screen.
	Named bool
	// Team has the questions of a team's workers. Nil means that there is no team.
	Team Team
	// Flows describes the newest flow runs of the log or, with the parameter "ref", the steps of one. Nil means that
	// the host has no log.
	Flows func(ctx context.Context, ref string, say *language.Sentences) (string, error)
	// Now is the clock. Nil means the system's clock.
	Now func() time.Time
	// Schedules pauses or resumes a schedule, and returns lines about schedules; see schedule.Slash. Nil
	// means that no schedule is configured.
	Schedules func(ctx context.Context, verb, id, by string) ([]*message.Text, error)
	// Cancel stops the current turn and reports whether a turn was running. Nil means that no turn ever runs.
	Cancel func(fact.Stop) bool
}

// Effect is the action that the front end must take after a command.
type Effect int

// These are the effects of commands.
const (
	None Effect = iota
	// Exit leaves the front end.
	Exit
	// Switch continues with the session in Output.Session. If that is empty, it opens a new session with
	// Output.Provider.
	Switch
	// Recall puts the last input back into the input line.
	Recall
	// Attach adds Output.Path to the next input.
	Attach
	// Discard leaves the front end, and removes the session from the lists when the session is closed.
	Discard
	// Thoughts switches the display of thoughts on or off.
	Thoughts
	// Export writes the record of the current session to the file Output.Path.
	Export
	// Resume lets the person choose a session. If Output.Path has words, only sessions with these words are offered.
	Resume
	// Queue shows the waiting inputs. If Output.Path is a number or "last", Queue takes that input back into the input
	// line. If it is "send", Queue sends the held inputs.
	Queue
	// Copy copies the last answer to the clipboard.
	Copy
	// Unfold shows the full output of a tool call. Output.Path is the number of the call or "last".
	Unfold
)

// Output is the answer to a command: a text in Markdown, and an effect.
type Output struct {
	Text     string
	Effect   Effect
	Session  event.SessionID
	Provider string
	Path     string
}

// errRight means that the user lacks the right for a command.
var errRight = message.New("command.right", "you may not do that here")

// A usageError means wrong arguments, and shows the usage of the command.
type usageError struct{ Command Command }

func (e *usageError) Error() string { return e.In(language.English.Sentences()) }

// In returns the error's text. The parameter "say" decides the language.
func (e *usageError) In(say *language.Sentences) string {
	return say.Usage(e.Command.Name, e.Command.Args)
}

// Do carries out a command that Parse returned. The error's text is for the user. It names the fault and, unless that
// is obvious, the next step.
func (h *Host) Do(ctx context.Context, l Line) (Output, error) {
	c, ok := lookup(l.Name)
	if !ok {
		return Output{}, &unknownError{Name: l.Name, Near: nearest(l.Name, nil)}
	}
	need := c.Need
	if l.Args == "" && need == Admin && !slices.Contains([]string{"save", "discard"}, l.Name) {
		need = Read // without arguments the command only lists
	}
	if h.May != nil && !h.May(need) {
		return Output{}, fmt.Errorf("/%s: %w", l.Name, errRight)
	}
	if c.Args == "" && l.Args != "" { // the command "/discard that" may mean another session
		return Output{}, &usageError{c}
	}
	args := strings.Fields(l.Args)
	if l.Name == "attach" && l.Args != "" {
		args = []string{l.Args} // a path may contain spaces
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

// say returns the sentences of the host's language.
func (h *Host) say() *language.Sentences { return cmp.Or(h.Say, language.English.Sentences()) }

func (h *Host) attach(_ context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	return Output{Effect: Attach, Path: unquoted(args[0])}, nil
}

// unquoted removes the quotes around a path.
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

// headings maps the first command of a group to the group's heading in the full help text.
var headings = map[string]string{"pending": "Questions", "cancel": "Inputs", "session": "Sessions",
	"provider": "The agent", "log": "The record and the rest"}

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
				h.writeItem(&b, false, agentsOwn(c.Name), h.literal(brief(c.Description)))
			}
		}
		b.WriteString(h.say().SlashSlash)
	}
	return Output{Text: b.String()}, nil
}

// same reports whether two names are the same command, directly or as aliases.
func same(a, b string) bool {
	a, aheadA := unaliased(a)
	b, aheadB := unaliased(b)
	return a == b && aheadA == aheadB
}

// listed returns the commands of the help text. On a phone, it returns the phone commands that the contact may use, in
// the phone's language. Other front ends get all commands.
func (h *Host) listed() (list []language.Command) {
	if h.Say != nil {
		return h.allowed()
	}
	for _, c := range Commands() {
		list = append(list, language.Command{Name: c.Name, Args: c.Args, Help: c.Help})
	}
	return list
}

// allowed returns the phone commands that the contact may use. Without arguments, a command of the right Admin only
// lists. So reading is enough for its short form.
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

// agentsOwn returns the agent's own command as a person must type it. If Perlica has a command with this name, the
// person must type two slashes.
func agentsOwn(name string) string {
	if known(name) && name != givesWay {
		return "//" + name
	}
	return "/" + name
}

// brief returns the first line of an agent's description of a command, cut to 72 letters. The rest often is advice for
// the agent's model.
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
	stop := fact.NewStop("user", cancelledBy.With(h.By, h.Where))
	stop.Person = h.By
	if len(args) == 0 {
		if h.Cancel == nil || !h.Cancel(stop) {
			return Output{}, noTurnHere
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

// offers returns the agent's offers. ok is false until an agent has opened its session.
func (h *Host) offers() (kernel.Offers, string, bool) {
	if h.Conversation == nil {
		return kernel.Offers{}, "", false
	}
	return h.Conversation.Offers()
}

// writeItem writes one list item. If the parameter "chosen" is true, writeItem marks the item as the present choice.
func (h *Host) writeItem(b *strings.Builder, chosen bool, name, text string) {
	mark := ""
	if chosen {
		mark = h.say().Now
	}
	if text != "" {
		text = " — " + text
	}
	fmt.Fprintf(b, "- `%s`%s%s\n", name, mark, text)
}
