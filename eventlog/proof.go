package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
)

// A Proof shows that a log has an event. A reader of the proof does not need the log. The proof has the event, the
// hashes from its leaf to the root, and a signed checkpoint with that root.
//
// The text of a Proof is a https://c2sp.org/tlog-proof. Its extra data is the event as JSON. The leaf follows from
// the header of the event, and the header has the hash of the payload.
type Proof struct {
	Event      event.Event
	Path       []tlog.Hash
	Checkpoint evidence.Checkpoint
}

// ErrNoCheckpoint says that no signed checkpoint covers the event.
var ErrNoCheckpoint = message.New("eventlog.no-checkpoint", "no signed checkpoint covers this event")

const proofHeader = "c2sp.org/tlog-proof@v1"

// Prove makes a proof for the event seq with the newest signed checkpoint in the log. It reads some hundred rows,
// however long the log is. The error wraps ErrNoCheckpoint if no checkpoint covers the event, and ErrNotExist if the
// event does not exist.
func Prove(ctx context.Context, r *store.Reader, seq event.Seq) (Proof, error) {
	p, err := prove(ctx, r, seq)
	if err != nil {
		return p, fmt.Errorf("eventlog: prove event %d: %w", seq, err)
	}
	return p, nil
}

func prove(ctx context.Context, r *store.Reader, seq event.Seq) (p Proof, err error) {
	if p.Event, err = eventForProof(ctx, r, seq); err != nil {
		return p, err
	}
	c, ok, err := r.LastCheckpoint(ctx, int64(seq))
	if err != nil {
		return p, err
	}
	if !ok {
		return p, ErrNoCheckpoint
	}
	p.Checkpoint = c
	if p.Path, err = tlog.ProveRecord(c.Size, int64(seq)-1, r.Hashes(ctx)); err != nil {
		return p, err
	}
	if err := p.checkInclusion(); err != nil { // The signed tree differs from the log.
		return p, fmt.Errorf("%w: %w", disk.ErrCorrupt, err)
	}
	return p, nil
}

// eventForProof returns the event. It returns an error if the event is damaged or does not exist.
func eventForProof(ctx context.Context, r *store.Reader, seq event.Seq) (e event.Event, err error) {
	if seq < 1 {
		return e, disk.ErrNotExist
	}
	for e, err := range r.Events(ctx, event.Query{After: seq - 1, Until: seq}) {
		if damage := e.Damage(); damage != nil {
			return e, fmt.Errorf("%w: %w", disk.ErrCorrupt, damage)
		}
		return e, err
	}
	return e, disk.ErrNotExist
}

// Verify checks the proof and returns the signatures of known keys under the checkpoint. The payload, if present,
// must match the header. The checkpoint's tree must contain the leaf of the header. A known key with the name of the
// log must have signed the checkpoint. Otherwise the error wraps [evidence.ErrProof].
func (p Proof) Verify(known ...note.Verifier) ([]evidence.Signature, error) {
	if err := p.checkInclusion(); err != nil {
		return nil, fmt.Errorf("%w: %w", evidence.ErrProof, err)
	}
	return p.Checkpoint.Verify(known...)
}

// checkInclusion returns an error if the event is not in the checkpoint's tree.
func (p Proof) checkInclusion() error {
	e := p.Event
	switch {
	case e.Payload != nil && (int64(len(e.Payload)) != e.PayloadLen || sha256.Sum256(e.Payload) != e.PayloadSHA256):
		return errors.New("the payload is not the one that was recorded: its hash is another")
	case e.Leaf() != e.LeafHash:
		return errors.New("the header is not the one that was recorded: its hash is another")
	case int64(e.Seq) > p.Checkpoint.Size:
		return fmt.Errorf("the checkpoint covers %d events, and this is number %d", p.Checkpoint.Size, e.Seq)
	}
	if tlog.CheckRecord(p.Path, p.Checkpoint.Size, p.Checkpoint.Root, int64(e.Seq)-1, e.LeafHash) != nil {
		return errors.New("the event is not in the checkpoint's tree: the hashes lead to another root")
	}
	return nil
}

// Proofs are the proofs in one file. They prove one event, or all events of a question.
type Proofs []Proof

