package command

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/perlica/perlica/interaction"
)

// diffText is a change to a file as a unified diff.
func diffText(d interaction.Diff) string {
	text := string(diff.Diff("a/"+d.Path, []byte(d.Old), "b/"+d.Path, []byte(d.New)))
	if _, body, ok := strings.Cut(text, "\n"); ok { // the first line is the command that would make it
		return body
	}
	return text
}
