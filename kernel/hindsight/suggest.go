package hindsight

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// Suggestions are rules that follow from a person's answers. The numbers count the questions with and without a rule.
type Suggestions struct {
	Questions  int `json:"questions"`  // questions to a person
	Answered   int `json:"answered"`   // questions that the suggested rules would have answered
	Decided    int `json:"decided"`    // questions that the present rules answer
	Mixed      int `json:"mixed"`      // questions that a person allowed at one time and denied at another
	Unanswered int `json:"unanswered"` // questions that nobody answered
	Careful    int `json:"careful"`    // always-asked and refused requests
	Unjudged   int `json:"unjudged"`   // questions that cannot be judged again
	NoRule     int `json:"no_rule"`    // questions that no safe rule answers
	// Rules are the suggested rules. The rule that answers the most questions is first.
	Rules []Suggestion `json:"rules"`
}

// Suggestion is a rule with its evidence.
type Suggestion struct {
	policy.Rule
	Allowed  int `json:"allowed"`  // questions that the rule answers and a person allowed
	Denied   int `json:"denied"`   // questions that the rule answers and a person denied
	Projects int `json:"projects"` // projects with such a question
	// TOML is the rule as a part of a configuration file.
	TOML string `json:"toml"`
}

// Suggest returns a small set of rules that, together with the rules of the Judge, answers the questions that a person
// always answered in one way. No rule allows a question that a person denied, or denies one that a person allowed. This
// also holds if only some of the rules are used. Each allow rule is for the tier "ordinary" alone. A rule with a
// wildcard answers at least two different requests. Suggest stops with the error of ctx if ctx ends.
func (j *Judge) Suggest(ctx context.Context, list []Question) (Suggestions, error) {
	s, err := newSuggester(ctx, j, list)
	if err != nil {
		return Suggestions{}, err
	}
	var chosen []pattern
	for _, effect := range []policy.Effect{policy.Allow, policy.Deny} {
		some := s.choose(effect)
		for { // until no pattern contradicts a recorded answer
			wrong, err := s.blockWrong(ctx, some)
			if err != nil {
				return Suggestions{}, err
			}
			if !wrong {
				break
			}
			some = s.choose(effect)
		}
		chosen = append(chosen, some...)
	}
	if chosen, err = s.needed(ctx, chosen); err != nil {
		return Suggestions{}, err
	}
	return s.describe(chosen), ctx.Err()
}

// pattern is a candidate for a rule. A pattern of commands has words, and rest means that more words may follow. A
// pattern of files has a kind and a glob. The glob is "" for a request that names no file.
type pattern struct {
	effect policy.Effect
	what   string // identifies the words, rest, kind and glob
	words  []string
	rest   bool
	kind   string
	glob   string
}

// key identifies the pattern.
func (p pattern) key() string { return string(p.effect) + p.what }

// wide reports whether the pattern fits different requests.
func (p pattern) wide() bool {
	return p.rest || p.words == nil && (p.glob == "" || p.glob == "inside" || strings.HasSuffix(p.glob, "/**"))
}

// rule returns the rule with this pattern.
func (p pattern) rule() policy.Rule {
	r := policy.Rule{Effect: p.effect, Path: p.glob, Origin: p.key()}
	if p.effect == policy.Allow {
		r.Tier = shell.Ordinary
	}
	if p.words == nil {
		r.Kind = []string{p.kind}
		return r
	}
	r.Command, _ = shell.Words(p.words) // the words come from a text of a shell
	if p.rest {
		r.Command += " ..."
	}
	return r
}

// subject is an answered question with the patterns that match its request. Each element of parts has the patterns for
// one part of the request, such as one of its commands, the widest first.
type subject struct {
	Question
	answer Answer
	target bool // the suggested rules should answer this question
	group  *int // the counter for this question if no suggested rule answers it; nil if it is counted already
	parts  [][]pattern
	id     string // the same for equal requests
}

// suggester chooses patterns for the subjects.
type suggester struct {
	judge    *Judge
	subjects []subject
	blocked  map[string]bool // the keys of the patterns that must not be chosen
	out      Suggestions
}

