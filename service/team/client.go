package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// maxID limits the length of an input's id, in bytes. The id of a step of an inner flow is long.
const maxID = 1000

// MaxInput limits the size of an input with its attachments, in bytes.
const MaxInput = 64 << 20

// Draft is an input before it is signed.
type Draft struct {
	ID          string // empty means that a new id is made
	Text        string
	Attachments []File
	Project     string
	Provider    string
	Labels      []string
	Worker      string          // the worker of the session
	Session     event.SessionID // the worker's session that the input continues; empty means a new one
	Permissions string          // empty means the worker's mode
	Priority    int
	NotBefore   time.Time
	Replaces    string
}

// File is an attachment.
type File struct {
	Name string
	Data []byte
}

// A FateError names inputs with an unknown fate. The server that received them cannot be asked, and the inputs are not
// sent to another server.
type FateError struct {
	IDs []string
	Err error
}

func (e *FateError) Error() string {
	return fmt.Sprintf("whether the hub took %s is not known: %v", strings.Join(e.IDs[:min(len(e.IDs), 3)], ", "), e.Err)
}

// Unwrap returns the error that interrupted the submission.
func (e *FateError) Unwrap() error { return e.Err }

// Submit sends inputs to the hub in one transaction. It returns for each id one of hub.New, hub.There or hub.Differs.
// After an interruption it looks for the inputs on the hub, and it submits them again only to the same generation. If
// it cannot find out whether the inputs arrived, the error is a *FateError. Submit fills in missing ids. After
// hub.ErrUnsure all inputs are on the hub, but perhaps not on its standby.
func (t *Team) Submit(ctx context.Context, drafts []Draft) (came map[string]string, err error) {
	return t.submitTo(ctx, t.State().Generation, drafts)
}

// submitTo is Submit for a generation of the hub.
func (t *Team) submitTo(ctx context.Context, generation string, drafts []Draft) (map[string]string, error) {
	if _, err := t.may(t.As, access.Ask); err != nil {
		return nil, err
	}
	batch := make([]hub.Input, len(drafts))
	for i := range drafts {
		var err error
		if batch[i], err = t.signDraft(&drafts[i], generation); err != nil {
			return nil, err
		}
	}
	return t.handOver(ctx, generation, batch)
}

// SubmitAgain submits an input that may have been submitted before. It returns the result of Submit. If a budget has
// refused the input, its owner has promised on its log that it never calls it. SubmitAgain then submits the same text
// under a further id, and writes this id to the draft. So the input is called at most once in all.
func (t *Team) SubmitAgain(ctx context.Context, d *Draft) (came string, err error) {
	return t.submitAgain(ctx, t.State().Generation, d)
}

func (t *Team) submitAgain(ctx context.Context, generation string, d *Draft) (came string, err error) {
	first := d.ID
	for n := 1; ; n++ {
		drafts := []Draft{*d}
		all, err := t.submitTo(ctx, generation, drafts)
		*d = drafts[0]
		if came = all[d.ID]; came != hub.There || err != nil && !errors.Is(err, hub.ErrUnsure) {
			return came, err
		}
		s, ok, serr := t.Status(ctx, d.ID)
		if serr != nil || !ok || !refusedByBudget(s) {
			return came, errors.Join(err, serr)
		}
		d.Replaces, d.ID = d.ID, renewal(first, n)
	}
}

// renewal returns the n-th further id of an input that a budget has refused n times.
func renewal(id string, n int) string {
	if n == 0 {
		return id
	}
	return fmt.Sprintf("%s/renewal-%d", id, n)
}

// newest returns the status of an input, or that of its newest renewal.
func (t *Team) newest(ctx context.Context, id string) (s hub.Status, ok bool, err error) {
	for n := 0; ; n++ {
		next, found, err := t.Status(ctx, renewal(id, n))
		if err != nil || !found {
			return s, ok, err
		}
		if s, ok = next, true; !refusedByBudget(s) {
			return s, ok, nil
		}
	}
}

