package agents

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/provider"
)

// ProbeOptions say how an agent is probed.
type ProbeOptions struct {
	Dir     string   // the agent's working directory, absolute
	Environ []string // what the agent's environment is chosen from
	Servers []acp.McpServer
	Version string // of Perlica, for the agent

	TerminalLogins bool // the agent is asked for its logins in a terminal, too

	Redactor *redact.Redactor // what is masked in what the agent says of errors; nil: what looks like a secret
}

// ProbeReport is what an agent said of itself before it was prompted. What was not reached
// is empty.
type ProbeReport struct {
	Provider     string                    `json:"provider"`
	Command      []string                  `json:"command"`
	Protocol     int                       `json:"protocol_version"`
	Agent        *acp.Implementation       `json:"agent"`
	Capabilities acp.AgentCapabilities     `json:"capabilities"`
	Logins       []acp.AuthMethod          `json:"login_methods"`
	Modes        []acp.SessionMode         `json:"modes"`
	StartMode    string                    `json:"start_mode"` // in which the session began
	Mode         string                    `json:"mode"`       // in which a run would prompt it
	Selected     map[string]string         `json:"selected"`   // options that were set to make it ask
	Options      []acp.SessionConfigOption `json:"options"`
	Steps        []ProbeStep               `json:"steps"`
	Requirements []Requirement             `json:"requirements,omitempty"` // of a model without an agent
	Warnings     []string                  `json:"warnings"`
	Exit         string                    `json:"exit"` // how the process ended, in words
	Stderr       string                    `json:"stderr"`
	Err          *provider.Error           `json:"error"` // nil: the agent is ready for a prompt
}

// ProbeStep is one step and how long it took.
type ProbeStep struct {
	Name     string        `json:"name"` // "start", "end" or the protocol's method
	Duration time.Duration `json:"-"`
	MS       float64       `json:"ms"`
	OK       bool          `json:"ok"`
}

// Probe starts an agent, initializes it, opens a session, puts it into the mode that a run
// would choose, and ends it. It never sends a session/prompt, so it makes no call.
//
// Nothing is recorded: the record is of runs, and there is none. The process and all its
// children are gone when Probe returns. When ctx is done the probe ends early.
func Probe(ctx context.Context, a Agent, opt ProbeOptions) ProbeReport {
	p := &probe{}
	return p.visit(ctx, a, opt, func(ctx context.Context, _ *provider.Conn, _ acp.InitializeResponse) error {
		return p.open(ctx, a, opt)
	})
}

// Visit is Probe with do in the place of what follows initialize. An error of do is the report's.
func Visit(ctx context.Context, a Agent, opt ProbeOptions, do func(context.Context, *provider.Conn, acp.InitializeResponse) error) ProbeReport {
	return (&probe{}).visit(ctx, a, opt, do)
}

