package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// verifiablePage writes the visible text of a verifiable report. assets/report.js and docs/check-report.py do the same
// from the data of the file, byte for byte. So each rule here is simple enough for three languages.
type verifiablePage struct {
	words  wordTable
	events []shownEvent
	head   evidence.Checkpoint
	key    string

	out strings.Builder
}

// pair is a label and its text.
type pair struct{ label, text string }

func (p *verifiablePage) render() string {
	p.findPrunings()
	p.section("record", p.pairs(p.about()))
	p.section("short", p.short())
	p.section("unknown", p.items(p.unknown(), "noUnknown"))
	p.section("removed", p.items(p.removed(), "noRemoved"))
	p.section("rules", p.items(p.rules(), "noRules"))
	p.runs()
	return p.out.String()
}

// findPrunings sets prunedBy of the events. No signature covers the reason why a payload was left out, but a signature
// covers a pruning in the file.
func (p *verifiablePage) findPrunings() {
	prunings := slices.DeleteFunc(p.of(event.LogPruned), func(r shownEvent) bool {
		return r.Class != event.Fact || r.value == nil
	})
	for i, e := range p.events {
		if e.why != event.Pruned || slices.Contains(p.words.Kept, e.Type) {
			continue
		}
		for _, r := range prunings {
			if e.Seq < r.Seq && covers(r.value.(map[string]any), e) {
				p.events[i].prunedBy = r.Seq
				break
			}
		}
	}
}

// covers reports whether the payload of a pruning covers an event, as [event.Pruning.Covers] does.
func covers(pruning map[string]any, e shownEvent) bool {
	matches := func(name, of string) bool {
		v := pruning[name]
		return v == nil || v == "" || v == of
	}
	until, ok := pruning["until"].(float64)
	return ok && until >= float64(e.Seq) && matches("session", string(e.Session)) && matches("run", string(e.Run)) &&
		matches("class", string(e.Class))
}

// absent counts the left out payloads of these types. Without types, it counts all left out payloads.
func (p *verifiablePage) absent(types ...event.Type) (n int) {
	for _, e := range p.events {
		if e.why != "" && (len(types) == 0 || slices.Contains(types, e.Type)) {
			n++
		}
	}
	return n
}

// fill returns a sentence of the table. The arguments replace its {}.
func (p *verifiablePage) fill(name string, args ...any) string {
	head, rest, _ := strings.Cut(p.words.Text[name], "{}")
	var b strings.Builder
	b.WriteString(head)
	for _, arg := range args {
		head, rest, _ = strings.Cut(rest, "{}")
		fmt.Fprint(&b, arg, head)
	}
	return b.String()
}

// count returns a number with its noun.
func (p *verifiablePage) count(n int, name string) string {
	if n == 1 {
		return "1 " + p.words.Text[name]
	}
	return strconv.Itoa(n) + " " + p.words.Text[name] + "s"
}

func (p *verifiablePage) section(name, body string) {
	p.out.WriteString("<section>\n" + element("h2", p.words.Text[name]) + body + "</section>\n")
}

func (p *verifiablePage) pairs(list []pair) string {
	var b strings.Builder
	for _, one := range list {
		b.WriteString("<dt>" + escape(one.label) + "</dt><dd>" + escape(one.text) + "</dd>\n")
	}
	return "<dl>\n" + b.String() + "</dl>\n"
}

// items returns a list, or a sentence if the list is empty.
func (p *verifiablePage) items(list []string, none string) string {
	if len(list) == 0 {
		return element("p", p.words.Text[none])
	}
	return "<ul>\n" + strings.Join(list, "") + "</ul>\n"
}

// whole reports whether the report has all events between its first one and its last one.
func (p *verifiablePage) whole() bool {
	n := len(p.events)
	return int(p.events[n-1].Seq-p.events[0].Seq)+1 == n
}

func (p *verifiablePage) about() []pair {
	t, n := p.words.Text, len(p.events)
	first, last := p.events[0], p.events[n-1]
	key, covered := p.key, p.fill("part", n, first.Seq, last.Seq)
	if key == "" {
		key = t["noKey"]
	}
	if p.whole() {
		covered = p.fill("range", first.Seq, last.Seq, n)
	}
	return []pair{
		{t["log"], p.head.Origin}, {t["key"], key}, {t["checkpoint"], p.fill("covers", p.head.Size, p.head.Root)},
		{t["events"], covered}, {t["time"], p.fill("from", moments(first), moments(last))},
	}
}

