package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/sandbox"
)

// Setup describes the agent session in which inputs are answered.
type Setup struct {
	Agent   agents.Agent
	Session event.SessionID // empty means a new session
	Dir     string          // the agent's working directory, absolute
	Model   string          // empty means the agent's own choice
	Mode    string          // empty means the mode in which the agent asks a person
	// Earlier holds the choices that were made in the previous session. They are made again if the agent still offers
	// them. Earlier.Mode replaces Mode. Earlier.Model is used only if Model is empty.
	Earlier fact.SessionConfigured
	Servers []acp.McpServer
	System  string // the text that goes before the first prompt of the agent's session
	// Append follows the agent's own system prompt. AddDirs are further absolute root directories. Extra are servers in
	// addition to Servers, and replace servers with the same name. An agent that cannot use one of these three is not
	// prompted.
	Append  string
	AddDirs []string
	Extra   []acp.McpServer
	Budget  int // the number of tokens that the transcript of earlier turns may use
	Temp    []string
	Home    string
	// Forms tells the agent that a person can fill in its forms.
	Forms bool
	// Notices tells the agent that the person sees the agent's notices, not only its messages.
	Notices bool
	// Limit is the permission mode for the runs of Perlica that the agent itself starts. They can only tighten the
	// mode. If Limit is empty, the turn's mode applies, and in a conversation "deny".
	Limit policy.Mode
}

// agentSession is an agent's process and its ACP session, from start to end. The connection calls the agentSession with
// each line and each question. The agentSession passes them to the present turn.
type agentSession struct {
	r     *Runner
	setup Setup

	// launched is the process that Turn.Launch started. If it is nil, startProcess starts the process.
	launched *process.Launched
	conn     *provider.Conn // set by startProcess before all other calls
	session  *provider.Session
	info     acp.InitializeResponse
	mode     string            // the present mode's id; set by prepareSession
	options  map[string]string // the chosen options, from id to value; set by prepareSession
	how      continuation      // the way in which the agent knows earlier turns
	lost     []*message.Text   // sentences about earlier choices that could not be made again; set by prepareSession
	anew     bool              // true if the Perlica session has no earlier turns
	prompted bool              // true after the first prompt: the agent knows the system text and the transcript

	context contextMeter

	listing atomic.Bool   // true while ListModels runs
	heard   chan struct{} // capacity 1: gets a value for each line of the agent

	closing       chan struct{} // closed when session/close has ended; nil means that session/close was not sent
	orphans       string        // the remaining processes of the agent, which endProcess has ended
	closeErr      error         // the error of session/close; set before closing is closed
	closeRecorded bool          // true if the session's end is already recorded

	betweenTurns sync.WaitGroup // the goroutines that answer questions between turns
	ending       sync.WaitGroup // the goroutine of beginEnd

	mu     sync.RWMutex // held for reading while the connection's reader calls into a turn
	client *client      // the present turn; nil between the turns of a kept session
	base   event.Refs
	state  Offers
	modes  modeWatch
}

// newAgentSession returns an agentSession without a process. The session's events name the session and the run in
// the client's references. Without a client, they have the references in base.
func newAgentSession(r *Runner, setup Setup, base event.Refs, client *client) *agentSession {
	return &agentSession{r: r, setup: setup, base: base, client: client, heard: make(chan struct{}, 1)}
}

// startProcess starts the agent's process, or adopts the process that Turn.Launch has started.
func (s *agentSession) startProcess() (err error) {
	for _, dir := range append([]string{s.setup.Dir}, s.setup.AddDirs...) {
		if !utf8.ValidString(dir) { // JSON would change an invalid name
			return &InputError{fmt.Errorf(
				"the agent cannot be told its directory %q: the name is not valid UTF-8; rename it or choose another one", dir)}
		}
	}
	a := s.setup.Agent
	opt := s.setup.process(s.r.opt.Environ, s.r.opt.Redactor)
	opt.Recorder, opt.Client, opt.Launched = s, s, s.launched
	opt.Forms, opt.Notices = s.setup.Forms, s.setup.Notices
	opt.MaxLine, opt.ConnectTimeout, opt.RequestTimeout = a.MaxLine, a.ConnectTimeout, a.RequestTimeout
	opt.Stderr = func(b []byte) {
		s.r.opt.Trail.Info("agent stderr", "provider", a.ID, "run", string(s.refs().Run),
			"session", string(s.setup.Session), "text", string(b))
	}
	opt.Connected = func(c proxy.Connection) {
		_ = s.r.log.Record(event.NewFact(event.SandboxConnected, "perlica", s.refs(), fact.SandboxConnected{
			Host: c.Host, Port: c.Port, Sent: c.Sent, Received: c.Received, DurationMS: c.Took.Milliseconds(), Times: c.Times,
			Refused: string(c.Refused),
		})) // the log's Close returns this error, too
	}
	s.conn, err = provider.Start(a.Agent, opt)
	return err
}

// process returns the options of the agent's process. Turn.Launch calls it before a Runner exists.
func (s Setup) process(environ []string, redactor *redact.Redactor) provider.Options {
	return provider.Options{Dir: s.Dir, Environ: environ, Permissions: string(s.Limit), Redact: redactor.Lines()}
}

