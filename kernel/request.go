package kernel

import (
	"path/filepath"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/policy/toolcall"
	"github.com/perlica/perlica/provider"
)

// read reads a tool call, for policy and for who is asked.
func (c *client) read(call provider.ToolCall, options []acp.PermissionOption, place shell.Place) toolcall.Reading {
	read := toolcall.Read(callOf(c.run.t.Agent.ID, call), place)
	req := &read.Request
	req.Session = string(c.run.refs.Session)
	req.Agent, _ = shell.Words(c.run.t.Agent.Command)
	for _, o := range options {
		req.Options = append(req.Options, policy.Option{ID: string(o.OptionId), Name: o.Name, Kind: string(o.Kind)})
	}
	return read
}

// asking is a question of the agent and what its reading follows from. The reading, which
// repeats most of the question's bytes, is made anew when it is needed.
type asking struct {
	*provider.PermissionRequest // Tool is the whole call, as far as it was known
	place                       shell.Place
	dirs                        []string // where each command starts, if only the announcement said so
}

// reading is the same each time: it looks at nothing but what a holds and at the agent's name.
func (c *client) reading(a asking) toolcall.Reading {
	read := c.read(a.Tool, unambiguous(a.Options), a.place)
	for i, dir := range a.dirs {
		if dir != "" {
			read.Request.Commands[i].Dir = dir
			read.Request.Paths = append(read.Request.Paths, dir)
		}
	}
	return read
}

// startsWhere returns where each command of a request starts, if only the call that announced
// them said so.
func startsWhere(req, announced policy.Request) []string {
	dirs := make([]string, len(req.Commands))
	for i, cmd := range req.Commands {
		for _, before := range announced.Commands {
			dir := before.Dir
			if before.Dir = ""; cmd.Dir == "" && dir != "" && before.SameText(cmd) {
				dirs[i] = dir
				break
			}
		}
	}
	return dirs
}

// toolCall is what is known of a tool call. The caller holds mu.
func (c *client) toolCall(id acp.ToolCallId) provider.ToolCall {
	if s := c.toolOf[id]; s != nil {
		return s.call
	}
	return provider.ToolCall{}
}

// place is where the agent works, with links resolved: policy looks at no disk for it.
func (c *client) place() shell.Place {
	p := shell.Place{Dir: realDir(c.run.t.Dir), Home: realDir(c.run.t.Home)}
	for _, t := range c.run.t.Temp {
		p.Temp = append(p.Temp, realDir(t))
	}
	for _, o := range c.run.r.opt.Own {
		p.Own = append(p.Own, realDir(o))
	}
	return p
}

func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
