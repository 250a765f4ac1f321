package model

import (
	"fmt"
	"strings"
)

// stopReason is the reason for which a model stopped.
type stopReason struct {
	acp     string // ACP's: end_turn, max_tokens, refusal; or brokenOff
	why     string // the API's word for it
	warning string // about an answer that counts all the same
}

// The stop reasons of ACP, and brokenOff: the API says that it did not finish the answer. ACP has no
// reason for that, so the prompt fails.
const (
	endTurn   = "end_turn"
	maxTokens = "max_tokens"
	refusal   = "refusal"
	cancelled = "cancelled"
	brokenOff = "broken off"
)

// stopWords are the reasons of all APIs and of the gateways that speak one of them, in lower case. A
// gateway passes the words of the model's maker on, so one table serves all APIs.
var stopWords = map[string]string{
	"stop": endTurn, "end_turn": endTurn, "stop_sequence": endTurn, "eos": endTurn, "eos_token": endTurn,
	"complete": endTurn, "completed": endTurn, "normal": endTurn, "stop_token": endTurn,

	"length": maxTokens, "max_tokens": maxTokens, "max_output_tokens": maxTokens, "max_completion_tokens": maxTokens,
	"max_length": maxTokens, "model_length": maxTokens, "token_limit": maxTokens, "context_length": maxTokens,
	"context_length_exceeded": maxTokens, "model_context_window_exceeded": maxTokens,

	"refusal": refusal, "content_filter": refusal, "content_filtered": refusal, "sensitive": refusal, "guardrail_intervened": refusal,
	"safety": refusal, "recitation": refusal, "language": refusal, "blocklist": refusal, "prohibited_content": refusal,
	"spii": refusal, "model_armor": refusal, "image_safety": refusal, "image_prohibited_content": refusal, "image_recitation": refusal,
}

// toolWords are the reasons of a model that waits for a tool. The model was offered none.
var toolWords = oneOf("tool_calls", "tool_call", "tool_use", "function_call", "function_calls")

// stops reads a reason. A word that this table does not know is no proof of a whole answer.
func stops(word string) stopReason {
	plain := strings.TrimPrefix(strings.ToLower(word), "finish_reason_")
	if word == "" {
		return stopReason{acp: endTurn, warning: "the model's server ended the answer without a reason"}
	}
	if toolWords(plain) {
		return stopReason{acp: endTurn, why: word, warning: fmt.Sprintf("the model stopped for the reason %q", word)}
	}
	if acp, known := stopWords[plain]; known {
		return stopReason{acp: acp, why: word}
	}
	return stopReason{acp: brokenOff, why: word}
}