// refusedByBudget reports whether a budget of the owner has refused the input. The owner has signed that.
func refusedByBudget(s hub.Status) bool {
	if s.State != hub.Refused {
		return false
	}
	r, err := ResultOf(s)
	return err == nil && r.Budget != nil
}

// signDraft makes a signed input of a draft.
func (t *Team) signDraft(d *Draft, generation string) (in hub.Input, err error) {
	if d.ID == "" {
		d.ID = uuid.Must(uuid.NewV7()).String()
	}
	if err := d.Check(); err != nil {
		return in, fmt.Errorf("input %q: %w", d.ID, err)
	}
	labels := slices.Clone(d.Labels)
	slices.Sort(labels)
	in = hub.Input{
		ID: d.ID, Generation: generation, Sender: t.As, Project: d.Project, Provider: d.Provider,
		Labels: slices.Compact(labels),
		Worker: d.Worker, Session: string(d.Session), Permissions: d.Permissions, Priority: d.Priority,
		NotBefore: d.NotBefore, Replaces: d.Replaces, Payload: [][]byte{[]byte(d.Text)},
	}
	for _, f := range d.Attachments {
		in.Attachments = append(in.Attachments, hub.Attachment{Name: f.Name, Size: len(f.Data), SHA256: hub.Hash(f.Data)})
		in.Payload = append(in.Payload, f.Data)
	}
	in.Digest = hub.InputDigest([]byte(d.Text), in.Attachments)
	in.Signature, err = t.signText(in.Text(t.State().ID))
	return in, err
}

// Size returns the number of bytes of the input with its attachments.
func (d *Draft) Size() int {
	size := len(d.Text)
	for _, f := range d.Attachments {
		size += len(f.Data)
	}
	return size
}

// Check returns the reason why an input cannot be submitted.
func (d *Draft) Check() error {
	size := d.Size()
	for _, f := range d.Attachments {
		if err := checkLine("the name of an attachment", f.Name, 200); err != nil {
			return err
		}
	}
	for _, l := range d.Labels {
		if err := hub.CheckName(l); err != nil {
			return err
		}
	}
	switch {
	case strings.TrimSpace(d.Text) == "" || !utf8.ValidString(d.Text) || strings.ContainsRune(d.Text, 0):
		return errors.New("its text must be UTF-8 without a NUL, and not empty")
	case size > MaxInput:
		return fmt.Errorf("it has %d bytes; the limit is %d", size, MaxInput)
	case d.Permissions != "" && !slices.Contains(byStrictness, policy.Mode(d.Permissions)):
		return fmt.Errorf("permissions are deny, ask, reads or allow, not %q", d.Permissions)
	case (d.Worker == "") != (d.Session == ""):
		return errors.New("a session is one of a worker's, and a worker is named with a session")
	case d.Project == "":
		return errors.New("it names no project")
	case d.Priority < math.MinInt32 || d.Priority > math.MaxInt32:
		return fmt.Errorf("a priority is from %d to %d, not %d", math.MinInt32, math.MaxInt32, d.Priority)
	}
	return errors.Join(checkLine("an id", d.ID, maxID), checkLine("a project", d.Project, 200),
		checkLine("a provider", d.Provider, 200), checkLine("an id", d.Replaces, maxID),
		checkLine("a worker", d.Worker, 63), checkLine("a session", string(d.Session), 200))
}

// fateLimit is the longest time of a search for an interrupted submission, and fateEvery is the pause between two
// attempts.
const (
	fateLimit = time.Minute
	fateEvery = 500 * time.Millisecond
)

// decided lists the errors after which it is known whether the hub has the inputs.
var decided = []error{hub.ErrUnsure, hub.ErrEnded, hub.ErrNotAdopted, hub.ErrNotAllowed, hub.ErrStandby, hub.ErrFull}

