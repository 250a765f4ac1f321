package command

import (
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
)

// TestSchedules checks that a person sees the schedules in the person's language, and can pause and resume them with
// the right to change settings.
func TestSchedules(t *testing.T) {
	h := newHost(t)
	p := &project.Project{Config: h.Agents.Config, Workspace: h.Workspace}
	load := func() (*project.Project, error) { return p, nil }
	now := func() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }
	h.Schedules = schedule.Slash(h.Runner.Log(), load, now)
	h.says(t, map[string]string{"/schedules": "no schedule is configured"})
	p.Config.Schedules = []config.Schedule{
		{ID: "morning", Cron: "0 8 * * *", Timezone: "Europe/Berlin", Text: "hello"},
		{ID: "leap", Cron: "0 0 30 2 *", Timezone: "UTC", Text: "hello"},
	}
	admin := false
	h.May = func(n Need) bool { return n == Read || admin }
	const next = "- `morning`: next at 2026-11-28 08:00 +0100\n- `leap`: no next time\n"
	if out := h.does(t, "/schedules"); out.Text != next {
		t.Errorf("%q, want %q", out.Text, next)
	}
	fails := func(line, want string) {
		t.Helper()
		l, err := Parse(line)
		if err == nil {
			_, err = h.Do(t.Context(), l)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	fails("/schedules pause morning", "you may not do that here")
	admin = true
	fails("/schedules resume morning", "the schedule is not paused")
	fails("/schedules pause evening", "there is no schedule evening")
	fails("/schedules pause", "pause ID")
	fails("/schedules stop morning", "pause ID")
	if out := h.does(t, "/schedules pause morning"); out.Text != "- `morning`: paused\n" {
		t.Errorf("%q", out.Text)
	}
	fails("/schedules pause morning", "the schedule is paused already")
	h.Say = language.Chinese.Sentences()
	if out := h.does(t, "/schedules"); out.Text != "- `morning`：已暂停\n- `leap`：没有下一次\n" {
		t.Errorf("%q", out.Text)
	}
	h.Say = nil
	changed := *p.Config // a person changed the file
	changed.Schedules = changed.Schedules[:1]
	p = &project.Project{Config: &changed, Workspace: h.Workspace}
	if out := h.does(t, "/schedules"); out.Text != "- `morning`: paused\n" {
		t.Errorf("after a change of the configuration: %q", out.Text)
	}
	if out := h.does(t, "/schedules resume morning"); !strings.HasPrefix(next, out.Text) {
		t.Errorf("%q", out.Text)
	}

	_, missing := flow.Load("none.toml")
	said := message.Of(missing)
	if _, err := h.Runner.Log().Append(t.Context(), event.NewFact(event.ScheduleMissed, "perlica", event.Refs{},
		fact.ScheduleMissed{Schedule: "morning", Count: 1, First: now(), Last: now(), Why: fact.MissedRefused,
			Error: said.Text, Coded: said.Coded})); err != nil {
		t.Fatal(err)
	}
	for say, want := range map[*language.Sentences]string{
		language.English.Sentences(): "last at 2026-11-27 13:00 +0100: not accepted: none.toml: no such file or directory",
		language.Chinese.Sentences(): "上次 2026-11-27 13:00 +0100：未被接受：none.toml：没有这个文件或目录",
	} {
		h.Say = say
		if out := h.does(t, "/schedules"); !strings.HasSuffix(out.Text, want+"\n") {
			t.Errorf("%q, want %q", out.Text, want)
		}
	}
	_, wrong := config.ParseRules("config.toml", []byte("[[schedule]]\nid = 'x'\ncron = '8'\nflw = 'x'\n"))
	const want = "config.toml:3: schedule[0].cron：不是“cron”的五个字段：分、时、日、月、星期；请写例如“0 8 * * 1-5”\n" +
		"config.toml:4: schedule[0].flw：未知的键；您是不是指 \"flow\"？"
	if got := language.Chinese.Sentences().Fault(wrong); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
