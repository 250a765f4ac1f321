package kernel

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/sandbox"
)

// A PastQuestion is a recorded question of an agent. Either a person was asked, or Perlica decided.
type PastQuestion struct {
	event.Refs
	Asked    time.Time
	Title    string
	Kind     string // empty if it is unknown
	Commands []string
	Paths    []string
	Tier     shell.Tier
	// Question is the question to a person. It is nil if Perlica decided.
	Question *interaction.Question
	// End is the end of the question to a person. It is nil if the question is open or Perlica decided.
	End *interaction.TakenError
	// Decided is the decision of Perlica. It is nil if a person was asked.
	Decided *fact.PolicyDecided
	// Rules are the rules of the run alone, as fact.MessageReceived has them.
	Rules []string
	// Request is the agent's request, which was read again from the log. It has no session, so equal requests are the
	// same pointer. It is nil if Lacks is not.
	Request *policy.Assessed
	// Lacks is the reason why the request cannot be judged again. It is nil if the policy can judge the request.
	Lacks *message.Text
}

// These are the reasons why a request cannot be judged again.
var (
	lacksPayload = message.New("kernel.lacks-payload", "the log no longer has the question or its answer")
	lacksRequest = message.New("kernel.lacks-request",
		"the log does not have the agent's request as a question about a tool")
	lacksInput   = message.New("kernel.lacks-input", "the log does not have the input of the run")
	lacksSandbox = message.New("kernel.lacks-sandbox",
		"the judgement depended on the sandbox, and the log has only some of the sandbox's rules")
	lacksLinks = message.New("kernel.lacks-links", "a link in its paths leads to another file now")
	lacksState = message.New("kernel.lacks-state",
		"the commands, the paths or the tier differ now: the judgement depended on something outside of the log")
)

