package report

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// These are the parts of an OTLP request that WriteOTel uses, for its JSON encoding. Ids are hexadecimal, and 64-bit
// numbers are strings.
type (
	otelRequest struct {
		ResourceSpans []otelResourceSpans `json:"resourceSpans"`
	}
	otelResourceSpans struct {
		Resource   otelResource     `json:"resource"`
		ScopeSpans []otelScopeSpans `json:"scopeSpans"`
	}
	otelResource struct {
		Attributes otelAttributes `json:"attributes"`
	}
	otelScopeSpans struct {
		Scope     otelScope  `json:"scope"`
		Spans     []otelSpan `json:"spans"`
		SchemaURL string     `json:"schemaUrl"`
	}
	otelScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otelSpan struct {
		TraceID    string         `json:"traceId"`
		SpanID     string         `json:"spanId"`
		Parent     string         `json:"parentSpanId,omitempty"`
		Name       string         `json:"name"`
		Kind       int            `json:"kind"`
		Start      string         `json:"startTimeUnixNano"`
		End        string         `json:"endTimeUnixNano"`
		Attributes otelAttributes `json:"attributes"`
		Events     []otelEvent    `json:"events,omitempty"`
		Status     otelStatus     `json:"status"`
	}
	otelEvent struct {
		Time       string         `json:"timeUnixNano"`
		Name       string         `json:"name"`
		Attributes otelAttributes `json:"attributes,omitempty"`
	}
	otelStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	otelAttributes []otelAttribute
	otelAttribute  struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// These are OTLP's numbers for kinds of spans and for the status "error".
const (
	otelInternal = 1
	otelClient   = 3
	otelError    = 2
)

// otelSchema is the address of the semantic conventions. The spans use the names of these conventions.
const otelSchema = "https://opentelemetry.io/schemas/1.41.0"

// addText adds an attribute unless its value is empty. Copies of addText at its many uses would make the program
// larger.
//
//go:noinline
func (a *otelAttributes) addText(key, value string) {
	if value != "" {
		*a = append(*a, otelAttribute{key, map[string]any{"stringValue": value}})
	}
}

func (a *otelAttributes) addNumber(key string, value int64) {
	*a = append(*a, otelAttribute{key, map[string]any{"intValue": strconv.FormatInt(value, 10)}})
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// traceID returns the id of a run's trace, as OpenTelemetry requires it.
func traceID(r event.Refs) string {
	if b, err := hex.DecodeString(string(r.Trace)); err == nil && len(b) == 16 &&
		string(r.Trace) != "00000000000000000000000000000000" {
		return hex.EncodeToString(b)
	}
	sum := sha256.Sum256([]byte("perlica trace\x00" + string(r.Run)))
	return hex.EncodeToString(sum[:16])
}

// spanID returns an id that depends only on the run, the kind and the id of the span's object. So the same log always
// gives the same spans.
func spanID(run event.RunID, what, id string) string {
	sum := sha256.Sum256([]byte("perlica span\x00" + string(run) + "\x00" + what + "\x00" + id))
	return hex.EncodeToString(sum[:8])
}

// WriteOTel writes runs as OpenTelemetry traces. The query q selects the inputs of these runs. Each line is an OTLP
// request in JSON with the spans of one run. The names follow the semantic conventions for generative AI. The run's
// span is invoke_agent. Below it are an execute_tool span for each tool call, and a span for the waiting time of each
// question. The spans have durations, numbers and names, but no texts of inputs and answers. All times are times of
// events.
func WriteOTel(ctx context.Context, w io.Writer, log *store.Reader, q event.Query, opt FormatOptions) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for e, err := range inputs(ctx, log, q) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		spans, err := runSpans(ctx, log, e, opt)
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		res := otelResource{}
		res.Attributes.addText("service.name", "perlica")
		res.Attributes.addText("service.version", opt.Version)
		res.Attributes.addText("perlica.context", e.Context)
		req := otelRequest{[]otelResourceSpans{{res, []otelScopeSpans{{
			Scope: otelScope{"github.com/perlica/perlica", opt.Version}, Spans: spans, SchemaURL: otelSchema,
		}}}}}
		if err := enc.Encode(req); err != nil {
			return err
		}
	}
	return out.Flush()
}

