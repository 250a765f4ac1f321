package flow

import (
	"maps"
	"slices"
	"strings"
)

// scope has the names that the expressions of a step may use. It lets a check find a wrong name before the flow starts.
type scope struct {
	flow *Flow
	step *Step
	item bool // item and index are known
}

func (sc scope) expression(text string) (*expression, error) {
	e, err := parseExpression(text)
	if err == nil {
		err = sc.check(e)
	}
	return e, err
}

func (sc scope) template(text string) (*template, error) {
	t, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	for _, e := range t.exprs {
		if err := sc.check(e); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (sc scope) check(e *expression) error {
	if err := sc.checkNode(e.root, 0); err != nil {
		return &expressionError{e.text, err}
	}
	return nil
}

// stepMembers are the members of a step in an expression.
var stepMembers = []string{"state", "text", "json", "answer", "error", "run", "items"}

// checkNode checks a node. The parameter "inside" is the number of surrounding functions with an element, such as
// map.
func (sc scope) checkNode(n *node, inside int) error {
	switch n.op {
	case opName:
		return sc.checkName(n.name)
	case opElement:
		if inside == 0 {
			return errElement
		}
	case opMember, opOptional:
		if done, err := sc.checkMember(n); done || err != nil {
			return err
		}
	case opCall:
		f, ok := functions[n.name]
		if !ok {
			return errNoFunction.With(n.name, strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
		}
		if len(n.kids) < f.least || len(n.kids) > f.most {
			return errArguments.With(n.name, len(n.kids), f.least, f.most)
		}
		if f.each != nil {
			if err := sc.checkNode(n.kids[0], inside); err != nil {
				return err
			}
			return sc.checkNode(n.kids[1], inside+1)
		}
	}
	for _, k := range n.kids {
		if err := sc.checkNode(k, inside); err != nil {
			return err
		}
	}
	return nil
}

func (sc scope) checkName(name string) error {
	switch {
	case (name == "item" || name == "index") && sc.item:
		return nil
	case name == "item", name == "index":
		return errItem.With(name)
	case name == "inputs" || name == "steps":
		return errBareName.With(name, name)
	}
	return errNoVariable.With(name)
}

// checkMember checks inputs.NAME, steps.NAME and steps.NAME.MEMBER. The result "done" is true if the node has no
// other parts.
func (sc scope) checkMember(n *node) (done bool, err error) {
	of := n.kids[0]
	switch {
	case of.op == opName && of.name == "inputs":
		if _, ok := sc.flow.Inputs[n.name]; !ok {
			return false, errNoInput.With(n.name, n.name)
		}
		return true, nil
	case of.op == opName && of.name == "steps":
		if sc.flow.step(n.name) == nil {
			return false, errNoStep.With(n.name)
		}
		if !sc.step.before[n.name] {
			return false, errNotNeeded.With(n.name)
		}
		return true, nil
	case (of.op == opMember || of.op == opOptional) && of.kids[0].op == opName && of.kids[0].name == "steps":
		if !slices.Contains(stepMembers, n.name) {
			return false, errStepMember.With(n.name, strings.Join(stepMembers, ", "))
		}
	}
	return false, nil
}
