package registry

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/process"
)

var updateAgents = flag.Bool("update-agents", false, "write the table of agents into docs/agents.md")

func TestRegistryIsSound(t *testing.T) {
	seen := map[string]bool{}
	all := All()
	for _, k := range all {
		if k.ID == "" || k.ID != strings.ToLower(k.ID) || seen[k.ID] {
			t.Errorf("id %q: empty, not lower case or twice", k.ID)
		}
		seen[k.ID] = true
		if k.Name == "" || k.Install == "" || len(k.Commands) == 0 {
			t.Errorf("%s lacks a name, a way to install it or a command", k.ID)
		}
		for _, c := range k.Commands {
			if len(c) == 0 || strings.ContainsAny(c[0], "/\\ ") {
				t.Errorf("%s: command %q", k.ID, c)
			}
		}
		if a := k.Asking; a.Mode != "" && a.Option != "" {
			t.Errorf("%s asks in two ways", k.ID)
		}
		for _, name := range k.Env {
			if _, err := process.Environ(nil, []string{name}); err != nil || strings.HasSuffix(name, "*") {
				t.Errorf("%s: variable %q", k.ID, name)
			}
		}
		for _, kv := range k.Asking.Env {
			name, value, ok := strings.Cut(kv, "=")
			if !ok || value == "" || slices.Contains(k.Env, name) {
				t.Errorf("%s: %q is no setting, or the environment would undo it", k.ID, kv)
			}
		}
	}
	if last := all[len(all)-1].ID; last != "predictable" {
		t.Errorf("the last is %s", last)
	}
}

func TestRegistryIsACopy(t *testing.T) {
	k, _ := Lookup("goose")
	k.Commands[0][0], k.Env[0], k.Asking.Env[0] = "x", "x", "x"
	All()[0].Commands[0][0] = "x"
	again, ok := Lookup("goose")
	if !ok || again.Commands[0][0] == "x" || again.Env[0] == "x" || again.Asking.Env[0] == "x" ||
		known[0].Commands[0][0] == "x" {
		t.Errorf("the registry was changed: %+v", again)
	}
	if _, ok := Lookup("nobody"); ok {
		t.Error("found an agent that nobody knows")
	}
}

func TestKnownFind(t *testing.T) {
	k, _ := Lookup("claude")
	on := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(names, name) {
				return "/bin/" + name, nil
			}
			return "", errors.New("not found")
		}
	}
	for _, tt := range []struct {
		on   []string
		want string
	}{
		{[]string{"claude-agent-acp", "claude-code-acp"}, "/bin/claude-agent-acp"},
		{[]string{"claude-code-acp"}, "/bin/claude-code-acp"},
		{[]string{"claude"}, ""},
	} {
		argv, ok := k.Find(on(tt.on...))
		if strings.Join(argv, " ") != tt.want || ok != (tt.want != "") {
			t.Errorf("on %v: %q %v", tt.on, argv, ok)
		}
	}
	p, _ := Lookup("predictable")
	argv, _ := p.Find(on(Self))
	if a := p.Agent(argv); a.ID != "predictable" || strings.Join(a.Command, " ") != "/bin/perlica agent predictable" {
		t.Errorf("%+v", a)
	}
}

func TestNearest(t *testing.T) {
	for id, want := range map[string]string{
		"cluade": "claude", "Codex": "codex", "opncode": "opencode", "mine": "mina", "zzz": "", "": "", "p": "",
	} {
		if got := Nearest(id, "mina"); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

// TestAgentsTable checks that the table in docs/agents.md equals the registry.
func TestAgentsTable(t *testing.T) {
	const path, begin, end = "../../docs/agents.md", "<!-- agents: begin -->\n", "<!-- agents: end -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the marks around the table are gone")
	}
	want := agentsTable()
	if *updateAgents {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table is stale: go test ./provider/registry -run TestAgentsTable -update-agents")
	}
}

func agentsTable() string {
	var b strings.Builder
	b.WriteString("| id | agent | commands looked for | install | log in | asks |\n|---|---|---|---|---|---|\n")
	for _, k := range known {
		if k.Model != nil {
			continue // docs/models.md lists the models.
		}
		name := k.Name
		if k.Website != "" {
			name = fmt.Sprintf("[%s](%s)", k.Name, k.Website)
		}
		var lines []string
		for _, c := range k.Commands {
			lines = append(lines, "`"+strings.Join(c, " ")+"`")
		}
		install := k.Install
		if !strings.HasPrefix(install, "see ") && install != "built in" {
			install = "`" + install + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
			k.ID, name, strings.Join(lines, ", "), install, orDash(k.Login), orDash(k.Asks))
	}
	b.WriteString("\n| id | put into its asking mode by | variables it is given | note |\n|---|---|---|---|\n")
	for _, k := range known {
		if k.Model != nil || len(k.Env) == 0 && k.Note == "" && askingText(k.Asking) == "–" {
			continue // The first table says everything about this agent.
		}
		var vars []string
		for _, v := range k.Env {
			vars = append(vars, "`"+v+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.ID, askingText(k.Asking), orDash(strings.Join(vars, " ")),
			orDash(k.Note))
	}
	return b.String()
}

func askingText(a provider.Asking) string {
	switch {
	case a.Mode != "":
		return "mode `" + a.Mode + "`"
	case a.Option != "":
		return "option `" + a.Option + "` = `" + a.Value + "`"
	case len(a.Env) > 0:
		return "`" + strings.Join(a.Env, "` `") + "`"
	}
	return "–"
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
