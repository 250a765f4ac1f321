package agents

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/provider"
)

// ProbeOptions are the settings of a probe.
type ProbeOptions struct {
	// Dir is the agent's absolute working directory.
	Dir string
	// Environ is the environment from which the agent's variables are selected.
	Environ []string
	Servers []acp.McpServer
	// Version is the version of Perlica that is sent to the agent.
	Version string

	// TerminalLogins tells the agent that logins in a terminal are possible, so that the agent also lists them.
	TerminalLogins bool

	// Redactor masks secrets in the agent's error texts. Nil masks all texts that look like secrets.
	Redactor *redact.Redactor
}

// ProbeReport holds the agent's own statements before any prompt. If the probe failed early, the fields of later steps
// are empty.
type ProbeReport struct {
	Provider     string                `json:"provider"`
	Command      []string              `json:"command"`
	Protocol     int                   `json:"protocol_version"`
	Agent        *acp.Implementation   `json:"agent"`
	Capabilities acp.AgentCapabilities `json:"capabilities"`
	Logins       []acp.AuthMethod      `json:"login_methods"`
	Modes        []acp.SessionMode     `json:"modes"`
	// StartMode is the mode in which the session began.
	StartMode string `json:"start_mode"`
	// Mode is the mode that a run would choose before it prompts the agent.
	Mode string `json:"mode"`
	// Selected holds the options that the probe set so that the agent asks before it acts.
	Selected map[string]string         `json:"selected"`
	Options  []acp.SessionConfigOption `json:"options"`
	Steps    []ProbeStep               `json:"steps"`
	// Requirements lists the requirements of a model provider.
	Requirements []Requirement `json:"requirements,omitempty"`
	Warnings     []string      `json:"warnings"`
	// Exit is a sentence about the end of the process.
	Exit   string `json:"exit"`
	Stderr string `json:"stderr"`
	// Err is nil if the agent is ready for a prompt.
	Err *provider.Error `json:"error"`
}

// ProbeStep is one step and its duration.
type ProbeStep struct {
	// Name is "start", "end" or a method of the protocol.
	Name     string        `json:"name"`
	Duration time.Duration `json:"-"`
	MS       float64       `json:"ms"`
	OK       bool          `json:"ok"`
}

// Probe starts an agent, initializes it, opens a session, puts the session into the mode of a run, and ends the agent.
// Probe never sends a session/prompt, so it makes no call.
//
// Probe records nothing, because the log is about runs. When Probe returns, the process and all its children have
// ended. A canceled ctx ends the probe early.
func Probe(ctx context.Context, a Agent, opt ProbeOptions) ProbeReport {
	p := &probe{}
	return p.visitAgent(ctx, a, opt, func(ctx context.Context, _ *provider.Conn, _ acp.InitializeResponse) error {
		return p.openSession(ctx, a, opt)
	})
}

// Visit starts and initializes an agent, calls the function "do", and ends the agent. An error of this function becomes
// the error of the report.
func Visit(ctx context.Context, a Agent, opt ProbeOptions, do func(context.Context, *provider.Conn,
	acp.InitializeResponse) error) ProbeReport {
	return (&probe{}).visitAgent(ctx, a, opt, do)
}

