package report

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/record"
)

// WriteHTML writes runs as one web page. The query q selects the inputs of these runs. It writes each run's Story, and
// at the end the log's root and its newest checkpoint. The page loads nothing and has no scripts. The agent's words
// appear as plain text. WriteHTML writes and flushes run by run.
func WriteHTML(ctx context.Context, w io.Writer, log *store.Reader, q event.Query, opt FormatOptions) error {
	out := bufio.NewWriter(w)
	p := pageWriter{page: markup{out}, log: log, opt: opt, costs: map[string]float64{}}
	return errors.Join(p.writePage(ctx, q), out.Flush())
}

// pageWriter writes one page and adds up the runs, the tokens and the costs on it.
type pageWriter struct {
	page markup
	log  *store.Reader
	opt  FormatOptions

	runs    int
	in, out int64 // numbers of tokens
	costs   map[string]float64
}

func (p *pageWriter) writePage(ctx context.Context, q event.Query) error {
	origin, err := p.log.Origin(ctx)
	if err != nil {
		return err
	}
	size, root, err := p.log.Head(ctx)
	if err != nil {
		return err
	}
	note, _, err := p.log.LastCheckpoint(ctx, 0)
	if err != nil {
		return err
	}
	first, _, err := p.log.Last(ctx, event.Query{})
	if err != nil {
		return err
	}
	p.page.putHead(p.opt.Version, plain(origin), plain(first.Context), first.Time.UTC().Format(time.DateOnly),
		p.opt.Mask != nil)
	for e, err := range inputs(ctx, p.log, q) {
		if err != nil {
			return err
		}
		if err := p.writeRun(ctx, e); err != nil {
			return err
		}
	}
	counts := []string{english.Plural(p.runs, "run", "") + " on this page", tokens(p.in, p.out), p.cost()}
	counts = slices.DeleteFunc(counts, func(s string) bool { return s == "" })
	p.page.putTail(strings.Join(counts, ", "), size, root.String(), strings.TrimSpace(plain(note.Note)))
	return nil
}

func tokens(in, out int64) string {
	if in+out == 0 {
		return ""
	}
	return fmt.Sprintf("%d tokens in, %d out", in, out)
}

func (p *pageWriter) cost() string {
	var list []string
	for currency, amount := range p.costs {
		list = append(list, fmt.Sprintf("%.4f %s", amount, currency))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (p *pageWriter) writeRun(ctx context.Context, input event.Event) error {
	p.runs++
	r := pageStory{p: p, start: input.Time, tools: map[string]time.Time{}}
	r.Run = plain(string(input.Run))
	r.Title = "An input that is no longer on record"
	r.addFact("when", input.Time.UTC().Format("2006-01-02 15:04:05")+" UTC")
	for step, err := range Story(ctx, p.log, input.Run, event.Query{}) {
		if err != nil {
			return err
		}
		r.tellStep(step)
	}
	if !r.ended {
		r.addFact("outcome", "none on record: the run is under way, or its process is gone")
	}
	r.addFact("run", string(input.Run))
	r.addFact("session", string(input.Session))
	r.addFact("input", string(input.Input))
	p.page.putRun(r.pageRun)
	return p.page.w.Flush() // an error means that the reader has disconnected
}

// pageStory converts a run's story to a part of the page.
type pageStory struct {
	pageRun
	p     *pageWriter
	start time.Time
	tools map[string]time.Time // the start of each tool call, by its id
	ended bool
}

// text masks a text and makes hidden characters visible.
func (r *pageStory) text(s string) string { return plain(r.p.opt.mask(s)) }

// plain replaces the characters that a browser would hide: control characters, and characters that change the direction
// of the text.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return '␀' + r // the visible symbol of the control character
		case r == 0x7f:
			return '␡'
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f,
			r == 0x61c:
			return '\ufffd'
		}
		return r
	}, s)
}

func (r *pageStory) addFact(name, value string) {
	if value != "" {
		r.Facts = append(r.Facts, pageFact{name, r.text(value)})
	}
}

func (r *pageStory) addStep(at time.Time, s pageStep) {
	s.At = fmt.Sprintf("%+.3fs", at.Sub(r.start).Seconds())
	s.Head, s.Note = r.text(s.Head), r.text(s.Note)
	r.Steps = append(r.Steps, s)
}

// block returns a text as one block of the page. For an empty text it returns nil.
func (r *pageStory) block(s string) [][]pagePiece {
	if s = strings.TrimRight(r.text(s), "\n"); s == "" {
		return nil
	}
	return [][]pagePiece{{{Text: s}}}
}

func (r *pageStory) tellStep(step Step) {
	at := step.At
	switch w := step.What.(type) {
	case StepInput:
		r.input(at, w)
	case StepSaid:
		s := pageStep{Class: "said", Head: "The agent says:", Body: r.block(w.Text)}
		if w.Thought {
			s = pageStep{Class: "thought", Head: "The agent thinks", Body: s.Body, Hide: true}
		}
		r.addStep(at, s)
	case StepTool:
		r.tool(at, w)
	case StepAsked:
		r.addStep(at, pageStep{
			Class: "question", Head: w.Subject.Provider + " asks: " + cmp.Or(w.Title, "use a tool"), Note: w.Why,
			Body: r.subject(w.Question),
		})
	case StepClosed:
		r.closed(at, w)
	case StepOutcome:
		r.outcome(at, w)
	case StepNote:
		class := "note"
		if w.Bad {
			class = "bad"
		}
		r.ended = r.ended || w.Type.Outcome()
		r.addFact("sandbox", w.Sandbox)
		r.addStep(at, pageStep{Class: class, Head: w.Words() + ": " + w.Text, Body: r.changes(w.Unasked)})
	}
}

