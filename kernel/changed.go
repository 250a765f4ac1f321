package kernel

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
)

// changes holds the files that a session's agent changed, as far as the agent's lines show. The files follow from the
// log alone, so that every process finds the same files. If a person allowed a tool call, only its effects beyond that
// permission are added.
type changes struct {
	mu    sync.Mutex              // guards the fields below
	upTo  event.Seq               // the newest event that was read
	runs  []*runChanges           // the newest runs, oldest first
	heard map[acp.ToolCallId]bool // ids of the tool calls of older runs
	files shell.Changed
}

// runChanges holds the tool calls of a run.
type runChanges struct {
	run     event.RunID
	tools   map[acp.ToolCallId]*change
	pending map[string]*pendingRequest // the requests without an answer, by request id
	line    func(event.Seq) []byte     // reads the payload of an event from the log
}

// A pendingRequest is a request of the agent without an answer. It has only the place of the request in the log,
// because the request's tool call may have megabytes. The call is read when a report or the answer needs it.
type pendingRequest struct {
	tool   acp.ToolCallId
	seq    event.Seq
	merged bool // true if the request's description of the tool call was merged into the call
}

// maxRuns is the number of runs with stored tool calls. They are the newest runs, because the agent may still report
// about their calls.
const maxRuns = 4

// A change is a tool call that may change files.
type change struct {
	toolSeen
	approved []policy.ToolCall // the versions of the call that a person allowed
	allowed  []policy.ToolCall // the versions of the call that a rule, a standing approval or the mode allowed
	fresh    bool              // true if a report came after the call's files were added
}

// changedFiles returns the files that the session has changed so far.
func (c *client) changedFiles() (shell.Changed, error) {
	r := c.run.r
	r.mu.Lock()
	s := r.changes[c.run.refs.Session]
	if s == nil {
		s = newChanges()
		r.changes[c.run.refs.Session] = s
	}
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.log.Sync(); err != nil { // now the log has all recorded events
		return nil, err
	}
	q := event.Query{
		Session: c.run.refs.Session, After: s.upTo,
		Types: changeTypes,
	}
	if err := s.readEvents(&r.log.Reader, q, c.speaker(), c.place()); err != nil {
		return nil, err
	}
	return maps.Clone(s.files), nil
}

func newChanges() *changes { return &changes{files: shell.Changed{}, heard: map[acp.ToolCallId]bool{}} }

// changeTypes are the types of the events from which changes follow.
var changeTypes = []event.Type{event.NotificationReceived, event.ReplySent, event.ReplyFailed}

// readEvents adds the events of the log that q selects. The agent's tool calls start in the directory of place.
func (s *changes) readEvents(log event.Reader, q event.Query, agent speaker, place shell.Place) error {
	line := func(seq event.Seq) []byte { return lineOf(log, seq) }
	for e, err := range log.Events(context.Background(), q) {
		if err != nil {
			return err
		}
		s.upTo = e.Seq
		if e.Run != "" && s.findRun(e.Run) == nil {
			if s.addFiles(place); len(s.runs) == maxRuns {
				for id := range s.runs[0].tools {
					s.heard[id] = true
				}
				s.runs = slices.Delete(s.runs, 0, 1)
			}
			s.runs = append(s.runs, &runChanges{e.Run, map[acp.ToolCallId]*change{}, map[string]*pendingRequest{}, line})
		}
		if len(s.runs) > 0 && e.Payload != nil {
			s.addEvent(e, agent)
		}
	}
	s.addFiles(place)
	return nil
}

// lineOf returns the payload of an event, or nil if the event cannot be read.
func lineOf(log event.Reader, seq event.Seq) []byte {
	for e, err := range log.Events(context.Background(), event.Query{After: seq - 1, Until: seq}) {
		if err == nil {
			return e.Payload
		}
	}
	return nil
}

// findRun returns the stored tool calls of a run, or nil.
func (s *changes) findRun(run event.RunID) *runChanges {
	i := slices.IndexFunc(s.runs, func(r *runChanges) bool { return r.run == run })
	if i < 0 {
		return nil
	}
	return s.runs[i]
}

// addEvent adds an event of the log. An event between two runs belongs to the run of its tool call. When an agent loads
// its session, it repeats older tool calls. addEvent ignores them.
func (s *changes) addEvent(e event.Event, agent speaker) {
	run := s.findRun(e.Run)
	if run == nil {
		run = s.runs[len(s.runs)-1]
		if u, ok := provider.ParseUpdate(e.Payload, ""); ok && u.Tool != nil {
			for _, r := range s.runs {
				if r.tools[u.Tool.ID] != nil {
					run = r
				}
			}
			if run.tools[u.Tool.ID] == nil && s.heard[u.Tool.ID] {
				return
			}
		}
	}
	run.addEvent(e, agent)
}

