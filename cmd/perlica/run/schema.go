package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/strict"
)

// schema is a JSON Schema that an answer is to have.
type schema struct {
	text     json.RawMessage
	resolved *jsonschema.Resolved
}

// readSchema reads the schema of --schema. The file must hold everything that it refers to: nothing is fetched.
func readSchema(f dialog.Flags) (*schema, error) {
	path := f.SchemaFile
	b, err := f.ReadFile("--schema", path)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := cmp.Or(strict.Check(b), json.Unmarshal(b, &s)); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field == "" { // it would name a type of the library's
			return nil, frame.UsageErrorf("--schema %s is not a JSON Schema: that is an object, true or false, not %s", path, kind.Value)
		}
		return nil, frame.UsageErrorf("--schema %s is not a JSON Schema: %v", path, err)
	}
	if name := unknownType(b); name != "" { // nothing would be of it, and the call is made by then
		return nil, frame.UsageErrorf("--schema %s: there is no type %q in JSON Schema", path, name)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, frame.WithHint(frame.UsageErrorf("--schema %s: %v", path, err), "a schema has all it refers to in itself; nothing is fetched")
	}
	return &schema{b, resolved}, nil
}

// unknownType is a type that a schema names and that JSON does not have, or "".
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
				case "const", "default", "enum", "examples": // values, in which type is a name like any other
					continue
				case "type":
					for _, t := range append(list(value), value) {
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
		return "" // which is said of it elsewhere
	}
	return in(v)
}

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// list is a value as the list that it is, or none.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// check says why a text is not of the schema.
func (s *schema) check(text string) error {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return errors.New("the answer does not fit --schema: it is not JSON")
	}
	if err := strict.Check([]byte(text)); err != nil { // the next program may read it otherwise
		return fmt.Errorf("the answer does not fit --schema: %w", err)
	}
	if err := s.resolved.Validate(v); err != nil {
		return errors.New("the answer does not fit --schema: " + strings.ReplaceAll(strings.TrimPrefix(err.Error(), "validating root: "), "validating /", "/"))
	}
	return nil
}
