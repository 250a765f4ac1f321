package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
)

// These are the limits of one evaluation. An evaluated node costs one step, and so does the reading of each stepBytes
// bytes of text. The limits depend on the values alone, so every machine stops an expression at the same place.
const (
	maxSteps  = 2_000_000
	stepBytes = 1 << 10
	maxBytes  = 64 << 20
)

// object is a value whose members are computed when they are read.
type object interface {
	// member returns the value of a member. ok is false if the object has no such member.
	member(name string) (v any, ok bool, err error)
}

// evaluation is one evaluation of an expression.
type evaluation struct {
	vars  map[string]any
	steps int
	bytes int
	elem  []any // the list elements that # stands for; the last one is of the innermost function, such as map
}

// evaluate returns the value of the expression. A value is nil, a bool, a float64, a string, a []any, a map[string]any
// or an object.
func (e *expression) evaluate(vars map[string]any) (any, error) {
	ev := &evaluation{vars: vars}
	v, err := ev.eval(e.root)
	if err != nil {
		return nil, &expressionError{e.text, err}
	}
	return v, nil
}

// handled adds the cost of reading texts to the evaluation's steps.
func (ev *evaluation) handled(texts ...string) error {
	ev.steps++
	for _, s := range texts {
		ev.steps += len(s) / stepBytes
	}
	if ev.steps > maxSteps {
		return errSteps
	}
	return nil
}

// made adds the cost of n new bytes of text to the evaluation's steps and bytes.
func (ev *evaluation) made(n int) error {
	ev.bytes += n
	ev.steps += n / stepBytes
	switch {
	case ev.bytes > maxBytes:
		return errBytes
	case ev.steps > maxSteps:
		return errSteps
	}
	return nil
}

func (ev *evaluation) eval(n *node) (any, error) {
	if err := ev.handled(); err != nil {
		return nil, err
	}
	switch n.op {
	case opLiteral:
		return n.val, nil
	case opName:
		v, ok := ev.vars[n.name]
		if !ok {
			return nil, errNoName.With(n.name)
		}
		return v, nil
	case opElement:
		return ev.elem[len(ev.elem)-1], nil
	case opMember, opOptional:
		of, err := ev.eval(n.kids[0])
		if err != nil {
			return nil, err
		}
		return ev.memberOf(of, n)
	case opCall:
		return ev.call(n)
	case "and", "or", "?", "??":
		return ev.evalLazily(n)
	}
	kids := make([]any, len(n.kids))
	if err := ev.made(16 * len(kids)); err != nil {
		return nil, err
	}
	for i, k := range n.kids {
		var err error
		if kids[i], err = ev.eval(k); err != nil {
			return nil, err
		}
	}
	switch n.op {
	case opList:
		return kids, nil
	case opMap:
		m := map[string]any{}
		for i := 0; i < len(kids); i += 2 {
			m[kids[i].(string)] = kids[i+1] // parseMap accepts only strings
		}
		return m, nil
	case opIndex:
		return index(kids[0], kids[1])
	case "not":
		b, err := truth(kids[0])
		return !b, err
	case "negate":
		f, ok := kids[0].(float64)
		if !ok {
			return nil, errNeeds.With("-", kindNumber, kindOf(kids[0]))
		}
		return -f, nil
	}
	return ev.binary(n.op, kids[0], kids[1])
}

// memberOf returns a member of a value. If the text of the member comes from the log, its length counts as new bytes.
func (ev *evaluation) memberOf(of any, n *node) (any, error) {
	v, err := member(of, n.name, n.op == opOptional)
	if _, ok := of.(object); !ok || err != nil {
		return v, err
	}
	if s, ok := v.(string); ok {
		return v, ev.made(len(s))
	}
	if _, step := v.(object); n.name == "json" && !step { // a step with the id json is not a JSON value
		return v, ev.measure(v, 0)
	}
	return v, nil
}

// evalLazily evaluates an operator that does not need all its operands.
func (ev *evaluation) evalLazily(n *node) (any, error) {
	v, err := ev.eval(n.kids[0])
	if err != nil {
		return nil, err
	}
	if n.op == "??" {
		if v == nil {
			return ev.eval(n.kids[1])
		}
		return v, nil
	}
	b, err := truth(v)
	switch {
	case err != nil:
		return nil, err
	case n.op == "?" && b:
		return ev.eval(n.kids[1])
	case n.op == "?":
		return ev.eval(n.kids[2])
	case b == (n.op == "or"):
		return b, nil
	}
	if v, err = ev.eval(n.kids[1]); err != nil {
		return nil, err
	}
	return truth(v)
}

func truth(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, errKind.With(trueFalse, kindOf(v))
	}
	return b, nil
}

