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
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/process"
)

// Setup is the agent session in which inputs are answered.
type Setup struct {
	Agent   agents.Agent
	Session event.SessionID // empty: a new session, listed only on demand
	Dir     string          // the agent's working directory, absolute
	Model   string          // empty: the agent's own
	Mode    string          // empty: the mode in which the agent asks
	// Earlier is what was chosen in the session before, and is taken up again as far as the agent offers it:
	// the mode instead of Mode, the model where Model is empty.
	Earlier fact.SessionConfigured
	Servers []acp.McpServer
	System  string // goes ahead of the first text of the agent's session
	// Append goes behind the agent's own system prompt, AddDirs are further roots of its session, absolute, and
	// Extra are servers beside Servers, which replace those of the same name. An agent that does not take one of
	// them is not prompted.
	Append  string
	AddDirs []string
	Extra   []acp.McpServer
	Budget  int // tokens that history may take
	Temp    []string
	Home    string
	// Forms says that a person is there to fill in the agent's forms, which it hears.
	Forms bool
	// Notices says that what the agent says beside its messages is shown, which it hears.
	Notices bool
	// Limit is the permission mode that runs which the agent starts do not loosen. Empty: that of
	// the turn, and in a conversation "deny".
	Limit policy.Mode
}

// agentSession is an agent's process with its one ACP session, from start to end. It is what
// the connection talks to: it passes lines and questions on to the turn under way.
type agentSession struct {
	r     *Runner
	setup Setup

	launched *process.Launched // the process, if it was launched ahead; nil: start starts it
	conn     *provider.Conn    // set by start, before anything else is called
	session  *provider.Session
	info     acp.InitializeResponse
	mode     string            // chosen by open
	options  map[string]string // likewise
	how      continuation      // of earlier turns
	lost     []string          // what of Setup.Earlier could not be taken up again; set by open
	anew     bool              // there are no earlier turns
	prompted bool              // it was prompted: system text and transcript have been said

	listing atomic.Bool   // the models are being listed
	heard   chan struct{} // capacity 1: a line has come

	closing       chan struct{} // closed when session/close is over; nil: it was not sent
	orphans       string        // the unmarked processes that were ended with the agent, once it has ended
	closeErr      error         // what came of it, once closing is closed
	closeRecorded bool          // it is on record

	stray  sync.WaitGroup // answers to questions that belong to no turn
	ending sync.WaitGroup // the process, if beginEnd was called

	mu     sync.RWMutex // held for reading while the connection's reader is in a turn
	client *client      // nil between the turns of a kept session
	base   event.Refs
	state  Offers
	modes  modeWatch
}

// newAgentSession returns the session whose events carry base, or, while there is one, what
// the turn says.
func newAgentSession(r *Runner, setup Setup, base event.Refs, client *client) *agentSession {
	return &agentSession{r: r, setup: setup, base: base, client: client, heard: make(chan struct{}, 1)}
}

// start starts the agent's process, or takes the one that was launched.
func (s *agentSession) start() (err error) {
	for _, dir := range append([]string{s.setup.Dir}, s.setup.AddDirs...) {
		if !utf8.ValidString(dir) { // JSON would name another directory
			return &InputError{fmt.Errorf("the agent cannot be told its directory %q: the name is not valid UTF-8; rename it or choose another one", dir)}
		}
	}
	a := s.setup.Agent
	opt := s.setup.process(s.r.opt.Environ, s.r.opt.Redactor)
	opt.Recorder, opt.Client, opt.Launched = s, s, s.launched
	opt.Forms, opt.Notices = s.setup.Forms, s.setup.Notices
	opt.MaxLine, opt.ConnectTimeout, opt.RequestTimeout = a.MaxLine, a.ConnectTimeout, a.RequestTimeout
	opt.Stderr = func(b []byte) {
		s.r.opt.Trail.Info("agent stderr", "provider", a.ID, "run", string(s.refs().Run), "session", string(s.setup.Session), "text", string(b))
	}
	s.conn, err = provider.Start(a.Agent, opt)
	return err
}

// process are the options of the agent's process, which it may be launched with before there is a Runner.
func (s Setup) process(environ []string, redactor *redact.Redactor) provider.Options {
	return provider.Options{Dir: s.Dir, Environ: environ, Permissions: string(s.Limit), Redact: redactor.Lines()}
}