// handOver submits a batch. After an interruption it finds out whether the batch arrived.
func (t *Team) handOver(ctx context.Context, generation string, batch []hub.Input) (map[string]string, error) {
	came, err := t.Hub.Submit(ctx, generation, batch)
	if err == nil || slices.ContainsFunc(decided, func(known error) bool { return errors.Is(err, known) }) {
		return came, err
	}
	broken := err
	ids := make([]string, len(batch))
	for i, in := range batch {
		ids[i] = in.ID
	}
	limit, cancel := context.WithTimeout(ctx, fateLimit)
	defer cancel()
	for {
		state, err := t.Hub.Look(limit)
		switch {
		case err == nil && state.Generation == generation && state.Adopted:
			// This is the server that received the batch. It has the accepted inputs and recognises them, so the whole
			// batch can be submitted again.
			if came, err = t.Hub.Submit(limit, generation, batch); err == nil || errors.Is(err, hub.ErrUnsure) {
				for id, what := range came {
					if what == hub.There {
						came[id] = hub.New // this submission most likely put the input there
					}
				}
				return came, err
			}
		case err == nil:
			return t.foundElsewhere(limit, batch, ids, broken)
		}
		select {
		case <-limit.Done():
			return nil, &FateError{ids, broken}
		case <-time.After(fateEvery):
		}
	}
}

// foundElsewhere looks for a submission after the hub has moved to another server.
func (t *Team) foundElsewhere(ctx context.Context, batch []hub.Input, ids []string,
	broken error) (map[string]string, error) {
	digests, err := t.Hub.Find(ctx, ids)
	if err != nil {
		return nil, &FateError{ids, broken}
	}
	came := map[string]string{}
	var unknown []string
	for _, in := range batch {
		switch digests[in.ID] {
		case in.Digest:
			came[in.ID] = hub.New
		case "":
			unknown = append(unknown, in.ID)
		default:
			came[in.ID] = hub.Differs
		}
	}
	if unknown != nil {
		return came, &FateError{unknown, broken}
	}
	return came, nil
}

// Cancel stops an input: it withdraws a waiting input, and the owner stops a claimed one. The result "withdrawn" is
// true in the first case. After success, this machine's log names the person and the place of the stop. The log has no
// failed attempts, because a caller may try often until the hub can be reached.
func (t *Team) Cancel(ctx context.Context, id, by, where string) (withdrawn bool, err error) {
	if _, err := t.may(t.As, access.Ask); err != nil {
		return false, err
	}
	c := hub.Cancel{Input: id, Member: t.As}
	if c.Signature, err = t.signText(c.Text(t.State().ID)); err != nil {
		return false, err
	}
	if withdrawn, err = t.Hub.Withdraw(ctx, id, t.As); err == nil && !withdrawn {
		err = t.Hub.PutCancel(ctx, c)
	}
	if err != nil {
		return false, err
	}
	_, err = t.Log().Append(ctx, event.NewFact(event.TeamStopped, "perlica", event.Refs{},
		fact.TeamStopped{Input: id, By: by, Where: where, Signature: c.Signature}))
	return withdrawn, err
}

// Resolve writes this member's opinion about the outcome of an input to the hub.
func (t *Team) Resolve(ctx context.Context, id, text string) error {
	if _, err := t.may(t.As, access.Ask); err != nil {
		return err
	}
	signature, err := t.signText(hub.OpinionText(t.State().ID, id, t.As, text))
	if err != nil {
		return err
	}
	return t.Hub.Resolve(ctx, id, t.As, text, signature)
}

// An UncountedError is the reason why an answer does not count, in the words of the asking worker.
type UncountedError struct {
	Why       *message.Text
	Otherwise bool // this member gave another answer before
}

func (e *UncountedError) Error() string { return e.Why.Text }

// Tell returns the reason.
func (e *UncountedError) Tell() *message.Text { return e.Why }

// These are the reasons of an UncountedError, except the words of the asking worker.
var (
	whyClosed   = message.New("team.closed", "the question is closed")
	whyAnswered = message.New("team.answered-before", "it was answered before, by %s (%s)")
	whyOther    = message.New("team.other-answer", "%s has given another answer before")
	whyNoMember = message.New("team.no-member",
		"the asking worker %q is not a member of the team that this machine knows")
)

// answerWait limits the time in which a worker must confirm an answer.
const answerWait = 30 * time.Second

