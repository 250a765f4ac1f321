package flow

import (
	"errors"
	"fmt"
	"slices"
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
			return errors.New("# and .name belong into the second argument of a function such as map")
		}
	case opMember, opOptional:
		if done, err := sc.checkMember(n); done || err != nil {
			return err
		}
	case opCall:
		f, ok := functions[n.name]
		if !ok {
			return fmt.Errorf("there is no function %s", n.name)
		}
		if len(n.kids) < f.least || len(n.kids) > f.most {
			return fmt.Errorf("%s has %d arguments", n.name, len(n.kids))
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
		return fmt.Errorf("%s belongs to the text of a step with for_each", name)
	case name == "inputs" || name == "steps":
		return fmt.Errorf("%s needs a name: %s.NAME", name, name)
	}
	return fmt.Errorf("there is no %s: there are inputs, steps, item and index", name)
}

// checkMember checks inputs.NAME, steps.NAME and steps.NAME.MEMBER. The result "done" is true if the node has no
// other parts.
func (sc scope) checkMember(n *node) (done bool, err error) {
	of := n.kids[0]
	switch {
	case of.op == opName && of.name == "inputs":
		if _, ok := sc.flow.Inputs[n.name]; !ok {
			return false, fmt.Errorf("there is no input %s", n.name)
		}
		return true, nil
	case of.op == opName && of.name == "steps":
		if sc.flow.step(n.name) == nil {
			return false, fmt.Errorf("there is no step %s", n.name)
		}
		if !sc.step.before[n.name] {
			return false, fmt.Errorf("the step does not need %s", n.name)
		}
		return true, nil
	case (of.op == opMember || of.op == opOptional) && of.kids[0].op == opName && of.kids[0].name == "steps":
		if !slices.Contains(stepMembers, n.name) {
			return false, fmt.Errorf("a step has no %s", n.name)
		}
	}
	return false, nil
}
