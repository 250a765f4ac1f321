package origin

import (
	"slices"
	"strings"
)

// A replay follows the lines of the present file back through the recorded changes of the file, from the newest change
// to the oldest. Before each step, the state is the file as it was after the change, as far as it is known. If the new
// content of the change stands at exactly one place, the step replaces it by the old content. Otherwise somebody
// changed the place without a record. Then only lines with safe neighbours count, and the lines around them stay
// unknown.
type replay struct {
	state  []line
	origin []int // for each line of the present file: the number of its change, or unknown
}

// line is a line of the state. ref is the number of the line in the present file, or gone if the present file does not
// have it or if its origin is decided.
type line struct {
	text string
	ref  int
}

const (
	unknown = -1
	gone    = -1
)

// minPlace is the minimum number of letters and digits that identify a place in a file. A shorter text could stand
// there by coincidence.
const minPlace = 16

// newReplay returns the replay of a file with this content.
func newReplay(content string) *replay {
	r := &replay{}
	for i, text := range splitLines(content) {
		r.state = append(r.state, line{text, i})
		r.origin = append(r.origin, unknown)
	}
	return r
}

// step goes back over the change with the number n. It returns whether the new content of the change stands in the
// state, and whether an older change can still count.
func (r *replay) step(n int, e edit) (found, more bool) {
	if e.removes {
		return len(r.state) == 0, false
	}
	if e.all {
		r.forget(splitLines(e.new))
		return false, true
	}
	before, after := splitLines(e.old), splitLines(e.new)
	if e.created || e.whole {
		found = r.isWhole(after)
		switch {
		case e.whole: // The lines may be older than the change.
		case found:
			for _, l := range r.state {
				r.set(l, n)
			}
		default:
			r.stepUnsafely(n, e.created, match(nil, after), after)
		}
		return found, false
	}
	at, found := r.find(after)
	if placeLetters(after) < minPlace && !r.isWhole(after) {
		found = false
	}
	if !found {
		r.stepUnsafely(n, false, match(before, after), after)
		return false, true
	}
	r.undo(n, at, before, after)
	return true, true
}

// forget leaves the origin of each line open that contains a line of a text.
func (r *replay) forget(lines []string) {
	for i, l := range r.state {
		if slices.ContainsFunc(lines, func(text string) bool { return text != "" && strings.Contains(l.text, text) }) {
			r.state[i].ref = gone
		}
	}
}

// stepUnsafely goes back over a change although its new content does not stand in the state. A line counts if it
// stands in a block of lines that the content has in the same way. The parameter m is the result of match for the
// change. If "all" is false, the first line and the last line may be parts of lines, so they do not count.
func (r *replay) stepUnsafely(n int, all bool, m []int, after []string) {
	for j, i := range r.blocks(all, after) {
		if i == unmatched || m[j] >= 0 {
			continue
		}
		if m[j] == unmatched && (all || j > 0 && j < len(after)-1) {
			r.set(r.state[i], n)
		}
		r.state[i] = line{text: barrier, ref: gone}
	}
}

// barrier is the text of a line that no older state has. No line of a text file is equal to it.
const barrier = "\x00"

// blocks returns for each line of a text its line in the state, or unmatched. A block of equal lines counts if it has
// enough letters, and a line that occurs once in both. If "all" is true, the text is a whole file.
func (r *replay) blocks(all bool, lines []string) []int {
	state := make([]string, len(r.state))
	for i, l := range r.state {
		state[i] = l.text
	}
	m := make([]int, len(lines))
	for j := range m {
		m[j] = unmatched
	}
	anchors := anchorsOf(state, lines)
	if all {
		anchors = append([]pair{{-1, -1}}, append(anchors, pair{len(state), len(lines)})...)
	}
	for k, at := range anchors {
		if at.b >= 0 && at.b < len(lines) {
			m[at.b] = at.a
		}
		if k > 0 {
			from := anchors[k-1]
			matchSafely(m[from.b+1:at.b], state[from.a+1:at.a], lines[from.b+1:at.b], from.a+1)
		}
	}
	if n := len(anchors); n > 0 && !all {
		// The lines before the first known place and after the last one count only if all of them stand there.
		first, last := anchors[0], anchors[n-1]
		if from := first.a - first.b; from >= 0 && slices.Equal(state[from:first.a], lines[:first.b]) {
			matchSafely(m[:first.b], lines[:first.b], lines[:first.b], from)
		}
		if to := last.a + len(lines) - last.b; to <= len(state) && slices.Equal(state[last.a+1:to], lines[last.b+1:]) {
			matchSafely(m[last.b+1:], lines[last.b+1:], lines[last.b+1:], last.a+1)
		}
	}
	for j := 0; j < len(m); {
		end := j + 1
		for m[j] != unmatched && end < len(m) && m[end] == m[end-1]+1 {
			end++
		}
		if placeLetters(lines[j:end]) < minPlace {
			for ; j < end; j++ {
				m[j] = unmatched
			}
		}
		j = end
	}
	return m
}