// prepareSession initializes the agent, opens its session and makes all choices. After that the agent can be prompted.
func (s *agentSession) prepareSession(ctx context.Context, strategy string) (err error) {
	if s.info, err = s.conn.Initialize(ctx, s.r.opt.Version); err != nil {
		return s.recordTimeout(err)
	}
	s.setup.Agent.Asking = s.setup.Agent.AskingOf(s.info.AgentInfo)
	if err := s.extendSetup(); err != nil {
		return err
	}
	if err := s.enterSession(ctx); err != nil {
		return s.recordTimeout(err)
	}
	s.enterState()
	mode, model := s.earlierChoices()
	if s.mode, s.options, err = agents.Choose(ctx, s.session, s.setup.Agent.Asking, mode, model); err != nil {
		return offered(s.recordTimeout(err))
	}
	s.chooseOptions(ctx)
	s.applyChoice(s.mode)
	if s.client != nil {
		if lacks := agents.Unoffered(s.setup.Agent.Asking, mode, s.mode); lacks != nil {
			s.client.warn("mode_not_offered", lacks)
		}
		for _, lost := range s.lost {
			s.client.warn("earlier_choice_lost", lost)
		}
	}
	can, err := json.Marshal(s.info.AgentCapabilities)
	if err != nil {
		return err
	}
	started := event.NewFact(event.SessionStarted, "perlica", s.refs(), fact.SessionStarted{
		Strategy: strategy, Continued: string(s.how), Agent: (*fact.AgentName)(s.info.AgentInfo), Capabilities: can,
		Mode: s.mode, ModeName: s.otherModeName(s.mode), Options: s.options,
	})
	return s.r.log.Record(s.sandboxFact(), started)
}

// sandboxFact returns an event that describes the sandbox of the agent's process. Without a sandbox the mode is off.
func (s *agentSession) sandboxFact() event.Event {
	entered := fact.SandboxEntered{Mode: string(sandbox.Off)}
	if box := s.conn.Sandbox(); box != nil {
		entered = fact.SandboxEntered{Mode: string(box.Mode), Mechanism: "bubblewrap", Version: box.Version(),
			Landlock: box.Scoped, Rules: box.Rules}
	}
	return event.NewFact(event.SandboxEntered, "perlica", s.refs(), entered)
}

// enterSession opens a new session of the agent, or continues the agent's session of the latest turn.
func (s *agentSession) enterSession(ctx context.Context) (err error) {
	s.how = continuedAnew
	if !s.anew {
		ok, err := s.continueNatively(ctx)
		if ok || err != nil {
			return err
		}
	}
	s.session, err = s.conn.NewSession(ctx, s.setup.Dir, s.setup.Servers)
	if err == nil {
		s.setConversation(s.session.ID)
	}
	return err
}

func (s *agentSession) setConversation(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base.Conversation = event.ConversationID(id)
	if s.client != nil {
		s.client.setConversation(id)
	}
}

func (s *agentSession) recordTimeout(err error) error {
	var e *provider.Error
	if errors.As(err, &e) && e.Type == provider.TypeTimeout {
		late := event.NewFact(event.RequestTimeout, "perlica", s.refs(),
			fact.RequestTimeout{Method: e.Method, After: e.Message})
		return errors.Join(err, s.r.log.Record(late))
	}
	return err
}

// beginTurn makes c the present turn of the session. It also reports the changes of the mode since the last turn.
func (s *agentSession) beginTurn(c *client) {
	s.mu.Lock()
	s.client = c
	c.setConversation(string(s.base.Conversation))
	between, modes, chosen := s.modes.between, s.state.Modes, s.modeChosen()
	s.modes.between = nil
	s.mu.Unlock()
	for _, to := range between {
		c.switchedMode("", to, modes, chosen)
	}
}

// finishTurn ends the present turn. After finishTurn returns, no goroutine of the connection uses the turn.
func (s *agentSession) finishTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = nil
}

// refs returns the ids that go into the next event, such as the ids of the session and the run. Between turns it
// returns base, which names no run.
func (s *agentSession) refs() event.Refs {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.refsNow()
}

// refsNow is refs for a caller that holds mu.
func (s *agentSession) refsNow() event.Refs {
	if s.client != nil {
		return s.client.refs()
	}
	return s.base
}

// Sent records a line of Perlica before the connection writes the line.
func (s *agentSession) Sent(f provider.Frame) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.r.log.Record(event.Event{Type: sentTypes[f.Kind], Class: event.Frame, Actor: "perlica", Refs: s.refsNow(),
		Payload: f.Line})
}

// Received records a line of the agent.
func (s *agentSession) Received(f provider.Frame) error {
	select {
	case s.heard <- struct{}{}:
	default:
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.received(f)
	}
	return s.r.log.Record(s.r.receivedEvent(f, s.refsNow()))
}

// Update passes an update to the present turn. Between turns, Update only records it, because after session/load the
// agent repeats all earlier turns.
func (s *agentSession) Update(u provider.Update) {
	from, to := s.applyState(u)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client == nil {
		return
	}
	s.client.Update(u)
	if to != "" {
		s.client.switchedMode(from, to, s.state.Modes, s.modeChosen())
	}
}

