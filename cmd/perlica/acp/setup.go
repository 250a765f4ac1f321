package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/agents"
)

// editorSetup names an editor and the place of its configuration. The function text returns the text to put there.
type editorSetup struct {
	name, where string
	text        func(argv []string) string
}

var known = []editorSetup{
	{"zed", "~/.config/zed/settings.json, in addition to its content", func(argv []string) string {
		return pretty(map[string]any{"agent_servers": map[string]any{"Perlica": map[string]any{
			"type": "custom", "command": argv[0], "args": argv[1:], "env": map[string]string{},
		}}})
	}},
	{"jetbrains", "~/.jetbrains/acp.json", func(argv []string) string {
		return pretty(map[string]any{"agent_servers": map[string]any{"Perlica": map[string]any{"command": argv[0],
			"args": argv[1:]}}})
	}},
	{"nvim", "the configuration of codecompanion.nvim", func(argv []string) string {
		var quoted []string
		for _, word := range argv {
			quoted = append(quoted, luaQuote(word))
		}
		return `require("codecompanion").setup({
  adapters = {
    acp = {
      perlica = function()
        return require("codecompanion.adapters").extend("claude_code", {
          name = "perlica",
          formatted_name = "Perlica",
          commands = { default = { ` + strings.Join(quoted, ", ") + ` } },
        })
      end,
    },
  },
  interactions = { chat = { adapter = "perlica" } },
})`
	}},
	{"emacs", "your init file, for agent-shell and Claude Code", func(argv []string) string {
		var quoted []string
		for _, word := range argv {
			quoted = append(quoted, lispQuote(word))
		}
		return "(setq agent-shell-anthropic-claude-acp-command '(" + strings.Join(quoted, " ") + "))"
	}},
	{"acpx", "~/.acpx/config.json", func(argv []string) string {
		return pretty(map[string]any{"agents": map[string]any{"perlica": map[string]any{"command": agents.CommandLine(
			argv)}}})
	}},
}

func editors() (names []string) {
	for _, e := range known {
		names = append(names, e.name)
	}
	return names
}

// printSetup prints the configuration with which an editor starts this binary.
func (a *app) printSetup(name string, f dialog.Flags) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := []string{self, "acp"}
	switch {
	case f.Provider != "":
		argv = append(argv, "--provider", f.Provider)
	case f.Agent != "":
		argv = append(argv, "--agent", f.Agent)
	}
	for _, env := range f.Env {
		argv = append(argv, "--env", env)
	}
	for _, flag := range [][2]string{{"--mode", f.Mode}, {"--permissions", f.Permissions}, {"--context", a.ContextFlag}} {
		if flag[1] != "" {
			argv = append(argv, flag[0], flag[1])
		}
	}
	for _, e := range known {
		if e.name == name {
			a.Note("put this into " + e.where + ":")
			return a.Say("%s", e.text(argv))
		}
	}
	return frame.WithHint(frame.UsageErrorf("--setup: there is no editor %q", name),
		"it knows %s; in any other, put this in place of the agent's command: %s",
		strings.Join(editors(), ", "), agents.CommandLine(argv))
}

func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // Marshalling a map of strings cannot fail.
	}
	return string(b)
}

func luaQuote(s string) string { return fmt.Sprintf("%q", s) }

func lispQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
