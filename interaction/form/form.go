// Package form turns the schema of an elicitation into the questions that a person is asked, field by
// field, and their answers into the values that the agent gets.
//
// It promises that every value fits its field, as far as the schema's restricted form says, and that no
// form is asked that wants a secret: what is answered is on the record for good.
package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/interaction"
)

// ErrSecret says that a form asks for something that must not be on record.
var ErrSecret = errors.New("it asks for something that looks like a secret, and what is answered here is on record for good")

// errForm says that the schema is none of a form.
var errForm = errors.New("its schema is not that of a form")

// mostFields is how many fields a person is asked for.
const mostFields = 50

// Field is one value that is asked for.
type Field struct {
	Name     string
	Title    string // as the agent calls it
	Text     string // what it says of it; may be empty
	Required bool

	values []value // to choose from, the default first
	input  *interaction.Input
}

// value is a value that can be chosen.
type value struct {
	json  json.RawMessage
	label string
}

// property is a field as its schema describes it.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"` // of MCP before it had titles
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

// Read reads the fields of a form in the order in which its schema has them; message is what the agent says of
// the whole. It fails with ErrSecret, whatever else the schema holds, or if the schema is none of a form.
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
		f, err := p.field(name)
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

// members calls f with the members of an object, in their order.
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

// field is the field that a property describes.
func (p property) field(name string) (Field, error) {
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

// items are the values that an array may have.
func (p property) items() []string {
	values := slices.Clone(p.Items.Enum)
	for _, o := range p.Items.AnyOf {
		values = append(values, o.Const)
	}
	return values
}

// Prefer puts a value before the others that can be chosen: the default, or one that was given before. One
// that is no value of the field changes nothing.
func (f *Field) Prefer(given json.RawMessage) {
	if len(given) == 0 || string(given) == "null" {
		return
	}
	if f.input == nil {
		slices.SortStableFunc(f.values, func(a, b value) int {
			return cmp.Compare(rank(a, given), rank(b, given))
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

// rank puts a default before the others.
func rank(v value, given json.RawMessage) int {
	if bytes.Equal(v.json, given) {
		return 0
	}
	return 1
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string
		return nil
	}
	return b
}

// The ids of the options that are Perlica's own. A value's is valueID and its number.
const (
	valueID   = "perlica:value-"
	textID    = "perlica:text"
	leaveID   = "perlica:leave"
	DeclineID = "perlica:decline"
)

// Decline is the option of every form that gives the agent no value.
func Decline() interaction.Option {
	return interaction.Option{ID: DeclineID, Label: "the agent is told that nothing is given", Kind: "reject_once", Offer: true}
}

// Ask puts into a question what can be answered: a value, a text, to leave the field out, or no.
func (f Field) Ask(q *interaction.Question) {
	q.Input, q.Options = f.input, nil
	for i, v := range f.values {
		q.Options = append(q.Options, interaction.Option{ID: valueID + strconv.Itoa(i+1), Label: v.label, Kind: "answer"})
	}
	if f.input != nil {
		q.Options = append(q.Options, interaction.Option{ID: textID, Label: f.kindOfText(), Kind: "answer", Offer: true, Text: true})
	}
	if !f.Required {
		q.Options = append(q.Options, interaction.Option{ID: leaveID, Label: "leave this out", Kind: "answer", Offer: true})
	}
	q.Options = append(q.Options, Decline())
}

// kindOfText is what is to be typed. It holds none of the agent's words: they stand in quotes elsewhere.
func (f Field) kindOfText() string {
	switch f.input.Type {
	case "array":
		return "type some of the values, or their numbers, with commas between them"
	case "string":
		if known := map[string]string{"email": "an email address", "uri": "an address", "date": "a date, such as 2026-11-24", "date-time": "a time, such as 2026-11-24T18:00:00Z"}[f.input.Format]; known != "" {
			return "type " + known
		}
		return "type a text"
	}
	return "type a number"
}

// Says is what the agent says of the field, for those who are asked for it.
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

// Value is what an answer says. ok is false if the field is left out.
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