// addEvent adds an event that belongs to this run.
func (r *runChanges) addEvent(e event.Event, agent speaker) {
	if e.Type != event.NotificationReceived {
		if sent, err := fact.Decode[fact.ReplySent](e); err == nil {
			r.addReply(sent, agent)
		}
		return
	}
	if !bytes.Contains(e.Payload, []byte(`toolCall`)) && !bytes.Contains(e.Payload, []byte(`"fs/`)) &&
		!bytes.Contains(e.Payload, []byte(`"terminal/`)) {
		return
	}
	if u, ok := provider.ParseUpdate(e.Payload, ""); ok {
		if u.Tool != nil {
			t := r.toolCall(u.Tool.ID)
			r.mergePending(t)
			t.mergeReport(*u.Tool)
			t.addForm(agent)
			t.fresh = true
		}
		return
	}
	if id, call, ok := requestedTool(e.Payload); ok {
		r.pending[id] = &pendingRequest{tool: call.ID, seq: e.Seq}
	}
}

// mergePending merges the unanswered requests about a tool call into the call, before the agent's next report of the
// call is merged.
func (r *runChanges) mergePending(t *change) {
	for _, p := range slices.SortedFunc(maps.Values(r.pending),
		func(a, b *pendingRequest) int { return cmp.Compare(a.seq, b.seq) }) {
		if p.tool == t.call.ID && !p.merged {
			_, call, _ := requestedTool(r.line(p.seq))
			t.mergeReport(call)
			p.merged = true
		}
	}
}

// requestedTool returns the tool call that a recorded request describes: a request for permission, or a request for an
// action of the editor.
func requestedTool(line []byte) (id string, call provider.ToolCall, ok bool) {
	if p, ok := provider.ParsePermission(line); ok {
		return p.ID, p.Tool, true
	}
	env := provider.ParseMessage(line)
	exempt := exception.Of(exception.Agent, env.Method)
	call = provider.ToolCall{ID: acp.ToolCallId(env.Method + env.ID), RawInput: env.Params}
	call.Kind = acp.ToolKind(exempt.Tool)
	return env.ID, call, exempt.Does == exception.Acts && call.Kind != acp.ToolKindRead
}

// addReply adds Perlica's answer to a request.
func (r *runChanges) addReply(sent fact.ReplySent, agent speaker) {
	p := r.pending[sent.RequestID]
	if p == nil {
		return
	}
	delete(r.pending, sent.RequestID)
	t := r.toolCall(p.tool)
	t.fresh = true
	_, call, _ := requestedTool(r.line(p.seq))
	asked := t.toolSeen
	asked.mergeReport(call)
	if !p.merged {
		t.mergeReport(call)
	}
	switch form := callOf(agent, asked.call); {
	case !strings.HasPrefix(sent.Kind, "allow"):
		t.refused = true
	case sent.By == "policy":
		t.allowed = append(t.allowed, form)
	default:
		t.approved = append(t.approved, form)
	}
}

func (r *runChanges) toolCall(id acp.ToolCallId) *change {
	t := r.tools[id]
	if t == nil {
		t = &change{}
		t.call.ID = id
		r.tools[id] = t
	}
	return t
}

// addFiles adds the files of each tool call that has new reports.
func (s *changes) addFiles(place shell.Place) {
	for _, r := range s.runs {
		for _, t := range r.tools {
			if !t.fresh {
				continue
			}
			t.fresh = false
			for _, form := range t.forms() {
				if !covers(t.approved, form, place) {
					s.addForm(form, place)
				}
			}
		}
	}
}

// forms returns the versions of the call that ran or may have run.
func (t *change) forms() []policy.ToolCall {
	forms := slices.Clone(t.allowed)
	if !t.refused || len(t.allowed)+len(t.approved) > 0 || t.Status == string(acp.ToolCallStatusCompleted) {
		forms = append(forms, t.ran...)
	}
	return forms
}

// covers reports whether a person allowed this version of the call with the same content of the files.
func covers(approved []policy.ToolCall, form policy.ToolCall, place shell.Place) bool {
	return slices.ContainsFunc(approved, func(a policy.ToolCall) bool {
		read := policy.ReadToolCall(a, place)
		shown := append(slices.Clone(a.Diffs), read.Bodies...)
		written := append(slices.Clone(form.Diffs), policy.ReadToolCall(form, place).Bodies...)
		return policy.Differs([]policy.Reading{read}, form, place) == nil &&
			!slices.ContainsFunc(written, func(d policy.Diff) bool {
				return !slices.ContainsFunc(shown, func(s policy.Diff) bool { return s.New == d.New && s.Path == d.Path })
			})
	})
}

// addForm adds the files that one version of a tool call changes.
func (s *changes) addForm(form policy.ToolCall, place shell.Place) {
	req := policy.ReadToolCall(form, place).Request
	for _, cmd := range req.Commands {
		maps.Copy(s.files, shell.Judge(cmd, place).Changed)
	}
	paths := req.Removes
	switch acp.ToolKind(req.Kind) {
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindThink, acp.ToolKindFetch, acp.ToolKindExecute:
		if req.Changes {
			paths = req.Paths
		}
	default:
		paths = req.Paths
	}
	for _, p := range paths {
		if p != place.Dir {
			s.files.Add(p)
			s.files.Add(filepath.Join(realDir(filepath.Dir(p)), filepath.Base(p)))
			s.files.Add(realDir(p))
		}
	}
}
