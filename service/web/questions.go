package web

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
)

// question is a question with all details that a person needs for a judgement.
type question struct {
	place
	interaction.Question
	Options []option        `json:"options"`
	Short   string          `json:"short_id"`
	Run     event.RunID     `json:"run_id"`
	Session event.SessionID `json:"session_id"`
	Asked   time.Time       `json:"asked"`
	Open    bool            `json:"open"`
	Ended   string          `json:"ended,omitempty"`
	Answer  *firstAnswer    `json:"answer,omitempty"`
	Digest  string          `json:"digest"`
	Card    cardShown       `json:"card"`
}

// option is one possible answer with its effect.
type option struct {
	interaction.Option
	Allows bool `json:"allows"`
	Always bool `json:"always"`
}

// cardShown is the card of a question: the question laid out in rows.
type cardShown struct {
	Rows    []rowShown `json:"rows"`
	Options []rowShown `json:"options"`
}

type rowShown struct {
	Head  string `json:"head"`
	Text  string `json:"text"`
	Agent bool   `json:"agent"`
	Must  bool   `json:"must"`
	Tone  string `json:"tone"`
}

// tones holds the name of each tone of a row.
var tones = []string{card.Plain: "plain", card.Title: "title", card.Added: "added", card.Removed: "removed",
	card.Aside: "aside", card.Warning: "warning", card.Refused: "refused"}

func newRows(rows []card.Row) []rowShown {
	shown := []rowShown{}
	for _, r := range rows {
		shown = append(shown, rowShown{r.Head, r.Text, r.Agent, r.Must, tones[r.Tone]})
	}
	return shown
}

// shownID is the number of trailing characters of an id that people see.
const shownID = 8

// question returns all details of a question. Its digest covers the payload on the log, or the
// payload on a team's hub.
func (l *eventLog) question(ctx context.Context, log logReader, q pendingQuestion, width int) (question, error) {
	said := localized(ctx, q.Question)
	c := card.Lay(said, width)
	shown := question{
		place: l.place, Question: said, Options: []option{}, Short: string(q.ID[max(0, len(q.ID)-shownID):]), Run: q.Refs.Run,
		Session: q.Refs.Session,
		Asked:   q.Asked, Open: true, Card: cardShown{newRows(c.Rows), newRows(c.Options)},
	}
	for _, o := range said.Options {
		shown.Options = append(shown.Options, option{o, o.Allows(), o.Always()})
	}
	if q.there != nil {
		shown.Digest = q.there.Digest()
		return shown, nil
	}
	e, ok, err := log.Last(ctx, event.Query{Interaction: q.ID, Types: []event.Type{event.InteractionRequested}})
	if err == nil && !ok {
		err = interaction.ErrUnknownQuestion
	}
	shown.Digest = hex.EncodeToString(e.PayloadSHA256[:])
	return shown, err
}

func (s *Server) questions(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "width"); err != nil {
		return err
	}
	width, err := r.number("width", 80, card.MinWidth, 400)
	if err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) (shown []question,
		err error) {
		open, err := l.pending(ctx, log)
		for _, q := range open {
			one, qerr := l.question(ctx, log, q, int(width))
			if err = cmp.Or(err, qerr); err != nil {
				return nil, err
			}
			shown = append(shown, one)
		}
		return shown, err
	})
	answer := struct {
		Questions  []question   `json:"questions"`
		Unreadable []unreadable `json:"unreadable"`
	}{[]question{}, bad}
	for _, found := range of {
		answer.Questions = append(answer.Questions, found...)
	}
	sort.Slice(answer.Questions, func(i, j int) bool {
		return answer.Questions[i].Asked.Before(answer.Questions[j].Asked)
	})
	s.present.noteRequest(r.visitor.ID)
	return reply(w, http.StatusOK, answer)
}

func (s *Server) question(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "width"); err != nil {
		return err
	}
	width, err := r.number("width", 80, card.MinWidth, 400)
	if err != nil {
		return err
	}
	l, log, q, err := s.findQuestion(r)
	if err != nil {
		return err
	}
	shown, err := l.question(r.Context(), log, q, int(width))
	if err != nil {
		return err
	}
	end, err := l.closed(r.Context(), log, q)
	if err != nil {
		return err
	}
	if end != nil {
		shown.Open, shown.Ended, shown.Answer = false, say(r.Context()).Error(end), newFirstAnswer(end.Answer)
		return reply(w, http.StatusOK, shown)
	}
	open, err := l.pending(r.Context(), log)
	if err != nil {
		return err
	}
	if shown.Open = slices.ContainsFunc(open, func(o pendingQuestion) bool { return o.ID == q.ID }); !shown.Open {
		shown.Ended = say(r.Context()).Error(kernel.ErrRunGone)
	}
	return reply(w, http.StatusOK, shown)
}

