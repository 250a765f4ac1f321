package origin

import (
	"slices"
	"strings"
)

// A replay undoes the recorded changes of a file, from the newest to the oldest, to find the change of each line.
// Before each step, the state is the file as it was after the change, as far as it is known. If the new content of the
// change stands at exactly one place, the step replaces it by the old content. Otherwise somebody changed the place
// without a record. Then a line gets an origin only if stepUnsafely recognises its neighbours. The other lines stay
// unknown.
type replay struct {
	state  []line
	origin []int            // for each line of the present file: the number of its change, or unknown
	ids    map[string]int   // a number for each text of a line, so that texts can be compared quickly
	doubts map[string][]int // by text: the decided lines of the present file that an older content may have, too
}

// line is a line of the state. ref is the index of the line in the present file. It is gone if the present file does
// not have the line, or if its origin must stay unknown. Equal texts have equal ids.
type line struct {
	text    string
	ref, id int
}

const (
	unknown = -1
	gone    = -1
)

// minPlace is the minimum number of letters and digits that identify a place in a file. A shorter text could be in the
// file by coincidence.
const minPlace = 16

// minBlock is the minimum number of letters and digits of a block that identifies a place, if all lines of the block
// are new. It is longer than most lines, so one line that also occurs elsewhere is not enough.
const minBlock = 3 * minPlace

// newReplay returns the replay of a file with this content.
func newReplay(content string) *replay {
	r := &replay{ids: map[string]int{}, doubts: map[string][]int{}}
	for i, text := range splitLines(content) {
		r.state = append(r.state, r.newLine(text, i))
		r.origin = append(r.origin, unknown)
	}
	return r
}

func (r *replay) newLine(text string, ref int) line {
	id, ok := r.ids[text]
	if !ok {
		id = len(r.ids)
		r.ids[text] = id
	}
	return line{text, ref, id}
}

// step undoes the change with the number n. It returns whether the new content of the change stands in the state, and
// whether older changes can still be the origin of lines.
func (r *replay) step(n int, e edit) (found, more bool) {
	if e.removes {
		return len(r.state) == 0, false
	}
	if e.all {
		r.forget(splitLines(e.new))
		return false, true
	}
	before, after := splitLines(e.old), splitLines(e.new)
	r.settle(before)
	r.settle(after)
	if e.created || e.whole {
		found = r.isWhole(after)
		switch {
		case e.whole: // The lines may be older than the change.
		case found:
			for _, l := range r.state {
				r.set(l, n)
			}
		default:
			r.stepUnsafely(n, e.created, nil, after)
		}
		return found, false
	}
	at, found := r.find(after)
	if !found || placeLetters(after) < minPlace && !r.isWhole(after) {
		r.stepUnsafely(n, false, before, after)
		return found, true
	}
	r.undo(n, at, before, after)
	return true, true
}

// doubt notes that a block was decided without an unchanged line next to it. A tool may have copied an older block to
// another place, and a person may have deleted the copy. Then the block of the present file is the older one.
func (r *replay) doubt(block []line) {
	var refs []int
	for _, l := range block {
		if l.ref >= 0 {
			refs = append(refs, l.ref)
		}
	}
	for _, l := range block {
		if letters(l.text) >= minAnchor {
			r.doubts[l.text] = append(r.doubts[l.text], refs...)
		}
	}
}

// settle makes the origin of doubted lines unknown if an older content has one of them.
func (r *replay) settle(lines []string) {
	for _, text := range lines {
		for _, ref := range r.doubts[text] {
			r.origin[ref] = unknown
		}
		delete(r.doubts, text)
	}
}

// forget keeps the origin unknown of each line of the state that contains one of the given lines.
func (r *replay) forget(lines []string) {
	for i, l := range r.state {
		if slices.ContainsFunc(lines, func(text string) bool { return text != "" && strings.Contains(l.text, text) }) {
			r.state[i].ref = gone
		}
	}
}