// short returns the section of counts, with the sentence that no input was sent twice.
func (p *verifiablePage) short() string {
	var b strings.Builder
	calls, open := p.calls()
	total := len(open)
	var twice []string
	for _, c := range calls {
		for _, n := range c.made {
			total += n
		}
		if len(c.made) > 1 || c.made[0] > 1 {
			twice = append(twice, string(c.input))
		}
	}
	once := "oncePart"
	if len(p.events) == int(p.head.Size) {
		once = "once"
	}
	if len(twice) > 0 {
		b.WriteString(element("p", p.fill("twice", strings.Join(twice, ", "))))
	} else if n := p.absent(event.CallEnforced); n > 0 {
		b.WriteString(element("p", p.fill("onceOpen", p.count(n, "run"))))
	} else {
		b.WriteString(element("p", p.fill(once, p.count(len(calls), "input"), p.count(total, "call"))))
	}
	if len(open) > 0 {
		b.WriteString(element("p", p.fill("open", len(open))))
	}
	if n := int(p.events[0].Seq) - 1; n > 0 {
		b.WriteString(element("p", p.fill("before", p.count(n, "earlier"))))
	}
	if n := int(p.head.Size) - int(p.events[len(p.events)-1].Seq); n > 0 {
		b.WriteString(element("p", p.fill("after", p.count(n, "later"))))
	}
	if n := p.absent(); n > 0 {
		b.WriteString(element("p", p.fill("absent", p.count(n, "payload"))))
	}
	var list []pair
	for _, c := range p.words.Counts {
		list = append(list, pair{c.label, strconv.Itoa(len(p.of(c.types...)))})
	}
	list = append(list, p.leftOut()...)
	costs := p.costs()
	b.WriteString(p.pairs(append(list, costs...)))
	if len(costs) > 0 && p.events[0].Seq > 1 {
		b.WriteString(element("p", p.words.Text["costBefore"]))
	}
	if n := p.absent(event.Responded); n > 0 {
		b.WriteString(element("p", p.fill("costLeft", p.count(n, "answer"))))
	}
	return b.String()
}

// leftOut counts the left out payloads by their reasons.
func (p *verifiablePage) leftOut() (list []pair) {
	left, pruned := map[string]int{}, 0
	for _, e := range p.events {
		if e.prunedBy > 0 {
			pruned++
		} else {
			left[e.why]++
		}
	}
	for _, why := range []string{event.Masked, event.Pruned, "large", "unread"} {
		if left[why] > 0 {
			list = append(list, pair{p.fill("left", p.words.Text["why."+why]), strconv.Itoa(left[why])})
		}
	}
	if pruned > 0 {
		list = append(list, pair{p.words.Text["leftPruned"], strconv.Itoa(pruned)})
	}
	return list
}

// called has, for each intent of an input, the number of calls.
type called struct {
	input event.InputID
	made  []int
}

// calls counts the calls for each input, in the order of the inputs. The result "open" has the runs with an intent
// but without an end.
func (p *verifiablePage) calls() (list []called, open map[event.RunID]bool) {
	open = map[event.RunID]bool{}
	at := map[event.InputID]int{}
	of := func(input event.InputID) *called {
		if _, ok := at[input]; !ok {
			at[input] = len(list)
			list = append(list, called{input: input})
		}
		return &list[at[input]]
	}
	for _, e := range p.events {
		switch e.Type {
		case event.Requested:
			c := of(e.Input)
			c.made = append(c.made, 0)
			open[e.Run] = true
		case event.CallEnforced:
			delete(open, e.Run)
			n := 1
			if v := valuesAt(e.value, "calls"); len(v) > 0 {
				if f, ok := v[0].(float64); ok && f >= 0 && f < 1e9 {
					n = int(f)
				}
			}
			c := of(e.Input)
			c.made = append(c.made[:max(len(c.made)-1, 0)], n)
		}
	}
	return list, open
}

