package report

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // for the parts of the file
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// VerifiableOptions are the options of WriteVerifiable.
type VerifiableOptions struct {
	// Mask reports whether a payload must be left out. Nil means that no payload is left out.
	Mask func(payload []byte) bool
	// Keys returns the verifier keys that the writer knows for a log.
	Keys func(origin string) ([]string, error)
}

// VerifiableSummary has the numbers of events that a verifiable report has and does not have.
type VerifiableSummary struct {
	// Events is the number of events in the report. Left is the number of their payloads that the report leaves out.
	Events, Left int
	// Newer is the number of newer events on the log, which no signed checkpoint covers.
	Newer int64
}

// ErrNoEvents says that the log has no selected event.
var ErrNoEvents = message.New("report.no-events", "the log has no event in this period")

// ErrNothingSigned says that no signed checkpoint covers the selected events.
var ErrNothingSigned = message.New("report.nothing-signed", "no signed checkpoint covers the events of the report")

// maxShown is the longest payload that a verifiable report contains, in bytes.
const maxShown = 16 << 10

// maxDepth is the maximum nesting of JSON in a verifiable report, because the verifiers' parsers have different limits.
const maxDepth = 50

// WriteVerifiable writes one HTML file for an auditor. The file has the headers of the selected events, the payloads of
// the facts that it shows, and a signed checkpoint. Its visible text follows from these data. The script in the file
// and docs/check-report.py check both without Perlica.
//
// The file covers events up to the newest signed checkpoint. If there is no such checkpoint, the error wraps
// ErrNothingSigned. If the log has no selected event, the error wraps ErrNoEvents. If the log differs from its hashes,
// the error wraps [disk.ErrCorrupt].
func WriteVerifiable(ctx context.Context, w io.Writer, log *store.Reader, q event.Query,
	opt VerifiableOptions) (VerifiableSummary, error) {
	v := verifiable{log: log, opt: opt, words: readWords(), stems: map[stem]int{}}
	if err := v.read(ctx, q); err != nil {
		return VerifiableSummary{}, fmt.Errorf("report: %w", err)
	}
	data, err := json.Marshal(v.data)
	if err != nil {
		return VerifiableSummary{}, fmt.Errorf("report: %w", err)
	}
	p := verifiablePage{words: v.words, events: v.events, head: v.head, key: v.data.Key}
	head, middle, tail := shell()
	for _, part := range []string{head, p.render(), middle, string(data), tail} {
		if _, err := io.WriteString(w, part); err != nil {
			return VerifiableSummary{}, err
		}
	}
	return VerifiableSummary{Events: len(v.events), Left: v.left, Newer: v.newer}, nil
}

//go:embed assets/report.html
var shellHTML string

//go:embed assets/report.css
var shellCSS string

//go:embed assets/report.js
var shellScript string

//go:embed assets/report.json
var shellWords string

// shell returns the parts of the file that are the same in every report: before the visible text, between the text and
// the data, and after the data.
func shell() (head, middle, tail string) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	// The script compares the page around it with the page that a browser makes of the source without the changing parts.
	_, around, _ := strings.Cut(strings.NewReplacer("\nBODY", "", "DATA", "", "SCRIPTTEXT", "", " 'SCRIPT'", "",
		"STYLE", hash(shellCSS), "CSS", shellCSS, "TABLE", shellWords).Replace(shellHTML), "<!doctype html>\n")
	sum := sha256.Sum256([]byte(around + "html,HTML"))
	script := "\n" + strings.Replace(shellScript, "AROUND", fmt.Sprintf("%x", sum), 1)
	page := strings.NewReplacer("SCRIPTTEXT", script, "SCRIPT", hash(script), "STYLE", hash(shellCSS), "CSS", shellCSS,
		"TABLE", shellWords).Replace(shellHTML)
	head, rest, _ := strings.Cut(page, "BODY</main>")
	middle, tail, _ = strings.Cut(rest, "DATA</script>")
	return head, "</main>" + middle, "</script>" + tail
}

