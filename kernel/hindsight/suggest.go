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

// Suggest returns a small set of further rules for the Judge. These rules answer the questions that a person always
// answered in one way. No rule allows a question that a person denied, and no rule denies a question that a person
// allowed. This also holds for each part of the set. Each allow rule is for the tier "ordinary" alone. A rule with a
// wildcard answers at least two different requests. Suggest stops with the error of ctx if ctx ends.
func (j *Judge) Suggest(ctx context.Context, list []Question) (Suggestions, error) {
	s, err := newSuggester(ctx, j, list)
	var chosen []*pattern
	for _, effect := range []policy.Effect{policy.Allow, policy.Deny} {
		var some []*pattern
		if err == nil {
			some, err = s.safe(ctx, effect)
		}
		chosen = append(chosen, some...)
	}
	if err == nil {
		chosen, err = s.needed(ctx, chosen)
	}
	if err != nil {
		return Suggestions{}, err
	}
	return s.describe(chosen), ctx.Err()
}

// safe chooses patterns with this effect until no pattern contradicts a recorded answer. It first compares each
// question only with the few patterns that may match it, because this is fast. At the end it compares each question
// with all patterns.
func (s *suggester) safe(ctx context.Context, effect policy.Effect) ([]*pattern, error) {
	for {
		x := s.newIndex(s.choose(effect))
		if len(x.all) == 0 {
			return nil, nil
		}
		wrong, err := s.blockWrong(ctx, effect, x.find)
		if err == nil && !wrong {
			wrong, err = s.blockWrong(ctx, effect, x.findAll)
		}
		if err != nil || !wrong {
			return x.all, err
		}
	}
}

// pattern is a candidate for a rule. A pattern of commands has words. If the field "rest" is true, more words may
// follow. A pattern of files has a kind and a glob. The glob is "" for a request that names no file.
type pattern struct {
	effect policy.Effect
	key    string // identifies the pattern
	words  []string
	rest   bool
	kind   string
	glob   string

	blocked bool // true if the pattern must not be chosen
	fits    int  // number of different targets with the pattern
	judge   *Judge
	parsed  *shell.Pattern
}

// wide reports whether the pattern fits different requests.
func (p *pattern) wide() bool {
	return p.rest || p.words == nil && (p.glob == "" || p.glob == "inside" || strings.HasSuffix(p.glob, "/**"))
}

