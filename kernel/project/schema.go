package project

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/strict"
)

// Schema is a JSON Schema for an answer.
type Schema struct{ resolved *jsonschema.Resolved }

// ErrReference means that a schema refers to something outside of it. Perlica fetches nothing.
var ErrReference = errors.New("a schema has all it refers to in itself; nothing is fetched")

// These are the sentences about an answer that does not match a schema.
var (
	misfit     = message.New("project.misfit", "the answer does not fit the schema: %s")
	misfitJSON = message.New("project.misfit-json", "it is not JSON")
)

// ParseSchema parses a JSON Schema. It must contain every definition that it refers to.
func ParseSchema(text []byte) (*Schema, error) {
	var s jsonschema.Schema
	if err := cmp.Or(strict.Check(text), json.Unmarshal(text, &s)); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field == "" { // The text of err would name a Go type of the library.
			return nil, fmt.Errorf("the text is not a JSON Schema: that is an object, true or false, not %s", kind.Value)
		}
		return nil, fmt.Errorf("the text is not a JSON Schema: %v", err)
	}
	// No answer could match an unknown type, and the user would notice this only after the call.
	if name := unknownType(text); name != "" {
		return nil, fmt.Errorf("there is no type %q in JSON Schema", name)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, &referenceError{err}
	}
	return &Schema{resolved}, nil
}

// referenceError is an error of Resolve. It matches ErrReference.
type referenceError struct{ error }

// Is reports whether target is ErrReference.
func (e *referenceError) Is(target error) bool { return target == ErrReference }

// unknownType returns a type in the schema that JSON does not have, or "" if all types are known.
func unknownType(schema []byte) string {
	var in func(v any) string
	in = func(v any) string {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				if name := in(item); name != "" {
					return name
				}
			}
		case map[string]any:
			for key, value := range v {
				switch key {
				case "const", "default", "enum", "examples": // Inside these values, "type" is an ordinary name.
					continue
				case "type":
					for _, t := range append(listOf(value), value) {
						if name, ok := t.(string); ok && !slices.Contains(types, name) {
							return name
						}
					}
				}
				if name := in(value); name != "" {
					return name
				}
			}
		}
		return ""
	}
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		return "" // The check of the schema itself reports this mistake.
	}
	return in(v)
}

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// listOf returns v as a list, or nil if v is no list.
func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}

// Check returns an error if the text of an answer does not match the schema.
func (s *Schema) Check(text string) error {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return misfit.With(misfitJSON)
	}
	// Programs read a text with duplicate names in different ways, so such a text is refused.
	if err := strict.Check([]byte(text)); err != nil {
		return misfit.With(err)
	}
	if err := s.resolved.Validate(v); err != nil {
		return misfit.With(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "validating root: "), "validating /", "/"))
	}
	return nil
}
