package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOnlyTightens checks for each setting whether it has an effect in an untrusted project file.
func TestOnlyTightens(t *testing.T) {
	for _, tt := range []struct {
		name, user, project string
		withheld            string // the withheld lines; "" means that the setting has an effect
	}{
		{"deny rule", "", "[[policy.rule]]\neffect='deny'", ""},
		{"ask rule", "", "[[policy.rule]]\neffect='ask'", ""},
		{"allow rule", "", "[[policy.rule]]\neffect='allow'\nkind=['read']",
			`PROJECT:1: [[policy.rule]] effect = "allow", kind = ["read"]`},
		{"server", "", "[[mcp.servers]]\nname='x'\ncommand='evil'\nenv={A='secret'}",
			`PROJECT:1: [[mcp.servers]] name = "x", command = "evil", env = { "A" = "xxxxxxxx" }, type = "stdio"`},
		{"command", "", "providers.x.adapter.command = 'evil'", `PROJECT:1: providers.x.adapter.command = "evil"`},
		{"command that hides", "", `providers.x.adapter.command = "evil\u001b[2K\u202e\n"`,
			`PROJECT:1: providers.x.adapter.command = "evil\u001B[2K\u202E\u000A"`},
		{"args", "", "\nproviders.x.adapter.args = []", `PROJECT:2: providers.x.adapter.args = []`},
		{"env list", "", "providers.x.adapter.env_allowlist = ['KEY']",
			`PROJECT:1: providers.x.adapter.env_allowlist = ["KEY"]`},
		{"mode of the agent", "", "providers.x.acp.mode = 'bypass'", `PROJECT:1: providers.x.acp.mode = "bypass"`},
		{"timeout", "", "providers.x.acp.connect_timeout = '9h'", ""},
		{"longer lines", "", "providers.x.acp.max_line_bytes = 1073741824",
			`PROJECT:1: providers.x.acp.max_line_bytes = 1073741824`},
		{"shorter lines", "", "providers.x.acp.max_line_bytes = 65536", ""},
		{"disable", "", "providers.x.enabled = false", ""},
		{"enable what is", "", "providers.x.enabled = true", ""},
		{"enable what is not", "providers.x.enabled = false", "providers.x.enabled = true",
			`PROJECT:1: providers.x.enabled = true`},
		{"default provider", "", "model.default_provider = 'claude'", ""},
		{"default provider of its own", "", "model.default_provider = 'x'\nproviders.x.adapter.command = 'evil'",
			"PROJECT:1: model.default_provider = \"x\"\nPROJECT:2: providers.x.adapter.command = \"evil\""},
		{"sync off", "", "log.stream_sync = false", `PROJECT:1: log.stream_sync = false`},
		{"sync off already", "log.stream_sync = false", "log.stream_sync = false", ""},
		{"sync on", "log.stream_sync = false", "log.stream_sync = true", ""},
		{"allow all", "", "permissions.mode = 'allow'", `PROJECT:1: permissions.mode = "allow"`},
		{"allow reads", "", "permissions.mode = 'reads'", `PROJECT:1: permissions.mode = "reads"`},
		{"reads below allow", "permissions.mode = 'allow'", "permissions.mode = 'reads'", ""},
		{"ask", "", "permissions.mode = 'ask'", ""},
		{"ask above deny", "permissions.mode = 'deny'", "permissions.mode = 'ask'", `PROJECT:1: permissions.mode = "ask"`},
		{"deny", "permissions.mode = 'allow'", "permissions.mode = 'deny'", ""},
		{"more logs", "", "runtime.logs.max_total_mb = 201", `PROJECT:1: runtime.logs.max_total_mb = 201`},
		{"fewer logs", "", "runtime.logs.max_total_mb = 100", ""},
		{"patterns", "", "log.redact = ['x+']", `PROJECT:1: log.redact = ["x+"]`},
		{"patterns that go", "log.redact = ['x+']", "log.redact = []", `PROJECT:1: log.redact = []`},
		{"redact before the hash", "", "log.redact_before_hash = true", `PROJECT:1: log.redact_before_hash = true`},
		{"redact no more", "log.redact_before_hash = true", "log.redact_before_hash = false",
			`PROJECT:1: log.redact_before_hash = false`},
		{"sandbox", "", "sandbox = 'project'", ""},
		{"stricter sandbox", "sandbox = 'protect'", "sandbox = 'project'", ""},
		{"looser sandbox", "sandbox = 'project'", "sandbox = 'protect'", `PROJECT:1: sandbox = "protect"`},
		{"no sandbox", "sandbox = 'protect'", "sandbox = 'off'", `PROJECT:1: sandbox = "off"`},
		{"sandbox of a provider", "", "providers.x.sandbox = 'project'", ""},
		{"looser sandbox of one", "providers.x.sandbox = 'project'",
			"providers.x.sandbox = 'off'", `PROJECT:1: providers.x.sandbox = "off"`},
		{"writing out of a sandbox", "", "sandbox_write = ['/']", `PROJECT:1: sandbox_write = ["/"]`},
		{"hosts", "", "sandbox_hosts = ['a']", `PROJECT:1: sandbox_hosts = ["a"]`},
		{"fewer hosts", "sandbox_hosts = ['a', 'b']", "sandbox_hosts = ['a']", ""},
		{"no hosts", "", "sandbox_hosts = []", ""},
		{"another host", "sandbox_hosts = ['a']", "sandbox_hosts = ['a', 'b']", `PROJECT:1: sandbox_hosts = ["a", "b"]`},
		{"hosts of a provider", "", "providers.x.sandbox_hosts = ['a']", `PROJECT:1: providers.x.sandbox_hosts = ["a"]`},
		{"fewer general hosts for one", "sandbox_hosts = ['a', 'b']", "providers.x.sandbox_hosts = ['a']", ""},
		{"general hosts for one with fewer", "sandbox_hosts = ['a', 'b']\nproviders.x.sandbox_hosts = ['a']",
			"providers.x.sandbox_hosts = ['b']", `PROJECT:1: providers.x.sandbox_hosts = ["b"]`},
		{"context", "", "context.default_id = 'other'", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.user(tt.user)
			p.project(tt.project)
			c := p.mustLoad()
			if got := p.text(strings.Join(c.Withheld, "\n")); got != tt.withheld {
				t.Errorf("withheld %s\nwant %s", got, tt.withheld)
			}
			if counts := strings.Contains(values(c), "project file"); counts != (tt.withheld == "") {
				t.Errorf("counts: %v\n%s", counts, values(c))
			}
			p.env = []string{"PERLICA_TRUST_PROJECT=1"}
			if c := p.mustLoad(); len(c.Withheld) > 0 || !strings.Contains(values(c), "project file") || !c.Project.Trusted {
				t.Errorf("trusted, and yet withheld: %v", c.Withheld)
			}
		})
	}
}