// kindOf names the kind of a value for a message.
func kindOf(v any) *message.Text {
	switch v.(type) {
	case nil:
		return kindNil
	case bool:
		return kindTruth
	case float64:
		return kindNumber
	case string:
		return kindText
	case []any:
		return kindList
	}
	return kindObject
}

// member returns a member of a value. If optional is true, a missing member is nil. Otherwise it is an error.
func member(of any, name string, optional bool) (any, error) {
	switch of := of.(type) {
	case nil:
		if optional {
			return nil, nil
		}
		return nil, errNotMember.With(kindNil, name)
	case map[string]any:
		if v, ok := of[name]; ok || optional {
			return v, nil
		}
		return nil, errNoMember.With(name)
	case object:
		v, ok, err := of.member(name)
		if err == nil && !ok && !optional {
			err = errNoMember.With(name)
		}
		return v, err
	}
	return nil, errNotMember.With(kindOf(of), name)
}

func index(of, at any) (any, error) {
	switch of := of.(type) {
	case []any:
		f, ok := at.(float64)
		if !ok || f != math.Trunc(f) {
			return nil, errPlace
		}
		if f < 0 {
			f += float64(len(of))
		}
		if f < 0 || f >= float64(len(of)) {
			return nil, errNoElement.With(len(of), fmt.Sprint(at))
		}
		return of[int(f)], nil
	case map[string]any, object:
		name, ok := at.(string)
		if !ok {
			return nil, errMemberName
		}
		return member(of, name, false)
	}
	return nil, errNoElements.With(kindOf(of))
}

func (ev *evaluation) binary(op string, a, b any) (any, error) {
	switch op {
	case "==", "!=":
		same, err := ev.equal(a, b, 0)
		return same == (op == "=="), err
	case "in":
		return ev.contains(b, a)
	case "contains":
		return ev.contains(a, b)
	}
	if s, ok := a.(string); ok {
		t, ok := b.(string)
		if !ok {
			return nil, errNeedsTwo.With(op)
		}
		return ev.binaryText(op, s, t)
	}
	x, ok := a.(float64)
	y, also := b.(float64)
	if !ok || !also {
		return nil, errNotThese.With(op, kindOf(a), kindOf(b))
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/", "%":
		if y == 0 {
			return nil, errZero
		}
		if op == "%" {
			return math.Mod(x, y), nil
		}
		return x / y, nil
	case "<", "<=", ">", ">=":
		return ordered(op, x, y), nil
	}
	return nil, errNoNumbers.With(op)
}

