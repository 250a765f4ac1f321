package shell

import "testing"

// BenchmarkJudge judges every command of the three lists of tiers once.
func BenchmarkJudge(b *testing.B) {
	var list []string
	for _, tier := range tiers {
		list = append(list, commands(b, tier)...)
	}
	for b.Loop() {
		for _, c := range list {
			classify(c, at)
		}
	}
}
