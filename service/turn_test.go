package service

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
)

// TestUnknownWithoutRun checks that the text about an unknown outcome names a record only if the message has a run.
func TestUnknownWithoutRun(t *testing.T) {
	for _, l := range language.All() {
		say := l.Sentences()
		with, without := unknown(say, "known", record.Result{Run: "run-12345678"}), unknown(say, "known", record.Result{})
		if !strings.HasSuffix(with, "`/log show 12345678`") || strings.Contains(without, "/log") ||
			!strings.HasPrefix(with, without) {
			t.Errorf("%s: %q, %q", l, with, without)
		}
	}
}
