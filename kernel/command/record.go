package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/checkup"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

// shownEvents is the number of events that /log shows without an argument.
const shownEvents = 10

func (h *Host) log(ctx context.Context, args []string) (Output, error) {
	switch {
	case len(args) == 0:
		return h.events(ctx, shownEvents)
	case len(args) == 2 && args[0] == "show":
		return h.story(ctx, args[1])
	case len(args) == 1 && args[0] == "verify":
		log := &h.Runner.Log().Reader
		origin, err := log.Origin(ctx)
		if err != nil {
			return Output{}, err
		}
		keys, err := evidence.ReadKeys(h.Dirs.KeyDir())
		if err != nil {
			return Output{}, err
		}
		rep, err := verify.Log(ctx, log, verify.Options{Keys: keys.Verifiers(origin), Audit: &report.Audit{}, NoImport: true})
		if err != nil {
			return Output{}, err
		}
		if !rep.OK() {
			f := rep.Findings[0]
			return Output{Text: fmt.Sprintf(h.say().Damaged, f.Kind, rep.FirstBad, h.say().Read(f.What, f.Coded))}, nil
		}
		return Output{Text: fmt.Sprintf(h.say().Verified, rep.Events, rep.Signed, rep.Root)}, nil
	case len(args) == 1:
		if n, err := strconv.Atoi(args[0]); err == nil && n > 0 && n <= 1000 {
			return h.events(ctx, n)
		}
	}
	return Output{}, errUsage
}

func (h *Host) events(ctx context.Context, n int) (Output, error) {
	q := event.Query{Session: h.Conversation.Session(), Class: event.Fact, Newest: true, Limit: n}
	var lines []string
	for e, err := range h.Runner.Log().Events(ctx, q) {
		if err != nil {
			return Output{}, err
		}
		name := fmt.Sprintf("%s  %s ", e.Time.Local().Format(time.TimeOnly), h.called(e.Type))
		if h.Say == nil {
			name = fmt.Sprintf("%d  %s", e.Seq, name)
		}
		lines = append(lines, name+" "+report.Summarize(e, h.say()))
	}
	if len(lines) == 0 {
		return Output{Text: h.say().NothingOnLog}, nil
	}
	var b strings.Builder
	b.WriteString("```\n")
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(strings.ReplaceAll(lines[i], "```", "'''") + "\n")
	}
	b.WriteString("```\n")
	return Output{Text: b.String()}, nil
}

// called returns the name of an event for a list. On a phone it returns a title in the user's language, because a type
// name means nothing there.
func (h *Host) called(t event.Type) string {
	if h.Say == nil {
		return string(t)
	}
	title := report.Title(t)
	if title.Code == "" {
		_, name, _ := strings.Cut(string(t), ".")
		return h.Say.Word(strings.NewReplacer("_", " ", ".", " ").Replace(name)) + ":"
	}
	return h.Say.Say(title) + ":"
}

// story returns the facts of a run, one per line.
func (h *Host) story(ctx context.Context, ref string) (Output, error) {
	run, err := h.findRun(ctx, ref)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	for e, err := range h.Runner.Log().Events(ctx, event.Query{Run: run, Class: event.Fact}) {
		if err != nil {
			return Output{}, err
		}
		fmt.Fprintf(&b, "- %s `%s` %s\n", e.Time.Local().Format(time.TimeOnly), h.called(e.Type),
			report.Summarize(e, h.say()))
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) usage(ctx context.Context, _ []string) (Output, error) {
	var n, calls int
	var in, out int64
	var took time.Duration
	cost := map[string]float64{}
	var meter fact.Meter
	runs := map[event.RunID]*record.Record{}
	types := []event.Type{event.Responded, event.ProviderError, event.OutcomeUnknown, event.CallEnforced}
	for e, err := range h.Runner.Log().Events(ctx, event.Query{Session: h.Conversation.Session(), Types: types}) {
		if err != nil {
			return Output{}, err
		}
		r := runs[e.Run]
		if r == nil {
			r = &record.Record{}
			runs[e.Run] = r
		}
		if err := r.Apply(e); err == nil && e.Type.Outcome() {
			i, o, amount := meter.Add(e.Refs, r.Report())
			in, out = in+i, out+o
			if r.Cost != nil {
				cost[r.Cost.Currency] += amount
			}
		}
		r.Text = ""
	}
	for _, r := range runs {
		if r.Outcome != "" {
			n++
		}
		calls, took = calls+r.Calls, took+r.Duration
	}
	say := h.say()
	text := fmt.Sprintf("%s, %s, %s", language.Count(n, say.Turn, say.Turns), language.Count(calls, say.Call, say.Calls),
		say.Span(took))
	if in+out > 0 {
		text += fmt.Sprintf(say.Tokens, in, out)
	}
	for currency, amount := range cost {
		if amount == 0 {
			continue // a model without a price
		}
		text += ", " + fact.Cost{Amount: amount, Currency: currency}.String()
	}
	return Output{Text: text + say.Stop}, nil
}

func (h *Host) budget(ctx context.Context, _ []string) (Output, error) {
	list, err := h.Runner.Budgets(ctx, h.Conversation.Session())
	if err != nil {
		return Output{}, err
	}
	if len(list) == 0 {
		return Output{Text: h.say().Say(noBudgets)}, nil
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "- `%s`", s.Budget)
		if renewal := s.Renewal(); renewal != nil {
			b.WriteString(", " + h.say().Say(renewal))
		}
		b.WriteByte('\n')
		for _, a := range s.Amount {
			fmt.Fprintf(&b, "  - %s\n", strings.TrimSpace(a.Bar()+" "+h.say().Say(a.Sentence())))
		}
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) flow(ctx context.Context, args []string) (Output, error) {
	switch {
	case len(args) > 1:
		return Output{}, errUsage
	case h.Only != nil: // a flow run belongs to no session
		return Output{}, errRight
	case h.Flows == nil:
		return Output{Text: h.say().Say(noFlows)}, nil
	}
	text, err := h.Flows(ctx, strings.Join(args, ""), h.say())
	if text == "" && err == nil {
		text = h.say().Say(noFlows)
	}
	return Output{Text: text}, err
}

func (h *Host) doctor(ctx context.Context, _ []string) (Output, error) {
	var b strings.Builder
	good := 0
	checkup.Checkup{Held: true, Dirs: h.Dirs, Workspace: h.Workspace, Config: h.Agents.Config, Agents: h.Agents,
		Auditor: report.NewAuditor}.Run(ctx, func(c checkup.Check) {
		if c.Status == checkup.OK {
			good++
			return
		}
		b.WriteString(h.say().Found(string(c.Status), c.Name, c.Detail, c.Hint))
	})
	if b.Len() > 0 {
		b.WriteString(h.say().SeeDoctor)
	}
	fmt.Fprintf(&b, h.say().ChecksAreWell, good)
	return Output{Text: b.String()}, nil
}
