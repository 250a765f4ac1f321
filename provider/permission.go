package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider/exception"
	"github.com/perlica/perlica/provider/sandbox"
)

// ErrReplied means that a permission request was already answered or withdrawn.
var ErrReplied = errors.New("the permission request is no longer open")

// PermissionRequest is a session/request_permission of the agent, or an elicitation/create, which has a Form.
// It is answered once: a request without a Form by Select or Cancel, a request with a Form by Fill, Decline
// or Cancel.
type PermissionRequest struct {
	ID      string // the JSON-RPC id as it was written; IDKey maps it to a map key
	Tool    ToolCall
	Options []acp.PermissionOption
	Form    *Form // nil for a request for a permission

	conn    *Conn
	replied atomic.Bool
	claimed bool      // owned by the goroutine that answers
	end     sync.Once // guards the closing of done
	done    chan struct{}
	peers   atomic.Pointer[peersReply]
	decide  func(option acp.PermissionOptionId) error // receives the answer in place of the agent; may be nil
}

// These options belong to a request made by NewLocalRequest.
const (
	LocalAllow acp.PermissionOptionId = "allow-once"
	LocalDeny  acp.PermissionOptionId = "reject-once"
)

// Sandbox returns the sandbox of the process that would act. It is nil for a request that a Peer would carry out.
func (p *PermissionRequest) Sandbox() *sandbox.Sandbox {
	if p.decide != nil {
		return nil
	}
	return p.conn.Sandbox()
}

// NewLocalRequest makes a question from a request for files or terminals that a Peer could carry out. The function
// "decide" receives the chosen option, or an empty id if nothing was chosen.
func (c *Conn) NewLocalRequest(id string, tool ToolCall, decide func(
	option acp.PermissionOptionId) error) *PermissionRequest {
	return &PermissionRequest{ID: id, Tool: tool, conn: c, decide: decide, done: make(chan struct{}),
		Options: []acp.PermissionOption{
			{OptionId: LocalAllow, Name: "Let the editor do it", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: LocalDeny, Name: "Refuse", Kind: acp.PermissionOptionKindRejectOnce},
		}}
}

// Withdraw records that the agent no longer wants an answer, after a Peer has learned this from the agent. It
// sends the agent an error response. It does nothing if the request was already answered.
func (p *PermissionRequest) Withdraw() {
	if p.replied.Swap(true) {
		return
	}
	p.conn.forgetPermission(p)
	p.conn.refuseRequest(p.ID, codeCancelled, "cancelled")
	p.end.Do(func() { close(p.done) })
}

// Dismiss records that the peer chose no option. line is the peer's answer, which Cancel then sends. A nil
// line means that Cancel writes its own answer.
func (p *PermissionRequest) Dismiss(line []byte) {
	p.peers.Store(&peersReply{"", line})
	p.end.Do(func() { close(p.done) })
}

// Dismissed reports whether Dismiss closed Done.
func (p *PermissionRequest) Dismissed() bool {
	peers := p.peers.Load()
	return peers != nil && peers.option == "" && !p.replied.Load()
}

// peersReply is an answer that the peer wrote. An empty option means that the peer chose none.
type peersReply struct {
	option acp.PermissionOptionId
	line   []byte
}

// Carry stores the peer's own answer. If Select is called with this option, it sends this line unchanged.
func (p *PermissionRequest) Carry(option acp.PermissionOptionId, line []byte) {
	p.peers.Store(&peersReply{option, line})
}

// Done is closed when the agent has withdrawn the request or the peer has dismissed it. The reply to a
// withdrawn request has already been sent.
func (p *PermissionRequest) Done() <-chan struct{} { return p.done }

// Claim reserves the request for an answer: the agent can no longer withdraw it. It returns false if the
// request is no longer open. The caller must answer a claimed request.
func (p *PermissionRequest) Claim() bool {
	p.claimed = p.claimed || !p.replied.Swap(true)
	return p.claimed
}

// Select answers with exactly one of the agent's options. It returns when the answer has left.
func (p *PermissionRequest) Select(option acp.PermissionOptionId) error {
	for _, o := range p.Options {
		if o.OptionId == option {
			return p.sendReply(option, acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option)})
		}
	}
	return fmt.Errorf("provider: the agent offered no option %q", option)
}

// Cancel answers that the turn was cancelled or that nothing was chosen. It returns when the answer has left.
func (p *PermissionRequest) Cancel() error { return p.sendReply("", p.cancelledResult()) }

// cancelledResult returns the result that reports that nothing was chosen.
func (p *PermissionRequest) cancelledResult() any {
	if p.Form != nil {
		return formResult{Action: "cancel"}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}
}

func (p *PermissionRequest) sendReply(option acp.PermissionOptionId, result any) error {
	if !p.Claim() {
		return ErrReplied
	}
	p.claimed = false
	if p.decide != nil {
		return p.decide(option)
	}
	p.conn.forgetPermission(p)
	if peers := p.peers.Load(); peers != nil && peers.option == option && peers.line != nil {
		return p.conn.sendLine(peers.line, nil)
	}
	line, err := resultLine(p.ID, result)
	if err != nil {
		return err
	}
	return p.conn.sendLine(line, nil)
}

func (c *Conn) forgetPermission(p *PermissionRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := IDKey(p.ID); c.pendingPermissions[key] == p {
		delete(c.pendingPermissions, key)
	}
}

