package hook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/policy"
)

// A Judge is a policy program of the configuration.
type Judge struct {
	program.Command
	Timeout time.Duration
	Origin  string
}

// Judges are the policy programs in the order of the configuration. The zero value has none.
type Judges struct {
	store *program.Store
	list  []Judge
	slots chan struct{}
}

// atOnce is the number of questions that programs judge at the same time. Further questions wait.
const atOnce = 4

// NewJudges returns the policy programs, which the store starts.
func NewJudges(store *program.Store, list []Judge) Judges {
	return Judges{store, list, make(chan struct{}, atOnce)}
}

// None reports whether there is no policy program.
func (j Judges) None() bool { return len(j.list) == 0 }

// Question is the question that a policy program gets as JSON. docs/policy-programs.md describes its members.
type Question struct {
	Version  int             `json:"version"` // 1
	Type     string          `json:"type"`    // "permission"
	Project  string          `json:"project"`
	Dir      string          `json:"dir"`
	Provider string          `json:"provider"`
	Session  event.SessionID `json:"session_id"`
	Run      event.RunID     `json:"run_id"`
	Input    event.InputID   `json:"input_id"`
	Mode     policy.Mode     `json:"mode"`
	Tier     string          `json:"tier"`
	// MayAllow means that the answer "allow" is accepted. Otherwise it means "ask".
	MayAllow bool                 `json:"may_allow"`
	Title    string               `json:"title"`
	Why      string               `json:"why,omitempty"`
	Subject  interaction.Subject  `json:"subject"`
	Options  []interaction.Option `json:"options"`

	// Limit and Roots are copied to the program.Start.
	Limit string   `json:"-"`
	Roots []string `json:"-"`
}

// Ruling is the answer of all policy programs to a question.
type Ruling struct {
	policy.Ruling
	Program *fact.ProgramRuling // nil if a person must be asked
}

// maxReason is the largest length of a program's reason, in bytes.
const maxReason = 1000

var (
	errAnswer  = message.New("hook.answer", "gave no valid answer: %s")
	errWord    = message.New("hook.word", "there is no decision %q")
	errReason  = message.New("hook.reason", "the reason has more than %d bytes")
	errSilence = message.New("hook.silence", "gave no answer")
)

// Ask asks the programs in order until one denies. It accepts an "allow" only if no program denies and none fails.
// When ctx ends, Ask ends the programs. Ask calls the function "failed" for each failure.
func (j Judges) Ask(ctx context.Context, q Question, failed func(fact.HookFailed)) (ruling Ruling) {
	q.Version, q.Type, q.Project = 1, "permission", j.store.Project
	input, err := json.Marshal(q)
	if err != nil { // cannot happen: the raw input was valid JSON on the wire
		return Ruling{}
	}
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		return Ruling{}
	}
	whole := true
	for _, judge := range j.list {
		said, res, err := j.askOne(ctx, judge, q, append(input, '\n'))
		if ctx.Err() != nil {
			return Ruling{}
		}
		if err != nil {
			whole = false
			failed(newFailure(KindPolicy, judge.Command, judge.Origin, err, res))
			continue
		}
		switch {
		case said.Effect == policy.Deny:
			return said
		case said.Effect == policy.Allow && ruling.Effect == "":
			ruling = said
		}
	}
	if !whole { // the failed program might have denied, so an "allow" of another one is ignored
		return Ruling{}
	}
	return ruling
}

// askOne asks one program.
func (j Judges) askOne(ctx context.Context, judge Judge, q Question, input []byte) (said Ruling,
	res program.Result, err error) {
	res, err = j.store.Run(ctx, program.Start{Command: judge.Command, Kind: KindPolicy, Input: input,
		Timeout: judge.Timeout, Limit: q.Limit, Roots: q.Roots})
	if err != nil {
		return said, res, err
	}
	if said.Ruling, err = readAnswer(res.Stdout); err != nil {
		return said, res, err
	}
	said.Ruling.Program = judge.Name()
	said.Program = &fact.ProgramRuling{Command: Shown(judge.Command), Files: recordedFiles(res.Files),
		Reason: said.Reason, DurationMS: res.Took.Milliseconds()}
	return said, res, nil
}

// readAnswer reads the answer of a policy program: one JSON object with the member decision, and perhaps the member
// reason.
func readAnswer(stdout []byte) (r policy.Ruling, err error) {
	var answer struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if len(stdout) == 0 {
		return r, errSilence
	}
	if err := strict.UnmarshalObject(stdout, &answer); err != nil {
		return r, errAnswer.With(err)
	}
	switch r = (policy.Ruling{Effect: policy.Effect(answer.Decision), Reason: answer.Reason}); {
	case r.Effect != policy.Allow && r.Effect != policy.Deny && r.Effect != policy.Ask:
		return policy.Ruling{}, errAnswer.With(errWord.With(answer.Decision))
	case len(r.Reason) > maxReason:
		return policy.Ruling{}, errAnswer.With(errReason.With(maxReason))
	}
	return r, nil
}

// newFailure returns the fact of a program's failure.
func newFailure(kind string, c program.Command, origin string, err error, res program.Result) fact.HookFailed {
	why := message.Of(err)
	return fact.HookFailed{Kind: kind, Command: Shown(c), Origin: origin, Why: why.Text, Coded: why.Coded,
		Stderr: res.Stderr}
}
