package log

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logProveCommand() *cobra.Command {
	var out string
	var consistency bool
	cmd := &cobra.Command{
		Use: "prove SEQ|EVENT-ID|QUESTION | --consistency OLD [NEW]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Make a proof of an event, for somebody without the log",
		Long: `Make a file that proves one event to somebody without the log. The reader of the file needs
only your verifier key. The file has the event, the hashes from the event to the root of the
log's tree, and the newest signed checkpoint that covers the event. Its format is
https://c2sp.org/tlog-proof. If the event's payload was removed, the file proves the rest of
the event: the header with the payload's hash.

QUESTION is the id of a question or a part of it, as 'perlica log show' and 'perlica pending'
print it. The file then proves the request, the end of the question and the reply to the
agent. If the question is still open, the file proves the request.

With --consistency the file proves that no event was changed or removed between two
checkpoints: the file OLD, and the file NEW or the newest checkpoint of the log. Checkpoints
are signed notes, as 'perlica log checkpoint' prints them.

'perlica log verify --proof FILE --key KEY' checks both kinds of files without the log.`,
		Example: `  perlica log prove 42 -o event-42.tlog-proof
  perlica log prove 5e6f7a8b -o question.tlog-proof
  perlica log prove --consistency kept-elsewhere.txt -o since-then.proof`,
		Args: func(cmd *cobra.Command, args []string) error {
			if consistency {
				return frame.Between(1, "OLD", "NEW")(cmd, args)
			}
			return frame.Exactly("SEQ, EVENT-ID or QUESTION")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
				proof, by, err := makeProof(cmd.Context(), log, consistency, args)
				if err != nil {
					return err
				}
				text, err := proof.MarshalText()
				if err != nil {
					return err
				}
				return a.putProof(text, out, keyFlags(by, p))
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "write it to this `FILE` instead of standard output")
	fl.BoolVar(&consistency, "consistency", false, "prove that a later checkpoint contains all events of an earlier one")
	return cmd
}

// keyFlags returns the flags with which a user verifies a proof. They name the keys that signed the proof's
// checkpoints, and older checkpoints may have older keys. If another user's key has signed, keyFlags returns --key
// KEY, because it does not know this key.
func keyFlags(by []evidence.Checkpoint, p *project.Project) string {
	var flags []string
	keys, err := evidence.ReadKeys(p.Dirs.KeyDir())
	for _, c := range by {
		key := ""
		if err == nil {
			key = c.SignedBy(keys.VerifierKeys(c.Origin))
		}
		if flag := " --key " + cmp.Or(key, "KEY"); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return strings.Join(flags, "")
}

// makeProof makes a proof from the arguments. It also returns the checkpoints that the proof contains.
func makeProof(ctx context.Context, log *store.Reader, consistency bool, args []string) (encoding.TextMarshaler,
	[]evidence.Checkpoint, error) {
	if consistency {
		return proveConsistency(ctx, log, args)
	}
	seqs, err := findSeqs(ctx, log, args[0])
	if err != nil {
		return nil, nil, err
	}
	var list eventlog.Proofs
	for _, seq := range seqs {
		p, err := eventlog.Prove(ctx, log, seq)
		switch {
		case errors.Is(err, eventlog.ErrNoCheckpoint):
			return nil, nil, frame.WithHint(err,
				"'perlica log checkpoint' makes one; the end of every run does, too, where there is a key")
		case err != nil:
			return nil, nil, err
		}
		list = append(list, p)
	}
	if err := list.Whole(); err != nil {
		return nil, nil, frame.WithHint(fmt.Errorf("the question has no reply on the log: %w", err),
			"'perlica log prove SEQ' proves one event; its request is event %d, its end event %d", seqs[0], seqs[1])
	}
	return list, []evidence.Checkpoint{list.Newest()}, nil
}

// ofQuestion are the types of the events that prove a question: the request, its end and the reply to the agent.
var ofQuestion = []event.Type{
	event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed, event.ReplySent, event.ReplyFailed,
}

// findSeqs returns the numbers of the events that ref names. ref is an event's number or id, or the id of a
// question.
func findSeqs(ctx context.Context, log *store.Reader, ref string) (list []event.Seq, err error) {
	n, err := strconv.ParseInt(ref, 10, 64)
	if err == nil && n > 0 {
		_, there, err := log.Last(ctx, event.Query{After: event.Seq(n - 1), Until: event.Seq(n)})
		if there || err != nil {
			return []event.Seq{event.Seq(n)}, err
		}
	} else if seq, err := log.Find(ctx, ref); !errors.Is(err, fs.ErrNotExist) {
		return []event.Seq{seq}, err
	}
	q, err := report.FindQuestion(ctx, log, ref)
	switch {
	case errors.Is(err, report.ErrNoQuestion):
		return nil, frame.WithHint(fmt.Errorf("there is no event and no question %q on the log", ref),
			"'perlica log tail' shows the numbers of events, 'perlica log show' the ids of questions")
	case errors.Is(err, report.ErrAmbiguousQuestion):
		return nil, frame.WithHint(err, "give more of the id, from its end")
	case err != nil:
		return nil, err
	}
	for e, err := range log.Events(ctx, event.Query{Interaction: q.ID, Types: ofQuestion}) {
		if err != nil {
			return nil, err
		}
		list = append(list, e.Seq)
	}
	return list, nil
}

func proveConsistency(ctx context.Context, log *store.Reader, files []string) (encoding.TextMarshaler,
	[]evidence.Checkpoint, error) {
	list := make([]evidence.Checkpoint, 2)
	for i, name := range files {
		b, err := readGiven(name, maxNote)
		if err != nil {
			return nil, nil, err
		}
		if list[i], err = parseKept(b); err != nil {
			return nil, nil, frame.WithHint(fmt.Errorf("%s: %w", name, err),
				"it must be a signed note as 'perlica log checkpoint' prints it")
		}
	}
	if len(files) == 1 {
		c, ok, err := log.LastCheckpoint(ctx, list[0].Size)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			return nil, nil, frame.WithHint(fmt.Errorf("no checkpoint on the log covers the %d events of %s", list[0].Size,
				files[0]),
				"'perlica log checkpoint' makes one; if there are fewer events by now, 'perlica log verify' says what was lost")
		}
		list[1] = c
	}
	p, err := eventlog.ProveConsistency(ctx, log, list[0], list[1])
	switch {
	case errors.Is(err, evidence.ErrCheckpoint) && list[0].Size > list[1].Size:
		err = frame.WithHint(err, "the earlier one comes first; if %s is, the log has become shorter: keep both", files[0])
	case errors.Is(err, evidence.ErrCheckpoint):
		err = frame.WithHint(err,
			"a checkpoint that the log no longer fits is evidence: keep it. --context chooses another log")
	}
	if err != nil {
		return nil, nil, err
	}
	return p, list, nil
}

// putProof writes a proof to a file or to standard output. It tells the user which keys verify the proof.
func (a *app) putProof(text []byte, file, keys string) error {
	write := func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
	if file == "" || file == "-" {
		return a.Write(write)
	}
	// The file gets mode 0600, because the proof may contain private text.
	if err := a.WriteTo(file, write); err != nil {
		return err
	}
	a.Note("wrote " + file + "; anyone who has it checks it with: perlica log verify --proof FILE" + keys)
	return nil
}

type checkedProof struct {
	File    string           `json:"file"`
	OK      bool             `json:"ok"`
	Damage  string           `json:"damage,omitempty"`
	Kind    string           `json:"kind,omitempty"` // "event", "events" or "consistency"
	Origin  string           `json:"origin,omitempty"`
	Size    int64            `json:"size,omitempty"`     // size of the checkpoint, or of the later checkpoint of two
	OldSize int64            `json:"old_size,omitempty"` // size of the earlier checkpoint
	Root    string           `json:"root,omitempty"`     // base64
	OwnKey  bool             `json:"own_key"`            // true if the proof was checked with the user's own keys
	Signed  []proofSignature `json:"signatures,omitempty"`
	Event   *event.Event     `json:"event,omitempty"`  // for the kind "event"
	Events  []event.Event    `json:"events,omitempty"` // for the kind "events"
}

type proofSignature struct {
	Name string     `json:"name"`
	Time *time.Time `json:"time,omitempty"` // time that a witness stated
}

// verifyProof checks a proof of the command log prove with the given verifier keys. Without such keys it uses the
// user's own keys.
func (a *app) verifyProof(file string, keys []string, asJSON bool) error {
	known, err := verifiers(keys, "--key")
	if err != nil {
		return err
	}
	b, err := a.readNamed(file, maxProof)
	if err != nil {
		return err
	}
	v := checkedProof{File: file}
	err = a.checkProof(&v, normalizeNote(b), known)
	if err != nil && !errors.Is(err, evidence.ErrProof) {
		return err
	}
	if v.OK = err == nil; !v.OK {
		v.Damage = err.Error()
	}
	if err = a.Show(asJSON, v, v.writeText); err == nil && !v.OK {
		err = frame.ExitFailure.With(nil)
	}
	return err
}

// checkProof recognises the kind of a proof, verifies it and writes the proven facts to v.
func (a *app) checkProof(v *checkedProof, text string, known []note.Verifier) (err error) {
	var verify func(...note.Verifier) ([]evidence.Signature, error)
	var head evidence.Checkpoint
	if evidence.IsConsistencyProof(text) {
		p, err := evidence.ParseConsistencyProof(text)
		if err != nil {
			return err
		}
		verify, head = p.Verify, p.New
		v.Kind, v.OldSize = "consistency", p.Old.Size
	} else {
		list, err := eventlog.ParseProofs(text)
		if err != nil {
			return err
		}
		verify, head = list.Verify, list.Newest()
		if v.Kind, v.Event = "event", &list[0].Event; len(list) > 1 {
			v.Kind, v.Event = "events", nil
			for _, p := range list {
				v.Events = append(v.Events, p.Event)
			}
		}
	}
	if known == nil {
		if known, err = a.ownVerifiers(head.Origin); err != nil {
			return err
		}
		v.OwnKey = true
	}
	signed, err := verify(known...)
	if err != nil {
		v.Event, v.Events = nil, nil // Without a valid signature nothing was proven.
		return err
	}
	v.Origin, v.Size, v.Root = head.Origin, head.Size, head.Root.String()
	for _, s := range signed {
		by := proofSignature{Name: s.Name}
		if !s.Time.IsZero() {
			by.Time = &s.Time
		}
		v.Signed = append(v.Signed, by)
	}
	return nil
}

// ownVerifiers returns the verifier keys of the user's own key file for a log's origin.
func (a *app) ownVerifiers(origin string) ([]note.Verifier, error) {
	p, err := a.LocateToRead()
	if err != nil {
		return nil, err
	}
	k, err := evidence.ReadKeys(p.Dirs.KeyDir())
	if err != nil {
		return nil, err
	}
	list := k.Verifiers(origin)
	if len(list) == 0 {
		return nil, frame.WithHint(frame.UsageErrorf("--key is missing, and there is no key of yours"),
			"whose log it is gets the key from 'perlica log key show'")
	}
	return list, nil
}

func (v checkedProof) writeText(w io.Writer, s screen.Styles) error {
	file := screen.Sanitize(v.File)
	if !v.OK {
		_, err := fmt.Fprintf(w, "%s %s\n%s\n", s.Red("NOT PROVEN"), file, screen.Sanitize(v.Damage))
		return err
	}
	_, err := fmt.Fprintf(w, "%s %s\nlog:        %s\ncheckpoint: %d events, root %s\n", s.Green("PROVEN"), file,
		screen.Sanitize(v.Origin), v.Size, v.Root)
	for _, by := range v.Signed {
		how := "signed by:  " + by.Name
		switch {
		case by.Time != nil:
			how = "cosigned:   " + by.Name + ", " + by.Time.Format(time.RFC3339)
		case v.OwnKey:
			how += " (the key in your own file: --key checks by one that you were given)"
		}
		if err == nil {
			_, err = fmt.Fprintln(w, screen.Sanitize(how))
		}
	}
	if err != nil {
		return err
	}
	if v.Kind == "consistency" {
		_, err = fmt.Fprintf(w, "The log of %d events holds all %d events of the earlier checkpoint, unchanged.\n", v.Size,
			v.OldSize)
		return err
	}
	events := v.Events
	if v.Event != nil {
		events = []event.Event{*v.Event}
	}
	for i, e := range events {
		said := fmt.Sprintf("Event %d is on the log exactly as it stands here.", e.Seq)
		if e.Payload == nil {
			said = fmt.Sprintf(
				"Event %d is on the log with this header. Its payload is not in the proof (%s): its length and\nhash are "+
					"proven, and anyone who has the bytes can compare them.", e.Seq, screen.Sanitize(e.Withheld))
		}
		if i > 0 {
			said = "\n" + said
		}
		if _, err := fmt.Fprintf(w, "%s\n\n%s\n", said, eventInFull(e, s)); err != nil {
			return err
		}
	}
	return nil
}
