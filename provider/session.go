package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/coder/acp-go-sdk"
)

// clientName is the name that Perlica gives to agents.
const clientName = "perlica"

// Initialize sends initialize. It refuses an agent that does not speak version 1 of the protocol.
func (c *Conn) Initialize(ctx context.Context, version string) (acp.InitializeResponse, error) {
	params := introduction{
		Capabilities: c.opt.capabilities(c.agent),
		Info:         acp.Implementation{Name: clientName, Version: version},
		Version:      acp.ProtocolVersionNumber,
	}
	env, err := c.callAgent(ctx, acp.AgentMethodInitialize, params)
	if err != nil {
		return acp.InitializeResponse{}, err
	}
	c.opening.storeOffers(env.Result)
	return c.readIntroduction(env)
}

// readIntroduction reads the answer to initialize. It refuses an agent that states another version of the protocol.
// An agent that states no version counts as speaking Perlica's version.
func (c *Conn) readIntroduction(env Message) (r acp.InitializeResponse, err error) {
	_ = c.decodeLenient(env, acp.AgentMethodInitialize, "", &r) // no member is required
	stated, verr := Version(env.Result)
	if verr != nil {
		return r, c.completeError(acp.AgentMethodInitialize, env.ID, verr)
	}
	if !stated {
		c.warnClient("protocol_version",
			fmt.Sprintf("the agent does not say which version of the protocol it speaks; version %d is taken for it",
				acp.ProtocolVersionNumber))
	}
	r.ProtocolVersion = acp.ProtocolVersionNumber
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loginVars = loginVars(r.AuthMethods)
	return r, nil
}

// Version reports whether an agent's answer to initialize states a version of the protocol. The error means
// that the version differs from Perlica's.
func Version(initialized json.RawMessage) (stated bool, err error) {
	var said struct {
		Version any `json:"protocolVersion"`
	}
	_ = json.Unmarshal(initialized, &said) // an answer that is not an object states no version
	version, stated := said.Version.(float64)
	if text, ok := said.Version.(string); ok && !stated {
		n, err := strconv.ParseFloat(text, 64)
		version, stated = n, err == nil
	}
	if stated && version != acp.ProtocolVersionNumber {
		e := &Error{Type: TypeProtocol, Subtype: "protocol_version", RawShape: shape(initialized), cause: ErrProtocol}
		return true, e.Saying(errVersion.With(strconv.FormatFloat(version, 'g', -1, 64), acp.ProtocolVersionNumber))
	}
	return stated, nil
}

// loginVars returns the names of the variables that logins ask for, in order.
func loginVars(logins []acp.AuthMethod) (names []string) {
	for _, m := range logins {
		if m.EnvVar == nil {
			continue
		}
		for _, v := range m.EnvVar.Vars {
			names = append(names, v.Name)
		}
	}
	return names
}

// request calls a method and decodes the result with decodeLenient. A nil result is ignored.
func (c *Conn) request(ctx context.Context, method string, params, result any) error {
	env, err := c.callAgent(ctx, method, params)
	if err == nil && result != nil {
		err = c.decodeLenient(env, method, "", result)
	}
	return err
}

// Authenticate starts one of the logins that the agent announced. The person may have to act in another
// place, for example in a browser, so Authenticate waits until ctx is done.
func (c *Conn) Authenticate(ctx context.Context, method string) error {
	return c.request(ctx, acp.AgentMethodAuthenticate, acp.AuthenticateRequest{MethodId: method}, nil)
}

// Logout ends the agent's login. Only agents that announce the method know it.
func (c *Conn) Logout(ctx context.Context) error {
	return c.request(ctx, acp.AgentMethodLogout, acp.LogoutRequest{}, nil)
}

// Session is the agent's session on a connection. A connection without a Peer has one session.
type Session struct {
	ID      string
	Modes   *acp.SessionModeState // nil if the agent has no modes
	Options []acp.SessionConfigOption
	// ModeOption is the id of the config option that chooses a mode. It is empty if the agent offers modes
	// directly.
	ModeOption string
	// AnyModel means that the option for models accepts any text.
	AnyModel bool

	conn *Conn
}

// openedSession returns a session as the agent described it.
func (c *Conn) openedSession(id string, modes *acp.SessionModeState, options []acp.SessionConfigOption) *Session {
	s := &Session{ID: id, Modes: modes, Options: options, AnyModel: c.agent.Model, conn: c}
	for _, o := range options {
		if modes != nil && len(modes.AvailableModes) > 0 {
			break
		}
		if o.Select == nil || o.Select.Category == nil || *o.Select.Category != acp.SessionConfigOptionCategoryMode {
			continue
		}
		s.ModeOption = string(o.Select.Id)
		s.Modes = &acp.SessionModeState{CurrentModeId: acp.SessionModeId(o.Select.CurrentValue)}
		for _, v := range OptionValues(o.Select.Options) {
			s.Modes.AvailableModes = append(s.Modes.AvailableModes,
				acp.SessionMode{Id: acp.SessionModeId(v.Value), Name: v.Name, Description: v.Description})
		}
		break
	}
	return s
}

