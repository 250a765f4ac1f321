package hindsight

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy"
)

// Trial is the result of judging recorded questions again.
type Trial struct {
	Questions int `json:"questions"` // questions to a person
	Saved     int `json:"saved"`     // questions to a person that a rule decides now
	Against   int `json:"against"`   // saved questions that a person denied and a rule allows now
	Decisions int `json:"decisions"` // decisions of Perlica without a person
	Changed   int `json:"changed"`   // decisions of Perlica that are different now
	Unjudged  int `json:"unjudged"`  // questions and decisions that cannot be judged again
	// List has the saved questions, the changed decisions, and the questions that cannot be judged, oldest first.
	List []Judged `json:"list"`
}

// Judged is a recorded question with its new decision.
type Judged struct {
	Run         event.RunID         `json:"run_id"`
	Session     event.SessionID     `json:"session_id"`
	Interaction event.InteractionID `json:"interaction_id,omitempty"`
	Project     string              `json:"project"`
	Asked       time.Time           `json:"asked"`
	Title       string              `json:"title"`
	Kind        string              `json:"kind,omitempty"`
	Commands    []string            `json:"commands,omitempty"`
	Paths       []string            `json:"paths,omitempty"`
	// Person means that a person was asked. Otherwise Perlica decided.
	Person bool   `json:"person"`
	Answer Answer `json:"answer"`
	// By is the name of the person, or the source of Perlica's decision, such as "rule".
	By string `json:"by,omitempty"`
	// Now is the new decision. It is "ask" if no rule decides, and empty if the question cannot be judged again.
	Now     policy.Effect `json:"now,omitempty"`
	Rule    *policy.Rule  `json:"rule,omitempty"`
	Against bool          `json:"against"`
	Why     string        `json:"why,omitempty"` // the reason why the question cannot be judged again
	message.Coded
}

// Saved reports whether a rule now answers a question to a person.
func (j Judged) Saved() bool { return j.Person && (j.Now == policy.Allow || j.Now == policy.Deny) }

// Try judges the questions again. If no rule decides, the decisions of the mode, of standing approvals and of policy
// programs stay as recorded. Try stops with the error of ctx if ctx ends.
func (j *Judge) Try(ctx context.Context, list []Question) (Trial, error) {
	t := Trial{List: []Judged{}}
	for _, q := range list {
		if err := ctx.Err(); err != nil {
			return Trial{}, err
		}
		now := j.judge(q)
		if now.Person {
			t.Questions++
		} else {
			t.Decisions++
		}
		switch {
		case now.Why != "":
			t.Unjudged++
		case now.Saved():
			t.Saved++
			if now.Against {
				t.Against++
			}
		case !now.Person && string(now.Now) != q.Decided.Effect:
			t.Changed++
		default:
			continue
		}
		t.List = append(t.List, now)
	}
	return t, nil
}

func (j *Judge) judge(q Question) Judged {
	out := Judged{Run: q.Run, Session: q.Session, Interaction: q.Interaction, Project: q.Project, Asked: q.Asked,
		Title: q.Title, Kind: q.Kind, Commands: q.Commands, Paths: q.Paths, Person: q.Decided == nil}
	out.Answer, out.By = q.answer()
	if q.Lacks != nil {
		out.Why, out.Coded = q.Lacks.Text, q.Lacks.Coded
		return out
	}
	d, ok := j.Decide(q)
	switch {
	case ok:
		out.Now, out.Rule = d.Effect, d.Rule
	case out.Person || q.Decided.By == string(policy.ByRule):
		out.Now = policy.Ask
	default:
		out.Now = policy.Effect(q.Decided.Effect)
	}
	out.Against = out.Person && out.Answer == denied && out.Now == policy.Allow
	return out
}