func ordered[T string | float64](op string, x, y T) bool {
	switch op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

func (ev *evaluation) binaryText(op, s, t string) (any, error) {
	if err := ev.handled(s, t); err != nil {
		return nil, err
	}
	switch op {
	case "+":
		if err := ev.made(len(s) + len(t)); err != nil {
			return nil, err
		}
		return s + t, nil
	case "startsWith":
		return strings.HasPrefix(s, t), nil
	case "endsWith":
		return strings.HasSuffix(s, t), nil
	case "<", "<=", ">", ">=":
		return ordered(op, s, t), nil
	}
	return nil, errNoTexts.With(op)
}

// equal compares two values. Objects are never equal.
func (ev *evaluation) equal(a, b any, depth int) (bool, error) {
	if err := ev.handled(); err != nil || depth > maxDepth {
		return false, err
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		return a == b, ev.handled(a)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for i := range a {
			if same, err := ev.equal(a[i], b[i], depth+1); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for k, v := range a {
			w, ok := b[k]
			if same, err := ev.equal(v, w, depth+1); !ok || !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case nil, bool, float64:
		switch b.(type) {
		case nil, bool, float64:
			return a == b, nil
		}
	}
	return false, nil
}

// contains reports whether a text contains another one, a list contains an element, or an object has a member.
func (ev *evaluation) contains(in, v any) (bool, error) {
	switch in := in.(type) {
	case string:
		if s, ok := v.(string); ok {
			return strings.Contains(in, s), ev.handled(in, s)
		}
	case []any:
		for _, e := range in {
			if same, err := ev.equal(e, v, 0); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case map[string]any:
		if s, ok := v.(string); ok {
			_, ok := in[s]
			return ok, nil
		}
	}
	return false, errContains.With(kindOf(in), kindOf(v))
}

// function is a function of the language. It accepts least to most arguments. Exactly one of call and each is set.
// If each is set, the second argument is evaluated for each element of the first one, as in map(list, # + 1).
type function struct {
	least, most int
	call        func(*evaluation, []any) (any, error)
	each        func(*evaluation, []any, func(any) (any, error)) (any, error)
}

// functions are the functions of the language. Except lines and json, they have the names and meanings of the
// functions in expr-lang/expr.
var functions map[string]function

func init() {
	functions = map[string]function{
		"len":    {1, 1, length, nil},
		"lines":  {1, 1, lines, nil},
		"split":  {2, 2, split, nil},
		"join":   {1, 2, join, nil},
		"trim":   {1, 1, text(strings.TrimSpace), nil},
		"upper":  {1, 1, text(strings.ToUpper), nil},
		"lower":  {1, 1, text(strings.ToLower), nil},
		"string": {1, 1, toString, nil},
		"int":    {1, 1, toInt, nil},
		"float":  {1, 1, toFloat, nil},
		"json":   {1, 1, parseJSON, nil},
		"toJSON": {1, 1, toJSON, nil},
		"keys":   {1, 1, keys, nil},
		"first":  {1, 1, func(_ *evaluation, a []any) (any, error) { return end(a[0], true) }, nil},
		"last":   {1, 1, func(_ *evaluation, a []any) (any, error) { return end(a[0], false) }, nil},
		"map":    {2, 2, nil, mapEach},
		"filter": {2, 2, nil, filterEach},
		"find":   {2, 2, nil, findEach},
		"count":  {2, 2, nil, countEach},
		"sum":    {2, 2, nil, sumEach},
		"all":    {2, 2, nil, allEach},
		"any":    {2, 2, nil, anyEach},
		"none":   {2, 2, nil, noneEach},
	}
}

func (ev *evaluation) call(n *node) (any, error) {
	f := functions[n.name] // checkNode has made sure that it exists
	if f.each == nil {
		args := make([]any, len(n.kids))
		for i, k := range n.kids {
			var err error
			if args[i], err = ev.eval(k); err != nil {
				return nil, err
			}
		}
		v, err := f.call(ev, args)
		if err != nil && err != errSteps && err != errBytes {
			err = inFunction.With(n.name, err)
		}
		return v, err
	}
	v, err := ev.eval(n.kids[0])
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, inFunction.With(n.name, errKind.With(kindList, kindOf(v)))
	}
	return f.each(ev, list, func(e any) (any, error) {
		ev.elem = append(ev.elem, e)
		defer func() { ev.elem = ev.elem[:len(ev.elem)-1] }()
		return ev.eval(n.kids[1])
	})
}

func allEach(_ *evaluation, list []any, f func(any) (any, error)) (any, error) {
	return until(list, f, false)
}

func anyEach(_ *evaluation, list []any, f func(any) (any, error)) (any, error) {
	return until(list, f, true)
}

func noneEach(_ *evaluation, list []any, f func(any) (any, error)) (any, error) {
	found, err := until(list, f, true)
	return !found, err
}

func mapEach(ev *evaluation, list []any, f func(any) (any, error)) (any, error) {
	if err := ev.made(16 * len(list)); err != nil {
		return nil, err
	}
	mapped := make([]any, len(list))
	for i, e := range list {
		var err error
		if mapped[i], err = f(e); err != nil {
			return nil, err
		}
	}
	return mapped, nil
}

func filterEach(ev *evaluation, list []any, f func(any) (any, error)) (any, error) {
	if err := ev.made(16 * len(list)); err != nil {
		return nil, err
	}
	found := []any{}
	for _, e := range list {
		v, err := f(e)
		if err != nil {
			return nil, err
		}
		if yes, err := truth(v); err != nil {
			return nil, err
		} else if yes {
			found = append(found, e)
		}
	}
	return found, nil
}

func findEach(_ *evaluation, list []any, f func(any) (any, error)) (any, error) {
	for _, e := range list {
		if found, err := until([]any{e}, f, true); found || err != nil {
			return e, err
		}
	}
	return nil, nil
}

func countEach(ev *evaluation, list []any, f func(any) (any, error)) (any, error) {
	found, err := filterEach(ev, list, f)
	if err != nil {
		return nil, err
	}
	return float64(len(found.([]any))), nil
}

func sumEach(_ *evaluation, list []any, f func(any) (any, error)) (any, error) {
	sum := 0.0
	for _, e := range list {
		v, err := f(e)
		if err != nil {
			return nil, err
		}
		n, ok := v.(float64)
		if !ok {
			return nil, inFunction.With("sum", errKind.With(kindNumber, kindOf(v)))
		}
		sum += n
	}
	return sum, nil
}

// until does the work of the functions "any" and "all" of the language. It returns the parameter "stop" if the
// function f returns the same value for any element. Otherwise it returns the opposite value. For "any", stop is
// true, and for "all", stop is false.
func until(list []any, f func(any) (any, error), stop bool) (bool, error) {
	for _, e := range list {
		v, err := f(e)
		if err != nil {
			return false, err
		}
		if b, err := truth(v); err != nil || b == stop {
			return b, err
		}
	}
	return !stop, nil
}

func length(_ *evaluation, a []any) (any, error) {
	switch v := a[0].(type) {
	case string:
		return float64(len([]rune(v))), nil
	case []any:
		return float64(len(v)), nil
	case map[string]any:
		return float64(len(v)), nil
	}
	return nil, errNoLength.With(kindOf(a[0]))
}

// texts returns the arguments as texts.
func texts(a []any) (list []string, err error) {
	for _, v := range a {
		s, ok := v.(string)
		if !ok {
			return nil, errKind.With(kindText, kindOf(v))
		}
		list = append(list, s)
	}
	return list, nil
}

func text(f func(string) string) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		s, err := texts(a)
		if err == nil {
			err = ev.made(3 * len(s[0])) // a letter in the other case may need more bytes
		}
		if err != nil {
			return nil, err
		}
		return f(s[0]), nil
	}
}

// lines returns the lines of a text that are not blank, without the white space around them.
func lines(ev *evaluation, a []any) (any, error) {
	s, err := texts(a)
	if err == nil {
		err = ev.made(len(s[0]) + 32*strings.Count(s[0], "\n"))
	}
	if err != nil {
		return nil, err
	}
	list := []any{}
	for line := range strings.Lines(s[0]) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list, nil
}

func split(ev *evaluation, a []any) (any, error) {
	s, err := texts(a)
	if err == nil && s[1] == "" {
		err = errSeparator
	}
	if err == nil {
		err = ev.made(len(s[0]) + 32*strings.Count(s[0], s[1]))
	}
	if err != nil {
		return nil, err
	}
	list := []any{}
	for part := range strings.SplitSeq(s[0], s[1]) {
		list = append(list, part)
	}
	return list, nil
}

func join(ev *evaluation, a []any) (any, error) {
	list, ok := a[0].([]any)
	if !ok {
		return nil, errKind.With(kindList, kindOf(a[0]))
	}
	parts, err := texts(list)
	if err != nil {
		return nil, err
	}
	between := ""
	if len(a) == 2 {
		s, err := texts(a[1:])
		if err != nil {
			return nil, err
		}
		between = s[0]
	}
	for _, p := range parts {
		if err := ev.made(len(p) + len(between)); err != nil {
			return nil, err
		}
	}
	return strings.Join(parts, between), nil
}

func toString(ev *evaluation, a []any) (any, error) {
	switch v := a[0].(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return toJSON(ev, a)
}

func toInt(_ *evaluation, a []any) (any, error) {
	f, err := toNumber(a[0])
	return math.Trunc(f), err
}

func toFloat(_ *evaluation, a []any) (any, error) { return toNumber(a[0]) }

func toNumber(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, errNoNumber.With(strconv.Quote(cutText(v)))
		}
		return f, nil
	}
	return 0, errNoNumber.With(kindOf(v))
}