// OptionValues returns the possible values of a config option.
func OptionValues(o acp.SessionConfigSelectOptions) (values []acp.SessionConfigSelectOption) {
	if o.Ungrouped != nil {
		values = append(values, *o.Ungrouped...)
	}
	if o.Grouped != nil {
		for _, g := range *o.Grouped {
			values = append(values, g.Options...)
		}
	}
	return values
}

// NewSession opens the connection's session in dir.
func (c *Conn) NewSession(ctx context.Context, dir string, servers []acp.McpServer) (*Session, error) {
	var r offer
	if servers == nil {
		servers = []acp.McpServer{} // the protocol requires a list
	}
	env, err := c.callAgent(ctx, acp.AgentMethodSessionNew, c.opening.newRequest(dir, servers))
	if err != nil {
		return nil, err
	}
	if err := c.decodeLenient(env, acp.AgentMethodSessionNew, "sessionId", &r); err != nil {
		return nil, err
	}
	if r.SessionID == "" {
		e := &Error{Type: TypeProtocol, Subtype: "no_session_id", RawShape: shape(env.Result), cause: ErrProtocol}
		return nil, c.completeError(acp.AgentMethodSessionNew, env.ID, e.Saying(errNoSession))
	}
	return c.openedSession(r.SessionID, r.Modes, r.ConfigOptions), nil
}

// ResumeSession continues an earlier session of the agent without a replay of its updates. Only agents that
// advertise the capability know the method.
func (c *Conn) ResumeSession(ctx context.Context, id, dir string, servers []acp.McpServer) (*Session, error) {
	return c.reopenSession(ctx, acp.AgentMethodSessionResume, id, c.opening.resumeRequest(id, dir, servers))
}

// LoadSession continues an earlier session of the agent. The agent first repeats the session as updates and
// then answers. Only agents that advertise the capability know the method.
func (c *Conn) LoadSession(ctx context.Context, id, dir string, servers []acp.McpServer) (*Session, error) {
	if servers == nil {
		servers = []acp.McpServer{} // the protocol requires a list
	}
	return c.reopenSession(ctx, acp.AgentMethodSessionLoad, id, c.opening.loadRequest(id, dir, servers))
}

func (c *Conn) reopenSession(ctx context.Context, method, id string, request any) (*Session, error) {
	var r offer
	c.expectSession(id)
	if err := c.request(ctx, method, request, &r); err != nil {
		c.expectSession("")
		return nil, err
	}
	return c.openedSession(id, r.Modes, r.ConfigOptions), nil
}

// expectSession sets the connection's session before the agent has answered. Updates of this session belong to the
// connection from now on.
func (c *Conn) expectSession(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = session
}

// SetMode chooses one of the session's modes.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	if s.ModeOption != "" {
		return s.SetOption(ctx, s.ModeOption, mode)
	}
	err := s.conn.request(ctx, acp.AgentMethodSessionSetMode,
		acp.SetSessionModeRequest{SessionId: acp.SessionId(s.ID), ModeId: acp.SessionModeId(mode)}, nil)
	if err == nil {
		s.modeFollows(mode)
	}
	return err
}

// modeFollows updates the config option that offers the same modes, because the answer to session/set_mode does not
// contain it.
func (s *Session) modeFollows(mode string) {
	s.Options = slices.Clone(s.Options)
	for i, o := range s.Options {
		if o.Select == nil || o.Select.Category == nil || *o.Select.Category != acp.SessionConfigOptionCategoryMode {
			continue
		}
		if slices.ContainsFunc(OptionValues(o.Select.Options), func(
			v acp.SessionConfigSelectOption) bool {
			return string(v.Value) == mode
		}) {
			now := *o.Select
			now.CurrentValue = acp.SessionConfigValueId(mode)
			s.Options[i].Select = &now
		}
	}
}

// SetOption sets one of the session's config options. The values of a boolean option are on and off. If the
// agent answers with all its options, they replace Options.
func (s *Session) SetOption(ctx context.Context, id, value string) error {
	var r offer
	err := s.conn.request(ctx, acp.AgentMethodSessionSetConfigOption, s.optionRequest(id, value), &r)
	if err == nil && r.ConfigOptions != nil {
		s.Options = r.ConfigOptions
	}
	return err
}

// optionRequest returns the request that sets an option. A boolean option gets a boolean value.
func (s *Session) optionRequest(id, value string) acp.SetSessionConfigOptionRequest {
	for _, o := range s.Options {
		if o.Boolean != nil && string(o.Boolean.Id) == id && (value == "on" || value == "off") {
			return acp.SetSessionConfigOptionRequest{Boolean: &acp.SetSessionConfigOptionBoolean{
				SessionId: acp.SessionId(s.ID), ConfigId: o.Boolean.Id, Type: "boolean", Value: value == "on",
			}}
		}
	}
	return acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{
		SessionId: acp.SessionId(s.ID), ConfigId: acp.SessionConfigId(id), Value: acp.SessionConfigValueId(value),
	}}
}