func (r *pageStory) input(at time.Time, in StepInput) {
	if in.Damage != nil {
		r.Title = "A damaged input"
		r.addStep(at, pageStep{Class: "bad", Head: in.Damage.Text})
		return
	}
	if in.Pruned {
		r.addStep(at, pageStep{Class: "note", Head: "what was asked is no longer on record"})
		return
	}
	r.Title = beginning(r.text(in.Text))
	r.addFact("asked by", in.Sender+" ("+in.Source+")")
	r.addFact("provider", in.Provider)
	r.addFact("in", in.Dir)
	body := r.block(in.Text)
	for _, path := range in.Attachments {
		body = append(body, r.block("attached: "+path)...)
	}
	r.addStep(at, pageStep{Class: "input", Head: in.Sender + " asks:", Body: body})
}

func (r *pageStory) tool(at time.Time, t StepTool) {
	s := pageStep{Class: "tool", Head: "• " + cmp.Or(t.Title, t.ID),
		Note: strings.TrimSpace(t.Kind + " " + words(t.Status))}
	began, known := r.tools[t.ID]
	if !known {
		r.tools[t.ID] = at
	}
	switch {
	case t.Status == "failed", t.Call.Failed():
		s.Class, s.Head = "bad", "✗ "+cmp.Or(t.Title, t.ID)
	case t.Status == "completed":
		s.Class, s.Head = "good", "✓ "+cmp.Or(t.Title, t.ID)
	}
	if known {
		s.Note += ", after " + at.Sub(began).Round(time.Millisecond).String()
	}
	r.addStep(at, s)
}

func (r *pageStory) subject(q interaction.Question) (body [][]pagePiece) {
	for _, c := range q.Subject.Commands {
		body = append(body, r.block(c)...)
	}
	for _, d := range q.Subject.Diffs {
		body = append(body, r.change(d.Path, d.Old, d.New))
	}
	for _, t := range q.Subject.Text {
		body = append(body, r.block(t)...)
	}
	if len(q.Subject.Commands)+len(q.Subject.Diffs) == 0 {
		body = append(body, r.block(strings.Join(q.Subject.Paths, "\n"))...)
		if raw := string(q.Subject.RawInput); raw != "{}" && raw != "null" {
			body = append(body, r.block(raw)...)
		}
	}
	return body
}

// change returns the lines of a diff between two texts.
func (r *pageStory) change(path, before, after string) (lines []pagePiece) {
	text := string(diff.Diff(path, []byte(before), path, []byte(after)))
	for line := range strings.Lines(r.text(text)) {
		class := ""
		switch {
		case strings.HasPrefix(line, "diff "):
			continue
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		}
		lines = append(lines, pagePiece{class, line})
	}
	return lines
}

// changes returns the files that a tool call changed without a question.
func (r *pageStory) changes(u *unasked) (body [][]pagePiece) {
	if u == nil {
		return nil
	}
	for _, l := range u.Call.Locations {
		body = append(body, r.block(l.Path)...)
	}
	for _, c := range u.Call.Content {
		if c.Type == "diff" {
			body = append(body, r.change(c.Path, c.OldText, c.NewText))
		}
	}
	return body
}

func (r *pageStory) closed(at time.Time, c StepClosed) {
	after := "after " + c.Took.Round(time.Millisecond).String()
	if c.Answer == nil {
		r.addStep(at, pageStep{Class: "bad", Head: "No one answered: " + words(string(c.Reason)), Note: after})
		return
	}
	label, class := c.Answer.Option, "good"
	for _, o := range c.Question.Options {
		if o.ID == c.Answer.Option {
			label = cmp.Or(o.Label, o.ID)
			if !o.Allows() {
				class = "bad"
			}
		}
	}
	r.addStep(at, pageStep{Class: class, Head: c.Answer.By + " answers: " + label,
		Note: "from " + c.Answer.Where + ", " + after})
}

func (r *pageStory) outcome(at time.Time, o StepOutcome) {
	r.ended = true
	r.addFact("outcome", strings.TrimSpace(words(string(o.Outcome))+" "+o.StopReason))
	if o.Damage != nil {
		r.addStep(at, pageStep{Class: "outcome bad", Head: words(string(o.Outcome)) + ": " + o.Damage.Text})
		return
	}
	if o.Pruned {
		r.addStep(at, pageStep{Class: "outcome", Head: words(string(o.Outcome)) + ": what it said is no longer on record"})
		return
	}
	if o.Duration > 0 {
		r.addFact("took", o.Duration.Round(time.Millisecond).String())
	}
	s := pageStep{Class: "outcome", Head: "Responded: " + o.StopReason + " after " +
		o.Duration.Round(time.Millisecond).String()}
	if in, out, ok := o.Tokens(); ok {
		r.p.in, r.p.out = r.p.in+in, r.p.out+out
		s.Note = tokens(in, out)
		r.addFact("tokens", fmt.Sprintf("%d in, %d out", in, out))
	}
	if o.Cost != nil {
		r.p.costs[r.text(o.Cost.Currency)] += o.Cost.Amount
		r.addFact("cost", fmt.Sprintf("%.4f %s", o.Cost.Amount, o.Cost.Currency))
	}
	if o.Outcome != record.OutcomeResponded {
		why := "nothing else is known"
		if o.Err != nil {
			why = o.Err.Error()
		}
		s.Class, s.Head, s.Note = "outcome bad", words(string(o.Outcome))+": "+why, o.Known
	}
	if !o.Shown {
		s.Body = r.block(o.Text)
	}
	r.addStep(at, s)
}
