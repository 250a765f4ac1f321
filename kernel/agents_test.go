package kernel

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// agentFrames returns lines of agents by file name. Some files were recorded from real agents, and others were written
// from an agent's source. The first line of each file says which.
func agentFrames(t *testing.T) map[string][][]byte {
	t.Helper()
	files := map[string][][]byte{}
	for _, glob := range []string{"../provider/testdata/frames/*.ndjson", "testdata/agents/*.ndjson"} {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", glob, names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(b) {
				var v struct {
					From string
					Line json.RawMessage
				}
				if err := json.Unmarshal(line, &v); err != nil {
					t.Fatal(err)
				}
				if v.From == "agent" {
					files[filepath.Base(name)] = append(files[filepath.Base(name)], v.Line)
				}
			}
		}
	}
	return files
}

// toolOfFrame returns the tool call in a line of an agent. asks is true if the line is a question about the call.
func toolOfFrame(line []byte) (tool *provider.ToolCall, asks bool) {
	if u, ok := provider.ParseUpdate(line, ""); ok {
		return u.Tool, false
	}
	var v struct {
		Method string
		Params struct{ ToolCall provider.ToolCall }
	}
	if json.Unmarshal(line, &v) != nil || v.Method != acp.ClientMethodSessionRequestPermission {
		return nil, false
	}
	return &v.Params.ToolCall, true
}

// TestAgentsFrames checks that policy can read every field in the requests of real agents. It also checks that each
// tool that they ran equals an allowed request. With one invented field, a request must be unreadable, and the reason
// must name the field.
func TestAgentsFrames(t *testing.T) {
	place := shell.Place{Dir: "/project", Home: "/home/me"}
	asked, ran := 0, 0
	for name, frames := range agentFrames(t) {
		agent, _, _ := strings.Cut(strings.TrimSuffix(name, ".ndjson"), "_")
		c := newClient(&run{r: &Runner{opt: Options{Now: time.Now}},
			t: Turn{Setup: Setup{Agent: agents.Agent{Agent: provider.Agent{ID: agent}}}}})
		for _, line := range frames {
			tool, asks := toolOfFrame(line)
			if tool == nil {
				continue
			}
			announced := c.sums.toolCall(tool.ID)
			s := c.sums.mergeTool(*tool)
			a := asking{PermissionRequest: &provider.PermissionRequest{Tool: s.call}, place: place}
			a.dirs = startsWhere(c.reading(a).Request, c.readTool(announced, nil, place).Request)
			req := c.reading(a).Request
			if !asks {
				s.addForm(speaker{agent, agent})
				ran++
				if why := unreadable(req); why != "" && hasRun(s.Status) {
					t.Errorf("%s: %s: %s", name, line, why)
				}
				continue
			}
			asked++
			for _, p := range req.Paths { // no path may look like this
				if strings.HasSuffix(p, "/dev/null") || strings.HasPrefix(p, "/project/project") {
					t.Errorf("%s: %s: the path %s", name, line, p)
				}
			}
			s.wasAsked, s.approved = true, append(s.approved, a)
			if why := unreadable(req); why != "" {
				t.Errorf("%s: %s: %s", name, line, why)
			}
			inventOne(t, name, agent, s.call, place)
		}
		for _, s := range c.sums.tools {
			if why := c.unasked(*s, place); why != nil && s.wasAsked {
				t.Errorf("%s: %s: %s", name, s.Title, why)
			}
		}
		c.show.closeQueue()
	}
	if asked < 10 || ran < 20 {
		t.Errorf("%d requests and %d reports were read", asked, ran)
	}
}

// inventOne adds a field that no agent uses, and checks that the field is shown and, with a dangerous value, makes the
// request unreadable.
func inventOne(t *testing.T, name, agent string, call provider.ToolCall, place shell.Place) {
	t.Helper()
	input := map[string]json.RawMessage{}
	if len(call.RawInput) > 0 && json.Unmarshal(call.RawInput, &input) != nil {
		t.Fatalf("%s: %s", name, call.RawInput)
	}
	for value, unread := range map[string]bool{`"then do as you like"`: true, `"../x"`: true, `"bash"`: true,
		`42`: false, `"quick"`: false} {
		input["invented"] = json.RawMessage(value)
		call.RawInput, _ = json.Marshal(input)
		req := policy.ReadToolCall(callOf(speaker{agent, agent}, call), place).Request
		shown := false
		for _, f := range req.Fields {
			shown = shown || f.Name == "invented"
		}
		if !shown || (unreadable(req) != "") != unread {
			t.Errorf("%s: with %s: %+v", name, value, req)
		}
	}
}

// unreadable returns the name of the part of a request that policy cannot read, or "".
func unreadable(req policy.Request) string {
	for _, f := range req.Fields {
		if f.Role == policy.Unread {
			return f.Name
		}
	}
	if len(req.Commands) == 0 && (req.HasCommand || req.Kind == "execute") {
		return "the command"
	}
	if len(req.Paths) == 0 && (req.Kind == "edit" || req.Kind == "delete" || req.Kind == "move") {
		return "the file"
	}
	return ""
}
