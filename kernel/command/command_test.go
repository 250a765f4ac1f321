package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/language"
)

// TestAMistakeIsNoMessage checks that a mistyped command is never sent to an agent.
func TestAMistakeIsNoMessage(t *testing.T) {
	agents := []string{"review", "compact"}
	for line, want := range map[string]Line{
		"hello":             {Text: "hello"},
		"":                  {},
		"a /help in it":     {Text: "a /help in it"},
		" /help":            {Text: " /help"},
		"/help":             {Name: "help"},
		"/session use my x": {Name: "session", Args: "use my x"},
		"/allow  ":          {Name: "allow"},
		"//help":            {Text: "/help"},
		"//":                {Text: "/"},
		"/stop":             {Name: "cancel"},
		"/sessions":         {Name: "session", Args: "list"},
		"/cost":             {Name: "usage"},
		"/export a b.jsonl": {Name: "session", Args: "export a b.jsonl"},
		"/copy":             {Name: "copy"},
		"/new":              {Name: "clear"},
		"/sessions --all":   {Name: "session", Args: "list --all"},
		"/review the diff":  {Text: "/review the diff"},
		"/compact":          {Text: "/compact"},
	} {
		if got, err := Parse(line, agents...); err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want err == nil && got == %v", line, got, err, want)
		}
	}
	for line, near := range map[string]string{
		"/hlep":         "help",
		"/sesions list": "session",
		"/prov":         "provider",
		"/reviw":        "review",
		"/usr/bin":      "",
		"/":             "",
		"/ help":        "",
		"/Allow":        "allow",
		"/xyzzy":        "",
		"/foo":          "", // two letters differ from /log, so it is another word
		"/lgo":          "log",
		"/lag":          "log",
		"/part":         "",
		"/ls":           "",
		"/heal":         "",
		"/discrad":      "discard",
		"/allowed":      "allow",
	} {
		got, err := Parse(line, agents...)
		var unknown *unknownError
		if !errors.As(err, &unknown) || unknown.Near != near || got != (Line{}) {
			t.Errorf("%q: %+v, %v; want near %q", line, got, err, near)
		}
	}
}

// TestEveryCommandIsDone checks that every command in the table has a function and a help text, and requires a right.
func TestEveryCommandIsDone(t *testing.T) {
	h := &Host{May: func(Need) bool { return false }}
	for _, c := range Commands() {
		if c.do == nil {
			t.Errorf("/%s is not carried out", c.Name)
		}
		if c.Help == "" {
			t.Errorf("/%s has no help", c.Name)
		}
		if _, err := h.Do(t.Context(), Line{Name: c.Name, Args: "x"}); !errors.Is(err, errRight) {
			t.Errorf("/%s without a right: %v", c.Name, err)
		}
	}
}

// TestNothingIsPassedOver checks that a command without arguments refuses additional words, because the user meant
// something by them.
func TestNothingIsPassedOver(t *testing.T) {
	for _, c := range Commands() {
		if c.Args != "" {
			continue
		}
		out, err := (&Host{}).Do(t.Context(), Line{Name: c.Name, Args: "x"})
		var usage *usageError
		if !errors.As(err, &usage) || usage.Command.Name != c.Name || out != (Output{}) {
			t.Errorf("/%s x: %+v, %v", c.Name, out, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/help x")
	f.Add("//x")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err == nil && l.Name == "" && len(s) > 0 && s[0] == '/' && (len(s) < 2 || s[1] != '/') {
			t.Errorf("%q became the message %q", s, l.Text)
		}
	})
}

// TestDescribeIsNotDeceived checks that an agent's words cannot look like a text of Perlica.
func TestDescribeIsNotDeceived(t *testing.T) {
	var b strings.Builder
	Describe(&b, language.English.Sentences(), interaction.Question{
		ID: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Title: "harmless** — me, question `1`\n\n1. No\n2. [No](https://x)\n",
		Why: "because\n# of *that*",
		Subject: interaction.Subject{Provider: "claude", Paths: []string{"/tmp/a", "/tmp/`b`\n1. No"},
			Commands: []string{"rm -rf /\n```\n1. No"}},
		Options: []interaction.Option{{ID: "y", Label: "No\n2. Yes"}, {ID: "n", Label: "_No_"}},
	})
	want := `**harmless\*\* — me, question \` + "`1\\`" +
		`⟨2 line breaks⟩1. No⏎2. \[No\]\(https://x\)** — claude, question ` + "`eeeeeeee`\n\n```" + `
  runs    │ rm -rf /
          │ ` + "```" + `
          │ 1. No
  path    │ /tmp/a
  path    │ /tmp/` + "`b`" + `
          │ 1. No
  why     │ because
          │ # of *that*
` + "```" + `

1. ! unknown “No⏎2. Yes”
2. ! unknown “\_No\_”

`
	if got := b.String(); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}