// wordTable has the texts of the report. The file contains it as JSON, so that the verifiers use the same texts.
type wordTable struct {
	Types  map[event.Type]wordsOfType `json:"types"`
	Kept   []event.Type               `json:"kept"` // the types whose payloads no pruning removes
	Counts []wordsOfCount             `json:"counts"`
	Text   map[string]string          `json:"text"`
}

// wordsOfType has the title of a type of events, and the lines that the report shows of each.
type wordsOfType struct {
	title string
	lines []wordsOfLine
}

// wordsOfLine describes a shown line: a label, and each value at a path of the payload. Without parts, the value itself
// is shown. Otherwise parts has pairs: the name of a member of the value, and the text before it. joiner separates
// them.
type wordsOfLine struct {
	label, path string
	parts       [][2]string
	joiner      string
}

// wordsOfCount has the label of a count and the types of the counted events.
type wordsOfCount struct {
	label string
	types []event.Type
}

func (w *wordsOfType) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	w.lines = make([]wordsOfLine, len(all)-1)
	into := []any{&w.title}
	for i := range w.lines {
		into = append(into, &w.lines[i])
	}
	return json.Unmarshal(data, &into)
}

func (w *wordsOfLine) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&w.label, &w.path, &w.parts, &w.joiner})
}

func (w *wordsOfCount) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&w.label, &w.types})
}

func readWords() (w wordTable) {
	if err := json.Unmarshal([]byte(shellWords), &w); err != nil {
		panic(fmt.Sprintf("report: %v", err)) // the table is a part of the program
	}
	return w
}

// verifiable collects the data of one file.
type verifiable struct {
	log   *store.Reader
	opt   VerifiableOptions
	words wordTable

	data struct {
		Key    string          `json:"key"`
		Note   string          `json:"note"`
		Stems  []stem          `json:"stems"`
		Events []verifiableRow `json:"events"`
	}
	stems  map[stem]int // indexes in data.Stems
	tree   tree.Range
	head   evidence.Checkpoint
	events []shownEvent
	left   int
	newer  int64
}

// stem has the part of a header that many events share: the type, class, actor, writer and context, and the ids of
// the session, conversation, run, trace, question and input.
type stem [11]string

// verifiableRow is an event: the index of its stem, its time, its id, and the length and the hash of its payload. If
// the report shows the type, the payload follows, or the reason why it was left out. A row of two elements replaces the
// events of a subtree of the log's tree. It has the level and the hash of the subtree.
type verifiableRow []any

// shownEvent is an event of a verifiable report.
type shownEvent struct {
	event.Event
	value any    // the payload as decoded JSON; nil if the payload is not shown
	why   string // the reason why the payload of a shown type was left out
	// prunedBy is the number of a shown event that records the removal of the payload, or 0.
	prunedBy event.Seq
}

