package acp

import (
	"encoding/json"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
	"github.com/perlica/perlica/provider/process"
)

// Local handles a request for files or terminals if the client may carry it out. The policy judges
// a request that begins an operation like a tool call with the same content. Later requests of the
// operation pass.
func (r *relay) Local(f provider.Frame) bool {
	if !r.opt.Local {
		return false
	}
	exempt := exception.Of(exception.Agent, f.Method)
	tool, readable := localTool(f, acp.ToolKind(exempt.Tool))
	r.mu.Lock()
	q, s := r.agentRequests[f.Key], r.findSession(f.Session)
	r.mu.Unlock()
	switch {
	case q == nil || s == nil:
		// The policy needs the directory of the session to judge the request.
		return false
	case exempt.Does == exception.Continues:
		r.out.addLine(f.Line, q.at.Durable())
		return true
	case exempt.Does != exception.Acts || !readable:
		return false
	}
	line := f.Line
	p := r.conn.NewLocalRequest(f.ID, tool, func(option acp.PermissionOptionId) error {
		switch option {
		case provider.LocalAllow:
			r.mu.Lock()
			withdrawn := q.over
			q.passed = !withdrawn
			r.mu.Unlock()
			// Do nothing more than cancel, because the agent has withdrawn the request in the meantime.
			if withdrawn {
				break
			}
			r.passLocal(s, f.Method, line)
			return nil
		case provider.LocalDeny:
			return r.conn.Carry(errorLine(f.ID, codeRefused, f.Method+" was refused"))
		}
		return r.conn.Carry(errorLine(f.ID, codeCancelled, "cancelled"))
	})
	r.mu.Lock()
	q.permission, q.judged = p, true
	r.mu.Unlock()
	s.at.RequestPermission(p)
	return true
}

// These are the codes of a request that is not carried out: refused and cancelled.
const (
	codeRefused   = -32000
	codeCancelled = -32800
)

// passLocal passes an allowed request to the client. A command gets environment variables that mark it as an agent's
// process for Perlica. The mark works if the client sets the command's environment.
func (r *relay) passLocal(s *session, method string, line []byte) {
	if method == acp.ClientMethodTerminalCreate {
		if marked, err := markedLine(line, process.Marked(r.opt.Agent.ID, r.opt.Limit)); err == nil {
			r.recordLine(s.at, true, marked)
			line = marked
		}
	}
	r.out.addLine(line, s.at.Durable())
}

// markedLine adds variables to the environment of a terminal/create.
func markedLine(line []byte, environ []string) ([]byte, error) {
	var added []json.RawMessage
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		added = append(added, marshal(map[string]string{"name": name, "value": value}))
	}
	return rewrite(line, func(name string, value []byte) []byte {
		if name != "params" {
			return value
		}
		found := false
		params, err := rewrite(value, func(name string, value []byte) []byte {
			if name != "env" {
				return value
			}
			var list []json.RawMessage
			if json.Unmarshal(value, &list) != nil {
				return value
			}
			found = true
			return marshal(append(list, added...))
		})
		if err != nil {
			return value
		}
		if !found {
			params = append(append(append(params[:len(params)-1], `,"env":`...), marshal(added)...), '}')
		}
		return params
	})
}

// localTool returns the tool call that corresponds to a request for files or a new terminal. ok is
// false if the request cannot be read.
func localTool(f provider.Frame, kind acp.ToolKind) (tool provider.ToolCall, ok bool) {
	params := provider.ParseMessage(f.Line).Params
	var v struct {
		Path, Content string
		Command       string
		Args          []string
	}
	if json.Unmarshal(params, &v) != nil {
		return tool, false
	}
	raw, err := rewrite(params, func(name string, value []byte) []byte {
		if name == "sessionId" {
			return nil
		}
		return value
	})
	if err != nil {
		return tool, false
	}
	tool = provider.ToolCall{ID: acp.ToolCallId("perlica:" + f.ID), Kind: kind, RawInput: raw}
	if kind == acp.ToolKindExecute {
		tool.Title = "Run " + strings.Join(append([]string{v.Command}, v.Args...), " ") + " in the editor"
		return tool, true
	}
	tool.Title = "Read " + v.Path + " in the editor"
	tool.Locations = []acp.ToolCallLocation{{Path: v.Path}}
	if kind == acp.ToolKindEdit {
		tool.Title = "Write " + v.Path + " in the editor"
		tool.Content = []provider.ToolContent{{Type: "diff", Path: v.Path, NewText: v.Content}}
	}
	return tool, true
}
