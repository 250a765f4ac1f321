package origin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// call is a tool call with everything that the record has about its changes of files.
type call struct {
	provider.ToolCall
	source
	begin    event.Seq // the first report
	at       time.Time // of the report source.End
	decision Decision
	shown    provider.ToolCall   // the newest request
	approved []provider.ToolCall // the allowed requests
}

// readingOf returns a tool call as policy reads it.
func (r *runReader) readingOf(t provider.ToolCall) policy.Reading {
	call := policy.ToolCall{Agent: r.agent, Kind: string(t.Kind), RawInput: t.RawInput}
	for _, l := range t.Locations {
		call.Locations = append(call.Locations, l.Path)
	}
	for _, c := range t.Content {
		if c.Type == "diff" {
			call.Diffs = append(call.Diffs, policy.Diff{Path: c.Path, Old: c.OldText, New: c.NewText})
		}
	}
	return policy.ReadToolCall(call, shell.Place{Dir: r.dir})
}

// runReader collects the tool calls of one run.
type runReader struct {
	change  Change // the fields that are equal in all changes of the run
	agent   string // id of the agent in the registry
	dir     string
	calls   map[string]*call
	order   []*call
	asked   map[string]*call              // open requests by their ids
	decided map[string]fact.PolicyDecided // by the ids of the requests
}

// read has the types of the events that a runReader needs.
var read = []event.Type{
	event.NotificationReceived, event.MessageReceived, event.SessionStarted, event.ReplySent, event.PolicyDecided,
	event.PolicyUnasked,
}

// readRun reads the tool calls of a run.
func readRun(ctx context.Context, log event.Reader, run event.RunID) (*runReader, error) {
	r := &runReader{calls: map[string]*call{}, asked: map[string]*call{},
		decided: map[string]fact.PolicyDecided{}}
	for e, err := range log.Events(ctx, event.Query{Run: run, Types: read}) {
		if err != nil {
			return nil, err
		}
		if e.Payload != nil {
			r.addEvent(e)
		}
	}
	if len(r.order) == 0 {
		return r, nil
	}
	return r, r.findAgent(ctx, log)
}

// ofRun returns the recorded changes of a run, in the order in which their tool calls ended.
func ofRun(ctx context.Context, log event.Reader, run event.RunID) ([]Change, error) {
	r, err := readRun(ctx, log, run)
	if err != nil {
		return nil, err
	}
	return r.changes(), nil
}

func (r *runReader) addEvent(e event.Event) {
	switch e.Type {
	case event.NotificationReceived:
		r.addFrame(e)
	case event.MessageReceived:
		if m, err := fact.Decode[fact.MessageReceived](e); err == nil {
			r.change = Change{Run: e.Run, Session: e.Session, Input: e.Input, Text: beginning(m.Text), By: m.Sender}
			r.dir, r.agent = m.Dir, cmp.Or(r.agent, m.Provider)
		}
	case event.SessionStarted:
		if s, err := fact.Decode[fact.SessionStarted](e); err == nil {
			r.introduce(s)
		}
	case event.PolicyDecided:
		if d, err := fact.Decode[fact.PolicyDecided](e); err == nil {
			r.decided[d.Request] = d
		}
	case event.ReplySent:
		if s, err := fact.Decode[fact.ReplySent](e); err == nil {
			r.addReply(s, e.Interaction)
		}
	case event.PolicyUnasked:
		if u, err := fact.Decode[fact.UnaskedTool](e); err == nil && r.calls[u.ID] != nil {
			r.calls[u.ID].decision = Decision{Kind: unasked, Why: u.Why, Question: u.FreedBy, Coded: u.Coded}
		}
	}
}

func (r *runReader) introduce(s fact.SessionStarted) {
	if s.Agent == nil {
		return
	}
	if k, ok := registry.Introduced(s.Agent.Name); ok {
		r.agent = k.ID
	}
}

// addFrame adds a report about a tool call, or a request for permission.
func (r *runReader) addFrame(e event.Event) {
	if !bytes.Contains(e.Payload, []byte(`"toolCallId"`)) {
		return
	}
	if u, ok := provider.ParseUpdate(e.Payload, ""); ok {
		if u.Tool != nil {
			c := r.call(string(u.Tool.ID))
			c.add(e, *u.Tool)
			c.source.Created = c.source.Created || showsCreation(u)
		}
		return
	}
	if p, ok := provider.ParsePermission(e.Payload); ok {
		c := r.call(string(p.Tool.ID))
		if c.Status == "completed" {
			return // An answer cannot allow a change that was made before.
		}
		p.Tool.Status = "" // The status of a request says nothing about the tool.
		c.add(e, p.Tool)
		r.asked[p.ID], c.shown = c, c.ToolCall
	}
}

func (r *runReader) call(id string) *call {
	c := r.calls[id]
	if c == nil {
		c = &call{decision: Decision{Kind: unrecorded}}
		r.calls[id], r.order = c, append(r.order, c)
	}
	return c
}

// start returns the number of the event with the first report about a tool call, or 0.
func (r *runReader) start() (first event.Seq) {
	for _, c := range r.order {
		if first == 0 || c.begin < first {
			first = c.begin
		}
	}
	return first
}

