package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

// ClientName is how Perlica introduces itself to agents.
const ClientName = "perlica"

// Initialize introduces the two sides. It refuses an agent that does not speak version 1
// of the protocol.
func (c *Conn) Initialize(ctx context.Context, version string) (acp.InitializeResponse, error) {
	var r acp.InitializeResponse
	env, err := c.call(ctx, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: ClientName, Version: version},
		// No capability is claimed: Perlica reads no file and runs no command.
	}, nil)
	if err != nil {
		return r, err
	}
	if err := c.decode(env, acp.AgentMethodInitialize, &r); err != nil {
		return r, err
	}
	if r.ProtocolVersion != acp.ProtocolVersionNumber {
		return r, c.failed(acp.AgentMethodInitialize, env.ID, &Error{
			Type: TypeProtocol, Subtype: "protocol_version", RawShape: shape(env.result), cause: ErrProtocol,
			Message: fmt.Sprintf("the agent speaks version %d of the protocol, Perlica speaks version %d", r.ProtocolVersion, acp.ProtocolVersionNumber),
		})
	}
	return r, nil
}

// ask is call with the result decoded.
func (c *Conn) ask(ctx context.Context, method string, params, result any) error {
	env, err := c.call(ctx, method, params, nil)
	if err != nil {
		return err
	}
	return c.decode(env, method, result)
}

// Session is the agent's session on a connection. A connection has one.
type Session struct {
	ID      string
	Modes   *acp.SessionModeState // nil if the agent has none
	Options []acp.SessionConfigOption

	conn *Conn
}

// NewSession opens the connection's session in dir.
func (c *Conn) NewSession(ctx context.Context, dir string, servers []acp.McpServer) (*Session, error) {
	var r acp.NewSessionResponse
	if servers == nil {
		servers = []acp.McpServer{} // the protocol wants a list
	}
	env, err := c.call(ctx, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: dir, McpServers: servers}, nil)
	if err != nil {
		return nil, err
	}
	if err := c.decode(env, acp.AgentMethodSessionNew, &r); err != nil {
		return nil, err
	}
	if r.SessionId == "" {
		return nil, c.failed(acp.AgentMethodSessionNew, env.ID, &Error{
			Type: TypeProtocol, Subtype: "no_session_id", RawShape: shape(env.result), cause: ErrProtocol, Message: "the agent opened a session without an id",
		})
	}
	return &Session{ID: string(r.SessionId), Modes: r.Modes, Options: r.ConfigOptions, conn: c}, nil
}

// SetMode chooses one of the session's modes.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	return s.conn.ask(ctx, acp.AgentMethodSessionSetMode,
		acp.SetSessionModeRequest{SessionId: acp.SessionId(s.ID), ModeId: acp.SessionModeId(mode)}, &struct{}{})
}

// SetOption sets one of the session's config options.
func (s *Session) SetOption(ctx context.Context, id, value string) error {
	return s.conn.ask(ctx, acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionRequest{
		ValueId: &acp.SetSessionConfigOptionValueId{
			SessionId: acp.SessionId(s.ID), ConfigId: acp.SessionConfigId(id), Value: acp.SessionConfigValueId(value),
		},
	}, &struct{}{})
}

// Answer is the agent's answer to a prompt.
type Answer struct {
	StopReason string          // as the agent wrote it; empty if it gave none
	Usage      json.RawMessage // as the agent wrote it; nil if it gave none
}

// Prompt spends call on one session/prompt and waits for its answer, however long it
// takes; it returns early only if the connection ends. To stop a turn send Cancel and
// wait on. On an error, call says whether the prompt may have left.
func (s *Session) Prompt(call *Call, prompt []acp.ContentBlock) (Answer, error) {
	env, err := s.conn.call(context.Background(), acp.AgentMethodSessionPrompt,
		acp.PromptRequest{SessionId: acp.SessionId(s.ID), Prompt: prompt}, call)
	if err != nil {
		return Answer{}, err
	}
	var v struct {
		StopReason string          `json:"stopReason"`
		Usage      json.RawMessage `json:"usage"`
	}
	if err := s.conn.decode(env, acp.AgentMethodSessionPrompt, &v); err != nil {
		return Answer{}, err
	}
	if string(v.Usage) == "null" {
		v.Usage = nil
	}
	return Answer{StopReason: v.StopReason, Usage: v.Usage}, nil
}

// Cancel asks the agent to end the turn. It returns when the request has left; the
// answer to the prompt follows.
func (s *Session) Cancel() error {
	line, err := json.Marshal(struct {
		Version string                 `json:"jsonrpc"`
		Method  string                 `json:"method"`
		Params  acp.CancelNotification `json:"params"`
	}{"2.0", acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: acp.SessionId(s.ID)}})
	if err != nil {
		return err
	}
	return s.conn.send(line, nil)
}

// Close frees the session. Only agents that advertise the capability know the method.
func (s *Session) Close(ctx context.Context) error {
	return s.conn.ask(ctx, acp.AgentMethodSessionClose, acp.CloseSessionRequest{SessionId: acp.SessionId(s.ID)}, &struct{}{})
}
