package team

import (
	"context"
	"encoding/json"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team/proposal"
)

// Question is an open question of a worker's.
type Question struct {
	interaction.Question
	There proposal.Question // as the hub has it: what an answer is signed for
}

// Questions returns the open questions of all workers, oldest first. One that cannot be read is left out: nobody could
// say what is answered.
func (t *Team) Questions(ctx context.Context) (list []Question, err error) {
	all, err := t.Hub.Questions(ctx, "")
	for _, p := range all {
		q := Question{There: p}
		if json.Unmarshal(p.Question, &q.Question) != nil || string(q.ID) != p.ID || proposal.CheckName(p.Worker) != nil {
			continue
		}
		q.Asked = p.Asked
		list = append(list, q)
	}
	return list, err
}

// Sender returns the input that a question is about, without its payload. signed is false where it is not signed by the
// member that it names, with any key that this machine knew of it: then nothing in it is anybody's word.
func (t *Team) Sender(ctx context.Context, input string) (in proposal.Input, signed bool, err error) {
	in, ok, err := t.Hub.Input(ctx, input)
	if err != nil || !ok {
		return in, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text := in.Text(t.state.ID)
	for _, key := range t.had[in.Sender] {
		signed = signed || proposal.Verify(key, text, in.Signature)
	}
	return in, signed, nil
}