func (p *probe) visitAgent(ctx context.Context, a Agent, opt ProbeOptions,
	do func(context.Context, *provider.Conn, acp.InitializeResponse) error) ProbeReport {
	p.report = ProbeReport{
		Provider: a.ID, Command: redact.Args(a.Command),
		Logins: []acp.AuthMethod{}, Modes: []acp.SessionMode{}, Selected: map[string]string{},
		Options: []acp.SessionConfigOption{}, Warnings: []string{},
	}
	err := p.runStep("start", func() (err error) {
		p.conn, err = provider.Start(a.Agent, provider.Options{
			Recorder: p, Client: p, Dir: opt.Dir, Environ: opt.Environ,
			MaxLine: a.MaxLine, ConnectTimeout: a.ConnectTimeout, RequestTimeout: a.RequestTimeout,
			Redact: opt.Redactor.Lines(), TerminalLogins: opt.TerminalLogins,
		})
		return err
	})
	if err == nil {
		if err = p.initialize(ctx, opt.Version); err == nil {
			err = do(ctx, p.conn, p.info)
		}
		p.endProcess(ctx, err)
	}
	if err != nil && !errors.As(err, &p.report.Err) {
		p.report.Err = (&provider.Error{Provider: a.ID, Type: provider.TypeProtocol}).Saying(message.Of(err))
	}
	p.report.Err = p.report.Err.Masked(opt.Redactor.Text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Warnings = append(p.report.Warnings, p.warnings...)
	return p.report
}

// probe is a running Probe. It is also the connection's recorder and client: it records nothing and denies every
// request.
type probe struct {
	conn   *provider.Conn
	info   acp.InitializeResponse
	report ProbeReport
	said   sync.WaitGroup // the goroutines that send answers

	mu       sync.Mutex // guards warnings
	warnings []string
}

// runStep calls the function "do" and adds a step with its duration to the report.
func (p *probe) runStep(name string, do func() error) error {
	began := time.Now()
	err := do()
	d := time.Since(began)
	p.report.Steps = append(p.report.Steps, ProbeStep{Name: name, Duration: d, MS: float64(d.Microseconds()) / 1000,
		OK: err == nil})
	return err
}

func (p *probe) initialize(ctx context.Context, version string) error {
	r := &p.report
	return p.runStep(acp.AgentMethodInitialize, func() (err error) {
		p.info, err = p.conn.Initialize(ctx, version)
		r.Protocol, r.Agent, r.Capabilities = int(p.info.ProtocolVersion), p.info.AgentInfo, p.info.AgentCapabilities
		r.Logins = append(r.Logins, p.info.AuthMethods...)
		return err
	})
}

// openSession performs the steps between initialize and the first prompt.
func (p *probe) openSession(ctx context.Context, a Agent, opt ProbeOptions) error {
	r := &p.report
	var s *provider.Session
	err := p.runStep(acp.AgentMethodSessionNew, func() (err error) {
		s, err = p.conn.NewSession(ctx, opt.Dir, opt.Servers)
		return err
	})
	if err != nil {
		return err
	}
	r.Options = append(r.Options, s.Options...)
	if s.Modes != nil {
		r.Modes, r.StartMode = append(r.Modes, s.Modes.AvailableModes...), string(s.Modes.CurrentModeId)
	}
	r.Mode = r.StartMode
	err = p.runStep("select mode", func() error {
		mode, options, err := Choose(ctx, s, a.AskingOf(r.Agent), a.Mode, "")
		if err == nil {
			r.Mode, r.Selected = mode, options
			if lacks := Unoffered(a.AskingOf(r.Agent), a.Mode, mode); lacks != nil {
				p.addWarning(lacks.Text)
			}
			r.Options = append(r.Options[:0], s.Options...)
		}
		return err
	})
	if err == nil && r.Capabilities.SessionCapabilities.Close != nil {
		p.closeSession(ctx, s)
	}
	return err
}

// closeSession frees the session. A failure is only a warning.
func (p *probe) closeSession(ctx context.Context, s *provider.Session) {
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	err := p.runStep(acp.AgentMethodSessionClose, func() error { return s.Close(ctx) })
	if err != nil {
		p.addWarning("the session could not be closed: " + err.Error())
	}
}

// endProcess ends the process. After a failed and cancelled probe, it kills the process at once.
func (p *probe) endProcess(ctx context.Context, failed error) {
	err := p.runStep("end", func() error {
		if failed != nil && ctx.Err() != nil {
			p.conn.Kill()
		}
		return p.conn.End(ctx)
	})
	if err != nil {
		p.addWarning(err.Error())
	}
	p.said.Wait()
	p.report.Stderr = p.conn.StderrTail()
	if e, ok := p.conn.Exit(); ok {
		p.report.Exit = e.String()
	}
}

func (p *probe) addWarning(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warnings = append(p.warnings, text)
}

// Sent records nothing.
func (p *probe) Sent(provider.Frame) error { return nil }

// Received records nothing.
func (p *probe) Received(provider.Frame) error { return nil }

// Update does nothing, because a probe has no turn.
func (p *probe) Update(provider.Update) {}

// Drained does nothing, because a probe shows no updates.
func (p *probe) Drained() {}

// RequestPermission denies the request, because no prompt was sent.
func (p *probe) RequestPermission(r *provider.PermissionRequest) {
	p.addWarning("the agent asked for permission before it was prompted: " + r.Tool.Title)
	p.said.Go(func() { _ = r.Cancel() }) // an error is ignored, because the agent may be ending
}

// RefusedPermission does nothing, because the connection also reports the refusal as a warning.
func (p *probe) RefusedPermission(provider.ToolCall) {}

// Blocked adds a warning about the refused request.
func (p *probe) Blocked(b provider.BlockedRequest) {
	p.addWarning("the agent asked for " + b.Method + ", which was refused")
}

// SendHTTP refuses the request, because a probe makes no call.
func (p *probe) SendHTTP() error { return errors.New("the agent is only looked at") }

// Warning adds a warning.
func (p *probe) Warning(w provider.Warning) { p.addWarning(w.Subtype + ": " + w.Detail) }
