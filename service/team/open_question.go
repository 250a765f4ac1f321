package team

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team/hub"
)

// OpenQuestion is an open question of a worker.
type OpenQuestion struct {
	interaction.Question
	There hub.Question // as the hub has it; an answer is signed for this form
}

// OpenQuestions returns the open questions of a worker, or of all workers if the name is empty, oldest first. It omits
// unreadable questions, because a person could not know the meaning of an answer.
func OpenQuestions(ctx context.Context, t *Team, worker string) (list []OpenQuestion, err error) {
	all, err := t.Hub.Questions(ctx, worker, "")
	for _, p := range all {
		q := OpenQuestion{There: p}
		if json.Unmarshal(p.Question, &q.Question) != nil || string(q.ID) != p.ID || hub.CheckName(p.Worker) != nil {
			continue
		}
		q.Asked = p.Asked
		list = append(list, q)
	}
	return list, err
}

// Name returns the id of the question on this machine: 32 hex digits made of its worker and its whole content. A
// question that was changed on the hub has another name. The ids of local questions have another form.
func (q OpenQuestion) Name() event.InteractionID {
	sum := sha256.Sum256([]byte(q.There.Worker + "\n" + q.There.Digest()))
	return event.InteractionID(hex.EncodeToString(sum[:16]))
}

// From returns the sender and the project of the question's input. Both are empty if the named
// sender has not signed the input, because the values are then unproven.
func (q OpenQuestion) From(ctx context.Context, t *Team) (sender, project string, err error) {
	in, ok, err := t.Hub.Input(ctx, q.There.Input)
	if err != nil || !ok || !t.Signed(&in) {
		return "", "", err
	}
	return in.Sender, in.Project, nil
}

// ErrAway says that an answer was not submitted because the hub cannot be reached.
var ErrAway = errors.New("the team's hub cannot be reached")

// within limits the time to read from the hub, and the time until the hub has received an answer.
const within = 15 * time.Second

// Answer gives an answer to the question with this name. id is the id of the question at its worker. Answer returns nil
// if the answer counts. The answer is signed for the question as the hub has it now, which must have this name. If the
// question is closed, the error is nil only if the same answer was given before and counts. The other errors are those
// of Team.Answer, or ErrAway.
func (l *Link) Answer(ctx context.Context, name event.InteractionID, id string, a interaction.Answer) error {
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t, err := l.Get(soon)
	if err != nil {
		return errors.Join(ErrAway, err)
	}
	open, err := OpenQuestions(soon, t, "")
	if err != nil {
		return errors.Join(ErrAway, err)
	}
	for _, q := range open {
		if q.Name() != name {
			continue
		}
		if err := q.Check(a); errors.Is(err, interaction.ErrWord) {
			return &UncountedError{Why: message.Of(fmt.Errorf("%w: %s", err, q.Word))}
		} else if err != nil {
			return &UncountedError{Why: message.Of(err)}
		}
		return t.Answer(ctx, q.There, a)
	}
	return t.Came(soon, id, a)
}

// Ended returns the end of a question. id is the id of the question at its worker. nil means that the end is unknown.
func (l *Link) Ended(ctx context.Context, id string) *interaction.TakenError {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t, err := l.Get(ctx)
	if err != nil {
		return nil
	}
	end, err := t.Ended(ctx, id)
	if err != nil || end == nil {
		return nil
	}
	return &interaction.TakenError{Answer: end.Answer, Lapsed: end.Reason}
}
