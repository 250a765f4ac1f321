package report

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
)

// Kind is the kind of a text in the search index.
type Kind string

// These are the kinds of texts. Their order is part of the index.
const (
	// kindInput is the text of an input.
	kindInput Kind = "input"
	// kindAnswer is the agent's answer, or the error instead of an answer.
	kindAnswer Kind = "answer"
	// kindTool is the list of tools that the agent used or wanted to use.
	kindTool Kind = "tool"
	// kindQuestion is a question to a person, with everything that the person needs for a decision.
	kindQuestion Kind = "question"
	// kindDecision is a decision, or a stop of a run, with the name of the person or the rule.
	kindDecision Kind = "decision"
	// kindSession is a session's name.
	kindSession Kind = "session"
)

// Kinds returns every kind of text.
func Kinds() []Kind {
	return []Kind{kindInput, kindAnswer, kindTool, kindQuestion, kindDecision, kindSession}
}

// slots is the maximum number of texts of one event: at most one of each kind. The number of a text in the index is seq
// * slots + the position of its kind. So the numbers have the order of the log.
const slots = 8

// maxText is the maximum size, in bytes, of the indexed part of a text.
const maxText = 1 << 20

type passage struct {
	kind Kind
	text string
}

// asked has the words of a question that help to find the decision about it.
type asked struct {
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels"` // labels of the options by id
}

// passages returns the searchable texts of a fact. If the payload is missing or cannot be decoded, it returns nil. If
// the fact is the end of a question, q is that question.
func passages(e event.Event, q asked) []passage {
	f, ok := texts[e.Type]
	if !ok || e.Payload == nil {
		return nil
	}
	list, err := f(e, q)
	if err != nil {
		return nil
	}
	kept := list[:0]
	for _, p := range list {
		if p.text = strings.TrimSpace(p.text); p.text == "" {
			continue
		}
		if len(p.text) > maxText {
			p.text = strings.ToValidUTF8(p.text[:maxText], "")
		}
		kept = append(kept, p)
	}
	return kept
}

// texts maps each type of fact with searchable texts to the function that returns them.
var texts = map[event.Type]func(event.Event, asked) ([]passage, error){
	event.MessageReceived: one(kindInput, func(p *fact.MessageReceived, _ asked) string {
		return parts(p.Text, p.Attachments...)
	}),
	event.MessageQueued: one(kindInput, func(p *fact.MessageQueued, _ asked) string {
		return parts(p.Text, p.Attachments...)
	}),
	event.Responded: func(e event.Event, _ asked) ([]passage, error) {
		p, err := fact.Decode[fact.Responded](e)
		return []passage{{kindAnswer, p.Text}, {kindTool, toolTitles(p.Tools)}}, err
	},
	event.ProviderError:  failedTexts,
	event.OutcomeUnknown: failedTexts,
	event.ToolBlocked: one(kindTool, func(p *fact.ToolBlocked, _ asked) string {
		return parts(p.Method, string(p.Params))
	}),
	event.PolicyUnasked: one(kindTool, func(p *fact.UnaskedTool, _ asked) string {
		return parts(toolTitles([]fact.ToolSeen{p.ToolSeen}), p.Why)
	}),
	event.InteractionRequested: one(kindQuestion, func(p *interaction.Question, _ asked) string {
		return questionText(*p)
	}),
	event.InteractionAnswered: one(kindDecision, func(p *interaction.Answer, q asked) string {
		return parts(answerSummary(p), q.Labels[p.Option], q.Title)
	}),
	event.InteractionLapsed: one(kindDecision, func(p *interaction.Resolution, q asked) string {
		return parts("no one answered: "+words(string(p.Reason)), q.Title)
	}),
	event.InteractionAnswerRejected: one(kindDecision, func(p *interaction.Rejected, q asked) string {
		return parts(answerSummary(&p.Answer)+", which does not count: "+p.Why, q.Title)
	}),
	event.PolicyDecided: one(kindDecision, func(p *fact.PolicyDecided, _ asked) string {
		return parts(p.Effect+": "+p.What(), p.Why, "by "+p.By)
	}),
	event.ApprovalRemembered: one(kindDecision, func(p *policy.Approval, _ asked) string {
		return string(p.Effect) + " " + p.String() + ", said " + p.By
	}),
	event.ApprovalRevoked: one(kindDecision, func(p *policy.Revocation, _ asked) string { return "revoked by " + p.By }),
	event.CancelRequested: one(kindDecision, func(p *fact.Stop, _ asked) string {
		return "stopped by " + p.By + ": " +
			p.Why
	}),
	event.RunResolved: one(kindDecision, func(p *fact.Resolved, _ asked) string {
		return parts("resolved by "+p.By, p.Note)
	}),
	event.SessionCreated: one(kindSession, func(p *fact.SessionCreated, _ asked) string { return p.Name }),
	event.SessionRenamed: one(kindSession, func(p *fact.SessionRenamed, _ asked) string { return p.Name }),
}

