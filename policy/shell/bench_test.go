package shell

import "testing"

// BenchmarkJudge judges each command in the three lists of testdata, one list for each tier.
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