func newSuggester(ctx context.Context, j *Judge, list []Question) (*suggester, error) {
	s := &suggester{judge: j, blocked: map[string]bool{}}
	answers := map[string]map[Answer]bool{}
	for _, q := range list {
		if q.Decided != nil {
			continue
		}
		s.out.Questions++
		a, _ := q.answer()
		if a != allowed && a != denied {
			s.out.Unanswered++
			continue
		}
		one := newSubject(q, a)
		if answers[one.id] == nil {
			answers[one.id] = map[Answer]bool{}
		}
		answers[one.id][a] = true
		s.subjects = append(s.subjects, one)
	}
	for i := range s.subjects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one := &s.subjects[i]
		switch {
		case one.Lacks != nil:
			s.out.Unjudged++
		case s.decides(one, policy.Allow, policy.Deny):
			s.out.Decided++
		case s.decides(one, policy.Ask): // an allow rule cannot overrule an ask rule
			s.out.NoRule++
		case one.Tier != shell.Ordinary:
			one.group = &s.out.Careful
		case len(answers[one.id]) > 1:
			one.group = &s.out.Mixed
		default:
			one.group, one.target = &s.out.NoRule, true
		}
	}
	return s, nil
}

// decides reports whether a present rule decides the question with one of the effects.
func (s *suggester) decides(one *subject, effects ...policy.Effect) bool {
	d, ok := s.judge.Decide(one.PastQuestion)
	return ok && slices.Contains(effects, d.Effect)
}

// newSubject returns the question with its patterns.
func newSubject(q Question, a Answer) subject {
	one := subject{Question: q, answer: a}
	effect := effectOf[a]
	var settings []string
	commands, dir := q.Request.Commands, q.Request.Place.Dir
	for _, f := range q.Request.Fields {
		if f.Role != policy.Inert {
			settings = append(settings, f.Name+"="+f.Value)
		}
	}
	paths := make([]string, len(q.Paths))
	for i, p := range q.Paths {
		paths[i] = relative(dir, p)
	}
	one.id = fmt.Sprintf("%s %q %q %q", q.Kind, q.Commands, paths, settings)
	if len(commands) == 0 {
		one.parts = [][]pattern{filePatterns(effect, q.Kind, paths)}
		return one
	}
	for _, c := range commands {
		calls, ok := c.Simple(q.Request.Place)
		if !ok {
			one.parts = nil // no pattern covers this command
			return one
		}
		for _, call := range calls {
			one.parts = append(one.parts, commandPatterns(effect, call))
		}
	}
	return one
}

// relative returns the path as a rule names it. A path inside of dir is relative to dir.
func relative(dir, p string) string {
	if rel, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return p
}

func commandPatterns(effect policy.Effect, call shell.Call) (list []pattern) {
	words, ok := call.Known()
	if !ok {
		return nil
	}
	if n := call.Action(); n > 0 {
		for ; n <= len(words); n++ {
			list = append(list, pattern{effect, fmt.Sprintf(" %q ...", words[:n]), words[:n], true, "", ""})
		}
	}
	return append(list, pattern{effect, fmt.Sprintf(" %q", words), words, false, "", ""})
}

