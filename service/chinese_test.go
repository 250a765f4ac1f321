package service_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
)

// sentence matches two English words in a row.
var sentence = regexp.MustCompile(`[A-Za-z][a-z']* +[a-z][a-z']+`)

// notOurs matches texts that are the same in every language: commands, code, names, the words of
// the agent and the person, and the notation of diffs.
var notOurs = regexp.MustCompile("`[^`\n]*`" + `|“[^”]*”|@(ask|tool|stop|terminal|elicit|error|say|read|hang).*$` +
	`|You said|Allow once|Perlica does not offer \S+|Asks before it claims to act|Claims to act without asking|\\ No newline at end of file` +
	`|/(project|session|help|mode|config|model|policy|choose|allow|deny|language|follow|log|resume|save|provider)( [\[\]A-Za-z0-9|<>-]+)*` +
	`|perlica( [a-z]+)+|Perlica|rm -rf[ ~/*a-z.]*|switches to English`)

// TestAllIsChinese checks that a contact with the language Chinese gets no English sentence, over
// many messages and events.
func TestAllIsChinese(t *testing.T) {
	w := newWorld(t)
	dirs := config.Dirs{Home: w.dir, Config: w.path("config"), State: w.path("state"), Runtime: w.path("run")}
	settings, err := config.Load(config.Workspace{Root: w.path("agent")}, dirs, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	change := func(o *service.Options) {
		o.Settings.Language, o.Settings.Ack = language.Chinese, ""
		o.Host.Dirs, o.Host.Workspace = dirs, config.Workspace{Root: w.path("agent")}
		o.Host.Agents.Config, o.Host.Agents.LookPath = settings, exec.LookPath
	}
	s := w.serve(local.DefaultLimits(), change)
	alice := w.phone("alice")
	code, err := service.OpenPairing(t.Context(), s.r.Log(), access.Rights{access.Ask, access.Approve, access.Admin},
		"test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wrong := code[:5] + string('0'+(code[5]-'0'+1)%10)
	w.phone("bob").say(wrong)
	alice.say(code)
	alice.expect("配对成功")
	reply := func(text string) string {
		id := alice.say(text)
		a := alice.wait(func(a local.Arrived) bool { return strings.HasSuffix(a.ReplyTo, id) && id != "" })
		return a.Text
	}
	card := func(text string) (id string) {
		alice.say(text)
		return regexp.MustCompile(`#[0-9a-f]{8}`).FindString(alice.expect("，或 `#").Text)
	}
	closed := 0
	end := func(answer string) { // answers the open question and waits for the end of its turn
		alice.say(answer)
		closed++
		n := 0
		seen := map[string]bool{}
		alice.wait(func(a local.Arrived) bool {
			if strings.HasPrefix(a.Text, "permission:") && !seen[a.Key] {
				seen[a.Key] = true
				n++
			}
			return n == closed
		})
	}
	for _, text := range []string{
		"你好", "/help", "/help stop", "/status", "/queue", "/pending", "/stop", "/stop 1234", "/withdraw", "/withdraw 3",
		"/send", "/usage", "/log", "/log 50", "/log verify",
		"/log show 最近", "/again", "/sessions", "/sessions --all", "/session list --all", "/session show", "/session current",
		"/session rename 名", "/session delete 名", "/session nosuch", "/session use 无",
		"/session new 甲", "/save", "/save 乙", "/resume", "/resume 无", "/provider", "/provider 无", "/provider a b", "/mode",
		"/mode plan", "/mode 无", "/model", "/model 无", "/config", "/config 无 值",
		"/config 无", "/policy", "/policy revoke 无", "/compact", "/doctor", "/exit", "/thoughts", "/attach x", "/show",
		"/search 词", "/session export x", "/follow", "/follow on", "/follow off",
		"/follow maybe", "/language", "/language tlh", "/project", "/allow", "/deny", "/choose", "/choose 12345678 1",
		"/nosuch", "/statu", "/discard now", "/discard", "/new", "//x",
		"@error -32000 坏了", "@stop refusal", "@stop max_tokens", "@say 无", "@tool execute 做 command=rm", "@read /x",
		"@terminal ls", "/log show", "/log 100", "/session show", "/usage",
	} {
		reply(text)
	}
	for _, ask := range []string{
		"@ask execute 做 command=\"rm -rf ~/x\"", "@ask execute 做 command=\"curl x | sh\"",
		"@ask edit 改 path=/etc/x old=a new=b", `@ask execute "做\u0001了" command="a\t\t\tb    c"`,
		`@ask other 做 input={"无":"x\n\n\n\ny"}`, "@ask execute 做 command=make options=a:allow_always:可,n:reject_once:否",
	} {
		id := card(ask)
		for _, answer := range []string{"/pending", id + " 9", "/choose " + id[1:] + " 9", "/allow " + id[1:] + " x", "又",
			"/queue", "/withdraw", "/log"} {
			reply(answer)
		}
		end("/deny " + id[1:])
	}
	id := card("@ask execute 做 command=make")
	end(id + " 1")
	id = card("@ask execute 做 command=make")
	end("/choose " + id[1:] + " 2")
	reply("/policy")
	reply("/policy revoke " + regexp.MustCompile("[0-9a-f]{8}").FindString(reply("/policy")))
	id = card(`@elicit 发布 schema={"properties":{"甲":{"type":"string","title":"甲","minLength":2},"乙":{"type":"string","title":"乙","enum":["一","二"]}},"required":["甲"]}`)
	for _, answer := range []string{id + " 1", id + " 1 x"} {
		reply(answer)
	}
	alice.say(id + " 2")
	alice.expect("action")
	reply("/log 200")
	alice.say("@hang")
	reply("再等")
	reply("/stop")
	alice.wait(func(a local.Arrived) bool { return strings.Contains(a.Text, "⏹") })
	last, _, err := s.r.Log().Last(t.Context(), event.Query{Types: []event.Type{event.Responded}})
	if err != nil {
		t.Fatal(err)
	}
	reply("/log show " + string(last.Run))
	old := local.Message{Text: "旧", Sent: time.Now().Add(-3 * time.Hour)}
	alice.Say(old)
	alice.expect("没有处理")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	alice.mu.Lock()
	defer alice.mu.Unlock()
	words := os.Getenv("PERLICA_SHOW") // prints all texts for a review
	for _, a := range alice.arrived {
		if words != "" {
			t.Log(a.Text)
		}
		for _, line := range strings.Split(a.Text, "\n") {
			if found := sentence.FindString(notOurs.ReplaceAllString(line, "")); found != "" {
				t.Errorf("%q in %q", found, line)
			}
		}
	}
}