// ListModels makes a model agent ask its API for the available models. The result replaces Options.
func (s *Session) ListModels(ctx context.Context) error {
	var r struct{ ConfigOptions []acp.SessionConfigOption }
	err := s.conn.request(ctx, methodListModels, map[string]string{"sessionId": s.ID}, &r)
	if err == nil {
		s.Options = r.ConfigOptions
	}
	return err
}

// methodListModels is a method that only model agents know.
const methodListModels = "_perlica.dev/model/list"

// Answer is the agent's answer to a prompt.
type Answer struct {
	StopReason string          // as the agent wrote it; empty if it gave none
	Usage      json.RawMessage // as the agent wrote it, or from _meta.quota of gemini; nil if it gave none
}

// A Prompt is the content of a prompt as it appears on the wire: a JSON array of content blocks.
type Prompt json.RawMessage

// textBlock is a text block. Its JSON equals the SDK's, but encoding it is cheaper: the SDK uses two maps.
type textBlock struct {
	Text string `json:"text"`
	Type string `json:"type"`
}

// NewPrompt encodes the content of a prompt.
func NewPrompt(blocks []acp.ContentBlock) (Prompt, error) {
	list := make([]any, len(blocks))
	for i, b := range blocks {
		list[i] = b
		if b.Text != nil {
			list[i] = textBlock{b.Text.Text, "text"}
		}
	}
	b, err := json.Marshal(list)
	return Prompt(b), err
}

// Prompt sends one session/prompt and uses up call. It does not wait until the agent has read or answered the
// prompt. To stop the turn, call Cancel and keep waiting for the answer.
func (s *Session) Prompt(call *Call, prompt Prompt) *PromptCall {
	id, err := json.Marshal(s.ID)
	if err != nil {
		panic(err) // every string can be encoded as JSON
	}
	params := fmt.Appendf(nil, `{"prompt":%s,"sessionId":%s}`, prompt, id)
	return &PromptCall{s.conn.beginCall(acp.AgentMethodSessionPrompt, json.RawMessage(params), call)}
}

// PromptCall is a session/prompt that was started. The caller must call Answer.
type PromptCall struct{ p *pendingCall }

// Sent is closed when the prompt has left or cannot leave. It may stay open after the agent is gone: see
// Conn.Gone.
func (c *PromptCall) Sent() <-chan struct{} { return c.p.out.done }

// Answered is closed when the agent has answered, which may happen before the whole prompt is written. It may
// stay open after the agent is gone: see Conn.Gone.
func (c *PromptCall) Answered() <-chan struct{} { return c.p.arrived }

// Answer waits without a timeout until the prompt is written and the agent has answered. It returns early
// only if the prompt could not be sent or the connection ended. After an error, Call.MayHaveLeft reports
// whether the agent may have received the prompt.
func (c *PromptCall) Answer() (Answer, error) {
	env, err := c.p.waitResponse(context.Background())
	if err != nil {
		return Answer{}, err
	}
	var v struct {
		StopReason string          `json:"stopReason"`
		Usage      json.RawMessage `json:"usage"`
		Meta       json.RawMessage `json:"_meta"`
	}
	if err := c.p.conn.decodeResult(env, acp.AgentMethodSessionPrompt, &v); err != nil {
		return Answer{}, err
	}
	if string(v.Usage) == "null" {
		v.Usage = nil
	}
	if v.Usage == nil {
		v.Usage = quotaUsage(v.Meta)
	}
	return Answer{StopReason: v.StopReason, Usage: v.Usage}, nil
}

// quotaUsage converts the usage that gemini-cli reports in _meta.quota to the protocol's form. It returns nil
// without such a report.
func quotaUsage(meta json.RawMessage) json.RawMessage {
	var v struct {
		Quota struct {
			Count struct {
				Input  json.Number `json:"input_tokens"`
				Output json.Number `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}
	if json.Unmarshal(meta, &v) != nil {
		return nil
	}
	in, ierr := v.Quota.Count.Input.Float64()
	out, oerr := v.Quota.Count.Output.Float64()
	if ierr != nil || oerr != nil || in < 0 || out < 0 || in+out > 1<<50 {
		return nil
	}
	return fmt.Appendf(nil, `{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d}`, int64(in), int64(out),
		int64(in)+int64(out))
}

// Cancel asks the agent to end the turn. It returns when the request has left. The answer to the prompt
// follows.
func (s *Session) Cancel() error {
	line, err := json.Marshal(struct {
		Version string                 `json:"jsonrpc"`
		Method  string                 `json:"method"`
		Params  acp.CancelNotification `json:"params"`
	}{"2.0", acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: acp.SessionId(s.ID)}})
	if err != nil {
		return err
	}
	return s.conn.sendLine(line, nil)
}

// Close frees the session. Only agents that advertise the capability know the method.
func (s *Session) Close(ctx context.Context) error {
	return s.conn.request(ctx, acp.AgentMethodSessionClose, acp.CloseSessionRequest{SessionId: acp.SessionId(s.ID)}, nil)
}
