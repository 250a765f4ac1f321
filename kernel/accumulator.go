package kernel

import (
	"slices"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// An accumulator adds up a turn: its text, its tool calls, its cost and its numbers. The accumulator knows no log and
// no connection. Several goroutines may call its methods, and the methods do not block.
type accumulator struct {
	now func() time.Time

	mu           sync.Mutex // guards the fields below
	answer       provider.Answer
	live         bool // true from startTurn to endTurn
	messages     record.Messages
	replayed     *replayed   // the filter for repeated updates; nil if the agent did not continue its session
	tools        []*toolSeen // in the order in which the agent first named them
	toolOf       map[acp.ToolCallId]*toolSeen
	cost         *fact.Cost
	started      time.Time
	first        time.Time // the time of the first update
	perms        fact.Permissions
	agreed       map[string]bool    // modes that a person or a rule allowed in this turn
	switched     []fact.UnaskedTool // changes of the agent's mode without a question
	unaskedTools []fact.UnaskedTool
	blocked      int
	warnings     []record.Warned
}

// maxWarnings is the greatest number of warnings that a run keeps, because an agent may cause thousands.
const maxWarnings = 20

func newAccumulator(now func() time.Time) *accumulator {
	return &accumulator{now: now, toolOf: map[acp.ToolCallId]*toolSeen{}, agreed: map[string]bool{}}
}

// startTurn opens the turn. All later updates belong to the turn until endTurn closes it.
func (a *accumulator) startTurn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live, a.started = true, a.now()
}

// hasStarted reports whether startTurn was called.
func (a *accumulator) hasStarted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.started.IsZero()
}

// endTurn closes the turn. It returns an update with the rest of the answer's text, or an update without text.
func (a *accumulator) endTurn() provider.Update {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = false
	return a.messages.End()
}

func (a *accumulator) isLive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live
}

// expectReplay makes the accumulator leave out updates that repeat earlier turns.
func (a *accumulator) expectReplay(r *replayed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replayed = r
}

// addUpdate adds an update to the turn, and completes the text of u. It returns false if the update does not belong to
// the turn. A tool call of a model is not added, because a model was offered no tools.
func (a *accumulator) addUpdate(u *provider.Update, model bool, agent speaker) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.live || a.replayed.isRepeated(*u) {
		return false
	}
	if a.first.IsZero() {
		a.first = a.now()
	}
	a.messages.Add(u)
	switch {
	case u.Tool != nil && !model:
		a.mergeTool(*u.Tool).addForm(agent)
	case u.Usage != nil && u.Usage.Cost != nil:
		a.cost = (*fact.Cost)(u.Usage.Cost)
	}
	return true
}

// mergeTool merges a newer report about a tool call into the earlier reports. The caller holds mu.
func (a *accumulator) mergeTool(t provider.ToolCall) *toolSeen {
	s := a.toolOf[t.ID]
	if s == nil {
		s = &toolSeen{ToolSeen: fact.ToolSeen{ID: string(t.ID)}}
		s.call.ID = t.ID
		a.tools = append(a.tools, s)
		a.toolOf[t.ID] = s
	}
	s.mergeReport(t)
	return s
}

// toolCall returns the tool call as far as the agent has described it. The caller holds mu.
func (a *accumulator) toolCall(id acp.ToolCallId) provider.ToolCall {
	if s := a.toolOf[id]; s != nil {
		return s.call
	}
	return provider.ToolCall{}
}

// addQuestion counts a question about a tool call. It returns the call as the agent had described it before the
// question, and the call together with the description in the question.
func (a *accumulator) addQuestion(t provider.ToolCall) (announced, whole provider.ToolCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.perms.Asked++
	announced = a.toolCall(t.ID)
	done := a.toolOf[t.ID] != nil && a.toolOf[t.ID].Status == string(acp.ToolCallStatusCompleted)
	tool := a.mergeTool(t)
	tool.wasAsked, tool.late = true, tool.late || done
	return announced, tool.call
}

// addDecision counts an answer to a question and stores the answer with the tool call.
func (a *accumulator) addDecision(q asking, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.mergeTool(provider.ToolCall{ID: q.Tool.ID})
	if !yes {
		a.perms.Denied++
		s.refused = true
		return
	}
	a.perms.Allowed++
	s.approved = append(s.approved, q)
}

// addLapse marks the tool call as refused, because its question ended without an answer. If "counts" is true, the run
// counts the question as unanswered.
func (a *accumulator) addLapse(id acp.ToolCallId, counts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if counts {
		a.perms.Unanswered++
	}
	a.mergeTool(provider.ToolCall{ID: id}).refused = true
}

// addDeclined marks a tool call as declined, because no person could get the agent's question about it.
func (a *accumulator) addDeclined(t provider.ToolCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mergeTool(t).declined = true
}

// addAgreement stores the modes to which a person or a rule said yes.
func (a *accumulator) addAgreement(modes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range modes {
		a.agreed[m] = true
	}
}

// switchMode stores a change of the agent's mode. It returns false and stores nothing if an answer of this turn allowed
// the mode.
func (a *accumulator) switchMode(mode string, change fact.UnaskedTool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.agreed[mode] {
		return false
	}
	a.switched = append(a.switched, change)
	return true
}

func (a *accumulator) addBlocked() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blocked++
}

// addWarning adds a warning to the turn. The result "added" is false if the turn already has a warning with this
// text. The result "kept" is false if the warning was not stored, because it is known or the turn has maxWarnings
// warnings.
func (a *accumulator) addWarning(w record.Warned) (added, kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(o record.Warned) bool { return o.Subtype == w.Subtype && o.Detail == w.Detail }
	if slices.ContainsFunc(a.warnings, same) {
		return false, false // an agent may cause the same warning with each step; the log has every line
	}
	if len(a.warnings) >= maxWarnings {
		return true, false
	}
	a.warnings = append(a.warnings, w)
	return true, true
}

func (a *accumulator) listWarnings() []record.Warned {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warnings)
}

func (a *accumulator) setAnswer(answer provider.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// firstUpdate returns the time from the start of the turn to the first update, or zero without an update.
func (a *accumulator) firstUpdate() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() {
		return 0
	}
	return a.first.Sub(a.started)
}

func (a *accumulator) toolsSeen() []fact.ToolSeen {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := []fact.ToolSeen{}
	for _, t := range a.tools {
		seen = append(seen, t.ToolSeen)
	}
	return seen
}

// listTools returns copies of the tool calls, because late questions change the originals.
func (a *accumulator) listTools() (tools []toolSeen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tools {
		tools = append(tools, *t)
	}
	return tools
}

// setUnasked stores the tool calls that ran without a question, and adds the changes of the agent's mode to them.
func (a *accumulator) setUnasked(tools []fact.UnaskedTool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unaskedTools = append(tools, a.switched...)
}

// fillResult copies the answer, the texts and the sums of the turn into a result.
func (a *accumulator) fillResult(res *record.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	res.Text, res.Content = a.messages.Text(), a.messages.Blocks
	res.StopReason, res.Usage, res.Cost = a.answer.StopReason, a.answer.Usage, a.cost
	res.Permissions, res.Blocked, res.Unasked = a.perms, a.blocked, a.unaskedTools
}
