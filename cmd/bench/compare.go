package main

import (
	"fmt"
	"slices"
	"time"
)

// A side is one of the programs of a comparison within this process.
type side struct {
	round func() // does ops operations
	ops   int

	took []time.Duration // of an operation, by round
	cpu  time.Duration   // of this process in the meantime, all together
	done int             // operations
}

// compare does rounds of all sides in turn, after one that is not counted: the machine may have
// other work, and so each side gets the same share of it.
func compare(rounds int, sides ...*side) {
	for i := range rounds + 1 {
		for _, s := range sides {
			start, cpu := time.Now(), processCPU()
			s.round()
			if i == 0 {
				continue
			}
			s.took = append(s.took, time.Since(start)/time.Duration(s.ops))
			s.cpu += processCPU() - cpu
			s.done += s.ops
		}
	}
}

// rate is how many operations a second the side does in the round at the median.
func (s *side) rate() float64 { return 1 / median(slices.Clone(s.took)).Seconds() }

// cpuTime is how much processor time an operation takes, in microseconds.
func (s *side) cpuTime() float64 { return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.done) }

// rates prints how two sides compare.
func rates(what string, ours, bare *side, promise string) {
	ratio(what, ours.rate(), bare.rate(), "1/s", promise)
}

// cpus prints how the processor times of two sides compare, which other work on the machine
// hardly changes.
func cpus(ours, bare *side, promise string) {
	if ours.cpu == 0 {
		fmt.Printf("%-52s (not known on this system)\n", "  processor time")
		return
	}
	ratio("  processor time", ours.cpuTime(), bare.cpuTime(), "µs", promise)
}
