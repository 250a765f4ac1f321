package dialog

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/project"
)

// AddExtraFlags adds the flags of run that not every agent supports, and their aliases from other programs.
func AddExtraFlags(cmd *cobra.Command, f *Flags) {
	fl := cmd.Flags()
	fl.StringVar(&f.Append, "append-system", "",
		"add this `text` after the agent's own system prompt; @FILE reads it from a file")
	fl.StringVar(&f.McpFile, "mcp-config", "",
		"hand the agent the MCP servers in this `file`, too: a JSON object with mcpServers")
	fl.StringVar(&f.Session, "resume", "", "continue this `session`: the same as --session")
	fl.BoolP("print", "p", false, "changes nothing: run always prints the answer and exits")
	fl.BoolVar(&f.Verbose, "verbose", false,
		"print plans, thoughts, actions and ids on standard error")
	// Completing a file name without the @ would make the name itself the text.
	frame.CompleteFlag(cmd, "append-system", frame.NoFiles)
	cmd.MarkFlagsMutuallyExclusive("session", "resume")
	cmd.MarkFlagsMutuallyExclusive("resume", "continue")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
}

// Refused returns an error if a flag may not be set in a run that an agent starts. Only a person may grant a
// permission, name a program for the agent to start, or have files written.
func (f Flags) Refused(limit string) error {
	switch {
	case len(f.Allow) > 0:
		return frame.UsageErrorf("--allow is refused: %s", limit)
	case f.SaveTo != "":
		return frame.UsageErrorf("--save-to is refused: %s", limit)
	case f.McpFile != "":
		return frame.UsageErrorf("--mcp-config is refused: %s", limit)
	}
	return nil
}

// addAgentOptions adds the options that only some agents support to the choice.
func (f Flags) addAgentOptions(c *project.Choice) (err error) {
	for _, dir := range f.AddDirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if info, err := os.Stat(abs); dir == "" || err != nil || !info.IsDir() {
			return frame.UsageErrorf("--add-dir %s: no such directory", dir)
		}
		c.AddDirs = append(c.AddDirs, abs)
	}
	if f.McpFile != "" {
		b, err := f.ReadFile("--mcp-config", f.McpFile)
		if err != nil {
			return err
		}
		if c.Servers, err = project.MCPServers(b); err != nil {
			return frame.UsageErrorf("--mcp-config %s: %w", f.McpFile, err)
		}
	}
	c.Append, err = f.systemText()
	return err
}

// systemText returns the text of --append-system.
func (f Flags) systemText() (string, error) {
	text := f.Append
	if file, ok := strings.CutPrefix(text, "@"); ok {
		b, err := f.ReadFile("--append-system", file)
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	switch {
	case f.Append != "" && strings.TrimSpace(text) == "":
		return "", frame.UsageErrorf("--append-system: there is no text")
	case !utf8.ValidString(text) || len(text) > frame.MaxInput:
		return "", frame.UsageErrorf("--append-system: the text must be UTF-8 of at most %d bytes", frame.MaxInput)
	}
	return text, nil
}
