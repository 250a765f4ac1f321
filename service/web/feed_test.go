package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestBehind checks that slow followers share the segments of the log. A follower that continues
// after a segment does not read the earlier events of the turn again.
func TestBehind(t *testing.T) {
	w := newWorld(t, 1)
	w.ask(w.dirs[0], strings.Repeat("@say "+strings.Repeat("x", segmentBytes/16)+"\n", 80))
	list, err := w.server.logs.list(t.Context(), place{})
	check(t, err)
	log, err := list[0].openReader(t.Context())
	check(t, err)
	last, _, err := log.Last(t.Context(), event.Query{})
	check(t, err)
	var whole []event.Seq
	_, err = list[0].recordedLines(t.Context(), log, 0, 0, func(one line) bool {
		whole = append(whole, one.seq)
		return true
	})
	check(t, err)

	b := newBacklog()
	walk := func(from event.Seq) (seqs []event.Seq, firsts []*line) {
		for from < last.Seq {
			lines, end, err := b.readLines(t.Context(), list[0].place, log, from, last.Seq)
			check(t, err)
			if end <= from {
				t.Fatalf("behind %d it goes up to %d", from, end)
			}
			if from = end; len(lines) > 0 {
				firsts = append(firsts, &lines[0])
			}
			for _, one := range lines {
				seqs = append(seqs, one.seq)
			}
		}
		return seqs, firsts
	}
	seqs, firsts := walk(0)
	if !slices.Equal(seqs, whole) {
		t.Errorf("%d lines of %d", len(seqs), len(whole))
	}
	if len(firsts) < 4 {
		t.Fatalf("%d stretches are too few to tell", len(firsts))
	}
	readers := 0
	for _, s := range b.kept {
		if s.past != nil {
			readers++
		}
	}
	if readers != 1 {
		t.Errorf("%d have read the turn from its beginning", readers)
	}
	if again, same := walk(0); !slices.Equal(again, whole) || !slices.Equal(same, firsts) {
		t.Error("the second reads the log again")
	}
	middle := len(whole) / 2
	rest, same := walk(whole[middle])
	if !slices.Equal(rest, whole[middle+1:]) {
		t.Errorf("from the middle: %d lines of %d", len(rest), len(whole)-middle-1)
	}
	if n := len(same) - 1; !slices.Equal(same[1:], firsts[len(firsts)-n:]) {
		t.Error("who comes from elsewhere reads stretches of its own")
	}
}

// TestBehindKeepsLittle checks that the size of the kept segments is limited.
func TestBehindKeepsLittle(t *testing.T) {
	b := newBacklog()
	for i := range 100 {
		b.keepSegment(&segment{after: event.Seq(i), end: event.Seq(i + 1), bytes: segmentBytes})
	}
	if n := len(b.kept); n != keptBytes/segmentBytes || b.bytes != keptBytes || b.kept[n-1].end != 100 {
		t.Errorf("%d stretches, %d bytes", n, b.bytes)
	}
	b.keepSegment(&segment{after: 100, end: 101, bytes: 2 * keptBytes})
	if n := len(b.kept); n != 1 {
		t.Errorf("beside a large one there are %d", n-1)
	}
}