func (v *verifiable) read(ctx context.Context, q event.Query) error {
	size, _, err := v.log.Head(ctx)
	if err != nil {
		return err
	}
	var ok bool
	if v.head, ok, err = v.log.NewestCheckpoint(ctx, 1, size); err != nil {
		return err
	}
	if !ok {
		return v.nothing(ctx, q)
	}
	err = v.log.IsOwn(ctx, v.head)
	if errors.Is(err, evidence.ErrCheckpoint) {
		return fmt.Errorf("%w: %w", disk.ErrCorrupt, err)
	}
	if err != nil {
		return err
	}
	v.newer = size - v.head.Size
	if v.data.Note, v.data.Key, err = v.signature(); err != nil {
		return err
	}
	signed := q
	if last := event.Seq(v.head.Size); q.Until == 0 || q.Until > last {
		signed.Until = last
	}
	for e, err := range v.log.Events(ctx, signed) {
		if err != nil {
			return err
		}
		if err := v.addAbsent(ctx, int64(e.Seq)-1); err != nil {
			return err
		}
		if err := v.add(e); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	if len(v.events) == 0 {
		return v.nothing(ctx, q)
	}
	if err := v.addAbsent(ctx, v.head.Size); err != nil {
		return err
	}
	if v.tree.Root() != v.head.Root {
		return fmt.Errorf("%w: its events do not lead to its root", disk.ErrCorrupt)
	}
	return nil
}

// nothing returns the error for a report without events.
func (v *verifiable) nothing(ctx context.Context, q event.Query) error {
	for _, err := range v.log.Events(ctx, q) {
		return cmp.Or(err, error(ErrNothingSigned))
	}
	return ErrNoEvents
}

// signature returns the newest checkpoint with one signature of the log, and the verifier key of that signature. The
// key is "" if the writer does not know it. Other signatures are left out, because a reader with one key cannot check
// them.
func (v *verifiable) signature() (text, key string, err error) {
	known, err := v.opt.Keys(v.head.Origin)
	if err != nil {
		return "", "", err
	}
	key = v.head.SignedBy(known)
	want := "\u2014 " + v.head.Origin + " "
	body, lines, _ := strings.Cut(v.head.Note, "\n\n")
	for line := range strings.Lines(lines) {
		sig, ok := strings.CutPrefix(line, want)
		if !ok {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(sig, "\n"))
		if err != nil || len(raw) < 4 {
			continue
		}
		if id := fmt.Sprintf("%x", raw[:4]); key == "" || strings.HasPrefix(key, v.head.Origin+"+"+id+"+") {
			return body + "\n\n" + line, key, nil
		}
	}
	return "", "", ErrNothingSigned
}

// addAbsent adds the hashes of the events that are not selected, up to the event with the number "to".
func (v *verifiable) addAbsent(ctx context.Context, to int64) error {
	for v.tree.Size < to {
		level := tree.Widest(v.tree.Size, to)
		hash, err := v.log.Hashes(ctx).Subtree(level, v.tree.Size>>level)
		if err != nil {
			return err
		}
		v.tree.AddSubtree(level, hash)
		v.data.Events = append(v.data.Events, verifiableRow{level, hash.String()})
	}
	return nil
}

// add adds an event.
func (v *verifiable) add(e event.Event) error {
	if damage := e.Damage(); damage != nil {
		return fmt.Errorf("%w: %w", disk.ErrCorrupt, damage)
	}
	s := stem{string(e.Type), string(e.Class), e.Actor, e.Writer, e.Context, string(e.Session), string(e.Conversation),
		string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input)}
	for _, text := range append(s[:], e.ID) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q in its header is not UTF-8, and cannot be written as JSON", text)
		}
	}
	index, ok := v.stems[s]
	if !ok {
		index = len(v.stems)
		v.stems[s] = index
		v.data.Stems = append(v.data.Stems, s)
	}
	row := verifiableRow{index, fmt.Sprint(e.Time.UnixNano()), e.ID, e.PayloadLen,
		base64.StdEncoding.EncodeToString(e.PayloadSHA256[:])}
	shown := shownEvent{Event: e}
	if _, ok := v.words.Types[e.Type]; ok {
		if shown.value, shown.why = v.payload(e); shown.why != "" {
			v.left++
			row = append(row, shown.why)
		} else {
			row = append(row, string(e.Payload))
		}
	}
	shown.Payload = nil
	v.tree.Add(e.LeafHash)
	v.events = append(v.events, shown)
	v.data.Events = append(v.data.Events, row)
	return nil
}

// payload returns the decoded payload of a fact, or the reason why the report leaves it out.
func (v *verifiable) payload(e event.Event) (value any, why string) {
	switch {
	case e.Payload == nil:
		return nil, cmp.Or(e.Withheld, event.Pruned)
	case v.opt.Mask != nil && v.opt.Mask(e.Payload):
		return nil, event.Masked
	case len(e.Payload) > maxShown:
		return nil, "large"
	case !utf8.Valid(e.Payload), !bytes.HasPrefix(e.Payload, []byte("{")), json.Unmarshal(e.Payload, &value) != nil,
		deeper(value, maxDepth):
		return nil, "unread"
	}
	return value, ""
}

// deeper reports whether a JSON value is nested deeper than a limit.
func deeper(value any, limit int) bool {
	if limit == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, one := range v {
			if deeper(one, limit-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return deeper(one, limit-1) })
	}
	return false
}