// filePatterns returns the patterns for a request of this kind that names the paths and no command.
func filePatterns(effect policy.Effect, kind string, paths []string) (list []pattern) {
	put := func(glob string) {
		list = append(list, pattern{effect, " " + kind + " " + glob, nil, false, kind, glob})
	}
	switch kind {
	case "read", "search", "edit":
	case "delete", "move":
		if len(paths) == 1 && !strings.ContainsAny(paths[0], `*?[]{}\`) {
			put(paths[0])
		}
		return list
	case "fetch", "think":
		if len(paths) == 0 {
			put("")
		}
		return list
	default: // a mode, or a tool of an unknown kind
		return nil
	}
	if len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return strings.ContainsAny(p, `*?[]{}\`) }) {
		return nil
	}
	if !slices.ContainsFunc(paths, func(p string) bool { return path.IsAbs(p) || filepath.IsAbs(p) }) {
		put("inside")
	}
	var folders []string
	for dir := path.Dir(paths[0]); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if !slices.ContainsFunc(paths, func(p string) bool { return !strings.HasPrefix(p, dir+"/") }) {
			folders = append(folders, dir+"/**")
		}
	}
	for _, glob := range slices.Backward(folders) {
		put(glob)
	}
	if len(paths) == 1 {
		put(paths[0])
	}
	return list
}

// choose returns patterns with this effect for the targets with the same answer. For each part of a target it takes the
// widest usable pattern. A blocked pattern is not usable, and a wide pattern must match two different requests.
func (s *suggester) choose(effect policy.Effect) []pattern {
	want := map[policy.Effect]Answer{policy.Allow: allowed, policy.Deny: denied}[effect]
	fits := map[string]map[string]bool{} // the ids of the targets that a pattern fits
	for _, one := range s.subjects {
		if !one.target || one.answer != want {
			continue
		}
		for _, part := range one.parts {
			for _, p := range part {
				if fits[p.key()] == nil {
					fits[p.key()] = map[string]bool{}
				}
				fits[p.key()][one.id] = true
			}
		}
	}
	usable := func(p pattern) bool {
		return !s.blocked[p.key()] && (!p.wide() || len(fits[p.key()]) > 1)
	}
	chosen := map[string]pattern{}
	for _, one := range s.subjects {
		if !one.target || one.answer != want || len(one.parts) == 0 {
			continue
		}
		var picks []pattern
		for _, part := range one.parts {
			if i := slices.IndexFunc(part, usable); i >= 0 {
				picks = append(picks, part[i])
			}
		}
		switch {
		case len(picks) == 0, effect == policy.Allow && len(picks) < len(one.parts):
			continue
		case effect == policy.Deny: // one matching command is enough
			picks = picks[:1]
		}
		for _, p := range picks {
			chosen[p.key()] = p
		}
	}
	var list []pattern
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		list = append(list, chosen[key])
	}
	return list
}

// judgeWith returns a Judge with the rules and the rules of the patterns.
func judgeWith(rules []policy.Rule, patterns []pattern) *Judge {
	for _, p := range patterns {
		rules = append(rules, p.rule())
	}
	j, err := NewJudge(rules)
	if err != nil {
		panic(err) // cannot happen: each pattern has words of a parsed command or a checked glob
	}
	return j
}

// effectOf is the effect that gives the answer.
var effectOf = map[Answer]policy.Effect{allowed: policy.Allow, denied: policy.Deny}

// anyOption offers each answer, so that no missing option of an agent hides the effect of a rule.
var anyOption = []policy.Option{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}

// blockWrong blocks each chosen pattern that takes part in a decision against a recorded answer. It returns false if
// there is no such pattern. The chosen patterns have the same effect. The present rules that ask or deny do not count:
// they could hide such a decision, and other projects do not have them.
func (s *suggester) blockWrong(ctx context.Context, chosen []pattern) (wrong bool, err error) {
	if len(chosen) == 0 {
		return false, nil
	}
	var rules []policy.Rule
	for _, r := range s.judge.rules {
		if r.Effect == policy.Allow {
			rules = append(rules, r)
		}
	}
	judge := judgeWith(rules, chosen)
	for _, one := range s.subjects {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if effectOf[one.answer] == chosen[0].effect || one.Lacks == nil && !one.decidedAgainst(judge) {
			continue
		}
		for _, p := range chosen {
			if !s.blocked[p.key()] && one.isPart(p) {
				s.blocked[p.key()], wrong = true, true
			}
		}
	}
	return wrong, nil
}

// decidedAgainst reports whether the rules of the judge do not give the recorded answer. The rules of the run that
// allow count, too.
func (one subject) decidedAgainst(j *Judge) bool {
	q := kernel.PastQuestion{Request: one.Request}
	q.Request.Options = anyOption
	for _, text := range one.Rules {
		if strings.HasPrefix(text, "--allow ") {
			q.Rules = append(q.Rules, text)
		}
	}
	d, ok := j.Decide(q)
	return ok && (d.Effect == policy.Allow) == (one.answer == denied)
}

// isPart reports whether the pattern alone decides the question against its answer, or allows a part of a denied one.
func (one subject) isPart(p pattern) bool {
	switch {
	case one.Lacks != nil:
		return one.mayFit(p)
	case p.effect == policy.Deny || p.words == nil:
		return one.decidedAgainst(judgeWith(nil, []pattern{p}))
	}
	want := p.command()
	for _, c := range one.Request.Commands {
		calls, _ := c.Simple(one.Request.Place)
		if slices.ContainsFunc(calls, func(call shell.Call) bool { return want.MatchExact(call, one.Request.Place) }) {
			return true
		}
	}
	return false
}

// mayFit reports whether the pattern may fit a question that cannot be judged again. Its paths may lead elsewhere now,
// so each pattern of its kind fits. If the log has lost the question, each pattern fits.
func (one subject) mayFit(p pattern) bool {
	switch {
	case p.words == nil:
		return one.Kind == "" || one.Kind == p.kind
	case len(one.Commands) == 0:
		return one.Kind == "" || one.Kind == "execute"
	}
	want := p.command()
	for _, text := range one.Commands {
		calls := shell.Judge(shell.Command{Text: text}, one.Request.Place).Calls
		if len(calls) == 0 || slices.ContainsFunc(calls, func(call shell.Call) bool {
			_, named := call[:1].Known()
			return !named || want.MatchLoose(call, one.Request.Place) != shell.No
		}) {
			return true
		}
	}
	return false
}

// command returns the pattern of the words.
func (p pattern) command() *shell.Pattern {
	c, err := shell.ParsePattern(p.rule().Command)
	if err != nil {
		panic(err) // cannot happen: the words are a parsed command
	}
	return c
}

func indexOf(chosen []pattern) map[string]*pattern {
	index := map[string]*pattern{}
	for i := range chosen {
		index[chosen[i].key()] = &chosen[i]
	}
	return index
}

// isDeniedBy reports whether the pattern alone would deny the request.
func (one subject) isDeniedBy(p pattern) bool {
	d, ok := judgeWith(nil, []pattern{p}).Decide(kernel.PastQuestion{Request: one.Request})
	return ok && d.Effect == policy.Deny
}

// needed leaves out the denying patterns whose questions are all denied by others. A denying rule also matches
// other spellings of a command, so two patterns may deny the same question.
func (s *suggester) needed(ctx context.Context, chosen []pattern) ([]pattern, error) {
	denies := map[string][]string{} // by the id of a request: the keys of the patterns that deny it
	for _, one := range s.subjects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !one.target || one.answer != denied || denies[one.id] != nil {
			continue
		}
		text := strings.Join(one.Commands, "\n")
		for _, p := range chosen {
			if p.effect == policy.Deny && (len(p.words) == 0 || strings.Contains(text, p.words[0])) && one.isDeniedBy(p) {
				denies[one.id] = append(denies[one.id], p.key())
			}
		}
	}
	return slices.DeleteFunc(chosen, func(p pattern) bool {
		if p.effect != policy.Deny {
			return false
		}
		for _, keys := range denies {
			if slices.Equal(keys, []string{p.key()}) {
				return false
			}
		}
		for id, keys := range denies {
			denies[id] = slices.DeleteFunc(keys, func(k string) bool { return k == p.key() })
		}
		return true
	}), nil
}

// describe returns the rules of the chosen patterns with their evidence. It leaves out rules that answer nothing, and
// merges rules that differ only in their kinds.
func (s *suggester) describe(chosen []pattern) Suggestions {
	judge, index := judgeWith(slices.Clone(s.judge.rules), chosen), indexOf(chosen)
	rules, projects := map[string]*Suggestion{}, map[string]map[string]bool{}
	for _, one := range s.subjects {
		if one.group == nil {
			continue
		}
		d, ok := judge.Decide(one.PastQuestion)
		if !ok || d.Effect != effectOf[one.answer] {
			*one.group++
			continue
		}
		s.out.Answered++
		counted := map[*Suggestion]bool{}
		for _, p := range one.deciding(d, index) {
			key := p.mergedKey()
			r := rules[key]
			if r == nil {
				r = &Suggestion{Rule: p.rule()}
				r.Origin = ""
				rules[key], projects[key] = r, map[string]bool{}
			}
			if p.words == nil && !slices.Contains(r.Kind, p.kind) {
				r.Kind = append(r.Kind, p.kind)
				slices.Sort(r.Kind)
			}
			projects[key][one.Project] = true
			switch {
			case counted[r]:
			case one.answer == allowed:
				r.Allowed++
			default:
				r.Denied++
			}
			counted[r] = true
		}
	}
	s.out.Rules = []Suggestion{}
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		r := rules[key]
		r.Projects, r.TOML = len(projects[key]), config.FormatRule(r.Rule)
		s.out.Rules = append(s.out.Rules, *r)
	}
	sort.SliceStable(s.out.Rules, func(i, j int) bool {
		a, b := &s.out.Rules[i], &s.out.Rules[j]
		return a.Allowed+a.Denied > b.Allowed+b.Denied
	})
	return s.out
}

// mergedKey returns the same key for file patterns that differ only in their kinds, because one rule can have all.
func (p pattern) mergedKey() string {
	if p.words != nil {
		return p.key()
	}
	return string(p.effect) + " " + p.glob
}

// deciding returns the chosen patterns that contribute to the decision.
func (one subject) deciding(d policy.Decision, index map[string]*pattern) (list []pattern) {
	if d.Effect == policy.Deny {
		if d.Rule == nil { // a refused request
			return nil
		}
		if p := index[d.Rule.Origin]; p != nil {
			list = append(list, *p)
		}
		return list
	}
	for _, part := range one.parts {
		for _, p := range part {
			if c := index[p.key()]; c != nil {
				list = append(list, *c)
			}
		}
	}
	return list
}
