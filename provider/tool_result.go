package provider

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// terminalMeta holds the output of a command. codex-acp and claude-agent-acp write these members of _meta for
// clients without terminals, because the protocol has no member for the output.
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

// Merge applies an update of the tool call. Fields that the update leaves empty stay unchanged.
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

// Over reports whether the agent says that the tool call has ended.
func (t ToolCall) Over() bool {
	return t.Status == acp.ToolCallStatusCompleted || t.Status == "failed"
}

// Output returns the text of the tool call's result: its content, the output of its command, or its raw
// output. Content other than text is named. The result is empty if the call has only diffs.
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

// Pictures returns the pictures in the tool call's result. A picture has the type that its first bytes show.
func (t ToolCall) Pictures() (list []Block) {
	for _, c := range t.Content {
		b := c.block()
		if b == nil || b.Kind != blockImage {
			continue
		}
		if b.MIME = MediaType(b.Data); strings.HasPrefix(b.MIME, "image/") {
			list = append(list, *b)
		}
	}
	return list
}

// block returns the piece's content other than text, or nil if it is unknown.
func (c ToolContent) block() *Block {
	var v struct {
		Content json.RawMessage `json:"content"`
	}
	if c.Type != "content" || json.Unmarshal(c.Raw, &v) != nil {
		return nil
	}
	return parseBlock(v.Content)
}

// Failed reports whether the tool call failed by the agent's report, or whether its command ended with an
// exit code other than 0. Many agents mark a call as completed although its command failed.
func (t ToolCall) Failed() bool {
	code, ok := t.ExitCode()
	return t.Status == "failed" || ok && code != 0
}

// ExitCode returns the exit code of the tool call's command. ok is false if the agent did not report it.
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
	if json.Unmarshal(t.RawOutput, &v) != nil { // a raw output may have any form
		return 0, false
	}
	if p := cmp.Or(v.Snake, v.Camel, v.Metadata.Exit); p != nil {
		return *p, true
	}
	return 0, false
}

// unfenced removes the code fence that some agents put around a command's output.
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

// rawText returns the text of a raw output: the output itself if it is a string, or the members that usually
// hold the text. Any other form is returned as it was written.
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

// readMeta reads the command's output from _meta. It ignores members of another form.
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
