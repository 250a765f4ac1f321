package provider

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// terminalMeta is what agents say of a command's output where the protocol has no place for it: the
// members of _meta that codex-acp and claude-agent-acp write for clients without terminals.
type terminalMeta struct {
	Delta *struct {
		Data string `json:"data"`
	} `json:"terminal_output_delta"`
	Output *struct {
		Data string `json:"data"`
	} `json:"terminal_output"`
	Exit *struct {
		Code *int `json:"exit_code"`
	} `json:"terminal_exit"`
}

// Merge takes in what an update says of the tool call: what it does not say stays as it was.
func (t *ToolCall) Merge(u ToolCall) {
	t.ID = cmp.Or(u.ID, t.ID)
	t.Title = cmp.Or(u.Title, t.Title)
	t.Kind = cmp.Or(u.Kind, t.Kind)
	t.Status = cmp.Or(u.Status, t.Status)
	if len(u.RawInput) > 0 {
		t.RawInput = u.RawInput
	}
	if len(u.RawOutput) > 0 {
		t.RawOutput = u.RawOutput
	}
	if len(u.Content) > 0 {
		t.Content = u.Content
	}
	if len(u.Locations) > 0 {
		t.Locations = u.Locations
	}
	t.printed += u.printed
	if u.exit != nil {
		t.exit = u.exit
	}
	t.partial = t.partial || u.partial
}

// Over reports whether the tool call has ended, as far as the agent says.
func (t ToolCall) Over() bool {
	return t.Status == acp.ToolCallStatusCompleted || t.Status == "failed"
}

// Output is the text that the tool call led to, as far as the agent shows it: its content, of which what is no text is
// named, or what its command printed, or its raw output. It is empty for a call that shows nothing but diffs.
func (t ToolCall) Output() string {
	var texts []string
	diffs := false
	for _, c := range t.Content {
		diffs = diffs || c.Type == "diff"
		if c.Text != "" {
			texts = append(texts, unfenced(c.Text))
		} else if b := c.block(); b != nil {
			texts = append(texts, "["+b.String()+"]")
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "\n")
	case t.printed != "" || diffs:
		return t.printed
	}
	return rawText(t.RawOutput)
}

// block is what a piece holds that is no text; nil: nothing that is known.
func (c ToolContent) block() *Block {
	var v struct {
		Content json.RawMessage `json:"content"`
	}
	if c.Type != "content" || json.Unmarshal(c.Raw, &v) != nil {
		return nil
	}
	return parseBlock(v.Content)
}

// Failed reports whether the agent says that the tool call failed, or that its command ended with an exit code
// other than 0. Many agents call a command completed although it failed.
func (t ToolCall) Failed() bool {
	code, ok := t.ExitCode()
	return t.Status == "failed" || ok && code != 0
}

// ExitCode is the exit code of the command that the tool call ran, if the agent says so.
func (t ToolCall) ExitCode() (code int, ok bool) {
	if t.exit != nil {
		return *t.exit, true
	}
	var v struct {
		Snake    *int `json:"exit_code"`
		Camel    *int `json:"exitCode"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
	}
	if json.Unmarshal(t.RawOutput, &v) != nil { // it may be anything
		return 0, false
	}
	if p := cmp.Or(v.Snake, v.Camel, v.Metadata.Exit); p != nil {
		return *p, true
	}
	return 0, false
}

// unfenced takes away the fence that some agents put around the output of a command.
func unfenced(text string) string {
	body := strings.TrimRight(text, "\n")
	fence := "```"
	first, rest, ok := strings.Cut(body, "\n")
	if !ok || !strings.HasPrefix(first, fence) {
		return text
	}
	for strings.HasPrefix(first, fence+"`") {
		fence += "`"
	}
	inner, ok := strings.CutSuffix("\n"+rest, "\n"+fence)
	if !ok || strings.Contains(inner, "\n"+fence) {
		return text
	}
	return strings.TrimPrefix(inner, "\n")
}

// rawText is the text of a raw output: itself, or the members in which agents write what was printed.
// Anything else is shown as it was written.
func rawText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var names struct {
		Formatted  *string `json:"formatted_output"`
		Aggregated *string `json:"aggregated_output"`
		Output     *string `json:"output"`
		Stdout     *string `json:"stdout"`
	}
	if json.Unmarshal(raw, &names) == nil {
		for _, p := range []*string{names.Formatted, names.Aggregated, names.Output, names.Stdout} {
			if p != nil {
				return *p
			}
		}
	}
	return string(raw)
}

// readMeta takes in what _meta says of the command's output. What has another form says nothing.
func (t *ToolCall) readMeta(raw json.RawMessage) {
	var m terminalMeta
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return
	}
	switch {
	case m.Output != nil:
		t.printed = m.Output.Data
	case m.Delta != nil:
		t.printed = m.Delta.Data
	}
	if m.Exit != nil {
		t.exit = m.Exit.Code
	}
}