func (p *probe) visit(ctx context.Context, a Agent, opt ProbeOptions, do func(context.Context, *provider.Conn, acp.InitializeResponse) error) ProbeReport {
	p.report = ProbeReport{
		Provider: a.ID, Command: redact.Args(a.Command),
		Logins: []acp.AuthMethod{}, Modes: []acp.SessionMode{}, Selected: map[string]string{},
		Options: []acp.SessionConfigOption{}, Warnings: []string{},
	}
	err := p.step("start", func() (err error) {
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
		p.end(ctx, err)
	}
	if err != nil && !errors.As(err, &p.report.Err) {
		p.report.Err = &provider.Error{Provider: a.ID, Type: provider.TypeProtocol, Message: err.Error()}
	}
	if e := p.report.Err; e != nil {
		masked := *e
		masked.Message = opt.Redactor.Text(e.Message)
		p.report.Err = &masked
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Warnings = append(p.report.Warnings, p.warnings...)
	return p.report
}

// probe is a Probe on its way: the connection's recorder, which keeps nothing, and its
// client, which says no.
type probe struct {
	conn   *provider.Conn
	info   acp.InitializeResponse
	report ProbeReport
	said   sync.WaitGroup // answers on their way

	mu       sync.Mutex // guards warnings
	warnings []string
}

// step does something and takes its time.
func (p *probe) step(name string, do func() error) error {
	began := time.Now()
	err := do()
	d := time.Since(began)
	p.report.Steps = append(p.report.Steps, ProbeStep{Name: name, Duration: d, MS: float64(d.Microseconds()) / 1000, OK: err == nil})
	return err
}

func (p *probe) initialize(ctx context.Context, version string) error {
	r := &p.report
	return p.step(acp.AgentMethodInitialize, func() (err error) {
		p.info, err = p.conn.Initialize(ctx, version)
		r.Protocol, r.Agent, r.Capabilities = int(p.info.ProtocolVersion), p.info.AgentInfo, p.info.AgentCapabilities
		r.Logins = append(r.Logins, p.info.AuthMethods...)
		return err
	})
}

// open is everything else that precedes a prompt.
func (p *probe) open(ctx context.Context, a Agent, opt ProbeOptions) error {
	r := &p.report
	var s *provider.Session
	err := p.step(acp.AgentMethodSessionNew, func() (err error) {
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
	err = p.step("select mode", func() error {
		mode, options, err := Choose(ctx, s, a.AskingOf(r.Agent), a.Mode, "")
		if err == nil {
			r.Mode, r.Selected = mode, options
			if lacks := Unoffered(a.AskingOf(r.Agent), a.Mode, mode); lacks != "" {
				p.warn(lacks)
			}
			r.Options = append(r.Options[:0], s.Options...)
		}
		return err
	})
	if err == nil && r.Capabilities.SessionCapabilities.Close != nil {
		p.close(ctx, s)
	}
	return err
}

// close frees the session. That it fails spoils nothing.
func (p *probe) close(ctx context.Context, s *provider.Session) {
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	err := p.step(acp.AgentMethodSessionClose, func() error { return s.Close(ctx) })
	if err != nil {
		p.warn("the session could not be closed: " + err.Error())
	}
}

// end ends the process. One that failed is given no grace: it is killed if it must be.
func (p *probe) end(ctx context.Context, failed error) {
	err := p.step("end", func() error {
		if failed != nil && ctx.Err() != nil {
			p.conn.Kill()
		}
		return p.conn.End(ctx)
	})
	if err != nil {
		p.warn(err.Error())
	}
	p.said.Wait()
	p.report.Stderr = p.conn.StderrTail()
	if e, ok := p.conn.Exit(); ok {
		p.report.Exit = e.String()
	}
}

func (p *probe) warn(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warnings = append(p.warnings, text)
}

// Sent keeps nothing.
func (p *probe) Sent(provider.Frame) error { return nil }

// Received keeps nothing.
func (p *probe) Received(provider.Frame) error { return nil }

// Update does nothing: there is no turn.
func (p *probe) Update(provider.Update) {}

// Drained is nothing to a probe.
func (p *probe) Drained() {}

// RequestPermission says no: there was no prompt yet.
func (p *probe) RequestPermission(r *provider.PermissionRequest) {
	p.warn("the agent asked for permission before it was prompted: " + r.Tool.Title)
	p.said.Go(func() { _ = r.Cancel() }) // the agent may be going
}

// RefusedPermission does nothing: a warning tells of it.
func (p *probe) RefusedPermission(provider.ToolCall) {}

// Blocked notes what was refused.
func (p *probe) Blocked(b provider.BlockedRequest) {
	p.warn("the agent asked for " + b.Method + ", which was refused")
}

// SendHTTP says no: a probe makes no call.
func (p *probe) SendHTTP() error { return errors.New("the agent is only looked at") }

// Warning notes what was wrong.
func (p *probe) Warning(w provider.Warning) { p.warn(w.Subtype + ": " + w.Detail) }
