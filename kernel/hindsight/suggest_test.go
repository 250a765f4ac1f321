package hindsight_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hindsight"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// checkSuggestions checks the promises of Suggest for these questions, and returns the suggestions.
func checkSuggestions(t *testing.T, list []hindsight.Question) hindsight.Suggestions {
	t.Helper()
	none := judgeOf(t, nil)
	s := suggestOf(t, none, list)
	var rules []policy.Rule
	text := ""
	for _, r := range s.Rules {
		rules = append(rules, r.Rule)
		text += r.TOML + "\n"
		if r.Effect == policy.Allow && (r.Denied > 0 || r.Tier != shell.Ordinary) {
			t.Errorf("the evidence or the tier of %+v", r)
		}
	}
	trial := tryOf(t, judgeOf(t, rules), list)
	if n := savedAnswers(trial); trial.Against > 0 || n != s.Answered {
		t.Errorf("%d answered questions are saved, %d of them against the answer, want %d", n, trial.Against, s.Answered)
	}
	tiers := map[event.InteractionID]shell.Tier{}
	for _, q := range list {
		tiers[q.Interaction] = q.Tier
	}
	for _, j := range trial.List {
		if !j.Saved() {
			continue
		}
		if j.Now == policy.Allow && tiers[j.Interaction] != shell.Ordinary {
			t.Errorf("%s allows the tier %s: %q %q", j.Rule.Command, tiers[j.Interaction], j.Title, j.Commands)
		}
		if j.By == "" {
			continue // nobody answered
		}
		if got := map[policy.Effect]string{policy.Allow: "allowed", policy.Deny: "denied"}[j.Now]; got != string(j.Answer) {
			t.Errorf("%q was %s and is %s now", j.Commands, j.Answer, got)
		}
	}
	if sum := s.Answered + s.Decided + s.Mixed + s.Unanswered + s.Careful + s.Unjudged + s.NoRule; sum != s.Questions {
		t.Errorf("%d questions in groups, want %d", sum, s.Questions)
	}
	for range min(len(rules), 10) {
		i := rand.IntN(len(rules)) // the index of a rule that a person does not take
		rest := tryOf(t, judgeOf(t, slices.Concat(rules[:i], rules[i+1:])), list)
		if n := savedAnswers(rest); n >= s.Answered || rest.Against > 0 {
			t.Errorf("without %+v, %d questions are saved, %d against the answer", rules[i], n, rest.Against)
		}
	}
	file := filepath.Join(t.TempDir(), "rules.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := config.ReadRules(file)
	if err != nil || len(read) != len(rules) {
		t.Fatalf("%d rules were read, want %d: %v\n%s", len(read), len(rules), err, text)
	}
	for i, r := range read {
		if r.Origin = ""; !reflect.DeepEqual(r, rules[i]) {
			t.Errorf("read %+v, want %+v", r, rules[i])
		}
	}
	return s
}

// checkDenied checks that the suggested rules allow no denied question. It tries them alone, with all present rules,
// and with only the present rules that allow. The parameter "lost" has the requests of questions that cannot be
// judged again.
func checkDenied(t *testing.T, present []policy.Rule, list []hindsight.Question,
	lost map[event.InteractionID]*policy.Assessed) hindsight.Suggestions {
	t.Helper()
	s := suggestOf(t, judgeOf(t, present), list)
	allowing := slices.DeleteFunc(slices.Clone(present), func(r policy.Rule) bool { return r.Effect != policy.Allow })
	all := slices.Clone(allowing)
	for _, r := range s.Rules {
		all = append(all, r.Rule)
	}
	before, after := judgeOf(t, allowing), judgeOf(t, all)
	for _, q := range list {
		if q.End == nil || q.End.Answer == nil || q.End.Answer.Option != "n" {
			continue
		}
		if q.Lacks != nil {
			q.Request = lost[q.Interaction]
		}
		q.Request = withOptions(q.Request, policy.Option{ID: "y", Kind: "allow_once"})
		was, _ := before.Decide(q)
		if d, _ := after.Decide(q); d.Effect == policy.Allow && was.Effect != policy.Allow {
			t.Errorf("%s %q %q lacks %q: a person denied it, and %+v allows it", q.Kind, q.Commands, q.Paths, q.Lacks, *d.Rule)
		}
	}
	return s
}

// askedTool is a question about a tool call and its answer, "y" or "n".
type askedTool struct {
	kind, target, answer string
	change               func(q *kernel.PastQuestion)
}

// TestDeniedStaysDenied suggests rules for histories with a denied question that a rule could allow.
func TestDeniedStaysDenied(t *testing.T) {
	dir := t.TempDir()
	lacks := func(q *kernel.PastQuestion) { q.Lacks = errLost }
	noOnce := func(q *kernel.PastQuestion) {
		q.Request = withOptions(q.Request, policy.Option{ID: "always", Kind: "allow_always"},
			policy.Option{ID: "n", Kind: "reject_once"})
	}
	changed := func(q *kernel.PastQuestion) {
		afterChange(q, filepath.Join(dir, "Makefile"))
	}
	rule := func(effect policy.Effect, command string) policy.Rule {
		return policy.Rule{Effect: effect, Command: command}
	}
	for name, test := range map[string]struct {
		present []policy.Rule
		asked   []askedTool
		never   string // no rule has this command or path
	}{
		"present rule": {[]policy.Rule{rule(policy.Allow, "go test ...")}, []askedTool{{"execute", "make x a", "y", nil},
			{"execute", "make x b", "y", nil}, {"execute", "go test ./... && make x c", "n", nil}}, "make x ..."},
		"file lacks": {nil, []askedTool{{"edit", "src/a.go", "y", nil}, {"edit", "src/b.go", "y", nil},
			{"edit", "src/secret.go", "n", lacks}}, "inside"},
		"command lacks": {nil, []askedTool{{"execute", "cat a", "y", nil}, {"execute", "cat b", "y", nil},
			{"execute", "cat *.txt", "n", lacks}}, "cat ..."},
		"question lost": {nil, []askedTool{{"execute", "ls a", "y", nil}, {"execute", "ls b", "y", nil},
			{"execute", "ls c", "n", func(q *kernel.PastQuestion) {
				q.Lacks, q.Kind, q.Commands = errLost, "", nil
			}}}, "ls ..."},
		"tier": {nil, []askedTool{{"execute", "make x a", "y", nil}, {"execute", "make x b", "y", nil},
			{"execute", "make x c", "n", changed}, {"execute", "make x c", "n", nil}}, "make x ..."},
		"ask rule": {[]policy.Rule{rule(policy.Ask, "make x c")}, []askedTool{{"execute", "make x a", "y", nil},
			{"execute", "make x b", "y", nil}, {"execute", "make x c", "n", nil}}, "make x ..."},
		"no option": {nil, []askedTool{{"execute", "make x a", "y", nil}, {"execute", "make x b", "y", nil},
			{"execute", "make x c", "n", noOnce}}, "make x ..."},
	} {
		t.Run(name, func(t *testing.T) {
			lost := map[event.InteractionID]*policy.Assessed{}
			var list []hindsight.Question
			for i, a := range test.asked {
				call := policy.ToolCall{Provider: "claude", Kind: a.kind, Title: "T"}
				if a.kind == "execute" {
					call.RawInput = fmt.Appendf(nil, `{"command":%q}`, a.target)
				} else {
					call.Locations = []string{a.target}
				}
				q := askedAbout(call, dir, i)
				q.End = &interaction.TakenError{Answer: &interaction.Answer{Option: a.answer, By: "ann"}}
				if a.change != nil {
					a.change(&q)
				}
				if q.Lacks != nil {
					lost[q.Interaction], q.Request = q.Request, nil
				}
				list = append(list, hindsight.Question{PastQuestion: q, Project: "/p"})
			}
			for _, r := range checkDenied(t, test.present, list, lost).Rules {
				if r.Effect == policy.Allow && (r.Command == test.never || r.Path == test.never) {
					t.Errorf("suggested: %s", r.TOML)
				}
			}
		})
	}
}

// withOptions returns the request with other options.
func withOptions(r *policy.Assessed, options ...policy.Option) *policy.Assessed {
	other := r.Request
	other.Options = options
	return policy.Assess(other)
}

// afterChange makes the question one of a session that has changed the files.
func afterChange(q *kernel.PastQuestion, files ...string) {
	r := q.Request.Request
	r.Place.Changed = shell.Changed{}
	for _, name := range files {
		r.Place.Changed.Add(name)
	}
	q.Request = policy.Assess(r)
	q.Tier = q.Request.Tier()
}

// savedAnswers counts the saved questions that a person answered.
func savedAnswers(t hindsight.Trial) (n int) {
	for _, j := range t.List {
		if j.Saved() && j.By != "" {
			n++
		}
	}
	return n
}

func judgeOf(t *testing.T, rules []policy.Rule) *hindsight.Judge {
	t.Helper()
	j, err := hindsight.NewJudge(nil, rules)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func tryOf(tb testing.TB, j *hindsight.Judge, list []hindsight.Question) hindsight.Trial {
	tb.Helper()
	trial, err := j.Try(tb.Context(), list)
	if err != nil {
		tb.Fatal(err)
	}
	return trial
}

func suggestOf(tb testing.TB, j *hindsight.Judge, list []hindsight.Question) hindsight.Suggestions {
	tb.Helper()
	s, err := j.Suggest(tb.Context(), list)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// errLost is the reason why a question of a test cannot be judged again.
var errLost = message.New("test.lost", "lost")

// ending is a context that ends at its n-th check.
type ending struct {
	context.Context
	n int
}

func (c *ending) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestStops checks that Try and Suggest stop when their context ends, at each of their checks.
func TestStops(t *testing.T) {
	r, dir := rand.New(rand.NewPCG(1, 1)), t.TempDir()
	var list []hindsight.Question
	for i := range 40 {
		q := someQuestion(r, i, dir)
		if q.End == nil {
			q.End = &interaction.TakenError{Answer: &interaction.Answer{Option: "yn"[i%4/3:][:1], By: "ann"}}
		}
		list = append(list, q)
	}
	j := judgeOf(t, nil)
	for name, call := range map[string]func(context.Context) error{
		"try":     func(ctx context.Context) error { _, err := j.Try(ctx, list); return err },
		"suggest": func(ctx context.Context) error { _, err := j.Suggest(ctx, list); return err },
	} {
		checks := &ending{t.Context(), 1 << 30}
		if err := call(checks); err != nil {
			t.Fatal(err)
		}
		total := 1<<30 - checks.n
		if total < len(list) {
			t.Errorf("%s checks its context %d times for %d questions", name, total, len(list))
		}
		for n := range total {
			if err := call(&ending{t.Context(), n}); !errors.Is(err, context.Canceled) {
				t.Fatalf("%s goes on after check %d of %d: %v", name, n, total, err)
			}
		}
	}
}

// These are the pools from which TestGeneratedHistories makes commands and files.
var (
	somePrograms = []string{"go test", "go build", "git push", "git status", "git commit -m x", "ls", "cat", "npm run",
		"make", "rm -rf", "sudo make", "mytool", "env X=1 go", "timeout 5 make", "xargs rm", "python3 -m pytest", "node",
		"./x.sh", "cp"}
	someArguments = []string{"", "a", "b", "./...", "-f", "--force", "origin main", "/etc/passwd", "../x", "$X", "*", "~",
		"-n 1", "'a b'", `'a"b'`, "> out", "--exec=x", ".git/hooks/pre-commit", "é"}
	someFiles = []string{"a.go", "b.go", "src/a.go", "src/b.go", "src/x/c.go", ".git/hooks/pre-commit", "/etc/hosts",
		"../x", "Makefile", "d*e.txt", ".vscode/settings.json", "src/.envrc"}
	somePresent = []policy.Rule{{Effect: policy.Allow, Command: "go test ..."}, {Effect: policy.Allow, Command: "cat ..."},
		{Effect: policy.Ask, Command: "make b"}, {Effect: policy.Ask, Kind: []string{"edit"}, Path: "src/b.go"},
		{Effect: policy.Deny, Command: "git push --force"}}
	someKinds = []string{"read", "edit", "delete", "move", "search", "fetch", "other", "switch_mode", "think"}
)

// askedAbout makes the question i, about a tool call in the directory.
func askedAbout(call policy.ToolCall, dir string, i int) (q kernel.PastQuestion) {
	req := policy.ReadToolCall(call, shell.Place{Dir: dir, Home: "/home/me", Temp: []string{"/tmp/none"}}).Request
	options := []interaction.Option{{ID: "y", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}
	for _, o := range options {
		req.Options = append(req.Options, policy.Option{ID: o.ID, Kind: o.Kind})
	}
	q = kernel.PastQuestion{Title: "T", Kind: call.Kind, Paths: req.Paths, Tier: req.Tier(),
		Request: policy.Assess(req), Question: &interaction.Question{Options: options}, Asked: time.Unix(int64(i), 0)}
	q.Interaction = event.InteractionID(fmt.Sprint(i))
	for _, c := range req.Commands {
		q.Commands = append(q.Commands, c.String())
	}
	return q
}

// someQuestion makes a question of a random request.
func someQuestion(r *rand.Rand, i int, dir string) hindsight.Question {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	call := policy.ToolCall{Provider: "claude", Kind: "execute", Title: "T"}
	command := func() string { return pick(somePrograms) + " " + pick(someArguments) }
	switch r.IntN(4) {
	case 0:
		call.Kind = pick(someKinds)
		for range 1 + r.IntN(5)/4 {
			call.Locations = append(call.Locations, pick(someFiles))
		}
	case 1:
		call.RawInput = fmt.Appendf(nil, `{"command":%q}`, command()+pick([]string{" && ", " | ", "; "})+command())
	default:
		call.RawInput = fmt.Appendf(nil, `{"command":%q}`, command())
	}
	q := askedAbout(call, dir, i)
	if r.IntN(5) == 0 { // another tier
		afterChange(&q, filepath.Join(dir, "Makefile"), filepath.Join(dir, "x.sh"), filepath.Join(dir, "src"))
	}
	if r.IntN(10) == 0 {
		q.Request = withOptions(q.Request, q.Request.Options[1:]...)
	}
	switch r.IntN(20) {
	case 0: // nobody answered
		q.End = &interaction.TakenError{Lapsed: interaction.Unattended}
	case 1: // the question cannot be judged again
		q.Lacks = errLost // the caller takes the request away
	}
	return hindsight.Question{PastQuestion: q, Project: pick([]string{"/p", "/q"})}
}

// someHistory makes n questions and answers. A person mostly gives the same answer to the same program or kind. The
// result "lost" has the requests of questions that cannot be judged again.
func someHistory(r *rand.Rand, n int, dir string) (list []hindsight.Question,
	lost map[event.InteractionID]*policy.Assessed) {
	yes := map[string]bool{}
	lost = map[event.InteractionID]*policy.Assessed{}
	for i := range n {
		q := someQuestion(r, i, dir)
		habit := q.Kind
		if len(q.Commands) > 0 {
			habit = q.Commands[0][:min(5, len(q.Commands[0]))]
		}
		if _, ok := yes[habit]; !ok {
			yes[habit] = r.IntN(3) > 0
		}
		if q.End == nil {
			answer := map[bool]string{true: "y", false: "n"}[yes[habit] != (r.IntN(10) == 0)]
			q.End = &interaction.TakenError{Answer: &interaction.Answer{Option: answer, By: "ann"}}
		}
		if q.Lacks != nil {
			lost[q.Interaction], q.Request = q.Request, nil
		}
		list = append(list, q)
	}
	return list, lost
}

// checkAssessed checks that DecideAssessed decides like Decide.
func checkAssessed(t *testing.T, list []hindsight.Question) {
	t.Helper()
	p, err := policy.New(somePresent, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		if q.Request == nil {
			continue
		}
		got, want := p.DecideAssessed(q.Request), p.Decide(q.Request.Request, policy.ModeAsk)
		if got.Effect != want.Effect || got.By != want.By || got.Tier != want.Tier || got.Word != want.Word ||
			got.OptionID != want.OptionID || !reflect.DeepEqual(got.Rule, want.Rule) {
			t.Errorf("%q %q: %+v, want %+v", q.Commands, q.Paths, got, want)
		}
	}
}

// BenchmarkSuggest suggests rules for histories of random questions.
func BenchmarkSuggest(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list, _ := someHistory(rand.New(rand.NewPCG(1, 1)), n, b.TempDir())
			for b.Loop() {
				judge, err := hindsight.NewJudge(nil, somePresent)
				if err != nil {
					b.Fatal(err)
				}
				if s := suggestOf(b, judge, list); s.Answered == 0 {
					b.Fatalf("%+v", s)
				}
			}
		})
	}
}

// TestGeneratedHistories checks the promises of Suggest for random questions and answers.
func TestGeneratedHistories(t *testing.T) {
	dir := t.TempDir()
	answered := 0
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			list, lost := someHistory(r, 20+r.IntN(100), dir)
			checkAssessed(t, list)
			checkDenied(t, nil, list, lost)
			checkDenied(t, somePresent, list, lost)
			answered += checkSuggestions(t, list).Answered
		})
	}
	if answered < 200 {
		t.Errorf("%d questions were answered, want more", answered)
	}
}