// one converts a function on a payload to a function that returns the only text of an event.
func one[P any](k Kind, f func(P, asked) string) func(event.Event, asked) ([]passage, error) {
	return func(e event.Event, q asked) ([]passage, error) {
		p, err := fact.DecodeNew[P](e)
		if err != nil {
			return nil, err
		}
		return []passage{{k, f(p, q)}}, nil
	}
}

func failedTexts(e event.Event, _ asked) ([]passage, error) {
	p, err := fact.Decode[fact.Failed](e)
	if err != nil {
		return nil, err
	}
	why := p.Known
	if p.Error != nil {
		why = parts(p.Error.Error(), why)
	}
	return []passage{{kindAnswer, parts(why, p.Text)}, {kindTool, toolTitles(p.Tools)}}, nil
}

func toolTitles(tools []fact.ToolSeen) string {
	var b strings.Builder
	for _, t := range tools {
		b.WriteString(" · " + t.Title + " (" + t.Kind + ", " + t.Status + ")")
	}
	return strings.TrimPrefix(b.String(), " · ")
}

// questionText returns everything in a question that a person needs for a decision.
func questionText(q interaction.Question) string {
	s := q.Subject
	list := append(append(append([]string{}, s.Commands...), s.Paths...), s.Text...)
	for _, d := range s.Diffs {
		list = append(list, d.Path, d.New, d.Old)
	}
	if len(s.Commands)+len(s.Diffs) == 0 {
		list = append(list, string(s.RawInput))
	}
	return parts(q.Title, append(list, q.Why)...)
}

