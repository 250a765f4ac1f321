package config

import (
	"os"
	"testing"
)

func seeds(f *testing.F) {
	values, err := os.ReadFile("testdata/config.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(values), "", "a = ", "\xef\xbb\xbf", "[[policy.rule]]\neffect='allow'\n[[policy.rule]]\nkind=['x']",
		"[[mcp.servers]]\nname='x'\n[mcp.servers.env]\nA='b'", "mcp.servers = [{name='x', url='http://x'}, 1, [2]]",
		"providers = {x = {acp = {mode = 'a'}, adapter.args = []}}", "[providers.'a\\n']", "policy = 1",
		"a.b.c = [[1,{x=2}]]\r\n",
		"model.default_provider='x'\nproviders.x.adapter.command='y'", "[a]\nb=1\n[a.c]\n[[a.d]]\n[a.d.e]\nf=2",
	} {
		f.Add([]byte(s))
	}
}

// FuzzLoad checks that the loader never panics and that its messages are printable and have a line. It also checks that
// an untrusted project file adds no command and no allowing rule.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newPlace(t)
		p.project(string(data))
		c, err := p.loadConfig(nil)
		if problems, ok := err.(Problems); ok {
			for _, problem := range problems {
				if problem.Line < 1 && len(data) <= maxFileSize {
					t.Errorf("no line: %v", problem)
				}
				if s := problem.Error(); len(s) < 400 && printable(s) != s {
					t.Errorf("not printable: %q", s)
				}
			}
		}
		for _, s := range append(c.Withheld, c.Notes...) {
			if len(s) < 400 && printable(s) != s {
				t.Errorf("not printable: %q", s)
			}
		}
		for _, provider := range c.Providers {
			if provider.Command != "" || provider.Args != nil || provider.Env != nil || provider.Mode != "" {
				t.Errorf("counts untrusted: %+v", provider)
			}
		}
		for _, r := range c.Rules {
			if r.Effect == "allow" {
				t.Errorf("counts untrusted: %+v", r)
			}
		}
		if len(c.MCPServers) > 0 || c.Permissions == "allow" || c.Permissions == "reads" || !c.StreamSync {
			t.Errorf("counts untrusted: %+v", c)
		}
		c.Values()
	})
}

// FuzzSet checks that the result of setKey can be parsed and has the key.
func FuzzSet(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, key := range [][]string{{"model", "default_provider"}, {"providers", "x", "acp", "mode"}} {
			out, err := setKey("F", data, key, `"new"`)
			if err != nil {
				continue
			}
			if doc, problem := parseDocument("F", out); problem != nil || !plant(&doc.tree, key, "new") {
				t.Errorf("%v\n%q", problem, out)
			}
		}
	})
}
