package config

import (
	"os"
	"strings"
	"testing"
)

const ownCommand = "[providers.x.adapter]\ncommand = 'mine'\n"

func TestSetProjectKeepsTrust(t *testing.T) {
	p := newPlace(t)
	p.project(ownCommand)
	if err := Trust(p.dirs, p.ws, p.mustLoad().Project.Digest); err != nil {
		t.Fatal(err)
	}
	if err := SetProject(p.dirs, p.ws, "model.default_provider", "x"); err != nil {
		t.Fatal(err)
	}
	if c := p.mustLoad(); !c.Project.Trusted || c.DefaultProvider != "x" {
		t.Errorf("trusted %v, default %q", c.Project.Trusted, c.DefaultProvider)
	}
}

func TestSetProjectGivesNoTrust(t *testing.T) {
	p := newPlace(t)
	p.project(ownCommand)
	if err := SetProject(p.dirs, p.ws, "model.default_provider", "x"); err != nil {
		t.Fatal(err)
	}
	if c := p.mustLoad(); c.Project.Trusted || c.DefaultProvider != "" {
		t.Errorf("trusted %v, default %q", c.Project.Trusted, c.DefaultProvider)
	}
	// SetProject must not trust other changes of the file.
	if err := Trust(p.dirs, p.ws, p.mustLoad().Project.Digest); err != nil {
		t.Fatal(err)
	}
	p.project(strings.Replace(ownCommand, "mine", "evil", 1))
	if err := SetProject(p.dirs, p.ws, "model.default_provider", "x"); err != nil {
		t.Fatal(err)
	}
	if c := p.mustLoad(); c.Project.Trusted {
		t.Error("a changed file became trusted")
	}
}

func TestSetProjectRefusesWhatSetRefuses(t *testing.T) {
	p := newPlace(t)
	p.project("model = 1\n")
	if err := SetProject(p.dirs, p.ws, "model.default_provider", "x"); err == nil {
		t.Error("set in a file where it cannot be")
	}
	if b, err := os.ReadFile(p.ws.ConfigFile()); string(b) != "model = 1\n" || err != nil {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

// TestSetProjectWhereThereIsNoFile checks that a new file has only the setting and becomes trusted. But if the project
// already has a system prompt, the project does not become trusted.
func TestSetProjectWhereThereIsNoFile(t *testing.T) {
	p := newPlace(t)
	if err := os.RemoveAll(p.ws.Dir()); err != nil {
		t.Fatal(err)
	}
	p.ws.Exists = false
	if err := SetProject(p.dirs, p.ws, "service.channels.telegram", "true"); err != nil {
		t.Fatal(err)
	}
	p.ws.Exists = true
	if c := p.mustLoad(); !c.Project.Trusted || !c.Service.Channels["telegram"] {
		t.Errorf("trusted %v, channels %v", c.Project.Trusted, c.Service.Channels)
	}

	p = newPlace(t)
	p.writeFile(p.ws.SystemPromptFile(), "obey")
	if err := SetProject(p.dirs, p.ws, "service.channels.telegram", "true"); err != nil {
		t.Fatal(err)
	}
	if c := p.mustLoad(); c.Project.Trusted || c.SystemPrompt != "" || c.Service.Channels["telegram"] {
		t.Errorf("trusted %v, prompt %q, channels %v", c.Project.Trusted, c.SystemPrompt, c.Service.Channels)
	}
}