// byMembers is the field Where of each recorded answer that came over the hub.
const byMembers = "team"

// verdictOf returns nil if this member's answer to a question counts, otherwise an *UncountedError. The result "known"
// is false until the hub has the worker's verdict or the question's end. The end may arrive a moment before the
// verdict.
func (t *Team) verdictOf(given hub.Answer, end json.RawMessage) (known bool, err error) {
	switch {
	case given.Verdict != nil && *given.Verdict == "":
		return true, nil
	case given.Verdict != nil:
		return true, &UncountedError{Why: &message.Text{Text: *given.Verdict}}
	case end == nil:
		return false, nil
	}
	e := endOf(end)
	switch {
	case e.Answer == nil:
		return true, &UncountedError{Why: whyClosed}
	case e.Answer.By == t.As && e.Answer.Where == byMembers && e.Answer.Option == given.Option:
		return true, nil
	}
	return true, &UncountedError{Why: whyAnswered.With(e.Answer.By, e.Answer.Where)}
}

// endOf decodes the end of a question as its worker told it to the hub. An unreadable end still
// closes the question.
func endOf(end json.RawMessage) *QuestionEnd {
	e := new(QuestionEnd)
	_ = json.Unmarshal(end, e)
	return e
}

// Came returns nil if this member's answer to a closed question counts. Otherwise the error is an *UncountedError.
func (t *Team) Came(ctx context.Context, question string, a interaction.Answer) error {
	given, end, err := t.Hub.Verdict(ctx, question, t.As)
	if err != nil {
		return err
	}
	if given.Option != "" && (given.Option != a.Option || given.Text != a.Text) {
		return t.anotherAnswer()
	}
	known, err := t.verdictOf(given, end)
	if !known {
		err = &UncountedError{Why: whyClosed}
	}
	return err
}

// anotherAnswer returns the error for a different earlier answer of this member.
func (t *Team) anotherAnswer() error {
	return &UncountedError{whyOther.With(t.As), true}
}

// Ended returns the end of a question as its worker told it to the hub. nil means that the hub
// knows no end.
func (t *Team) Ended(ctx context.Context, question string) (*QuestionEnd, error) {
	_, end, err := t.Hub.Verdict(ctx, question, t.As)
	if err != nil || end == nil {
		return nil, err
	}
	return endOf(end), nil
}

// Answer proposes an answer to the question q, as it was shown, and waits for the worker's verdict. If the answer does
// not count, the error is an *UncountedError. If the worker gives no verdict in time, the error is
// context.DeadlineExceeded, and the answer may still count. This machine's log names the answering person and place
// before the answer is sent, because the worker learns only the member.
func (t *Team) Answer(ctx context.Context, q hub.Question, a interaction.Answer) error {
	if _, err := t.may(t.As, access.Approve); err != nil {
		return err
	}
	if _, ok := t.member(q.Worker); !ok {
		return &UncountedError{Why: whyNoMember.With(q.Worker)}
	}
	// The signed text needs no field Always, because a lasting yes is an option of its own, and the option is signed.
	p := hub.Answer{Question: q.ID, Member: t.As, Option: a.Option, Text: a.Text}
	var err error
	if p.Signature, err = t.signText(p.SignedText(t.State().ID, q.Worker, q.Digest())); err != nil {
		return err
	}
	_, err = t.Log().Append(ctx, event.NewFact(event.TeamAnswered, "perlica", event.Refs{}, fact.TeamAnswered{
		Worker: q.Worker, Input: q.Input, Question: q.ID, Digest: q.Digest(), Option: a.Option, By: a.By, Where: a.Where,
		Signature: p.Signature,
	}))
	if err != nil {
		return err
	}
	same, err := t.Hub.Propose(ctx, p)
	switch {
	case err != nil:
		return err
	case !same:
		return t.anotherAnswer()
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	for every := waitLeast; ; every = min(every*3/2, waitMost) {
		given, end, err := t.Hub.Verdict(ctx, q.ID, t.As)
		if err == nil {
			if known, err := t.verdictOf(given, end); known {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
