//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// gated makes the predictable agent of this world wait before each line that contains one of the texts. The agent
// continues when the test calls the function "open" with the same text. The steps of a test then happen in the same
// order on any machine.
func (w *world) gated(texts ...string) (open func(text string)) {
	w.t.Helper()
	dir := w.t.TempDir()
	gate := func(text string) string { return filepath.Join(dir, fmt.Sprintf("%x", text)) }
	var cases strings.Builder
	for _, text := range texts {
		if err := os.WriteFile(gate(text), nil, 0o600); err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&cases, "\t*'%s'*) while [ -e '%s' ]; do sleep 0.02; done ;;\n", text, gate(text))
	}
	agent := filepath.Join(dir, "agent")
	text := "perlica agent predictable | while IFS= read -r line; do\n\tcase $line in\n" + cases.String() +
		"\tesac\n\tprintf '%s\\n' \"$line\"\ndone\n"
	if err := os.WriteFile(agent, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.config(fmt.Sprintf("[providers.predictable]\nadapter.command = \"sh\"\nadapter.args = [%q]\n", agent))
	return func(text string) {
		w.t.Helper()
		if err := os.Remove(gate(text)); err != nil {
			w.t.Fatal(err)
		}
	}
}