// findQuestion finds the question that the path names. It asks the hub for a team's questions
// first, because the copy of a worker's log arrives later.
func (s *Server) findQuestion(r *request) (*eventLog, logReader, pendingQuestion, error) {
	id := event.InteractionID(r.PathValue("id"))
	if r.where().Project == teamProject {
		list, err := s.logs.list(r.Context(), r.where())
		if err != nil {
			return nil, nil, pendingQuestion{}, err
		}
		for _, l := range list {
			c := l.copied()
			open, err := c.open(r.Context())
			if err != nil {
				return nil, nil, pendingQuestion{}, err
			}
			if i := slices.IndexFunc(open, func(q pendingQuestion) bool { return q.ID == id }); i >= 0 {
				return l, c, open[i], nil
			}
		}
	}
	l, log, err := s.holding(r.Context(), r.where(), event.Query{Interaction: id,
		Types: []event.Type{event.InteractionRequested}})
	if err != nil {
		return nil, nil, pendingQuestion{}, err
	}
	q, err := interaction.Find(r.Context(), log, id)
	return l, log, pendingQuestion{Question: q}, err
}

// answerBody is the body of an answer to a question.
type answerBody struct {
	Option    string             `json:"option"`
	Digest    string             `json:"digest"`
	Signature string             `json:"signature"`
	Word      string             `json:"word"`
	Always    bool               `json:"always"`
	Shown     *interaction.Shown `json:"shown"`
}

func (s *Server) answer(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	var body answerBody
	if err := r.decode(&body); err != nil {
		return err
	}
	l, log, q, err := s.findQuestion(r)
	if err != nil {
		return err
	}
	shown, err := l.question(r.Context(), log, q, card.MinWidth)
	if err != nil {
		return err
	}
	if body.Digest != shown.Digest {
		return questionOther.problem(otherDigest)
	}
	a := interaction.Answer{Option: body.Option, Always: body.Always, By: r.visitor.Label(), Where: source,
		Shown: body.Shown}
	i := slices.IndexFunc(q.Options, func(o interaction.Option) bool { return o.ID == body.Option })
	if i >= 0 && (q.Options[i].Text || q.Word != "" && q.Options[i].Allows()) {
		a.Text = body.Word
	}
	if err := signed(r, q.Question, body, &a); err != nil {
		return err
	}
	err = l.submitAnswer(context.WithoutCancel(r.Context()), q, a)
	// After ErrNotWoken the answer counts, and the asking process sees it at its next check.
	if err != nil && !errors.Is(err, kernel.ErrNotWoken) {
		p := asProblem(err)
		p.Project, p.Context, p.Run = l.Project, l.Context, string(q.Refs.Run)
		if errors.Is(err, interaction.ErrWord) {
			p.Word = q.Word
		}
		return p
	}
	return reply(w, http.StatusOK, struct {
		place
		ID     event.InteractionID `json:"id"`
		Run    event.RunID         `json:"run_id"`
		Option string              `json:"option"`
		By     string              `json:"by"`
	}{l.place, q.ID, q.Refs.Run, a.Option, a.By})
}

// submitAnswer submits an answer. It returns nil if the answer counts.
func (l *eventLog) submitAnswer(ctx context.Context, q pendingQuestion, a interaction.Answer) error {
	if c := l.copied(); c != nil {
		return c.submitAnswer(ctx, q, a)
	}
	runner, _, err := l.openRunner(ctx)
	if err != nil {
		return err
	}
	return runner.AnswerQuestion(ctx, q.Question, a)
}

// badBody describes the fault of a body in terms of JSON.
func badBody(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("%q cannot be a %s", kind.Field, kind.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// decode reads the body. The body must be one JSON object without unknown members.
func (r *request) decode(v any) error {
	if err := strict.UnmarshalObject(r.body, v); err != nil {
		return badRequest.problem(bodyWrong.With(badBody(err)))
	}
	return nil
}