// matchSafely matches the lines b between two known places with the lines a of the state at the same places. If a and b
// are equal, all lines match. Otherwise a line matches if it follows a known line or precedes one, and if it occurs
// once in a and once in b. The lines of a begin at the number "at" of the state.
func matchSafely(m []int, a, b []string, at int) {
	if slices.Equal(a, b) {
		for j := range b {
			m[j] = at + j
		}
		return
	}
	once := func(lines []string, text string) bool {
		i := slices.Index(lines, text)
		return i >= 0 && !slices.Contains(lines[i+1:], text)
	}
	safe := func(text string) bool { return once(a, text) && once(b, text) }
	for j := 0; j < min(len(a), len(b)) && a[j] == b[j] && safe(a[j]); j++ {
		m[j] = at + j
	}
	for j := 1; j <= min(len(a), len(b)) && a[len(a)-j] == b[len(b)-j] && safe(a[len(a)-j]); j++ {
		m[len(b)-j] = at + len(a) - j
	}
}

// placeLetters returns the number of letters and digits in the lines.
func placeLetters(lines []string) (n int) {
	for _, text := range lines {
		n += letters(text)
	}
	return n
}

// isWhole reports whether the state is exactly this text.
func (r *replay) isWhole(lines []string) bool {
	return slices.EqualFunc(r.state, lines, func(l line, text string) bool { return l.text == text })
}

// set decides the origin of a line.
func (r *replay) set(l line, n int) {
	if l.ref >= 0 {
		r.origin[l.ref] = n
	}
}

// find returns the only place where the text with these lines stands in the state. The text may begin and end within
// a line.
func (r *replay) find(lines []string) (at int, ok bool) {
	if len(lines) == 1 {
		return r.findWithin(lines[0])
	}
	last := len(lines) - 1
	pivot := 0 // the longest of the whole lines
	for i := 1; i < last; i++ {
		if pivot == 0 || len(lines[i]) > len(lines[pivot]) {
			pivot = i
		}
	}
	n := 0
	for i := 0; i+last < len(r.state); i++ {
		if pivot > 0 && r.state[i+pivot].text != lines[pivot] ||
			!strings.HasSuffix(r.state[i].text, lines[0]) || !strings.HasPrefix(r.state[i+last].text, lines[last]) {
			continue
		}
		if inner := r.state[i+1 : i+last]; slices.EqualFunc(inner, lines[1:last],
			func(l line, text string) bool { return l.text == text }) {
			at = i
			n++
		}
	}
	return at, n == 1
}

// findWithin returns the only line of the state that contains a text once.
func (r *replay) findWithin(text string) (at int, ok bool) {
	n := 0
	for i, l := range r.state {
		if text != "" && strings.Contains(l.text, text) {
			at = i
			n += strings.Count(l.text, text)
		}
	}
	return at, n == 1
}

// undo replaces the new content of a change by the old content. The new content stands at the line "at". If it begins
// or ends within a line, the change did not write the rest of that line. Somebody may have changed the rest later, so
// the origin of that line stays unknown.
func (r *replay) undo(n, at int, before, after []string) {
	last := len(after) - 1
	first, end := r.state[at], r.state[at+last]
	head := strings.TrimSuffix(first.text, after[0])
	tail := strings.TrimPrefix(end.text, after[last])
	if last == 0 {
		head, tail, _ = strings.Cut(first.text, after[0])
	}
	m := match(before, after)
	whole := func(j int) bool { return (j > 0 || head == "") && (j < last || tail == "") }
	old := make([]line, len(before))
	for i, text := range before {
		old[i] = line{text, gone}
	}
	for j, i := range m {
		l := r.state[at+j]
		switch {
		case i >= 0 && (j > 0 || i == 0 || head == "") && (j < last || i == len(before)-1 || tail == ""):
			old[i].ref = l.ref
		case i == unmatched && whole(j):
			r.set(l, n)
		}
	}
	old[0].text = head + old[0].text
	old[len(old)-1].text += tail
	r.state = slices.Replace(r.state, at, at+last+1, old...)
}
