package provider

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"
	"github.com/go-faster/jx"
)

// These are the protocol's names for the kinds of session/update that Perlica understands. An update of any other kind
// has only Kind and Raw.
const (
	UserMessageChunk  = "user_message_chunk"
	AgentMessageChunk = "agent_message_chunk"
	AgentThoughtChunk = "agent_thought_chunk"
	ToolCallStarted   = "tool_call"
	ToolCallUpdated   = "tool_call_update"
	PlanChanged       = "plan"
	usageChanged      = "usage_update"
	commandsChanged   = "available_commands_update"
	modeChanged       = "current_mode_update"
	optionsChanged    = "config_option_update"
	infoChanged       = "session_info_update"
)

// Update is one session/update. Kind determines the fields that are set.
type Update struct {
	Kind string
	Raw  json.RawMessage // the member "update" as it was written

	Text    string // the text of a chunk
	Block   *Block // the content of a chunk that is not text
	Message string // the id of the message that a chunk belongs to; may be empty
	Title   string // the agent's title for the session

	Tool  *ToolCall
	Plan  []acp.PlanEntry
	Usage *acp.UsageUpdate

	Commands []acp.AvailableCommand    // the agent's own slash commands
	Mode     string                    // the session's current mode
	Options  []acp.SessionConfigOption // with their current values

	first, second rune // UTF-16 halves at the end and at the beginning of Text; 0 means none
	unknown       bool // Perlica does not know the kind
}

// ToolCall is an agent's report about a tool call. An empty field in an update or in a permission request
// means "unchanged". RawInput is kept as it was written, because its numbers may be larger than any Go type.
type ToolCall struct {
	ID        acp.ToolCallId         `json:"toolCallId"`
	Title     string                 `json:"title"`
	Kind      acp.ToolKind           `json:"kind"`
	Status    acp.ToolCallStatus     `json:"status"`
	RawInput  json.RawMessage        `json:"rawInput"`
	RawOutput json.RawMessage        `json:"rawOutput"`
	Content   []ToolContent          `json:"content"`
	Locations []acp.ToolCallLocation `json:"locations"`

	partial bool   // a part could not be decoded: the call may be shown but not judged
	printed string // the command's output from _meta
	exit    *int   // the command's exit code from _meta; nil if unknown
}