// handleRequest answers a request of the agent, or hands it to the client.
func (c *Conn) handleRequest(env Message) {
	if c.failOnEcho(env) {
		return
	}
	if env.Method == acp.ClientMethodSessionRequestPermission {
		c.requestPermission(env)
		return
	}
	if c.agent.Model && env.Method == methodSendHTTP {
		c.sendHTTP(env)
		return
	}
	ofEditor := exception.Of(exception.Agent, env.Method).OfEditor()
	if c.opt.Peer != nil && (!ofEditor || c.opt.Peer.Local(env.Frame)) {
		return // the peer answers this request
	}
	if c.opt.Forms && env.Method == acp.ClientMethodElicitationCreate {
		c.requestForm(env)
		return
	}
	c.refuseRequest(env.ID, -32601, "Perlica does not offer "+env.Method)
	if ofEditor {
		client := c.clientOf(sessionOf(env.Params))
		if client == nil {
			client = c.opt.Client
		}
		client.Blocked(BlockedRequest{Method: env.Method, ID: env.ID, Params: env.Params})
		return
	}
	c.warnClient("unknown_method", "the agent asked for "+clip(env.Method, 80)+", which Perlica does not offer")
}

// methodSendHTTP describes the HTTP request that a model agent is about to send. Perlica refuses this method
// from any other agent.
const methodSendHTTP = "_perlica.dev/http/send"

// sendHTTP permits a model agent to send an HTTP request. It answers the agent after the request's description is on
// disk.
func (c *Conn) sendHTTP(env Message) {
	client := c.clientOf(sessionOf(env.Params))
	if client == nil {
		client = c.opt.Client
	}
	if err := client.SendHTTP(); err != nil {
		c.refuseRequest(env.ID, codeCancelled, err.Error())
		return
	}
	line, err := resultLine(env.ID, struct{}{})
	if err == nil {
		c.postLine(line)
	}
}

// codeCancelled is the error code of a cancelled request in ACP and LSP.
const codeCancelled = -32800

// permissionParams are the params of a session/request_permission.
type permissionParams struct {
	SessionID string                 `json:"sessionId"`
	ToolCall  ToolCall               `json:"toolCall"`
	Options   []acp.PermissionOption `json:"options"`
}

// ParsePermission decodes a recorded line, if it is a session/request_permission. The result cannot be answered.
func ParsePermission(line []byte) (p *PermissionRequest, ok bool) {
	return parsePermission(ParseMessage(line))
}

func parsePermission(env Message) (p *PermissionRequest, ok bool) {
	if env.Kind != Request || env.Method != acp.ClientMethodSessionRequestPermission {
		return nil, false
	}
	var v permissionParams
	err := json.Unmarshal(env.Params, &v)
	return &PermissionRequest{ID: env.ID, Tool: v.ToolCall, Options: v.Options}, err == nil
}

// ParseTool decodes a recorded line if it is about a tool call. For a session/update it returns the tool call, and for
// a session/request_permission the request. Otherwise both are nil.
func ParseTool(line []byte) (*ToolCall, *PermissionRequest) {
	env := ParseMessage(line)
	if p, ok := parsePermission(env); ok {
		return nil, p
	}
	if env.Kind == Notification && env.Method == acp.ClientMethodSessionUpdate {
		if _, u, ok := parseUpdate(env.Params); ok {
			return u.Tool, nil
		}
	}
	return nil, nil
}

func (c *Conn) requestPermission(env Message) {
	var v permissionParams
	// A partly decoded request cannot be judged.
	if err := json.Unmarshal(env.Params, &v); err != nil || v.ToolCall.partial {
		if client := c.clientOf(v.SessionID); client != nil {
			client.RefusedPermission(v.ToolCall)
		}
		c.refuseRequest(env.ID, -32602, "undecodable permission request")
		c.warnClient("undecodable_request", clip(string(env.Params), 200))
		return
	}
	c.putPermission(env, v.SessionID, &PermissionRequest{ID: env.ID, Tool: v.ToolCall, Options: v.Options})
}

// putPermission hands a question to the client of its session.
func (c *Conn) putPermission(env Message, session string, p *PermissionRequest) {
	p.conn, p.done = c, make(chan struct{})
	client := c.clientOf(session)
	ours := client != nil
	c.mu.Lock()
	twin := c.pendingPermissions[env.Key]
	if ours && twin == nil {
		c.pendingPermissions[env.Key] = p
	}
	c.mu.Unlock()
	switch {
	case !ours:
		c.refuseRequest(env.ID, -32602, "unknown session")
		c.warnClient("foreign_session", "a question of session "+clip(session, 80))
	case twin != nil:
		// With two open requests of one id, an answer to one could be taken as an answer to the other.
		// Perlica refuses both.
		c.withdrawPermission(env.Key)
		if p.Form == nil {
			client.RefusedPermission(p.Tool)
		}
		c.refuseRequest(env.ID, -32600, "duplicate request id")
		c.warnClient("duplicate_request", "two open requests with the id "+env.ID+"; both were refused")
	default:
		client.RequestPermission(p)
	}
}

// withdrawPermission closes a permission request that the agent cancelled. It still sends a response, because JSON-RPC
// requires one.
func (c *Conn) withdrawPermission(key string) {
	c.mu.Lock()
	p := c.pendingPermissions[key]
	delete(c.pendingPermissions, key)
	c.mu.Unlock()
	if p == nil || p.replied.Swap(true) {
		return
	}
	if line, err := resultLine(p.ID, p.cancelledResult()); err == nil {
		c.postLine(line)
	}
	p.end.Do(func() { close(p.done) })
}

func (c *Conn) refuseRequest(id string, code int, message string) {
	line, err := json.Marshal(struct {
		Version string           `json:"jsonrpc"`
		ID      json.RawMessage  `json:"id"`
		Error   acp.RequestError `json:"error"`
	}{"2.0", json.RawMessage(id), acp.RequestError{Code: code, Message: message}})
	if err == nil { // the id was valid JSON when it arrived
		c.postLine(line)
	}
}

func resultLine(id string, result any) ([]byte, error) {
	return json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", json.RawMessage(id), result})
}