type tracer struct {
	opt   FormatOptions
	run   event.RunID
	spans []otelSpan     // the first one is the run's span
	open  map[string]int // indexes of the spans of tools and questions, by span id
	// end is the time of the newest event.
	end time.Time
}

// runSpans returns the spans of the run with this input.
func runSpans(ctx context.Context, log *store.Reader, input event.Event, opt FormatOptions) ([]otelSpan, error) {
	t := tracer{opt: opt, run: input.Run, open: map[string]int{}, end: input.Time}
	t.spans = []otelSpan{{
		TraceID: traceID(input.Refs), SpanID: spanID(input.Run, "run", ""), Kind: otelClient, Start: nanos(input.Time),
	}}
	provider, conversation, err := t.identifyAgent(ctx, log, input)
	if err != nil {
		return nil, err
	}
	root := &t.spans[0]
	root.Name = "invoke_agent " + provider
	root.Attributes.addText("gen_ai.operation.name", "invoke_agent")
	root.Attributes.addText("gen_ai.provider.name", cmp.Or(genAIProviders[provider], provider))
	root.Attributes.addText("gen_ai.agent.name", provider)
	root.Attributes.addText("gen_ai.conversation.id", conversation)
	root.Attributes.addText("perlica.run.id", string(input.Run))
	root.Attributes.addText("perlica.session.id", string(input.Session))
	root.Attributes.addText("perlica.input.id", string(input.Input))
	for step, err := range Story(ctx, log, input.Run, event.Query{}) {
		if err != nil {
			return nil, err
		}
		t.tellStep(step)
	}
	for i := range t.spans {
		if t.spans[i].End == "" {
			t.spans[i].End = nanos(t.end)
		}
	}
	return t.spans, nil
}

