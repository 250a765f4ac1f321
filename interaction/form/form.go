// Package form turns the schema of an elicitation into questions for a person, one question for each field of the
// form. It turns the answers into the values for the agent.
//
// Every value fits its field, as far as the schema of a form describes it. The package refuses a form that asks for a
// secret, because answers stay on the log for ever.
package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
)

// ErrSecret says that a form asks for a value that must not be on the log.
var ErrSecret = message.New("form.secret",
	"it asks for something that looks like a secret, and Perlica would keep your answer on record "+
		"permanently")

// errForm says that the schema does not describe a form.
var errForm = message.New("form.form", "its schema is not a valid schema of a form")

// mostFields is the maximum number of fields in a form.
const mostFields = 50

// Field is one value that a form asks for.
type Field struct {
	Name     string
	Title    string // the agent's title
	Text     string // the agent's description; may be empty
	Required bool

	values []value // the choices; the default is first
	input  *interaction.Input
}

// value is a choice of a field.
type value struct {
	json  json.RawMessage
	label string
}

// property is the JSON schema of a field.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"` // older versions of MCP have these names instead of titles
	OneOf       []titled        `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []titled `json:"anyOf"`
	} `json:"items"`
	Format    string   `json:"format"`
	Pattern   string   `json:"pattern"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
	MinItems  *int     `json:"minItems"`
	MaxItems  *int     `json:"maxItems"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Read returns the fields of a form in the order of its schema. message is the agent's text about the whole form. If
// the form asks for a secret, the error is ErrSecret, even if the schema has other faults. Read returns another error
// if the schema does not describe a form.
func Read(message string, schema json.RawMessage) ([]Field, error) {
	if what := secretIn(message, schema); what != "" {
		return nil, fmt.Errorf("%w: %s", ErrSecret, what)
	}
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errForm, err)
	}
	var fields []Field
	err := members(s.Properties, func(name string, raw json.RawMessage) error {
		var p property
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("%w: %s: %w", errForm, name, err)
		}
		f, err := p.toField(name)
		if err != nil {
			return err
		}
		f.Required = slices.Contains(s.Required, name)
		if fields = append(fields, f); len(fields) > mostFields {
			return fmt.Errorf("%w: it has more than %d fields", errForm, mostFields)
		}
		return nil
	})
	return fields, err
}

// members calls the function f with each member of an object, in their order.
func members(object json.RawMessage, f func(name string, value json.RawMessage) error) error {
	if len(object) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: properties is no object", errForm)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", errForm, err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("%w: %w", errForm, err)
		}
		if err := f(name.(string), raw); err != nil {
			return err
		}
	}
	return nil
}

// toField returns the field that a property with this name describes.
func (p property) toField(name string) (Field, error) {
	f := Field{Name: name, Title: cmp.Or(p.Title, name), Text: p.Description}
	switch p.Type {
	case "boolean":
		f.values = []value{{json.RawMessage("true"), "yes"}, {json.RawMessage("false"), "no"}}
	case "string":
		for i, v := range p.Enum {
			label := v
			if i < len(p.EnumNames) {
				label = p.EnumNames[i]
			}
			f.values = append(f.values, value{quoted(v), label})
		}
		for _, o := range p.OneOf {
			f.values = append(f.values, value{quoted(o.Const), cmp.Or(o.Title, o.Const)})
		}
	case "number", "integer", "array":
	default:
		return f, fmt.Errorf("%w: %s is of the type %q", errForm, name, p.Type)
	}
	if len(f.values) == 0 {
		f.input = &interaction.Input{
			Type: p.Type, Format: p.Format, Pattern: p.Pattern, MinLength: p.MinLength, MaxLength: p.MaxLength,
			Minimum: p.Minimum, Maximum: p.Maximum, MinItems: p.MinItems, MaxItems: p.MaxItems, Values: p.items(),
		}
	}
	f.Prefer(p.Default)
	return f, nil
}

// items returns the values that an array may contain.
func (p property) items() []string {
	values := slices.Clone(p.Items.Enum)
	for _, o := range p.Items.AnyOf {
		values = append(values, o.Const)
	}
	return values
}

// Prefer moves the choice with the value in the parameter "given" to the first position. The value is a default or an
// earlier answer. An invalid value changes nothing.
func (f *Field) Prefer(given json.RawMessage) {
	if len(given) == 0 || string(given) == "null" {
		return
	}
	if f.input == nil {
		sort.SliceStable(f.values, func(i, j int) bool {
			return rank(f.values[i], given) < rank(f.values[j], given)
		})
		return
	}
	text := string(given)
	var s string
	var list []string
	switch {
	case json.Unmarshal(given, &s) == nil:
		text = s
	case json.Unmarshal(given, &list) == nil:
		text = strings.Join(list, ", ")
	}
	if v, err := f.input.Value(text); err == nil {
		f.values = []value{{v, text}}
	}
}

// rank returns 0 for the value in the parameter "given", and 1 for other values.
func rank(v value, given json.RawMessage) int {
	if bytes.Equal(v.json, given) {
		return 0
	}
	return 1
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // This cannot happen, because every string can be encoded.
		return nil
	}
	return b
}

// These are the ids of Perlica's own options. The id of a choice is valueID and the number of the choice.
const (
	valueID   = "perlica:value-"
	textID    = "perlica:text"
	leaveID   = "perlica:leave"
	DeclineID = "perlica:decline"
)

// Decline returns the option with which the person gives the agent no value. Every form has it.
func Decline() interaction.Option {
	return interaction.NewOffer(DeclineID, labelDecline, "reject_once")
}

// Ask adds the possible answers to a question: the choices, a typed text, leaving the field out, and no.
func (f Field) Ask(q *interaction.Question) {
	q.Input, q.Options = f.input, nil
	for i, v := range f.values {
		q.Options = append(q.Options, interaction.Option{ID: valueID + strconv.Itoa(i+1), Label: v.label,
			Kind: "answer"})
	}
	if f.input != nil {
		o := interaction.NewOffer(textID, f.kindOfText(), "answer")
		o.Text = true
		q.Options = append(q.Options, o)
	}
	if !f.Required {
		q.Options = append(q.Options, interaction.NewOffer(leaveID, labelLeave, "answer"))
	}
	q.Options = append(q.Options, Decline())
}

// kindOfText returns a sentence about the form of the value that the person types. It has no words of the agent,
// because these are shown elsewhere in quotes.
func (f Field) kindOfText() *message.Text {
	switch f.input.Type {
	case "array":
		return typeSome
	case "string":
		if known := typeFormat[f.input.Format]; known != nil {
			return known
		}
		return typeText
	}
	return typeNumber
}

// Says returns the agent's texts about the field. Perlica shows them to the answering person.
func (f Field) Says() (texts []string) {
	if f.Text != "" {
		texts = append(texts, f.Text)
	}
	if f.input != nil {
		for i, v := range f.input.Values {
			texts = append(texts, fmt.Sprintf("%d. %s", i+1, v))
		}
	}
	return texts
}

// Value returns the value for the agent that an answer means. ok is false if the answer leaves the field out.
func (f Field) Value(a interaction.Answer) (v json.RawMessage, ok bool, err error) {
	switch {
	case a.Option == leaveID && !f.Required:
		return nil, false, nil
	case a.Option == textID:
		v, err = f.input.Value(a.Text)
		return v, err == nil, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(a.Option, valueID))
	if err != nil || n < 1 || n > len(f.values) {
		return nil, false, fmt.Errorf("%w: %q", interaction.ErrNotAnOption, a.Option)
	}
	return f.values[n-1].json, true, nil
}