// rule returns the rule with this pattern.
func (p *pattern) rule() policy.Rule {
	r := policy.Rule{Effect: p.effect, Path: p.glob, Origin: p.key}
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

// alone returns a Judge with the rule of this pattern alone.
func (p *pattern) alone() *Judge {
	if p.judge == nil {
		p.judge = judgeWith(nil, nil, []*pattern{p})
	}
	return p.judge
}

// command returns the pattern of the words.
func (p *pattern) command() *shell.Pattern {
	if p.parsed == nil {
		var err error
		if p.parsed, err = shell.ParsePattern(p.rule().Command); err != nil {
			panic(err) // cannot happen: the words are a parsed command
		}
	}
	return p.parsed
}

// index finds the patterns that may match a question.
type index struct {
	all      []*pattern
	programs map[string][]int // the patterns of commands, by program
	kinds    map[string][]int // the patterns of files, by kind
	judge    *Judge           // has the present rules that allow, and the rules of all patterns
	whole    group
	groups   map[string]group // by the numbers of their patterns
}

// group has some of the chosen patterns, and a Judge with the present rules that allow and the rules of the patterns.
type group struct {
	patterns []*pattern
	judge    *Judge
}

func (s *suggester) newIndex(list []*pattern) *index {
	x := &index{all: list, programs: map[string][]int{}, kinds: map[string][]int{}, groups: map[string]group{},
		judge: judgeWith(s.allowing.present, s.allowing.rules, list)}
	x.whole = group{list, x.judge}
	for i, p := range list {
		if p.words == nil {
			x.kinds[p.kind] = append(x.kinds[p.kind], i)
			continue
		}
		name, _ := p.command().Program(shell.Place{}) // the first word is a program
		x.programs[name] = append(x.programs[name], i)
	}
	return x
}

// findAll returns all patterns.
func (x *index) findAll(*subject) group { return x.whole }

// find returns the patterns that may match the question, in their order.
func (x *index) find(one *subject) group {
	if one.anyPattern {
		return x.whole
	}
	found := slices.Clone(x.kinds[one.kind])
	for _, name := range one.programs {
		found = append(found, x.programs[name]...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	key := fmt.Sprint(found)
	g, known := x.groups[key]
	if !known {
		others := len(x.judge.rules) - len(x.all)
		var keep []int
		for i := range others {
			keep = append(keep, i)
		}
		for _, i := range found {
			g.patterns, keep = append(g.patterns, x.all[i]), append(keep, others+i)
		}
		g.judge = x.judge.only(keep)
		x.groups[key] = g
	}
	return g
}

// subject is an answered question with the patterns that match its request. Each element of parts has the patterns for
// one part of the request, such as one of its commands, the widest first.
type subject struct {
	Question
	answer Answer
	target bool // the suggested rules should answer this question
	group  *int // the counter for this question if no suggested rule answers it; nil if it is counted already
	parts  [][]*pattern
	id     string // the same for equal requests

	calls []shell.Call     // the simple calls of the commands
	free  *policy.Assessed // the request with all options
	vague bool             // the program of a call is unknown

	// These fields are for the index. A pattern can match only if it has one of the programs or the kind.
	programs   []string
	kind       string
	anyPattern bool // any pattern may match the question
}

// suggester chooses patterns for the subjects.
type suggester struct {
	judge    *Judge
	allowing *Judge // has only the rules that allow
	subjects []*subject
	patterns map[string]*pattern // by key
	free     map[*policy.Assessed]*policy.Assessed
	out      Suggestions
}

func newSuggester(ctx context.Context, j *Judge, list []Question) (*suggester, error) {
	s := &suggester{judge: j, patterns: map[string]*pattern{}, free: map[*policy.Assessed]*policy.Assessed{}}
	allowing := func(list []policy.Rule) []policy.Rule {
		return slices.DeleteFunc(slices.Clone(list), func(r policy.Rule) bool { return r.Effect != policy.Allow })
	}
	s.allowing = &Judge{present: map[string][]policy.Rule{}, rules: allowing(j.rules)}
	for project, list := range j.present {
		s.allowing.present[project] = allowing(list)
	}
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
		one := s.newSubject(q, a)
		if answers[one.id] == nil {
			answers[one.id] = map[Answer]bool{}
		}
		answers[one.id][a] = true
		s.subjects = append(s.subjects, one)
	}
	counted := map[string]bool{}
	for _, one := range s.subjects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
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
			if !counted[one.id] {
				counted[one.id] = true
				one.countFits()
			}
		}
	}
	return s, nil
}

// countFits counts the question for each of its patterns.
func (one *subject) countFits() {
	seen := map[*pattern]bool{}
	for _, p := range slices.Concat(one.parts...) {
		if !seen[p] {
			seen[p] = true
			p.fits++
		}
	}
}

// decides reports whether a present rule decides the question with one of the effects.
func (s *suggester) decides(one *subject, effects ...policy.Effect) bool {
	d, ok := s.judge.Decide(one.Question)
	return ok && slices.Contains(effects, d.Effect)
}

// newSubject returns the question with its patterns.
func (s *suggester) newSubject(q Question, a Answer) *subject {
	one := &subject{Question: q, answer: a, kind: q.Kind}
	if q.Lacks != nil {
		one.id = fmt.Sprintf("%s %q %q", q.Kind, q.Commands, q.Paths)
		one.readTexts()
		return one
	}
	effect, r := effectOf[a], q.Request
	if one.free = s.free[r]; one.free == nil {
		free := *r
		free.Options = anyOption
		one.free = &free
		s.free[r] = one.free
	}
	var settings []string
	for _, f := range r.Fields {
		if f.Role != policy.Inert {
			settings = append(settings, f.Name+"="+f.Value)
		}
	}
	paths := make([]string, len(q.Paths))
	for i, p := range q.Paths {
		paths[i] = relative(r.Place.Dir, p)
	}
	one.id = fmt.Sprintf("%s %q %q %q", q.Kind, q.Commands, paths, settings)
	one.kind, one.anyPattern = r.Kind, r.NoCommand()
	if len(r.Commands) == 0 {
		one.parts = [][]*pattern{s.filePatterns(effect, q.Kind, paths)}
	}
	covered := true
	for _, c := range r.Commands {
		calls, ok := c.Simple(r.Place)
		one.calls, covered = append(one.calls, calls...), covered && ok
	}
	for _, call := range slices.Concat(one.calls, r.Calls()) {
		one.programs = append(one.programs, call.Programs()...)
	}
	for _, call := range one.calls {
		if covered { // otherwise no pattern covers one of the commands
			one.parts = append(one.parts, s.commandPatterns(effect, call))
		}
	}
	return one
}