func values(c *Config) string { return fmt.Sprint(c.Values()) }

func TestTrust(t *testing.T) {
	p := newPlace(t)
	const file = "permissions.mode = 'allow'\n"
	p.project(file)
	p.writeFile(p.ws.SystemPromptFile(), "Obey.")
	trusted := func(want bool) *Config {
		t.Helper()
		c := p.mustLoad()
		if c.Project.Trusted != want || (c.Permissions == "allow") != want || (c.SystemPrompt == "Obey.") != want ||
			(len(c.Withheld) == 0) != want {
			t.Fatalf("trusted %v, want %v: %+v", c.Project.Trusted, want, c)
		}
		return c
	}
	c := trusted(false)
	if want := []string{"PROJECT:1: permissions.mode = \"allow\"",
		"DIR/prompts/system.md: text sent to the agent"}; !slices.Equal(
		[]string{p.text(c.Withheld[0]), filepath.ToSlash(p.text(c.Withheld[1]))}, want) {
		t.Errorf("got %q; want slices.Equal([]string{p.text(c.Withheld[0]), filepath.ToSlash(p.text(c.Withheld[1]))}, %v)",
			c.Withheld, want)
	}
	if err := Trust(p.dirs, p.ws, c.Project.Digest); err != nil {
		t.Fatal(err)
	}
	trusted(true)
	info, err := os.Stat(p.dirs.trustFile(p.ws))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v %v; want err == nil && info.Mode().Perm() == 0o600", info, err)
	}

	p.env = []string{"PERLICA_TRUST_PROJECT=0"}
	trusted(false)
	p.env = nil

	p.project(file + "#")
	trusted(false)
	p.project(file)
	trusted(true)
	p.writeFile(p.ws.SystemPromptFile(), "Obey me.")
	if c := p.mustLoad(); c.Project.Trusted || c.SystemPrompt != "" {
		t.Error("a changed prompt is trusted")
	}
	p.writeFile(p.ws.SystemPromptFile(), "Obey.")

	moved := *p
	moved.ws.Root = filepath.Join(p.dirs.Home, "elsewhere")
	if err := os.Rename(p.ws.Root, moved.ws.Root); err != nil {
		t.Fatal(err)
	}
	if c := moved.mustLoad(); c.Project.Trusted {
		t.Error("another place is trusted")
	}
	if err := os.Rename(moved.ws.Root, p.ws.Root); err != nil {
		t.Fatal(err)
	}
	trusted(true)
	for range 2 {
		if err := Untrust(p.dirs, p.ws); err != nil {
			t.Fatal(err)
		}
		trusted(false)
	}
}

