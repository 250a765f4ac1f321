package flow

import (
	"context"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// values gives expressions the values of names such as inputs and steps. The texts of answers stay on the log until an
// expression reads them.
type values struct {
	ctx   context.Context
	log   event.Reader
	state *State
	cache *cache
	team  Team // may be nil
}

// cache has the texts of answers that were read last.
type cache struct {
	texts map[event.RunID]string
	bytes int
}

// maxCache is the total length of the texts in a cache, in bytes.
const maxCache = 32 << 20

// add adds a text. If the cache becomes too large, add first removes all earlier texts.
func (c *cache) add(run event.RunID, text string) {
	if c.bytes += len(text); c.bytes > maxCache {
		clear(c.texts)
		c.bytes = len(text)
	}
	c.texts[run] = text
}

// vars returns the names for an expression without an item.
func (v values) vars() map[string]any {
	inputs := map[string]any{}
	for name, text := range v.state.Started.Inputs {
		inputs[name] = text
	}
	return map[string]any{"inputs": inputs, "steps": stepsValue{v}}
}

// stepsValue is the value of the variable "steps" in an expression.
type stepsValue struct{ values }

func (v stepsValue) member(name string) (any, bool, error) {
	st := v.state.step(name)
	return stepValue{v.values, st}, st != nil, nil
}

// stepValue is the value of steps.NAME.
type stepValue struct {
	values
	st *StepState
}

func (v stepValue) member(name string) (any, bool, error) {
	if name == "items" {
		if !v.st.loops() {
			return nil, false, errNoItems.With(v.st.ID)
		}
		items, err := v.items()
		return items, true, err
	}
	if v.st.loops() && (name == "text" || name == "json" || name == "run") {
		return nil, false, errInItems.With(v.st.ID)
	}
	return v.unitMember(v.st, 0, name)
}

// unitMember returns a member that steps and items have.
func (v values) unitMember(st *StepState, item int, name string) (any, bool, error) {
	u := st.unit(item)
	switch name {
	case "state":
		return string(u.Phase), true, nil
	case "answer":
		return u.Answer, true, nil
	case "error":
		return u.Error, true, nil
	case "run":
		return string(u.Run), true, nil
	case "text", "json":
		text, err := v.answerText(st, item)
		if err != nil || name == "text" {
			return text, true, err
		}
		if u.Run == "" || u.Phase != Done {
			return nil, true, nil
		}
		parsed, err := decodeJSON(text)
		return parsed, true, err
	}
	return nil, false, nil
}

// answerText returns the recorded text of a call's answer. A step without an answer has an empty text.
func (v values) answerText(st *StepState, item int) (string, error) {
	u := st.unit(item)
	if u.Run == "" {
		return "", nil
	}
	if inner, ok := strings.CutPrefix(string(u.Run), event.FlowPrefix); ok {
		return v.innerText(inner)
	}
	if text, ok := v.cache.texts[u.Run]; ok {
		return text, nil
	}
	if v.team != nil {
		text, err := v.team.Text(v.ctx, v.state.InputID(st, item))
		if err == nil {
			v.cache.add(u.Run, text)
		}
		return text, err
	}
	e, ok, err := v.log.Last(v.ctx, event.Query{Run: u.Run, Types: []event.Type{event.Responded}})
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", nil
	case e.Payload == nil:
		return "", errPruned.With(u.Run)
	}
	r, err := fact.Decode[fact.Responded](e)
	if err == nil {
		v.cache.add(u.Run, r.Text)
	}
	return r.Text, err
}

// innerText returns the text of the last step of a flow inside of the flow.
func (v values) innerText(id string) (string, error) {
	inner, err := readState(v.ctx, v.log, id)
	if err != nil {
		return "", err
	}
	last := inner.Steps[len(inner.Steps)-1]
	if last.loops() {
		return "", nil
	}
	if last.Answer != "" {
		return last.Answer, nil
	}
	return values{v.ctx, v.log, inner, v.cache, v.team}.answerText(last, 0)
}

// itemValue is the value of an element of steps.NAME.items.
type itemValue struct {
	values
	st    *StepState
	item  any
	index int
}

func (v itemValue) member(name string) (any, bool, error) {
	switch name {
	case "item":
		return v.item, true, nil
	case "index":
		return float64(v.index), true, nil
	}
	return v.unitMember(v.st, v.index+1, name)
}

// items returns the items of a loop with their results.
func (v stepValue) items() ([]any, error) {
	if !v.st.Expanded {
		return []any{}, nil
	}
	elements, err := v.elements(v.st)
	if err != nil {
		return nil, err
	}
	items := make([]any, len(elements))
	for i, e := range elements {
		items[i] = itemValue{v.values, v.st, e, i}
	}
	return items, nil
}

// elements evaluates for_each. If the log already has the items of the loop, the result must be equal to these
// items.
func (v values) elements(st *StepState) ([]any, error) {
	value, err := st.forEach.evaluate(v.vars())
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	switch {
	case !ok:
		return nil, errNoList.With(kindOf(value))
	case len(list) > st.MaxItems:
		return nil, errManyItems.With(len(list), st.MaxItems)
	case st.Expanded && len(list) != len(st.Items):
		return nil, errOtherItems.With(len(list), len(st.Items))
	}
	return list, nil
}