// readTexts reads the commands of a question that cannot be judged again.
func (one *subject) readTexts() {
	for _, text := range one.Commands {
		calls := shell.Judge(shell.Command{Text: text}, shell.Place{}).Calls
		one.vague = one.vague || len(calls) == 0 || slices.ContainsFunc(calls, func(call shell.Call) bool {
			_, named := call[:1].Known()
			return !named
		})
		one.calls = append(one.calls, calls...)
	}
	for _, call := range one.calls {
		one.programs = append(one.programs, call.Programs()...)
	}
	one.anyPattern = one.vague || one.Kind == "" || len(one.Commands) == 0
}

// relative returns the path as a rule names it. A path inside of dir is relative to dir.
func relative(dir, p string) string {
	if rel, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return p
}

// pattern returns the one pattern with these words, or with this kind and glob.
func (s *suggester) pattern(p pattern) *pattern {
	switch {
	case p.words == nil:
		p.key = string(p.effect) + " " + p.kind + " " + p.glob
	case p.rest:
		p.key = fmt.Sprintf("%s %q ...", p.effect, p.words)
	default:
		p.key = fmt.Sprintf("%s %q", p.effect, p.words)
	}
	if s.patterns[p.key] == nil {
		s.patterns[p.key] = &p
	}
	return s.patterns[p.key]
}

func (s *suggester) commandPatterns(effect policy.Effect, call shell.Call) (list []*pattern) {
	words, ok := call.Known()
	if !ok {
		return nil
	}
	if n := call.Action(); n > 0 {
		for ; n <= len(words); n++ {
			list = append(list, s.pattern(pattern{effect: effect, words: words[:n], rest: true}))
		}
	}
	return append(list, s.pattern(pattern{effect: effect, words: words}))
}

// filePatterns returns the patterns for a request of this kind that names the paths and no command.
func (s *suggester) filePatterns(effect policy.Effect, kind string, paths []string) (list []*pattern) {
	put := func(glob string) {
		list = append(list, s.pattern(pattern{effect: effect, kind: kind, glob: glob}))
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
func (s *suggester) choose(effect policy.Effect) []*pattern {
	usable := func(p *pattern) bool { return !p.blocked && (!p.wide() || p.fits > 1) }
	chosen := map[string]*pattern{}
	for _, one := range s.subjects {
		if !one.target || effectOf[one.answer] != effect || len(one.parts) == 0 {
			continue
		}
		var picks []*pattern
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
			chosen[p.key] = p
		}
	}
	var list []*pattern
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		list = append(list, chosen[key])
	}
	return list
}

// judgeWith returns a Judge with the rules and the rules of the patterns.
func judgeWith(present map[string][]policy.Rule, rules []policy.Rule, patterns []*pattern) *Judge {
	rules = slices.Clone(rules)
	for _, p := range patterns {
		rules = append(rules, p.rule())
	}
	j, err := NewJudge(present, rules)
	if err != nil {
		panic(err) // cannot happen: each pattern has words of a parsed command or a checked glob
	}
	return j
}

// effectOf is the effect that gives the answer.
var effectOf = map[Answer]policy.Effect{allowed: policy.Allow, denied: policy.Deny}

// anyOption offers each answer, so that no missing option of an agent hides the effect of a rule.
var anyOption = []policy.Option{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}

// blockWrong blocks each pattern that contributes to a decision against a recorded answer. It returns false if there
// is no such pattern. The function "find" returns the chosen patterns that may match a question. All patterns have
// the same effect. blockWrong ignores the present rules that ask or deny. Such a rule could hide a wrong decision,
// and other projects do not have the rule.
func (s *suggester) blockWrong(ctx context.Context, effect policy.Effect,
	find func(*subject) group) (wrong bool, err error) {
	for _, one := range s.subjects {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if effectOf[one.answer] == effect {
			continue
		}
		g := find(one)
		if len(g.patterns) == 0 || one.Lacks == nil && !one.decidedAgainst(g.judge) {
			continue
		}
		for _, p := range g.patterns {
			if !p.blocked && one.isPart(p) {
				p.blocked, wrong = true, true
			}
		}
	}
	return wrong, nil
}