// costs adds up the costs that the agents reported. An agent reports the cost of its session so far.
func (p *verifiablePage) costs() (list []pair) {
	type account struct {
		session      event.SessionID
		conversation event.ConversationID
		unit         string
	}
	before := map[account]int64{}
	sums := map[string]int64{}
	var units []string
	for _, e := range p.events {
		if e.Type != event.Responded {
			continue
		}
		for _, v := range valuesAt(e.value, "cost") {
			cost, _ := v.(map[string]any)
			amount, ok := cost["amount"].(float64)
			if !ok || amount < 0 || amount >= 1e6 {
				continue
			}
			a := account{e.Session, e.Conversation, scalar(cost["currency"])}
			now, old := micro(amount), before[a]
			if e.Conversation == "" || now < old {
				old = 0
			}
			if !slices.Contains(units, a.unit) {
				units = append(units, a.unit)
			}
			sums[a.unit] += now - old
			before[a] = now
		}
	}
	for _, unit := range units {
		list = append(list, pair{p.words.Text["cost"], decimal(sums[unit]) + " " + unit})
	}
	return list
}

func (p *verifiablePage) of(types ...event.Type) (list []shownEvent) {
	for _, e := range p.events {
		if slices.Contains(types, e.Type) {
			list = append(list, e)
		}
	}
	return list
}

func (p *verifiablePage) unknown() (list []string) {
	statements := p.of(event.RunResolved)
	for _, e := range p.of(event.OutcomeUnknown) {
		list = append(list, p.item(e))
		said := len(list)
		for _, r := range statements {
			if r.Run == e.Run {
				list = append(list, p.item(r))
			}
		}
		if len(list) == said {
			list = append(list, element("li", p.words.Text["noStatement"]))
		}
	}
	return list
}

func (p *verifiablePage) removed() (list []string) {
	for _, e := range p.events {
		if e.why != "" || e.Type == event.LogPruned || e.Type == event.LogRewritten {
			list = append(list, p.item(e))
		}
	}
	return list
}

// rules counts the decisions of each rule, and lists the standing decisions.
func (p *verifiablePage) rules() (list []string) {
	var order []string
	tally := map[string]int{}
	for _, e := range p.of(event.PolicyDecided) {
		lines := p.lines(e)
		var rule []string
		for _, l := range lines[:min(len(lines), 4)] {
			if slices.Contains([]string{"effect", "by", "rule", "approval"}, l.label) {
				rule = append(rule, l.text)
			}
		}
		if len(rule) == 0 {
			rule = []string{p.words.Text["unread"]}
		}
		text := strings.Join(rule, " · ")
		if tally[text]++; tally[text] == 1 {
			order = append(order, text)
		}
	}
	for _, rule := range order {
		list = append(list, element("li", p.fill("times", rule, tally[rule])))
	}
	for _, e := range p.of(event.ApprovalRemembered, event.ApprovalRevoked) {
		list = append(list, p.item(e))
	}
	return list
}

// runs writes each run with its events, and the other events that the report shows.
func (p *verifiablePage) runs() {
	var order []event.RunID
	runs := map[event.RunID][]shownEvent{}
	questions, inputs := map[event.InteractionID]event.RunID{}, map[event.InputID]event.RunID{}
	for _, e := range p.events {
		run := cmp.Or(e.Run, questions[e.Interaction], inputs[e.Input])
		if run != "" && e.Interaction != "" {
			questions[e.Interaction] = run
		}
		if run != "" && e.Input != "" {
			inputs[e.Input] = run
		}
		if _, ok := p.words.Types[e.Type]; !ok {
			continue
		}
		if run != "" && runs[run] == nil {
			order = append(order, run)
		}
		runs[run] = append(runs[run], e)
	}
	var b strings.Builder
	for i, run := range order {
		b.WriteString(element("h3", p.fill("number", i+1, cut(cmp.Or(p.inputText(runs[run]), string(run))))))
		for _, e := range runs[run] {
			b.WriteString(p.block(e))
		}
	}
	if b.Len() == 0 {
		b.WriteString(element("p", p.words.Text["noRuns"]))
	}
	p.section("runs", b.String())
	if len(runs[""]) > 0 {
		b.Reset()
		b.WriteString(element("h3", p.words.Text["others"]))
		for _, e := range runs[""] {
			b.WriteString(p.block(e))
		}
		p.section("other", b.String())
	}
}

// inputText returns the text of the input among the events of a run, or "".
func (p *verifiablePage) inputText(events []shownEvent) string {
	for _, e := range events {
		if e.Type != event.MessageReceived {
			continue
		}
		for _, l := range p.lines(e) {
			if l.label == "text" {
				return l.text
			}
		}
	}
	return ""
}