// open brings the agent to the point where it can be prompted.
func (s *agentSession) open(ctx context.Context, strategy string) (err error) {
	if s.info, err = s.conn.Initialize(ctx, s.r.opt.Version); err != nil {
		return s.recordTimeout(err)
	}
	s.setup.Agent.Asking = s.setup.Agent.AskingOf(s.info.AgentInfo)
	if err := s.extend(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return s.recordTimeout(err)
	}
	s.enterState()
	mode, model := s.earlier()
	if s.mode, s.options, err = agents.Choose(ctx, s.session, s.setup.Agent.Asking, mode, model); err != nil {
		return offered(s.recordTimeout(err))
	}
	s.chooseOptions(ctx)
	s.applyChoice(s.mode)
	if s.client != nil {
		if lacks := agents.Unoffered(s.setup.Agent.Asking, mode, s.mode); lacks != "" {
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
	return s.r.log.Record(event.NewFact(event.SessionStarted, "perlica", s.refs(), fact.SessionStarted{
		Strategy: strategy, Continued: string(s.how), Agent: (*fact.AgentName)(s.info.AgentInfo), Capabilities: can,
		Mode: s.mode, ModeName: s.otherModeName(s.mode), Options: s.options,
	}))
}

// enter opens a session of the agent, or continues the one that holds the latest turn.
func (s *agentSession) enter(ctx context.Context) (err error) {
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
		late := event.NewFact(event.RequestTimeout, "perlica", s.refs(), fact.RequestTimeout{Method: e.Method, After: e.Message})
		return errors.Join(err, s.r.log.Record(late))
	}
	return err
}

// begin gives the session to a turn.
func (s *agentSession) begin(c *client) {
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

// finish takes it back. No goroutine of the connection is in the turn when it returns.
func (s *agentSession) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = nil
}

// refs are those of the turn under way; what happens between turns belongs to no run.
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

// Sent records a line that is about to be written.
func (s *agentSession) Sent(f provider.Frame) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.r.log.Record(sentEvent(f, s.refsNow()))
}

// Received records a line that has come.
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

// Update takes in what the agent says. What it says between turns is on record only: of a
// session that was loaded it is all of the earlier turns.
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

// applyState takes in what the agent says of its session, and returns a change of its mode that
// was not asked for and that belongs to the turn under way.
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

// RequestPermission hands a question to the turn. Between turns there is no run to judge it
// for, and the agent gets the answer that it was cancelled.
func (s *agentSession) RequestPermission(p *provider.PermissionRequest) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.questions.add(p)
		return
	}
	refs := s.base
	s.stray.Go(func() {
		reply(s.r, p, "", "no turn is under way", refs)
	})
}

// RefusedPermission hands on to the turn what was asked and refused.
func (s *agentSession) RefusedPermission(t provider.ToolCall) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil && t.ID != "" {
		s.client.sums.decline(t)
	}
}

// Blocked records a request that was refused. An error kills the log, and with it the agent at
// its next line.
func (s *agentSession) Blocked(b provider.BlockedRequest) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_ = s.r.log.Record(blockedEvents(b, s.refsNow())...)
	if s.client != nil {
		s.client.refused(b)
	}
}

// SendHTTP says whether a model agent may send its HTTP request: in a turn that was not cancelled,
// or to list its models where somebody asked for that, once all that was recorded is on disk.
func (s *agentSession) SendHTTP() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.client == nil && !s.listing.Load():
		return errors.New("no turn is under way")
	case s.client != nil && s.client.lifecycle.isCancelled():
		return errors.New("the turn was cancelled")
	}
	return s.r.log.Sync()
}

// Warning tells of a line that could not be acted upon.
func (s *agentSession) Warning(w provider.Warning) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.warn(w.Subtype, w.Detail)
		return
	}
	s.r.opt.Trail.Warn(w.Subtype, "session", string(s.setup.Session), "detail", w.Detail)
}

// Drained has the turn show what came.
func (s *agentSession) Drained() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.client != nil {
		s.client.Drained()
	}
}

// beginClose asks the agent to free its session, if it offers that. The answer also tells
// that nothing more of the turn is on its way: an agent writes its lines in order.
func (s *agentSession) beginClose() {
	if s.session == nil || s.conn.Err() != nil || s.info.AgentCapabilities.SessionCapabilities.Close == nil || s.closing != nil {
		return
	}
	s.closing = make(chan struct{})
	go func() { // end waits for it
		defer close(s.closing)
		ctx, cancel := context.WithTimeout(context.Background(), agents.CloseTimeout)
		defer cancel()
		s.closeErr = s.session.Close(ctx)
	}()
}

// beginEnd ends the process of an agent whose session is closed and that is asked nothing more.
func (s *agentSession) beginEnd() {
	s.ending.Go(func() { _ = s.conn.End(context.Background()) }) // end, which follows, returns the same
}

// end waits for the closing, if it was begun, and ends the process. The error is the
// closing's; it spoils nothing: what was answered is on disk.
func (s *agentSession) end(ctx context.Context) error {
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
	s.stray.Wait()
	if late := s.strayModes(); len(late) > 0 {
		_ = s.r.log.Record(late...) // Close of the log tells
	}
	if s.session != nil && !s.closeRecorded {
		_ = s.r.log.Record(s.closedFact()) // Close of the log tells
	}
	return s.closeErr
}

// closedInTime reports whether the agent has answered session/close already. The fact then
// goes on record with the outcome, in one commit.
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

// closedFact says how the agent's session ended. The closing, if any, is over.
func (s *agentSession) closedFact() event.Event {
	closed := fact.SessionClosed{Requested: s.closing != nil}
	if s.closeErr != nil {
		closed.Error = s.closeErr.Error()
	}
	return event.NewFact(event.SessionClosed, "perlica", s.refs(), closed)
}