// decidedAgainst reports whether the rules of the judge do not give the recorded answer. The rules of the run that
// allow count, too.
func (one *subject) decidedAgainst(j *Judge) bool {
	q := Question{PastQuestion: kernel.PastQuestion{Request: one.free}, Project: one.Project}
	for _, text := range one.Rules {
		if strings.HasPrefix(text, "--allow ") {
			q.Rules = append(q.Rules, text)
		}
	}
	d, ok := j.Decide(q)
	return ok && (d.Effect == policy.Allow) == (one.answer == denied)
}

// isPart reports whether the pattern alone decides the question against its answer, or allows a part of a denied one.
func (one *subject) isPart(p *pattern) bool {
	switch {
	case one.Lacks != nil:
		return one.mayFit(p)
	case p.effect == policy.Deny || p.words == nil:
		return one.decidedAgainst(p.alone())
	}
	return slices.ContainsFunc(one.calls, func(call shell.Call) bool {
		return p.command().MatchExact(call, one.Request.Place)
	})
}

// mayFit reports whether the pattern may fit a question that cannot be judged again. The question's paths may lead
// to other files now, so each pattern of its kind fits. If the log has lost the question, each pattern fits.
func (one *subject) mayFit(p *pattern) bool {
	switch {
	case p.words == nil:
		return one.Kind == "" || one.Kind == p.kind
	case len(one.Commands) == 0:
		return one.Kind == "" || one.Kind == "execute"
	}
	return one.vague || slices.ContainsFunc(one.calls, func(call shell.Call) bool {
		return p.command().MatchLoose(call, shell.Place{}) != shell.No
	})
}

// needed leaves out a denying pattern if other patterns deny all of its questions. A denying rule also matches other
// spellings of a command, so two patterns may deny the same question.
func (s *suggester) needed(ctx context.Context, chosen []*pattern) ([]*pattern, error) {
	x := s.newIndex(slices.DeleteFunc(slices.Clone(chosen), func(p *pattern) bool { return p.effect != policy.Deny }))
	left := map[string]int{}          // by the id of a request: the number of patterns that deny it
	denies := map[*pattern][]string{} // the ids of the requests that a pattern denies
	for _, one := range s.subjects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, seen := left[one.id]; seen || !one.target || one.answer != denied {
			continue
		}
		left[one.id] = 0
		for _, p := range x.find(one).patterns {
			q := Question{PastQuestion: kernel.PastQuestion{Request: one.Request}}
			if d, ok := p.alone().Decide(q); ok && d.Effect == policy.Deny {
				denies[p] = append(denies[p], one.id)
				left[one.id]++
			}
		}
	}
	return slices.DeleteFunc(chosen, func(p *pattern) bool {
		if p.effect != policy.Deny || slices.ContainsFunc(denies[p], func(id string) bool { return left[id] == 1 }) {
			return false
		}
		for _, id := range denies[p] {
			left[id]--
		}
		return true
	}), nil
}

// describe returns the rules of the chosen patterns with their evidence. It leaves out rules that answer nothing, and
// merges rules that differ only in their kinds.
func (s *suggester) describe(chosen []*pattern) Suggestions {
	judge, index := judgeWith(s.judge.present, s.judge.rules, chosen), map[string]*pattern{}
	for _, p := range chosen {
		index[p.key] = p
	}
	rules, projects := map[string]*Suggestion{}, map[string]map[string]bool{}
	for _, one := range s.subjects {
		if one.group == nil {
			continue
		}
		d, ok := judge.Decide(one.Question)
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
func (p *pattern) mergedKey() string {
	if p.words != nil {
		return p.key
	}
	return string(p.effect) + " " + p.glob
}

// deciding returns the chosen patterns that contribute to the decision.
func (one *subject) deciding(d policy.Decision, index map[string]*pattern) (list []*pattern) {
	if d.Effect == policy.Deny {
		if d.Rule == nil { // a refused request
			return nil
		}
		if p := index[d.Rule.Origin]; p != nil {
			list = append(list, p)
		}
		return list
	}
	for _, part := range one.parts {
		for _, p := range part {
			if index[p.key] != nil {
				list = append(list, p)
			}
		}
	}
	return list
}