// genAIProviders maps agents to the names that the conventions use for their makers.
var genAIProviders = map[string]string{"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}

// identifyAgent returns the called provider, and the id of the agent's session.
func (t *tracer) identifyAgent(ctx context.Context, log *store.Reader,
	input event.Event) (provider, conversation string, err error) {
	if m, err := fact.Decode[fact.MessageReceived](input); err == nil {
		provider = m.Provider
	}
	last, _, err := log.Last(ctx, event.Query{Run: t.run, Class: event.Fact})
	return cmp.Or(provider, "unknown"), string(last.Conversation), err
}

func (t *tracer) tellStep(step Step) {
	if step.At.After(t.end) {
		t.end = step.At
	}
	switch w := step.What.(type) {
	case StepInput:
		t.addDamage(step, w.Damage)
	case StepTool:
		t.addTool(step, w)
	case StepAsked:
		t.asked(step, w)
	case StepClosed:
		t.closed(step, w)
	case StepOutcome:
		t.outcome(step, w)
	case StepNote:
		t.addNote(step, w)
	}
}

func (t *tracer) child(name, id string, at time.Time) *otelSpan {
	t.open[id] = len(t.spans)
	t.spans = append(t.spans, otelSpan{
		TraceID: t.spans[0].TraceID, SpanID: id, Parent: t.spans[0].SpanID, Name: name, Kind: otelInternal, Start: nanos(at),
	})
	return &t.spans[len(t.spans)-1]
}

func (t *tracer) addTool(step Step, w StepTool) {
	id := spanID(t.run, "tool", w.ID)
	i, known := t.open[id]
	if !known {
		name := cmp.Or(w.Kind, "other")
		s := t.child("execute_tool "+name, id, step.At)
		s.Attributes.addText("gen_ai.operation.name", "execute_tool")
		s.Attributes.addText("gen_ai.tool.name", name)
		s.Attributes.addText("gen_ai.tool.call.id", t.opt.mask(w.ID))
		s.Attributes.addText("gen_ai.tool.description", t.opt.mask(w.Title))
		i = t.open[id]
	}
	s := &t.spans[i]
	switch w.Status {
	case "completed":
		s.End = nanos(step.At)
	case "failed":
		s.End = nanos(step.At)
		s.Attributes.addText("error.type", "tool_failed")
		s.Status.Code = otelError
	}
}

func (t *tracer) asked(step Step, w StepAsked) {
	s := t.child("ask_permission", spanID(t.run, "question", string(w.ID)), step.At)
	s.Attributes.addText("perlica.question.id", string(w.ID))
	s.Attributes.addText("perlica.question.title", t.opt.mask(w.Title))
	s.Attributes.addText("perlica.question.tool.kind", w.Subject.Kind)
	s.Attributes.addText("perlica.question.why", t.opt.mask(w.Why))
}

func (t *tracer) closed(step Step, w StepClosed) {
	i, ok := t.open[spanID(t.run, "question", string(w.Question.ID))]
	if !ok {
		return // the payload of the question itself is missing
	}
	s := &t.spans[i]
	s.End = nanos(step.At)
	if w.Answer == nil {
		s.Attributes.addText("perlica.question.lapsed", string(w.Reason))
		return
	}
	s.Attributes.addText("perlica.answer.by", w.Answer.By)
	s.Attributes.addText("perlica.answer.where", w.Answer.Where)
	s.Attributes.addText("perlica.answer.option", w.Answer.Option)
	for _, o := range w.Question.Options {
		if o.ID == w.Answer.Option {
			s.Attributes.addText("perlica.answer.kind", o.Kind)
		}
	}
}

func (t *tracer) outcome(step Step, w StepOutcome) {
	t.addDamage(step, w.Damage)
	s := &t.spans[0]
	s.End = nanos(step.At)
	s.Attributes.addText("perlica.outcome", string(w.Outcome))
	if w.StopReason != "" {
		reasons := map[string]any{"values": []map[string]any{{"stringValue": w.StopReason}}}
		s.Attributes = append(s.Attributes, otelAttribute{"gen_ai.response.finish_reasons",
			map[string]any{"arrayValue": reasons}})
	}
	if in, out, ok := w.Tokens(); ok {
		s.Attributes.addNumber("gen_ai.usage.input_tokens", in)
		s.Attributes.addNumber("gen_ai.usage.output_tokens", out)
	}
	if w.Cost != nil {
		s.Attributes = append(s.Attributes, otelAttribute{"perlica.cost.amount",
			map[string]any{"doubleValue": w.Cost.Amount}})
		s.Attributes.addText("perlica.cost.currency", w.Cost.Currency)
	}
	if w.Outcome == record.OutcomeResponded {
		return
	}
	s.Status = otelStatus{Code: otelError}
	kind := "_OTHER"
	if w.Err != nil {
		kind = cmp.Or(string(w.Err.Type), kind)
		s.Status.Message = t.opt.mask(w.Err.Message)
	}
	if w.Outcome == record.OutcomeUnknown {
		kind = "outcome_unknown"
	}
	s.Attributes.addText("error.type", kind)
}

// addDamage adds an event about damage to the run's span, if the step's own event is damaged. The parameter "row"
// is the sentence about the damage, or nil.
func (t *tracer) addDamage(step Step, row *message.Text) {
	if row == nil {
		return
	}
	e := otelEvent{Time: nanos(step.At), Name: "perlica.damaged"}
	e.Attributes.addText("perlica.text", row.Text)
	t.spans[0].Events = append(t.spans[0].Events, e)
}

// addNote adds important facts and decisions as events of the run's span.
func (t *tracer) addNote(step Step, w StepNote) {
	if w.Type.Outcome() { // an outcome without its payload
		t.spans[0].End = nanos(step.At)
		t.spans[0].Attributes.addText("perlica.outcome", strings.TrimPrefix(string(w.Type), "llm."))
		if w.Type != event.Responded {
			t.spans[0].Status.Code = otelError
		}
		return
	}
	if !w.Bad && w.Type != event.PolicyDecided && w.Type != event.CancelRequested && w.Type != event.Truncated {
		return
	}
	e := otelEvent{Time: nanos(step.At), Name: "perlica." + string(w.Type)}
	if w.Type != event.LineMalformed { // the text of a malformed line may be a part of the answer
		e.Attributes.addText("perlica.text", t.opt.mask(w.Text))
	}
	t.spans[0].Events = append(t.spans[0].Events, e)
}
