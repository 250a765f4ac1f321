package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
)

// schema is a JSON Schema that an answer is to have.
type schema struct {
	text     json.RawMessage
	resolved *jsonschema.Resolved
}

// readSchema reads the schema in a file. What it refers to must stand in it: nothing is fetched.
func readSchema(path string) (*schema, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, exitcode.Usagef("--schema: %v", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, exitcode.Usagef("--schema %s is no JSON Schema: %v", path, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, exitcode.WithHint(exitcode.Usagef("--schema %s: %v", path, err), "a schema has all it refers to in itself; nothing is fetched")
	}
	return &schema{b, resolved}, nil
}

// check says why a text is not of the schema.
func (s *schema) check(text string) error {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return errors.New("the answer does not have the form of --schema: it is no JSON")
	}
	if err := s.resolved.Validate(v); err != nil {
		return fmt.Errorf("the answer does not have the form of --schema: %w", err)
	}
	return nil
}