// UnmarshalJSON decodes the identifying fields strictly and the rest as far as possible, because every
// executed tool call must be shown. Content of an unknown form is shown as text.
func (t *ToolCall) UnmarshalJSON(b []byte) error {
	var v struct {
		ID        acp.ToolCallId     `json:"toolCallId"`
		Title     string             `json:"title"`
		Kind      acp.ToolKind       `json:"kind"`
		Status    acp.ToolCallStatus `json:"status"`
		RawInput  json.RawMessage    `json:"rawInput"`
		RawOutput json.RawMessage    `json:"rawOutput"`
		Content   json.RawMessage    `json:"content"`
		Locations json.RawMessage    `json:"locations"`
		Meta      json.RawMessage    `json:"_meta"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*t = ToolCall{ID: v.ID, Title: v.Title, Kind: v.Kind, Status: v.Status, RawInput: v.RawInput, RawOutput: v.RawOutput}
	t.readMeta(v.Meta)
	if len(v.Content) > 0 && json.Unmarshal(v.Content, &t.Content) != nil {
		t.Content, t.partial = []ToolContent{{Type: "undecodable", Text: string(v.Content), Raw: v.Content}}, true
	}
	if len(v.Locations) > 0 && json.Unmarshal(v.Locations, &t.Locations) != nil {
		t.Locations, t.partial = nil, true
	}
	return nil
}

// ToolContent is one piece of a tool call's content: text, a diff, or another form that only Raw holds.
type ToolContent struct {
	Type    string // "content", "diff", "terminal", …
	Text    string // the text of a text block
	Path    string // the path of a diff
	OldText string
	NewText string
	Change  string          // of a diff, from _meta: "add", "update" or "delete"; may be empty
	Raw     json.RawMessage // a piece that is neither text nor a diff
}

// UnmarshalJSON decodes the known pieces and keeps the others raw.
func (c *ToolContent) UnmarshalJSON(b []byte) error {
	var v struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		OldText string          `json:"oldText"`
		NewText string          `json:"newText"`
		Meta    json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*c = ToolContent{Type: v.Type, Path: v.Path, OldText: v.OldText, NewText: v.NewText}
	var meta struct{ Kind string }
	if v.Type == "diff" && json.Unmarshal(v.Meta, &meta) == nil {
		c.Change = meta.Kind
	}
	var block struct{ Type, Text string }
	if len(v.Content) > 0 && json.Unmarshal(v.Content, &block) == nil && block.Type == "text" {
		c.Text = block.Text
	} else if c.Type != "diff" {
		c.Raw = append([]byte(nil), b...)
	}
	return nil
}

// parseUpdate decodes the params of a session/update. ok is false if they do not have the protocol's form. An
// unknown kind or content is not an error.
func parseUpdate(params []byte) (session string, u Update, ok bool) {
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(params)
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "sessionId":
			session, err = d.Str()
		case "update":
			var raw jx.Raw
			raw, err = d.Raw()
			u.Raw = json.RawMessage(raw)
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil || u.Raw == nil {
		return session, u, false
	}
	var content []byte
	d.ResetBytes(u.Raw)
	err = d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "sessionUpdate":
			u.Kind, err = d.Str()
		case "messageId":
			if d.Next() != jx.String {
				return d.Skip()
			}
			u.Message, err = d.Str()
		case "content":
			var raw jx.Raw
			raw, err = d.Raw()
			content = raw
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil || u.Kind == "" {
		return session, u, false
	}
	return session, u, u.decodeFields(content)
}

// decodeFields fills in the fields that belong to the update's kind.
func (u *Update) decodeFields(content []byte) bool {
	switch u.Kind {
	case UserMessageChunk, AgentMessageChunk, AgentThoughtChunk:
		return u.decodeContent(content)
	case ToolCallStarted, ToolCallUpdated:
		u.Tool = new(ToolCall)
		return json.Unmarshal(u.Raw, u.Tool) == nil
	case PlanChanged:
		var plan struct {
			Entries []acp.PlanEntry `json:"entries"`
		}
		if dropped, err := lenient(u.Raw, &plan); err != nil || slices.Contains(dropped, "entries") {
			return false
		}
		u.Plan = plan.Entries
	case usageChanged:
		u.Usage = new(acp.UsageUpdate)
		dropped, err := lenient(u.Raw, u.Usage)
		return err == nil && !slices.Contains(dropped, "used") && !slices.Contains(dropped, "size")
	case commandsChanged, modeChanged, optionsChanged, infoChanged:
		var v struct { // optional data: parts of another form are left out
			Commands []acp.AvailableCommand    `json:"availableCommands"`
			Mode     string                    `json:"currentModeId"`
			Options  []acp.SessionConfigOption `json:"configOptions"`
			Title    string                    `json:"title"`
		}
		if _, err := lenient(u.Raw, &v); err == nil {
			u.Commands, u.Mode, u.Options, u.Title = v.Commands, v.Mode, namedOptions(v.Options), v.Title
		}
	default:
		u.unknown = true
	}
	return true
}

// ParseUpdate decodes a recorded line if it is a session/update of the given session. An empty session
// matches all.
func ParseUpdate(line []byte, session string) (Update, bool) {
	env := ParseMessage(line)
	if env.Kind != Notification || env.Method != acp.ClientMethodSessionUpdate {
		return Update{}, false
	}
	of, u, ok := parseUpdate(env.Params)
	if session != "" && of != session {
		return Update{}, false
	}
	return u, ok
}

// UpdateID returns the id of the tool call or of the message that a recorded session/update belongs to, or
// "".
func UpdateID(line []byte) (id string) {
	if !bytes.Contains(line, []byte(`"toolCallId"`)) && !bytes.Contains(line, []byte(`"messageId"`)) {
		return ""
	}
	member := func(d *jx.Decoder, f func(d *jx.Decoder, key []byte) error) error {
		if d.Next() != jx.Object {
			return d.Skip()
		}
		return d.ObjBytes(f)
	}
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(ParseMessage(line).Params)
	err := member(d, func(d *jx.Decoder, key []byte) error {
		if string(key) != "update" {
			return d.Skip()
		}
		return member(d, func(d *jx.Decoder, key []byte) error {
			name := string(key)
			if name != "toolCallId" && name != "messageId" || d.Next() != jx.String {
				return d.Skip()
			}
			s, err := d.Str()
			if id == "" || name == "toolCallId" {
				id = name + ":" + s
			}
			return err
		})
	})
	if err != nil {
		return ""
	}
	return id
}