func TestTrustOfNothing(t *testing.T) {
	p := newPlace(t)
	if err := Trust(p.dirs, p.ws, p.mustLoad().Project.Digest); !errors.Is(err, errNothingToTrust) {
		t.Errorf("got %v", err)
	}
}

func TestBrokenTrustStore(t *testing.T) {
	p := newPlace(t)
	p.project("permissions.mode = 'allow'\n")
	digest := p.mustLoad().Project.Digest
	if err := os.MkdirAll(p.dirs.trustFile(p.ws), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := p.loadConfig(nil)
	if err == nil || c.Project.Trusted || c.Permissions != "" {
		t.Errorf("got %v, %+v", err, c)
	}
	if err := Trust(p.dirs, p.ws, digest); err == nil {
		t.Error("no error")
	}
	left, err := filepath.Glob(filepath.Join(p.dirs.State, "trust", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(p.dirs.trustFile(p.ws), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Untrust(p.dirs, p.ws); err == nil {
		t.Error("no error")
	}
}

func TestDigestTellsFilesApart(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range []projectFiles{
		{}, {config: []byte{}}, {prompt: []byte{}}, {config: []byte("a"), prompt: []byte("b")},
		{config: []byte("ab")}, {prompt: []byte("ab")}, {config: []byte("ab"), prompt: []byte{}},
	} {
		if d := f.digest(); seen[d] {
			t.Errorf("%v is like another", f)
		} else {
			seen[d] = true
		}
	}
}

func TestSystemPromptThatIsNoText(t *testing.T) {
	p := newPlace(t)
	p.writeFile(p.ws.SystemPromptFile(), "\xff")
	p.env = []string{"PERLICA_TRUST_PROJECT=1"}
	c, err := p.loadConfig(nil)
	if err == nil || !strings.HasSuffix(err.Error(), "system.md: is not UTF-8") || c.SystemPrompt != "" {
		t.Errorf("got %v, %q", err, c.SystemPrompt)
	}
}

func TestTrustOfTwoProjects(t *testing.T) {
	a, b := newPlace(t), newPlace(t)
	b.dirs = a.dirs
	for _, p := range []*place{a, b} {
		p.project("permissions.mode = 'allow'\n")
		if err := Trust(p.dirs, p.ws, p.mustLoad().Project.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if !a.mustLoad().Project.Trusted || !b.mustLoad().Project.Trusted {
		t.Error("trust in one project ends that in another")
	}
}

// TestPersonalKeys checks that even a trusted project cannot set the keys of a team.
func TestPersonalKeys(t *testing.T) {
	for _, line := range []string{`team.url = "postgres://db.example.org/t"`, `team.default = true`,
		`team.projects.x = "/x"`} {
		p := newPlace(t)
		p.project(line)
		p.env = []string{"PERLICA_TRUST_PROJECT=1"}
		if _, err := p.loadConfig(nil); err == nil || !strings.Contains(err.Error(), "is a user's own") {
			t.Errorf(`%s: got %v; want err != nil && strings.Contains(err.Error(), "is a user's own")`, line, err)
		}
	}
}
