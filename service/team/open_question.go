package team

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team/hub"
)

// OpenQuestion is an open question of a worker's.
type OpenQuestion struct {
	interaction.Question
	There hub.Question // as the hub has it: what an answer is signed for
}

// OpenQuestions returns the open questions of a worker, or of all if it is empty, oldest first. One that cannot be read is left out: nobody could
// say what is answered.
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

// Name is what the question is called where it stands among those of this machine: 32 hex digits that are made of its worker
// and of all that it says. One that somebody changed on the hub is another one, and the id of no question of a run is like it.
func (q OpenQuestion) Name() event.InteractionID {
	sum := sha256.Sum256([]byte(q.There.Worker + "\n" + q.There.Digest()))
	return event.InteractionID(hex.EncodeToString(sum[:16]))
}

// From returns who submitted the input that the question is about, and for which project. Both are empty where the input is
// not signed by whom it names: then they are nobody's words.
func (q OpenQuestion) From(ctx context.Context, t *Team) (sender, project string, err error) {
	in, ok, err := t.Hub.Input(ctx, q.There.Input)
	if err != nil || !ok || !t.Signed(&in) {
		return "", "", err
	}
	return in.Sender, in.Project, nil
}

// ErrAway says that an answer was not handed over, since the hub cannot be reached.
var ErrAway = errors.New("the team's hub cannot be reached")

// within is how long a look at the hub may take, and an answer before its worker has it.
const within = 15 * time.Second

// Answer gives an answer to the question of that name, which its worker calls id, and returns nil when it counts. It is signed for
// the question as the hub has it now, if that is the one of the name; to one that is not open any more the error is
// nil where this very answer was given before and counts. Else the errors are those of team.Team.Answer, or ErrAway.
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
			return &UncountedError{Why: err.Error() + ": " + q.Word}
		} else if err != nil {
			return &UncountedError{Why: err.Error()}
		}
		return t.Answer(ctx, q.There, a)
	}
	return t.Came(soon, id, a)
}

// Ended returns how a question ended that its worker calls id; nil: that is not known.
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
