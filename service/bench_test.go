package service_test

import (
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/local"
)

// BenchmarkAcknowledge measures the time until a message is acknowledged while a turn of its
// contact runs. The promise of less than 300 ms is about the longest time.
func BenchmarkAcknowledge(b *testing.B) {
	w := newWorld(b)
	w.isPaired("alice")
	w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Grace = time.Millisecond })
	alice := w.phone("alice")
	alice.say("@say it goes on\n@sleep 1h")
	alice.expect("ACK")
	var longest time.Duration
	for b.Loop() {
		begin := time.Now()
		alice.say("next")
		alice.expect("ACK")
		longest = max(longest, time.Since(begin))
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-max")
}
