package provider

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"
	"github.com/go-faster/jx"

	"github.com/perlica/perlica/provider/jsonrpc"
)

// The kinds of session/update that Perlica understands, by the protocol's names. Any
// other kind is passed on with Kind and Raw alone.
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

// Update is one session/update. Which of its fields are set follows from Kind.
type Update struct {
	Kind string
	Raw  json.RawMessage // the member "update" as it was written

	Text    string // of a chunk, if its content is text
	Block   *Block // of a chunk, if its content is something else
	Message string // the id of the message that a chunk belongs to, if the agent says so
	Title   string // that the agent gives the session

	Tool  *ToolCall
	Plan  []acp.PlanEntry
	Usage *acp.UsageUpdate

	Commands []acp.AvailableCommand    // the agent's own slash commands
	Mode     string                    // in which the session now is
	Options  []acp.SessionConfigOption // with their present values

	first, second rune // UTF-16 halves at the end and at the begin of Text; 0 means none
	unknown       bool // the kind has no meaning here
}

// ToolCall is what an agent reports of a tool call. In an update, and in a permission
// request, a field that is empty says nothing new. RawInput is kept as written: numbers
// in it may be larger than any Go type.
type ToolCall struct {
	ID        acp.ToolCallId         `json:"toolCallId"`
	Title     string                 `json:"title"`
	Kind      acp.ToolKind           `json:"kind"`
	Status    acp.ToolCallStatus     `json:"status"`
	RawInput  json.RawMessage        `json:"rawInput"`
	RawOutput json.RawMessage        `json:"rawOutput"`
	Content   []ToolContent          `json:"content"`
	Locations []acp.ToolCallLocation `json:"locations"`

	partial bool   // some of it could not be decoded: good to be seen, not to be judged
	printed string // by its command, as far as _meta says it
	exit    *int   // of its command, if _meta says it
}

// UnmarshalJSON decodes what names the tool call strictly and the rest as far as it goes: a
// tool call that ran must be seen, whatever it shows. Content of an unknown form is shown as
// the text that it is.
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

// ToolContent is one piece of what a tool call shows: text, a diff, or something that
// only Raw holds.
type ToolContent struct {
	Type    string // "content", "diff", "terminal", …
	Text    string // of a text block
	Path    string // of a diff, as are the next two
	OldText string
	NewText string
	Raw     json.RawMessage // of a piece that is neither text nor a diff
}

// UnmarshalJSON decodes the pieces it knows and keeps the others raw.
func (c *ToolContent) UnmarshalJSON(b []byte) error {
	var v struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		OldText string          `json:"oldText"`
		NewText string          `json:"newText"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*c = ToolContent{Type: v.Type, Path: v.Path, OldText: v.OldText, NewText: v.NewText}
	var block struct{ Type, Text string }
	if len(v.Content) > 0 && json.Unmarshal(v.Content, &block) == nil && block.Type == "text" {
		c.Text = block.Text
	} else if c.Type != "diff" {
		c.Raw = append([]byte(nil), b...)
	}
	return nil
}

// parseUpdate decodes the params of a session/update. ok is false if they have not the
// protocol's form; a kind or a content it does not know is no error.
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
	return session, u, u.decode(content)
}

// decode fills in the fields that belong to the update's kind.
func (u *Update) decode(content []byte) bool {
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
		var v struct { // it only makes the session more comfortable: what has another form is left out
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

// ParseUpdate decodes a recorded line, if it is a session/update of the given session; an empty one is any.
func ParseUpdate(line []byte, session string) (Update, bool) {
	env := jsonrpc.Parse(line)
	if env.Kind != jsonrpc.Notification || env.Method != acp.ClientMethodSessionUpdate {
		return Update{}, false
	}
	of, u, ok := parseUpdate(env.Params)
	if session != "" && of != session {
		return Update{}, false
	}
	return u, ok
}

// UpdateID is the id of the tool call or of the message to which a recorded session/update belongs, or "".
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
	d.ResetBytes(jsonrpc.Parse(line).Params)
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
