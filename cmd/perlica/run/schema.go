package run

import (
	"encoding/json"
	"errors"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/project"
)

// readSchema reads the file of --schema.
func readSchema(f dialog.Flags) (json.RawMessage, *project.Schema, error) {
	b, err := f.ReadFile("--schema", f.SchemaFile)
	if err != nil {
		return nil, nil, err
	}
	s, err := project.ParseSchema(b)
	if err != nil {
		err = frame.UsageErrorf("--schema %s: %w", f.SchemaFile, err)
	}
	if errors.Is(err, project.ErrReference) {
		err = frame.WithHint(err, "%s", project.ErrReference)
	}
	return b, s, err
}