// MarshalText writes the proofs one after the other, separated by empty lines.
func (list Proofs) MarshalText() ([]byte, error) {
	var texts []string
	for _, p := range list {
		text, err := p.MarshalText()
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return []byte(strings.Join(texts, "\n")), nil
}

// ParseProofs reads a file of one or several proofs. The error wraps [evidence.ErrProof].
func ParseProofs(text string) (list Proofs, err error) {
	for i, part := range strings.Split(text, "\n\n"+proofHeader+"\n") {
		if i > 0 {
			part = proofHeader + "\n" + part
		}
		p, err := ParseProof(strings.TrimRight(part, "\n") + "\n")
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Verify returns the signatures of known keys under the newest checkpoint. Every proof must be valid, and all proofs
// must be of one log. Several proofs must prove one question as a whole. Otherwise the error wraps
// [evidence.ErrProof].
func (list Proofs) Verify(known ...note.Verifier) (signed []evidence.Signature, err error) {
	if err := list.Whole(); err != nil {
		return nil, fmt.Errorf("%w: %w", evidence.ErrProof, err)
	}
	newest := list.Newest()
	for _, p := range list {
		by, err := p.Verify(known...)
		switch {
		case err != nil:
			return nil, err
		case p.Checkpoint.Origin != newest.Origin:
			return nil, fmt.Errorf("%w: its events are of several logs", evidence.ErrProof)
		case p.Checkpoint.Size == newest.Size:
			signed = by
		}
	}
	return signed, nil
}

// Whole returns an error unless several proofs prove one question as a whole: its request, its end and the reply to
// the agent, in this order. Whole accepts a single proof of any event.
func (list Proofs) Whole() error {
	if len(list) <= 1 {
		return nil
	}
	steps := [][]event.Type{
		{event.InteractionRequested}, {event.InteractionAnswered, event.InteractionLapsed},
		{event.ReplySent, event.ReplyFailed},
	}
	for i, p := range list {
		if i >= len(steps) || !slices.Contains(steps[i], p.Event.Type) || p.Event.Interaction == "" ||
			p.Event.Interaction != list[0].Event.Interaction || i > 0 && p.Event.Seq <= list[i-1].Event.Seq {
			return fmt.Errorf("proof %d is not the next of one question: its request, its end and the reply, in this order", i+1)
		}
	}
	if len(list) < len(steps) {
		return errors.New("the proof of the reply to the agent is missing")
	}
	return nil
}

// Newest returns the checkpoint that covers the most events.
func (list Proofs) Newest() (newest evidence.Checkpoint) {
	for _, p := range list {
		if p.Checkpoint.Size >= newest.Size {
			newest = p.Checkpoint
		}
	}
	return newest
}

// MarshalText writes the proof in the format of https://c2sp.org/tlog-proof.
func (p Proof) MarshalText() ([]byte, error) {
	event, err := json.Marshal(p.Event)
	if err != nil {
		return nil, fmt.Errorf("eventlog: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString(event), p.Event.Seq-1)
	b.WriteString(evidence.FormatHashes(p.Path))
	fmt.Fprintf(&b, "\n%s", p.Checkpoint.Note)
	return []byte(b.String()), nil
}

// ParseProof parses a proof of an event. It does not verify the proof; Verify does. The error wraps
// [evidence.ErrProof].
func ParseProof(text string) (p Proof, err error) {
	head, text, _ := strings.Cut(text, "\n")
	extra, text, _ := strings.Cut(text, "\n")
	index, text, _ := strings.Cut(text, "\n")
	if head != proofHeader {
		return p, fmt.Errorf("%w: it begins with neither %q nor %q", evidence.ErrProof, proofHeader,
			evidence.ConsistencyHeader)
	}
	data, ok := strings.CutPrefix(extra, "extra ")
	if !ok {
		return p, fmt.Errorf("%w: it holds no event", evidence.ErrProof)
	}
	event, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil {
		return p, fmt.Errorf("%w: its event is not base64: %w", evidence.ErrProof, err)
	}
	// This calls UnmarshalJSON of Event, which refuses unknown and duplicate members.
	if err := json.Unmarshal(event, &p.Event); err != nil {
		return p, fmt.Errorf("%w: its event: %w", evidence.ErrProof, err)
	}
	if index != "index "+strconv.FormatInt(int64(p.Event.Seq-1), 10) {
		return p, fmt.Errorf("%w: the event is number %d, but it says %q", evidence.ErrProof, p.Event.Seq, index)
	}
	if p.Path, text, err = evidence.ParseHashes(text); err != nil {
		return p, err
	}
	if p.Checkpoint, err = evidence.ParseCheckpoint(text); err != nil {
		return p, fmt.Errorf("%w: %w", evidence.ErrProof, err)
	}
	return p, nil
}

// ProveConsistency proves that the checkpoint "later" includes all events of the checkpoint "earlier". Both must be
// checkpoints of this log. Otherwise the error wraps [evidence.ErrCheckpoint].
func ProveConsistency(ctx context.Context, r *store.Reader, earlier,
	later evidence.Checkpoint) (p evidence.ConsistencyProof, err error) {
	p.Old, p.New = earlier, later
	for _, c := range []evidence.Checkpoint{earlier, later} {
		if err := r.IsOwn(ctx, c); err != nil {
			return p, fmt.Errorf("eventlog: %w", err)
		}
	}
	if earlier.Size < 1 || earlier.Size > later.Size {
		return p, fmt.Errorf("eventlog: prove consistency: %w that comes before one of %d events: it is of %d",
			evidence.ErrCheckpoint, later.Size, earlier.Size)
	}
	if p.Path, err = tlog.ProveTree(later.Size, earlier.Size, r.Hashes(ctx)); err != nil {
		return p, fmt.Errorf("eventlog: prove consistency: %w", err)
	}
	return p, nil
}
