package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// counters hold the values of the metrics. The values of a log follow from its facts alone. Each
// fact is read once, and a restarted server counts the same values.
type counters struct {
	// mu guards the fields below.
	mu sync.Mutex
	of map[place]*counted
	// writes counts the writes to streams.
	writes int64
	// append is the duration of the last test append to a log.
	append time.Duration
}

// counted holds the counts of a log up to an event.
type counted struct {
	origin    string
	upTo      event.Seq
	providers map[event.RunID]string // the providers of the runs without an outcome
	runs      map[ending]int64
	took      map[string]*histogram // by provider
	tokens    map[direction]int64
	meter     fact.Meter
}

type ending struct{ provider, outcome string }

type direction struct{ provider, way string }

// buckets are the upper ends of a histogram of durations, in seconds.
var buckets = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

type histogram struct {
	in    [12]int64 // the last one counts all longer durations
	sum   float64
	count int64
}

func (h *histogram) addValue(seconds float64) {
	i, _ := slices.BinarySearch(buckets, seconds)
	h.in[i]++
	h.sum += seconds
	h.count++
}

func (c *counters) streamed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
}

func (c *counters) tried(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.append = d
}

func newCounted(origin string) *counted {
	return &counted{
		origin: origin, providers: map[event.RunID]string{}, runs: map[ending]int64{}, took: map[string]*histogram{},
		tokens: map[direction]int64{},
	}
}

// countFacts reads the new facts of a log.
func (c *counters) countFacts(ctx context.Context, l *eventLog, log logReader) error {
	origin, err := log.Origin(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[l.place]
	if n == nil || n.origin != origin && n.origin != "" {
		n = newCounted(origin)
		c.of[l.place] = n
	}
	n.origin = origin
	types := []event.Type{event.Requested, event.Responded, event.ProviderError, event.OutcomeUnknown}
	for e, err := range log.Events(ctx, event.Query{After: n.upTo, Types: types}) {
		if err != nil {
			return err
		}
		n.addEvent(e)
	}
	return nil
}

func (n *counted) addEvent(e event.Event) {
	n.upTo = e.Seq
	var r record.Record
	// Apply fails for an unreadable event. The event still counts, because its type is known.
	_ = r.Apply(e)
	if e.Type == event.Requested {
		if f, err := fact.Decode[fact.Requested](e); err == nil {
			n.providers[e.Run] = f.Provider
		}
		return
	}
	provider := cmp.Or(n.providers[e.Run], r.Provider)
	delete(n.providers, e.Run)
	n.runs[ending{provider, string(r.Outcome)}]++
	if n.took[provider] == nil {
		n.took[provider] = &histogram{}
	}
	n.took[provider].addValue(r.Duration.Seconds())
	if _, _, ok := r.Tokens(); ok {
		r.Provider = provider
		in, out, _ := n.meter.Add(e.Refs, r.Report())
		n.tokens[direction{provider, "input"}] += in
		n.tokens[direction{provider, "output"}] += out
	}
}

// metrics writes the numbers in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), place{})
	if err != nil {
		return err
	}
	type now struct{ living, questions int }
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) (n now, err error) {
		if err := s.counts.countFacts(ctx, l, log); err != nil {
			return n, err
		}
		living, err := l.living(ctx, log)
		if err != nil {
			return n, err
		}
		open, err := l.pending(ctx, log)
		return now{len(living), len(open)}, err
	})
	var b exposition
	b.head("perlica_open_runs", "gauge", "Runs whose process lives.")
	for _, l := range list {
		if n, ok := of[l]; ok {
			b.line("perlica_open_runs", float64(n.living), "project", l.Project, "context", l.Context)
		}
	}
	b.head("perlica_open_questions", "gauge", "Questions that wait for an answer.")
	for _, l := range list {
		if n, ok := of[l]; ok {
			b.line("perlica_open_questions", float64(n.questions), "project", l.Project, "context", l.Context)
		}
	}
	b.head("perlica_unreadable_logs", "gauge", "Logs that cannot be read.")
	b.line("perlica_unreadable_logs", float64(len(bad)))
	s.inputs.mu.Lock()
	under := len(s.inputs.pending)
	s.inputs.mu.Unlock()
	b.head("perlica_inputs_under_way", "gauge",
		"Inputs that came over HTTP and have no result yet; those that wait for a turn are among them.")
	b.line("perlica_inputs_under_way", float64(under))
	s.counts.writeMetrics(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write([]byte(b.String()))
	return nil
}

// writeMetrics writes all counts.
func (c *counters) writeMetrics(b *exposition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.head("perlica_stream_writes_total", "counter", "Writes to streams of events.")
	b.line("perlica_stream_writes_total", float64(c.writes))
	b.head("perlica_append_seconds", "gauge", "How long the log took that the last /readyz made, wrote and removed.")
	b.line("perlica_append_seconds", c.append.Seconds())
	all := newCounted("")
	for _, n := range c.of {
		for k, v := range n.runs {
			all.runs[k] += v
		}
		for k, v := range n.tokens {
			all.tokens[k] += v
		}
		for k, h := range n.took {
			if all.took[k] == nil {
				all.took[k] = &histogram{}
			}
			for i := range h.in {
				all.took[k].in[i] += h.in[i]
			}
			all.took[k].sum, all.took[k].count = all.took[k].sum+h.sum, all.took[k].count+h.count
		}
	}
	b.head("perlica_runs_total", "counter", "Runs by their outcome.")
	for k, v := range all.runs {
		b.line("perlica_runs_total", float64(v), "provider", k.provider, "outcome", k.outcome)
	}
	b.head("perlica_tokens_total", "counter", "Tokens, as agents report them.")
	for k, v := range all.tokens {
		b.line("perlica_tokens_total", float64(v), "provider", k.provider, "direction", k.way)
	}
	b.head("perlica_run_duration_seconds", "histogram", "From an input to its outcome.")
	for provider, h := range all.took {
		b.histogram("perlica_run_duration_seconds", provider, h)
	}
}

// exposition is text in the format of Prometheus.
type exposition struct{ strings.Builder }

func (b *exposition) head(name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// line writes a number with its labels. The labels are pairs of a name and a value.
func (b *exposition) line(name string, v float64, labels ...string) {
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(labels[i] + `="` + escaper.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

func (b *exposition) histogram(name, provider string, h *histogram) {
	n := int64(0)
	for i, most := range buckets {
		n += h.in[i]
		b.line(name+"_bucket", float64(n), "provider", provider, "le", strconv.FormatFloat(most, 'g', -1, 64))
	}
	b.line(name+"_bucket", float64(h.count), "provider", provider, "le", "+Inf")
	b.line(name+"_sum", h.sum, "provider", provider)
	b.line(name+"_count", float64(h.count), "provider", provider)
}

// escaper escapes the value of a label between quotes.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
