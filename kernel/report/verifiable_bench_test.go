package report

import (
	"io"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// BenchmarkWriteVerifiable writes the report of 10,000 events. The log has 250 runs of 40 events.
func BenchmarkWriteVerifiable(b *testing.B) {
	l := newSignedLog(b)
	for i := range 10_000 / eventsOfARun {
		fillRun(b, l.Log, i)
	}
	if _, err := l.Checkpoint(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := WriteVerifiable(b.Context(), io.Discard, &l.Reader, event.Query{},
			VerifiableOptions{Keys: l.verifierKeys}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(l.report(b, event.Query{})))/1e6, "MB")
}