// ReadPastQuestions returns the questions of the log since a time, oldest first. It reads each request by the same
// functions as a running turn. The parameter "at" has the directories of this user; its Dir is ignored. A request can
// be judged again only if this gives the commands, directory, paths, targets of links and tier that are on record. If
// "progress" is not nil, ReadPastQuestions calls it with the number of each read event.
func ReadPastQuestions(ctx context.Context, log event.Reader, at shell.Place, since time.Time,
	progress func(event.Seq)) ([]PastQuestion, error) {
	p := pastReader{log: log, home: at, progress: progress, runs: map[event.RunID]*pastRun{},
		sessions: map[event.SessionID]*pastSession{}, places: map[string]shell.Place{}, read: map[string]readRequest{}}
	var list []*pastQuestion
	asked := map[event.InteractionID]*pastQuestion{}
	facts := event.Query{Since: since, Types: []event.Type{event.InteractionRequested, event.InteractionAnswered,
		event.InteractionLapsed, event.PolicyDecided, event.MessageReceived, event.Requested}}
	for e, err := range ahead(log.Events(ctx, facts)) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case event.MessageReceived, event.Requested:
			p.addFact(e)
		case event.InteractionAnswered, event.InteractionLapsed:
			if q := asked[e.Interaction]; q != nil {
				if q.End, err = interaction.DecodeEnd(e); err != nil {
					q.Lacks = cmp.Or(q.Lacks, lacksPayload)
				}
			}
		default:
			if q := newPastQuestion(e); q != nil {
				list = append(list, q)
				asked[e.Interaction] = q
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	first, err := p.readInputs(ctx, list)
	if err != nil {
		return nil, err
	}
	if err := p.readSetUps(ctx, list[len(list)-1].seq); err != nil {
		return nil, err
	}
	return p.readRequests(ctx, list, first)
}

// ahead yields the events of a sequence. Another goroutine reads the events, so that reading and handling use two
// processors. It has ended when the loop ends.
func ahead(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	type read struct {
		event.Event
		err error
	}
	return func(yield func(event.Event, error) bool) {
		const some = 256
		batches, stop := make(chan []read, 2), make(chan struct{})
		go func() {
			defer close(batches)
			batch := make([]read, 0, some)
			for e, err := range events {
				if batch = append(batch, read{e, err}); len(batch) < some && err == nil {
					continue
				}
				select {
				case batches <- batch:
					batch = make([]read, 0, some)
				case <-stop:
					return
				}
			}
			select {
			case batches <- batch:
			case <-stop:
			}
		}()
		defer func() {
			close(stop)
			for range batches { // until the goroutine has ended
			}
		}()
		for batch := range batches {
			for _, r := range batch {
				if !yield(r.Event, r.err) {
					return
				}
			}
		}
	}
}

// readInputs reads the inputs of the questions' runs that began before the questions were selected. It returns the
// number of the first input.
func (p *pastReader) readInputs(ctx context.Context, list []*pastQuestion) (event.Seq, error) {
	first := list[0].seq
	for _, q := range list {
		if q.Run == "" {
			continue
		}
		if r := p.runOf(q.Run); r.input.Seq == 0 && !r.missing {
			r.missing = true // unless a fact of the run follows
			for e, err := range p.log.Events(ctx, event.Query{Run: q.Run, Class: event.Fact, Limit: 1}) {
				if err != nil {
					return 0, err
				}
				first = min(first, e.Seq)
			}
			types := []event.Type{event.MessageReceived, event.Requested}
			for e, err := range p.log.Events(ctx, event.Query{Run: q.Run, Types: types}) {
				if err != nil {
					return 0, err
				}
				p.addFact(e)
			}
		}
		if seq := p.runOf(q.Run).input.Seq; seq > 0 {
			first = min(first, seq)
		}
	}
	return first, nil
}

// pastQuestion is a question with the parts that the log recorded about its judgement.
type pastQuestion struct {
	PastQuestion
	seq     event.Seq
	request string // the JSON-RPC id
	dir     string
	leadsTo map[string]string
}

// newPastQuestion returns the question that the event records, or nil if the event is not about a request of an agent.
func newPastQuestion(e event.Event) *pastQuestion {
	q := &pastQuestion{PastQuestion: PastQuestion{Refs: e.Refs, Asked: e.Time}, seq: e.Seq}
	var err error
	if e.Type == event.PolicyDecided {
		var d fact.PolicyDecided
		d, err = fact.Decode[fact.PolicyDecided](e)
		q.Decided = &d
		q.Title, q.Commands, q.Paths = d.Title, d.Commands, d.Paths
		q.Tier, q.request, q.dir, q.leadsTo = shell.Tier(d.Tier), d.Request, d.Dir, d.LeadsTo
	} else {
		var asked interaction.Question
		asked, err = interaction.Decode(e)
		s := asked.Subject
		asked.Subject = interaction.Subject{} // Subject may be large, and Request has the same data
		q.Question = &asked
		q.Title, q.Kind, q.Commands, q.Paths = asked.Title, s.Kind, s.Commands, s.Paths
		q.Tier, q.request, q.dir, q.leadsTo = shell.Tier(s.Tier), s.Request, s.Dir, s.LeadsTo
	}
	switch {
	case err != nil:
		q.Lacks = lacksPayload
	case q.request == "": // a form, or a question of a flow
		return nil
	}
	return q
}

// pastReader reads the requests of recorded questions.
type pastReader struct {
	log      event.Reader
	home     shell.Place
	progress func(event.Seq)
	runs     map[event.RunID]*pastRun
	sessions map[event.SessionID]*pastSession
	places   map[string]shell.Place // by the directory of the run
	read     map[string]readRequest // by everything that the reading depends on
}

// readRequest is a request with the parts that differs compares.
type readRequest struct {
	*policy.Assessed
	commands []string
	dir      string
	targets  map[string]string
}

func newReadRequest(r policy.Request) readRequest {
	commands, dir := commandTexts(r)
	return readRequest{policy.Assess(r), commands, dir, r.Targets()}
}

// pastSession has the agents, the sandboxes and the changed files of a session.
type pastSession struct {
	setUps  []setUp
	changes *changes // nil until a judgement needs the changes
}

// setUp has the agent and the sandbox of a session since the event seq.
type setUp struct {
	seq     event.Seq
	agent   *fact.AgentName
	sandbox string
}

// readSetUps reads the agents' names and sandboxes of all sessions.
func (p *pastReader) readSetUps(ctx context.Context, until event.Seq) error {
	q := event.Query{Until: until, Types: []event.Type{event.SessionStarted, event.SandboxEntered}}
	for e, err := range ahead(p.log.Events(ctx, q)) {
		if err != nil {
			return err
		}
		s := p.sessions[e.Session]
		if s == nil {
			s = &pastSession{}
			p.sessions[e.Session] = s
		}
		now := setUp{seq: e.Seq}
		if n := len(s.setUps); n > 0 {
			now.agent, now.sandbox = s.setUps[n-1].agent, s.setUps[n-1].sandbox
		}
		if e.Type == event.SessionStarted {
			started, _ := fact.Decode[fact.SessionStarted](e) // without a name, knownAgent uses the provider's id
			now.agent = started.Agent
		} else {
			box, _ := fact.Decode[fact.SandboxEntered](e)
			now.sandbox = box.Mode
		}
		s.setUps = append(s.setUps, now)
	}
	return nil
}

// pastRun is a run with the tool calls that its agent has described so far.
type pastRun struct {
	input    event.Event // zero until it was read
	missing  bool        // the log has no input
	called   event.Event // the intent; zero until it was read
	sums     *accumulator
	requests map[string]*pastRequest // the newest of each JSON-RPC id
}

func (p *pastReader) runOf(id event.RunID) *pastRun {
	r := p.runs[id]
	if r == nil {
		r = &pastRun{sums: newAccumulator(time.Now), requests: map[string]*pastRequest{}}
		p.runs[id] = r
	}
	return r
}

// addFact adds the input or the intent of a run.
func (p *pastReader) addFact(e event.Event) {
	switch {
	case e.Run == "":
	case e.Type == event.MessageReceived:
		p.runOf(e.Run).input = e
	default:
		p.runOf(e.Run).called = e
	}
}

// pastRequest is a recorded request for permission.
type pastRequest struct {
	*provider.PermissionRequest
	announced provider.ToolCall
}

// readRequests reads the events from the event "first" on. It reads a question's request after all earlier events.
func (p *pastReader) readRequests(ctx context.Context, list []*pastQuestion, first event.Seq) ([]PastQuestion, error) {
	out := make([]PastQuestion, 0, len(list))
	next := func(before event.Seq) error {
		for len(out) < len(list) && (before == 0 || list[len(out)].seq < before) {
			q := list[len(out)]
			if q.Lacks == nil {
				if err := p.readQuestion(q); err != nil {
					return err
				}
			}
			out = append(out, q.PastQuestion)
		}
		return nil
	}
	asking := map[event.RunID]bool{} // the runs with a question
	for _, q := range list {
		asking[q.Run] = q.Run != ""
	}
	events := event.Query{After: first - 1, Until: list[len(list)-1].seq,
		Types: []event.Type{event.NotificationReceived}}
	for e, err := range ahead(p.log.Events(ctx, events)) {
		if err != nil {
			return nil, err
		}
		if err := next(e.Seq); err != nil {
			return nil, err
		}
		if p.progress != nil {
			p.progress(e.Seq)
		}
		if asking[e.Run] {
			p.runOf(e.Run).addLine(e)
		}
	}
	return out, next(0)
}

// addLine adds a line of the agent. A line before the call may repeat an earlier turn, so its tool calls do not count.
func (r *pastRun) addLine(e event.Event) {
	if !bytes.Contains(e.Payload, []byte("toolCall")) {
		return
	}
	tool, p := provider.ParseTool(e.Payload)
	switch {
	case p != nil:
		announced, whole := r.sums.addQuestion(p.Tool)
		p.Tool = whole
		r.requests[p.ID] = &pastRequest{p, announced}
	case tool != nil && r.called.Seq > 0 && r.called.Seq < e.Seq:
		r.sums.mergeTool(*tool)
	}
}

// readQuestion reads the request of a question, and compares the reading with the record.
func (p *pastReader) readQuestion(q *pastQuestion) error {
	r := p.runs[q.Run]
	if r == nil || r.input.Seq == 0 {
		q.Lacks = lacksInput
		return nil
	}
	input, err := fact.Decode[fact.MessageReceived](r.input)
	if err != nil {
		q.Lacks = lacksInput
		return nil
	}
	req := r.requests[q.request]
	if req == nil {
		q.Lacks = lacksRequest
		return nil
	}
	q.Rules = input.Rules
	called, _ := fact.Decode[fact.Requested](r.called) // without an intent the agent's command is unknown
	now := p.setUpOf(q)
	k := asker{speaker{input.Provider, knownAgent(input.Provider, now.agent)}, "", called.Agent}
	a := asking{PermissionRequest: req.PermissionRequest, place: p.placeOf(input.Dir)}
	key := k.key(a, req.announced)
	got, known := p.read[key]
	if !known {
		read, err := k.readQuestion(&a, req.announced, func() (shell.Changed, error) { return nil, nil })
		if err != nil {
			return err
		}
		got = newReadRequest(read.Request)
		p.read[key] = got
	}
	// The files that the session changed can only raise the tier, and they take long to compute.
	if q.Lacks = q.differs(got, now); q.Lacks != nil && !now.isBox() {
		read, err := k.readQuestion(&a, req.announced, func() (shell.Changed, error) {
			return p.changedFiles(q, k.speaker, a.place)
		})
		if err != nil {
			return err
		}
		got = newReadRequest(read.Request)
		q.Lacks = q.differs(got, now)
	}
	if q.Lacks == nil {
		q.Request = got.Assessed
	}
	return nil
}

// placeOf returns the place of a run, with resolved links.
func (p *pastReader) placeOf(dir string) shell.Place {
	at, known := p.places[dir]
	if !known {
		at = p.home
		at.Dir = dir
		at = realPlace(at)
		p.places[dir] = at
	}
	return at
}

// key identifies everything on which the reading of a question depends, except the files that the session changed.
func (k asker) key(a asking, announced provider.ToolCall) string {
	var key []byte
	add := func(texts ...string) {
		key = strconv.AppendInt(key, int64(len(texts)), 10)
		for _, text := range texts {
			key = append(strconv.AppendInt(append(key, ' '), int64(len(text)), 10), ' ')
			key = append(key, text...)
		}
	}
	add(k.provider, k.known, a.place.Dir)
	add(k.command...)
	for _, call := range []provider.ToolCall{a.Tool, announced} {
		c := callOf(k.speaker, call)
		add(c.Kind, c.Title, string(c.RawInput))
		add(c.Locations...)
		add(c.Text...)
		for _, d := range c.Diffs {
			add(d.Path, d.Old, d.New)
		}
		add()
	}
	for _, o := range a.Options {
		add(string(o.OptionId), o.Name, string(o.Kind))
	}
	return string(key)
}

// isBox reports whether the policy considers the sandbox. The method placeOf of client has the same condition.
func (s setUp) isBox() bool {
	return s.sandbox != "" && s.sandbox != string(sandbox.Off) && s.sandbox != string(sandbox.Protect)
}

// differs returns nil if the request has the recorded fields, and otherwise the reason for the difference.
func (q *pastQuestion) differs(r readRequest, now setUp) *message.Text {
	switch {
	case !slices.Equal(r.commands, q.Commands) || r.dir != q.dir || !slices.Equal(r.Paths, q.Paths):
		return lacksState
	case !maps.Equal(r.targets, q.leadsTo):
		return lacksLinks
	case r.Tier() == q.Tier:
		return nil
	case now.isBox():
		return lacksSandbox
	}
	return lacksState
}

// setUpOf returns the agent and the sandbox of the question's session at the time of the question.
func (p *pastReader) setUpOf(q *pastQuestion) (now setUp) {
	s := p.sessions[q.Session]
	if s == nil {
		return now
	}
	if n, _ := slices.BinarySearchFunc(s.setUps, q.seq, func(u setUp, at event.Seq) int {
		return cmp.Compare(u.seq, at)
	}); n > 0 {
		now = s.setUps[n-1]
	}
	return now
}

// changedFiles returns the files that the session had changed before the question.
func (p *pastReader) changedFiles(q *pastQuestion, agent speaker, place shell.Place) (shell.Changed, error) {
	s := p.sessions[q.Session]
	if s == nil {
		s = &pastSession{}
		p.sessions[q.Session] = s
	}
	if s.changes == nil {
		s.changes = newChanges()
	}
	err := s.changes.readEvents(p.log, event.Query{Session: q.Session, After: s.changes.upTo, Until: q.seq,
		Types: changeTypes}, agent, place)
	return maps.Clone(s.changes.files), err
}

// knownAgent returns the registry's id of the agent with this name.
func knownAgent(id string, name *fact.AgentName) string {
	return agents.Agent{Agent: provider.Agent{ID: id}}.Known((*acp.Implementation)(name)).ID
}