// applyState stores new commands, a new mode or new options of the agent. It returns both modes if the agent changed
// the mode during the turn without a request.
func (s *agentSession) applyState(u provider.Update) (from, to string) {
	if u.Commands == nil && u.Mode == "" && u.Options == nil {
		return "", ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.Commands != nil:
		s.state.Commands = u.Commands
	case u.Mode != "":
		s.state.Mode = u.Mode
	default:
		s.state.Options = u.Options
	}
	return s.watchMode()
}

// RequestPermission passes a question to the present turn. Between turns no run can judge a question, so Perlica
// answers "cancelled".
func (s *agentSession) RequestPermission(p *provider.PermissionRequest) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.questions.addRequest(p)
		return
	}
	refs := s.base
	s.betweenTurns.Go(func() {
		reply(s.r, p, "", noTurn.Text, refs)
	})
}

// RefusedPermission tells the present turn about a question that the connection refused. Neither a person nor a rule
// has judged this question.
func (s *agentSession) RefusedPermission(t provider.ToolCall) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil && t.ID != "" {
		s.client.sums.addDeclined(t)
	}
}

// Blocked records a refused request. If recording fails, the agent's next line fails, too, and ends the agent.
func (s *agentSession) Blocked(b provider.BlockedRequest) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_ = s.r.log.Record(blockedEvents(b, s.refsNow())...)
	if s.client != nil {
		s.client.refused(b)
	}
}

// SendHTTP permits the HTTP request of a model agent, after all recorded events are on disk. It refuses the request in
// a cancelled turn. Between turns it permits a request only during ListModels.
func (s *agentSession) SendHTTP() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.client == nil && !s.listing.Load():
		return noTurn
	case s.client != nil && s.client.lifecycle.isCancelled():
		return turnCancelled
	}
	return s.r.log.Sync()
}

// Warning reports a line of the agent that Perlica could not use.
func (s *agentSession) Warning(w provider.Warning) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.warn(w.Subtype, &message.Text{Text: w.Detail})
		return
	}
	s.r.opt.Trail.Warn(w.Subtype, "session", string(s.setup.Session), "detail", w.Detail)
}

// Drained tells the turn that no complete line of the agent is buffered. The turn may show its updates now.
func (s *agentSession) Drained() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.Drained()
	}
}

// beginClose asks the agent to free its session, if the agent offers that. An agent writes its lines in order, so no
// line of the turn follows the agent's response to session/close.
func (s *agentSession) beginClose() {
	if s.session == nil || s.conn.Err() != nil || s.info.AgentCapabilities.SessionCapabilities.Close == nil ||
		s.closing != nil {
		return
	}
	s.closing = make(chan struct{})
	go func() { // endProcess waits for this goroutine
		defer close(s.closing)
		ctx, cancel := context.WithTimeout(context.Background(), agents.CloseTimeout)
		defer cancel()
		s.closeErr = s.session.Close(ctx)
	}()
}

// beginEnd starts to end the process after session/close. The caller sends no further request.
func (s *agentSession) beginEnd() {
	s.ending.Go(func() { _ = s.conn.End(context.Background()) }) // endProcess returns the same error later
}

// endProcess waits for beginClose, if it was called, and ends the process. It returns the error of session/close. That
// error does not change the turn's outcome, because the outcome is already on disk.
func (s *agentSession) endProcess(ctx context.Context) error {
	if s.closing != nil {
		<-s.closing
	}
	if err := s.conn.End(ctx); err != nil {
		s.r.opt.Trail.Warn("ending the agent", "provider", s.setup.Agent.ID, "error", err.Error())
	}
	if e, ok := s.conn.Exit(); ok && len(e.Orphans) > 0 {
		s.orphans = strings.Join(e.Orphans, ", ")
		s.r.opt.Trail.Warn("ended processes that the agent had left", "provider", s.setup.Agent.ID, "processes", s.orphans)
	}
	s.ending.Wait()
	s.betweenTurns.Wait()
	if late := s.modesBetweenTurns(); len(late) > 0 {
		_ = s.r.log.Record(late...) // the log's Close returns this error, too
	}
	if s.session != nil && !s.closeRecorded {
		_ = s.r.log.Record(s.closedFact()) // the log's Close returns this error, too
	}
	return s.closeErr
}

// closedInTime reports whether the agent has already answered session/close. In that case one commit can store the
// turn's outcome and closedFact together.
func (s *agentSession) closedInTime() bool {
	if s.closing == nil {
		return false
	}
	select {
	case <-s.closing:
		s.closeRecorded = true
		return true
	default:
		return false
	}
}

// closedFact describes the end of the agent's session. The caller waits for the end of session/close first.
func (s *agentSession) closedFact() event.Event {
	closed := fact.SessionClosed{Requested: s.closing != nil}
	if s.closeErr != nil {
		closed.Error = s.closeErr.Error()
	}
	return event.NewFact(event.SessionClosed, "perlica", s.refs(), closed)
}
