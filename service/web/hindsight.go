package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hindsight"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// tryBody is the body of a request that tries rules.
type tryBody struct {
	Project string     `json:"project"`
	Context string     `json:"context"`
	Since   *time.Time `json:"since"`
	// Rules are rules of one line, such as "allow go test ...".
	Rules []string `json:"rules"`
	// TOML has rules in the form of a configuration file.
	TOML string `json:"toml"`
	// Replace means that the rules replace the present ones.
	Replace bool   `json:"replace"`
	Limit   *int   `json:"limit"`
	Page    string `json:"page"`
}

// mostRules limits the number of tried rules of one line.
const mostRules = 100

// parseRules returns the rules of the body.
func (b *tryBody) parseRules() ([]policy.Rule, error) {
	if len(b.Rules) > mostRules {
		return nil, badRequest.problem(manyRules.With(mostRules))
	}
	rules, err := config.ParseRules("toml", []byte(b.TOML))
	if err != nil {
		return nil, unfit.wrap(err)
	}
	for _, text := range b.Rules {
		rule, err := hindsight.ParseRule(text)
		if err != nil {
			return nil, unfit.wrap(err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// listPage says where a page of a list starts.
type listPage struct{ From int }

// nextOf returns the part of a list that a page shows, and the marker of the next page.
func nextOf[T any](list []T, from listPage, n int) (part []T, next string) {
	list = list[min(max(from.From, 0), len(list)):]
	if len(list) > n {
		return list[:n], nextPage(listPage{from.From + n})
	}
	return list, ""
}

// mostJudged is the largest number of judged questions in an answer.
const mostJudged = 1000

func (s *Server) tryRules(w http.ResponseWriter, r *request) error {
	var body tryBody
	if err := cmp.Or(r.checkParameters(), r.decode(&body)); err != nil {
		return err
	}
	var from listPage
	n := 200
	if body.Limit != nil {
		n = *body.Limit
	}
	if n < 1 || n > mostJudged {
		return badRequest.problem(badNumber.With("limit", 1, mostJudged))
	}
	if err := decodePage(body.Page, &from); err != nil {
		return err
	}
	added, err := body.parseRules()
	if err != nil {
		return err
	}
	var since time.Time
	if body.Since != nil {
		since = *body.Since
	}
	done, err := s.takeTurn(r.Context())
	if err != nil {
		return err
	}
	defer done()
	past, err := s.pastQuestions(r.Context(), place{body.Project, body.Context}, since)
	if err != nil {
		return err
	}
	if body.Replace {
		past.present = nil
	}
	judge, err := hindsight.NewJudge(past.present, added)
	if err != nil {
		return unfit.wrap(err)
	}
	trial, err := judge.Try(r.Context(), past.list)
	if err != nil {
		return err
	}
	answer := struct {
		hindsight.Trial
		TOML       string       `json:"toml"`
		Unreadable []unreadable `json:"unreadable"`
		Next       string       `json:"next,omitempty"`
	}{Trial: trial, Unreadable: past.bad}
	sort.SliceStable(trial.List, func(i, j int) bool { return order(trial.List[i]) < order(trial.List[j]) })
	answer.List, answer.Next = nextOf(trial.List, from, n)
	for i := range answer.List {
		one := &answer.List[i]
		one.Why = say(r.Context()).Read(one.Why, one.Coded)
	}
	var texts []string
	for _, rule := range added {
		texts = append(texts, config.FormatRule(rule))
	}
	answer.TOML = strings.Join(texts, "\n")
	return reply(w, http.StatusOK, answer)
}

// order returns the place of a judged question in an answer. A question that a person denied and a rule allows is never
// on a later page than another one.
func order(j hindsight.Judged) int {
	switch {
	case j.Against:
		return 0
	case j.Saved():
		return 1
	case j.Why == "":
		return 2
	}
	return 3
}

func (s *Server) suggestRules(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "since", "limit", "page"); err != nil {
		return err
	}
	var from listPage
	n, err := r.limit(100)
	since, serr := r.moment("since")
	if err := cmp.Or(err, serr, r.page(&from)); err != nil {
		return err
	}
	done, err := s.takeTurn(r.Context())
	if err != nil {
		return err
	}
	defer done()
	past, err := s.pastQuestions(r.Context(), r.where(), since)
	if err != nil {
		return err
	}
	judge, err := hindsight.NewJudge(past.present, nil)
	if err != nil {
		return unfit.wrap(err)
	}
	found, err := judge.Suggest(r.Context(), past.list)
	if err != nil {
		return err
	}
	answer := struct {
		hindsight.Suggestions
		Unreadable []unreadable `json:"unreadable"`
		Next       string       `json:"next,omitempty"`
	}{Suggestions: found, Unreadable: past.bad}
	answer.Rules, answer.Next = nextOf(found.Rules, from, n)
	return reply(w, http.StatusOK, answer)
}

// past has recorded questions.
type past struct {
	present map[string][]policy.Rule // the present rules of each project
	list    []hindsight.Question     // oldest first
	bad     []unreadable
}

// pastQuestions reads the questions of a log. If the place names no project, it reads all logs of this machine.
func (s *Server) pastQuestions(ctx context.Context, where place, since time.Time) (*past, error) {
	of, all := where, where.Project == ""
	if all {
		of = s.logs.here()
	}
	one, err := s.logs.oneLog(ctx, of)
	if err != nil {
		return nil, err
	}
	if err := one.requireOwn(filesAtWorker); err != nil {
		return nil, err
	}
	p, err := one.findProject()
	if err != nil {
		return nil, err
	}
	found := &past{present: map[string][]policy.Rule{one.Project: p.Config.Rules}, bad: []unreadable{}}
	logs := []*eventLog{one}
	if all {
		if logs, err = s.logs.list(ctx, where); err != nil {
			return nil, err
		}
	}
	at := shell.Place{Home: p.Dirs.Home, Temp: project.TempDirs(), Own: p.OwnFolders()}
	for _, l := range logs {
		at.Own = slices.Clone(at.Own) // the questions of the previous log keep their list
		at.Own[0] = config.Workspace{Root: l.Project}.Dir()
		if err := found.readLog(ctx, l, at, since); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(found.list, func(i, j int) bool { return found.list[i].Asked.Before(found.list[j].Asked) })
	return found, nil
}

// readLog adds the questions of a log. It lists a log that cannot be read as unreadable.
func (p *past) readLog(ctx context.Context, l *eventLog, at shell.Place, since time.Time) error {
	log, err := l.openReader(ctx)
	if err == nil && log == nil {
		return nil
	}
	var list []hindsight.Question
	if _, known := p.present[l.Project]; !known && err == nil {
		var other *project.Project
		if other, err = l.findProject(); err == nil {
			p.present[l.Project] = other.Config.Rules
		}
	}
	if err == nil {
		list, err = hindsight.Read(ctx, log, l.Project, at, since, nil)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		p.bad = append(p.bad, unreadable{l.place, say(ctx).Error(err), message.Of(err)})
		return nil
	}
	p.list, p.bad = append(p.list, list...), append(p.bad, l.damage(ctx, log)...)
	return nil
}
