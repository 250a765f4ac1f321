package project

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/registry"
)

// TestHosts checks which list of hosts is used for an agent.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		name         string
		agent        provider.Agent
		general, own []string
		api, base    string
		want         []string
	}{
		{name: "the registry's", agent: provider.Agent{ID: "vibe"}, want: []string{"api.mistral.ai"}},
		{name: "by the program", agent: provider.Agent{ID: "x", Command: []string{"/bin/vibe-acp"}},
			want: []string{"api.mistral.ai"}},
		{name: "the general list", agent: provider.Agent{ID: "vibe"}, general: []string{"a"}, want: []string{"a"}},
		{name: "its own list", agent: provider.Agent{ID: "vibe"}, general: []string{"a"}, own: []string{"b"},
			want: []string{"b"}},
		{name: "an empty list", agent: provider.Agent{ID: "vibe"}, general: []string{"a"}, own: []string{}},
		{name: "unknown", agent: provider.Agent{ID: "x"}},
		{name: "a model of the registry", agent: provider.Agent{ID: "ollama"}, want: []string{"127.0.0.1:11434"}},
		{name: "a vendor's model", agent: provider.Agent{ID: "gemini-api"},
			want: []string{"generativelanguage.googleapis.com"}},
		{name: "an API", agent: provider.Agent{ID: "x"}, api: "openai", want: []string{"api.openai.com"}},
		{name: "an address", agent: provider.Agent{ID: "gemini-api"}, base: "https://llm.example.org/v1",
			want: []string{"llm.example.org:443"}},
		{name: "an address here", agent: provider.Agent{ID: "x"}, api: "openai", base: "http://[::1]/v1",
			want: []string{"[::1]:80"}},
	} {
		own := config.Provider{SandboxHosts: c.own}
		own.Model.API, own.Model.BaseURL = c.api, c.base
		p := &Project{Config: &config.Config{SandboxHosts: c.general, Providers: map[string]config.Provider{c.agent.ID: own}}}
		var got []string
		for _, h := range p.hosts(agents.Agent{Agent: c.agent}) {
			got = append(got, h.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, k := range registry.All() {
		for _, entry := range k.Hosts {
			if h, err := proxy.ParseHost(entry); err != nil || h.String() != entry {
				t.Errorf("%s: %s: %v", k.ID, entry, err)
			}
		}
	}
}