// add merges a report into the call. A report without diffs keeps the earlier diffs, because some agents replace
// them with a sentence about the success.
func (c *call) add(e event.Event, t provider.ToolCall) {
	if slices.ContainsFunc(t.Content, func(c provider.ToolContent) bool { return c.Type == "diff" }) {
		c.source.Diff = e.Seq
	} else {
		t.Content = nil
	}
	if input := bytes.TrimSpace(t.RawInput); len(input) == 0 || string(input) == "{}" || string(input) == "null" {
		t.RawInput = nil
	} else {
		c.source.Args = e.Seq
	}
	if c.Status != "completed" { // A later report does not change the time of the change.
		c.source.End, c.at = e.Seq, e.Time
	}
	c.begin = cmp.Or(c.begin, e.Seq)
	c.Merge(t)
}

// showsCreation reports whether an agent reports in its own form that the tool has made a new file.
func showsCreation(u provider.Update) bool {
	var report struct {
		Meta struct {
			Claude struct {
				Response struct {
					Type string `json:"type"`
				} `json:"toolResponse"`
			} `json:"claudeCode"`
		} `json:"_meta"`
		Output struct {
			Metadata struct {
				Exists *bool `json:"exists"`
			} `json:"metadata"`
		} `json:"rawOutput"`
	}
	_ = json.Unmarshal(u.Raw, &report) // a report of another form shows nothing
	exists := report.Output.Metadata.Exists
	return report.Meta.Claude.Response.Type == "create" || exists != nil && !*exists
}

// addReply adds Perlica's answer to a request.
func (r *runReader) addReply(s fact.ReplySent, question event.InteractionID) {
	c := r.asked[s.RequestID]
	if c == nil {
		return
	}
	delete(r.asked, s.RequestID)
	if strings.HasPrefix(s.Kind, "allow") {
		c.approved = append(c.approved, c.shown)
	}
	switch {
	case !strings.HasPrefix(s.Kind, "allow"):
		if c.decision.Kind == unrecorded {
			c.decision = Decision{Kind: refused, Who: s.By, Question: question}
		}
	case question != "":
		c.decision = Decision{Kind: person, Who: s.By, Question: question}
	default:
		c.decision = r.decisionOf(s)
	}
}

// decisionOf returns the recorded decision of the policy that led to a reply, and forgets it. The agent may use the id
// of the request again after the reply.
func (r *runReader) decisionOf(s fact.ReplySent) Decision {
	d, ok := r.decided[s.RequestID]
	if !ok || d.Option != s.Option {
		return Decision{Kind: "policy"}
	}
	delete(r.decided, s.RequestID)
	return Decision{Kind: d.By, Why: d.Why, Coded: d.Coded}
}

// findAgent looks for the agent's name in an earlier run, because an agent that serves several runs tells it once.
func (r *runReader) findAgent(ctx context.Context, log event.Reader) error {
	if _, ok := registry.Lookup(r.agent); ok || r.change.Session == "" {
		return nil
	}
	q := event.Query{Session: r.change.Session, Types: []event.Type{event.SessionStarted},
		Until: r.order[0].source.End}
	started, ok, err := log.Last(ctx, q)
	if err != nil || !ok {
		return err
	}
	if s, err := fact.Decode[fact.SessionStarted](started); err == nil {
		r.introduce(s)
	}
	return nil
}

// changes returns the changes of the calls that ran or may have run.
func (r *runReader) changes() (list []Change) {
	sort.SliceStable(r.order, func(i, j int) bool { return r.order[i].source.End < r.order[j].source.End })
	known, ok := registry.Lookup(r.agent)
	waiting := slices.Collect(maps.Values(r.asked))
	for _, c := range r.order {
		done := c.Status == "completed"
		var approved []policy.Reading
		for _, a := range c.approved {
			approved = append(approved, r.readingOf(a))
		}
		if !policy.Shows(approved, r.readingOf(c.ToolCall), shell.Place{Dir: r.dir}) && !c.decision.Unasked() {
			c.decision = Decision{Kind: unasked, Why: otherContent.Text, Coded: otherContent.Coded}
		}
		if c.Status == "failed" || !done && (c.decision.Kind == refused || slices.Contains(waiting, c)) {
			continue
		}
		change := r.change
		change.At, change.Call, change.Perhaps, change.Decision = c.at, string(c.ID), !done, c.decision
		change.source = c.source
		if c.source.Diff > 0 {
			change.source.Args = 0 // The content is in the diffs.
		}
		change.source.Dir = r.dir
		if ok {
			change.source.Agent = known.ID
		}
		for i, e := range editsOf(known, r.dir, c.source.Created, c.ToolCall) {
			change.Path, change.Removes, change.Whole, change.source.Nth = e.path, e.removes, e.whole, i
			change.Added, change.Removed = countLines(e)
			list = append(list, change)
		}
	}
	return list
}

// otherContent is the reason why a change counts as unasked although its tool call was allowed.
var otherContent = message.New("origin.other-content", "it wrote another content than the allowed one")

// maxText is the maximum length of Change.Text, in characters.
const maxText = 60

// beginning returns the first nonempty line of a text, cut to maxText characters.
func beginning(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			if r := []rune(line); len(r) > maxText {
				return string(r[:maxText-1]) + "…"
			}
			return line
		}
	}
	return ""
}
