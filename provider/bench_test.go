package provider_test

import (
	"strconv"
	"testing"

	"github.com/perlica/perlica/provider"
)

// BenchmarkUpdates measures the path of an agent's update to the client. One operation is one update of 200 bytes of
// text.
func BenchmarkUpdates(b *testing.B) {
	s := open(b, start(b, child("ok"), &watcher{forgetful: true}))
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := s.Prompt(provider.NewCall("run"), text("@stream "+strconv.Itoa(b.N)+" 200")).Answer(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTurns measures a turn with one update in a session.
func BenchmarkTurns(b *testing.B) {
	s := open(b, start(b, child("ok"), &watcher{forgetful: true}))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := s.Prompt(provider.NewCall(strconv.Itoa(n)), text("hello")).Answer(); err != nil {
			b.Fatal(err)
		}
	}
}
