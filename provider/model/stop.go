package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// stopReason is the reason why a model stopped.
type stopReason struct {
	acp     string // ACP's stop reason: end_turn, max_tokens or refusal; or brokenOff
	why     string // the API's word
	warning string // a warning about an answer that still counts
}

// These are ACP's stop reasons, and brokenOff. brokenOff means that the API did not finish the answer. ACP
// has no stop reason for this, so the prompt fails.
const (
	endTurn   = "end_turn"
	maxTokens = "max_tokens"
	refusal   = "refusal"
	cancelled = "cancelled"
	brokenOff = "broken off"
)

// stopWords maps the words of all APIs and gateways, in lower case, to ACP's stop reasons. Gateways pass on
// the words of the model's vendor, so all APIs share one table.
var stopWords = map[string]string{
	"stop": endTurn, "end_turn": endTurn, "stop_sequence": endTurn, "eos": endTurn, "eos_token": endTurn,
	"complete": endTurn, "completed": endTurn, "normal": endTurn, "stop_token": endTurn,

	"length": maxTokens, "max_tokens": maxTokens, "max_output_tokens": maxTokens, "max_completion_tokens": maxTokens,
	"max_length": maxTokens, "model_length": maxTokens, "token_limit": maxTokens, "context_length": maxTokens,
	"context_length_exceeded": maxTokens, "model_context_window_exceeded": maxTokens,

	"refusal": refusal, "content_filter": refusal, "content_filtered": refusal, "sensitive": refusal,
	"guardrail_intervened": refusal,
	"safety":               refusal, "recitation": refusal, "language": refusal, "blocklist": refusal,
	"prohibited_content": refusal,
	"spii":               refusal, "model_armor": refusal, "image_safety": refusal, "image_prohibited_content": refusal,
	"image_recitation": refusal,
}

// toolWords are the reasons of a model that waits for a tool. The model was not offered any tool.
var toolWords = oneOf("tool_calls", "tool_call", "tool_use", "function_call", "function_calls")

// word is the API's word for the end of an answer. A value that is not a string counts as an unknown word.
type word string

// UnmarshalJSON reads the word from any JSON value.
func (w *word) UnmarshalJSON(b []byte) error {
	var s string
	switch err := json.Unmarshal(b, &s); {
	case err == nil: // null means that the word is absent
		*w = word(s)
	case string(b) == "false":
		*w = ""
	default:
		*w = word(b)
	}
	return nil
}

// stops converts the API's word. An unknown word does not prove that the answer is complete.
func stops(w word) stopReason {
	said := string(w)
	plain := strings.TrimPrefix(strings.ToLower(said), "finish_reason_")
	if said == "" {
		return stopReason{acp: endTurn, warning: "the model's server ended the answer without a reason"}
	}
	if toolWords(plain) {
		return stopReason{acp: endTurn, why: said, warning: fmt.Sprintf("the model stopped for the reason %q", said)}
	}
	if acp, known := stopWords[plain]; known {
		return stopReason{acp: acp, why: said}
	}
	return stopReason{acp: brokenOff, why: said}
}