// lines returns the shown lines of an event.
func (p *verifiablePage) lines(e shownEvent) (list []pair) {
	for _, l := range p.words.Types[e.Type].lines {
		for _, v := range valuesAt(e.value, l.path) {
			text := scalar(v)
			if l.parts != nil {
				text = l.join(v)
			}
			if text != "" {
				list = append(list, pair{l.label, text})
			}
		}
	}
	return list
}

func (l wordsOfLine) join(v any) string {
	var texts []string
	object, _ := v.(map[string]any)
	for _, part := range l.parts {
		if text := scalar(object[part[0]]); text != "" {
			texts = append(texts, part[1]+text)
		}
	}
	return strings.Join(texts, l.joiner)
}

// gone describes a payload that was left out.
func (p *verifiablePage) gone(e shownEvent) string {
	hash := fmt.Sprintf("%x", e.PayloadSHA256)
	if e.prunedBy > 0 {
		return p.fill("gonePruned", e.prunedBy, e.PayloadLen, hash)
	}
	return p.fill("gone", p.words.Text["why."+e.why], e.PayloadLen, hash)
}

func (p *verifiablePage) block(e shownEvent) string {
	body := p.pairs(p.lines(e))
	if e.why != "" {
		body = element("p", p.gone(e))
	}
	return fmt.Sprintf("<article id=\"e%d\">\n", e.Seq) + element("h4", p.words.Types[e.Type].title) +
		element("p", p.fill("event", e.Seq, moments(e), e.Actor)) + body + "</article>\n"
}

// item returns a line about an event, with a link to the event.
func (p *verifiablePage) item(e shownEvent) string {
	about := ""
	if e.why != "" {
		about = p.gone(e)
	} else {
		var texts []string
		for _, l := range p.lines(e) {
			texts = append(texts, l.label+": "+l.text)
		}
		about = strings.Join(texts, "; ")
	}
	return fmt.Sprintf("<li><a href=\"#e%d\">%s</a>%s</li>\n", e.Seq, escape(p.fill("link", e.Seq)),
		escape(p.fill("line", p.words.Types[e.Type].title, cut(about))))
}

// valuesAt returns the values at a path such as "a.b". If a value on the path is a list, its elements are followed.
func valuesAt(value any, path string) []any {
	found := []any{value}
	for name := range strings.SplitSeq(path, ".") {
		var next []any
		for _, v := range found {
			object, ok := v.(map[string]any)
			if !ok {
				continue
			}
			if list, ok := object[name].([]any); ok {
				next = append(next, list...)
			} else {
				next = append(next, object[name])
			}
		}
		found = next
	}
	return found
}

// scalar returns a string, a number or a bool as a text. For any other value it returns "".
func scalar(value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case string:
		return v
	case float64:
		switch {
		case math.Abs(v) <= 1<<53 && v == math.Trunc(v):
			return strconv.FormatInt(int64(v), 10)
		case v > 0 && v < 1e6:
			return decimal(micro(v))
		}
		return "a number"
	}
	return ""
}

// micro returns a number in millionths. The three languages round it in the same way.
func micro(v float64) int64 { return int64(math.Floor(v*1e6 + 0.5)) }

func decimal(n int64) string { return fmt.Sprintf("%d.%06d", n/1e6, n%1e6) }

// cut returns at most 200 characters of a text.
func cut(text string) string {
	if all := []rune(text); len(all) > 200 {
		return string(all[:199]) + "…"
	}
	return text
}

// moments returns the time of an event as text. A time before 1970-01-01 00:00:01 is shown in nanoseconds instead.
func moments(e shownEvent) string {
	ns := e.Time.UnixNano()
	if ns < 1e9 {
		return strconv.FormatInt(ns, 10)
	}
	return time.Unix(ns/1e9, 0).UTC().Format(time.DateTime) + " UTC"
}

func element(name, text string) string { return "<" + name + ">" + escape(text) + "</" + name + ">\n" }

// escape returns a text as HTML, as a browser would write it. Characters that a browser hides become visible.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '\u00a0':
			b.WriteString("&nbsp;")
		case isHidden(r):
			fmt.Fprintf(&b, "\\u{%x}", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isHidden reports whether browsers show nothing for a character, or change the direction of the text.
func isHidden(r rune) bool {
	return r != '\n' && r != '\t' && r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xad || r == 0x61c || r == 0x180e ||
		r == 0x200b || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f ||
		r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe007f
}
