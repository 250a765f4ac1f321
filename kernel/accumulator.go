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

// An accumulator adds up a turn: its text, its tool calls, its cost and its numbers. It knows no log and no
// connection. Several goroutines may call its methods, which do not block.
type accumulator struct {
	now func() time.Time

	mu           sync.Mutex // guards the fields below
	answer       provider.Answer
	live         bool // between startTurn and endTurn
	messages     record.Messages
	replayed     *replayed   // nil means that the agent did not continue its session
	tools        []*toolSeen // in the order in which the agent first named them
	toolOf       map[acp.ToolCallId]*toolSeen
	cost         *fact.Cost
	started      time.Time
	first        time.Time // the time of the first update
	perms        fact.Permissions
	agreed       map[string]bool    // modes that an answer of this turn allowed
	switched     []fact.UnaskedTool // changes of the mode without a question
	unaskedTools []fact.UnaskedTool
	blocked      int
	warnings     []string
}

// maxWarnings is the number of warnings that a run keeps. An agent may cause thousands.
const maxWarnings = 20

func newAccumulator(now func() time.Time) *accumulator {
	return &accumulator{now: now, toolOf: map[acp.ToolCallId]*toolSeen{}, agreed: map[string]bool{}}
}

// startTurn opens the turn: from now on updates belong to it.
func (a *accumulator) startTurn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live, a.started = true, a.now()
}

// endTurn closes the turn. It returns the update that completes the text, or one without text.
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

// expectReplay makes the turn leave out updates that repeat earlier turns.
func (a *accumulator) expectReplay(r *replayed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replayed = r
}

// addUpdate adds an update, and completes its text. It returns false if the update does not belong to the turn.
// A tool call of a model is not added, because a model was offered no tools.
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

// mergeTool merges a report of a tool call with the earlier ones. The caller holds mu.
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

// addQuestion counts a question about a tool call. It returns the call before and with the question's own report.
func (a *accumulator) addQuestion(t provider.ToolCall) (announced, whole provider.ToolCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.perms.Asked++
	announced = a.toolCall(t.ID)
	tool := a.mergeTool(t)
	tool.wasAsked = true
	return announced, tool.call
}

// addDecision counts an answer to a question, and notes it at the tool call.
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

// addLapse notes a question without an answer, which means no for the agent. counts tells whether the run counts
// it as unanswered.
func (a *accumulator) addLapse(id acp.ToolCallId, counts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if counts {
		a.perms.Unanswered++
	}
	a.mergeTool(provider.ToolCall{ID: id}).refused = true
}

// addDeclined notes a tool call with a question that no person could get.
func (a *accumulator) addDeclined(t provider.ToolCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mergeTool(t).declined = true
}

// addAgreement notes a yes to a change of the mode.
func (a *accumulator) addAgreement(modes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range modes {
		a.agreed[m] = true
	}
}

// switchMode notes a change of the mode. It returns false if an answer of this turn allowed the mode.
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

// addWarning adds a warning. added is false if the turn has the same one; kept is false if it has too many.
func (a *accumulator) addWarning(text string) (added, kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.warnings, text) {
		return false, false // an agent may cause the same warning with each step; every line is on record
	}
	if len(a.warnings) >= maxWarnings {
		return true, false
	}
	a.warnings = append(a.warnings, text)
	return true, true
}

func (a *accumulator) listWarnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warnings)
}

func (a *accumulator) setAnswer(answer provider.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// firstUpdate returns the time from the start of the turn to its first update, or zero.
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

// setUnasked sets the tool calls that ran without a question. The changes of the mode follow them.
func (a *accumulator) setUnasked(tools []fact.UnaskedTool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unaskedTools = append(tools, a.switched...)
}

// fillResult adds the sums to a result.
func (a *accumulator) fillResult(res *record.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	res.Text, res.Content = a.messages.Text(), a.messages.Blocks
	res.StopReason, res.Usage, res.Cost = a.answer.StopReason, a.answer.Usage, a.cost
	res.Permissions, res.Blocked, res.Unasked = a.perms, a.blocked, a.unaskedTools
}