// stepUnsafely undoes a change whose new content was changed later without a record. A line that the change wrote gets
// the origin n if it lies in a block of lines that the state still has. "all" means that the content is the whole file.
// Otherwise the block must also have a line that the change leaves as it is, or at least minBlock letters. In the last
// case it stays in doubt. The first and the last line of the content may be parts of lines, so they get no origin.
func (r *replay) stepUnsafely(n int, all bool, before, after []string) {
	m, places := match(before, after), r.blocks(all, after)
	var old []line
	copied := 0 // the number of lines of the state that are in old
	for j := 0; j < len(after); {
		end := j + 1
		if places[j] == unmatched {
			j = end
			continue
		}
		for end < len(after) && places[end] == places[end-1]+1 {
			end++
		}
		anchored := slices.ContainsFunc(m[j:end], func(i int) bool { return i >= 0 })
		known := anchored || placeLetters(after[j:end]) >= minBlock
		for k := j; k < end; k++ {
			if m[k] == unmatched && (all || known && k > 0 && k < len(after)-1) {
				r.set(r.state[places[k]], n)
			}
		}
		if !anchored && !all {
			r.doubt(r.state[places[j] : places[end-1]+1])
		}
		old = append(old, r.state[copied:places[j]]...)
		copied = places[end-1] + 1
		old = append(old, r.undoBlock(r.state[places[j]:copied], m[j:end], before)...)
		j = end
	}
	r.state = append(old, r.state[copied:]...)
}

// undoBlock returns the lines that a block of lines had before a change. The parameter m has, for each line of the
// block, the index of the same line in the old content. A barrier replaces unknown old lines at an end of the block.
func (r *replay) undoBlock(block []line, m []int, before []string) (old []line) {
	last := unmatched
	for k, i := range m {
		switch {
		case i < 0:
		case last == unmatched:
			if k > 0 {
				old = append(old, r.newLine(barrier, gone))
			}
			old, last = append(old, block[k]), i
		default:
			for _, text := range before[last+1 : i] {
				old = append(old, r.newLine(text, gone))
			}
			old, last = append(old, block[k]), i
		}
	}
	if last == unmatched || m[len(m)-1] < 0 {
		old = append(old, r.newLine(barrier, gone))
	}
	return old
}

// barrier is the text of a placeholder for unknown lines. No line of a text file is equal to it.
const barrier = "\x00"

// blocks returns for each of the lines the index of the same line in the state, or unmatched. It matches a block of
// equal lines if the block has minPlace letters. One line of the block must occur once in the state and once in the
// lines. "all" means that the lines are a whole file. A block at the beginning or at the end of both then needs no
// such line.
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
			matchEqual(m[from.b+1:at.b], state, lines[from.b+1:at.b], from.a+1, at.a)
		}
	}
	if n := len(anchors); n > 0 && !all {
		first, last := anchors[0], anchors[n-1]
		matchEqual(m[:first.b], state, lines[:first.b], first.a-first.b, first.a)
		matchEqual(m[last.b+1:], state, lines[last.b+1:], last.a+1, last.a+len(lines)-last.b)
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

// matchEqual matches the lines with the lines of the state from "from" to "to", if all of them are equal. If one
// differs, it matches none, because the equal ones may be other lines with the same text.
func matchEqual(m []int, state, lines []string, from, to int) {
	if from < 0 || to > len(state) || !slices.Equal(state[from:to], lines) {
		return
	}
	for j := range m {
		m[j] = from + j
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

// set sets the origin of a line, if the present file has the line.
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
	ids := make([]int, last) // of the lines between the first one and the last one
	for i := 1; i < last; i++ {
		id, ok := r.ids[lines[i]]
		if !ok {
			return 0, false
		}
		ids[i] = id
	}
	n := 0
	for i := 0; i+last < len(r.state); i++ {
		k := 1
		for k < last && r.state[i+k].id == ids[k] {
			k++
		}
		if k == last && strings.HasSuffix(r.state[i].text, lines[0]) &&
			strings.HasPrefix(r.state[i+last].text, lines[last]) {
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
		old[i] = r.newLine(text, gone)
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
	if head+tail != "" {
		old[0] = r.newLine(head+old[0].text, old[0].ref)
		end := len(old) - 1
		old[end] = r.newLine(old[end].text+tail, old[end].ref)
	}
	r.state = slices.Replace(r.state, at, at+last+1, old...)
}