// parts joins the texts that are not empty.
func parts(first string, more ...string) string {
	var b strings.Builder
	b.WriteString(first)
	for _, s := range more {
		if s != "" && b.Len() > 0 {
			b.WriteString(" · ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// searchSchema has the index of words. The index has no copy of the texts, because the text of a hit is read from
// the log. Provider, session and kind are words in a separate column, so a filter is only one more word. A clock
// may jump, so times do not have the order of the events. The table "stretches" therefore has the oldest and the
// newest time in each group of 512 events.
const searchSchema = `
	CREATE VIRTUAL TABLE words USING fts5(
		text, chars, tags,
		content='', columnsize=0, tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
	);
	CREATE TABLE texts (
		id INTEGER PRIMARY KEY, -- 8 * seq + kind
		ts INTEGER NOT NULL
	) STRICT;
	CREATE TABLE stretches (
		n      INTEGER PRIMARY KEY, -- id / 4096
		oldest INTEGER NOT NULL,
		newest INTEGER NOT NULL
	) STRICT;
	CREATE TABLE sessions (
		id       TEXT PRIMARY KEY,
		provider TEXT NOT NULL DEFAULT '',
		name     TEXT NOT NULL DEFAULT '' -- of a living one
	) STRICT, WITHOUT ROWID;
	CREATE TABLE asked (
		id       TEXT PRIMARY KEY, -- of a question that is open
		question TEXT NOT NULL
	) STRICT, WITHOUT ROWID;`

const stretch = 4096

// indexer adds facts to the index. It exists as long as the view.
type indexer struct {
	progress func(event.Seq)

	// tx is the transaction in which the statements were prepared. The statements end with it.
	tx    *sqlx.Tx
	stmts map[string]*sqlx.Stmt
}

// stmt returns a prepared statement. It prepares each query once per transaction.
func (x *indexer) stmt(ctx context.Context, tx *sqlx.Tx, query string) (*sqlx.Stmt, error) {
	if x.tx != tx {
		x.tx, x.stmts = tx, map[string]*sqlx.Stmt{}
	}
	s, ok := x.stmts[query]
	if !ok {
		var err error
		if s, err = tx.PreparexContext(ctx, query); err != nil {
			return nil, err
		}
		x.stmts[query] = s
	}
	return s, nil
}

func (x *indexer) execStatement(ctx context.Context, tx *sqlx.Tx, query string, args ...any) error {
	s, err := x.stmt(ctx, tx, query)
	if err == nil {
		_, err = s.ExecContext(ctx, args...)
	}
	return err
}

// applyFact adds a fact to the index. It skips a fact that it cannot decode.
func (x *indexer) applyFact(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
	if x.progress != nil {
		x.progress(e.Seq)
	}
	if err := x.rememberFact(ctx, tx, e); err != nil {
		return err
	}
	q, err := x.question(ctx, tx, e)
	if err != nil {
		return err
	}
	list := passages(e, q)
	if len(list) == 0 {
		return nil
	}
	provider, err := x.text(ctx, tx, `SELECT provider FROM sessions WHERE id = ?`, string(e.Session))
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := x.addText(ctx, tx, e, p, provider); err != nil {
			return err
		}
	}
	return nil
}

func (x *indexer) addText(ctx context.Context, tx *sqlx.Tx, e event.Event, p passage, provider string) error {
	id, at := textID(e.Seq, p.kind), e.Time.UnixNano()
	tokens, chars := segment(p.text)
	tags := strings.Join([]string{kindTag(p.kind), providerTag(provider), sessionTag(e.Session)}, " ")
	return errors.Join(
		x.execStatement(ctx, tx, `INSERT INTO words (rowid, text, chars, tags) VALUES (?, ?, ?, ?)`, id, tokens, chars, tags),
		x.execStatement(ctx, tx, `INSERT INTO texts (id, ts) VALUES (?, ?)`, id, at),
		x.execStatement(ctx, tx, `
			INSERT INTO stretches (n, oldest, newest)
			VALUES (?1, ?2, ?2)
			ON CONFLICT DO UPDATE SET oldest = min(oldest, ?2), newest = max(newest, ?2)`, id/stretch, at),
	)
}

// textID returns the number of a text in the index.
func textID(seq event.Seq, k Kind) int64 {
	for i, kind := range Kinds() {
		if kind == k {
			return int64(seq)*slots + int64(i)
		}
	}
	return int64(seq)*slots + slots - 1
}

// The tags are in a separate column, so that words of a text cannot look like tags.
func kindTag(k Kind) string                { return "k" + string(k) }
func providerTag(name string) string       { return "p" + hex.EncodeToString([]byte(name)) }
func sessionTag(id event.SessionID) string { return "s" + hex.EncodeToString([]byte(id)) }

// rememberFact stores information that later facts need: the provider and the name of a session, and the questions.
func (x *indexer) rememberFact(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
	switch e.Type {
	case event.SessionCreated, event.SessionRenamed, event.MessageReceived:
		// One struct is enough, because all three payloads have the fields of SessionCreated that are needed here.
		p, err := fact.Decode[fact.SessionCreated](e)
		if err != nil {
			return nil
		}
		return x.execStatement(ctx, tx, `
			INSERT INTO sessions (id, provider, name)
			VALUES (?1, ?2, ?3)
			ON CONFLICT DO UPDATE SET
				provider = CASE ?2 WHEN '' THEN provider ELSE ?2 END,
				name = CASE ?3 WHEN '' THEN name ELSE ?3 END`, string(e.Session), p.Provider, p.Name)
	case event.SessionDeleted:
		// Another session may use the name of a deleted session.
		return x.execStatement(ctx, tx, `UPDATE sessions SET name = '' WHERE id = ?`, string(e.Session))
	case event.InteractionRequested:
		p, err := fact.Decode[interaction.Question](e)
		if err != nil {
			return nil
		}
		text, err := json.Marshal(askedBy(p))
		if err != nil {
			return err
		}
		return x.execStatement(ctx, tx, `INSERT INTO asked (id, question) VALUES (?, ?) ON CONFLICT DO NOTHING`,
			string(e.Interaction), string(text))
	}
	return nil
}

func askedBy(p interaction.Question) asked {
	q := asked{Title: p.Title, Labels: map[string]string{}}
	for _, o := range p.Options {
		q.Labels[o.ID] = o.Label
	}
	return q
}

// question returns the question that ended with the event e. For any other event it returns an empty question.
func (x *indexer) question(ctx context.Context, tx *sqlx.Tx, e event.Event) (q asked, err error) {
	switch e.Type {
	case event.InteractionAnswered, event.InteractionLapsed, event.InteractionAnswerRejected:
	default:
		return q, nil
	}
	text, err := x.text(ctx, tx, `SELECT question FROM asked WHERE id = ?`, string(e.Interaction))
	if text == "" || err != nil {
		return q, err
	}
	err = json.Unmarshal([]byte(text), &q)
	return q, err
}

// text returns the text that a query selects for an id, or "".
func (x *indexer) text(ctx context.Context, tx *sqlx.Tx, query, id string) (string, error) {
	s, err := x.stmt(ctx, tx, query)
	if err != nil {
		return "", err
	}
	var found []string
	if err := s.SelectContext(ctx, &found, id); err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}