func parseJSON(ev *evaluation, a []any) (any, error) {
	s, err := texts(a)
	if err == nil {
		err = ev.made(4 * len(s[0]))
	}
	if err != nil {
		return nil, err
	}
	return decodeJSON(s[0])
}

// maxJSON is the length of the longest text that is decoded as JSON, in bytes.
const maxJSON = 8 << 20

// decodeJSON decodes the JSON text of an answer. It accepts a code fence of Markdown around the JSON.
func decodeJSON(s string) (v any, err error) {
	if len(s) > maxJSON {
		return nil, errLongJSON.With(len(s), maxJSON)
	}
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		if inner, ok := strings.CutSuffix(rest, "```"); ok {
			s = strings.TrimPrefix(inner, "json")
		}
	}
	if json.Unmarshal([]byte(s), &v) != nil {
		return nil, errNotJSON
	}
	return v, nil
}

func toJSON(ev *evaluation, a []any) (any, error) {
	if err := ev.measure(a[0], 0); err != nil {
		return nil, err
	}
	b, err := json.Marshal(a[0])
	return string(b), err
}

// measure adds the cost of a value's JSON to the evaluation before the JSON is made.
func (ev *evaluation) measure(v any, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	switch v := v.(type) {
	case string:
		return ev.made(6*len(v) + 2)
	case []any:
		for _, e := range v {
			if err := ev.measure(e, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			if err := errors.Join(ev.made(6*len(k)+3), ev.measure(e, depth+1)); err != nil {
				return err
			}
		}
	case object:
		return errStepNotJSON
	}
	return ev.made(32)
}

func keys(_ *evaluation, a []any) (any, error) {
	m, ok := a[0].(map[string]any)
	if !ok {
		return nil, errKind.With(kindObject, kindOf(a[0]))
	}
	list := make([]any, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return list, nil
}

func end(v any, first bool) (any, error) {
	list, ok := v.([]any)
	switch {
	case !ok:
		return nil, errKind.With(kindList, kindOf(v))
	case len(list) == 0:
		return nil, nil
	case first:
		return list[0], nil
	}
	return list[len(list)-1], nil
}
