package project

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/registry"
	"github.com/perlica/perlica/provider/sandbox"
)

// Sandbox returns the sandbox for an agent's process, or nil if the configuration requires none. work lists folders
// outside of the project in which the agent works.
func (p *Project) Sandbox(agent agents.Agent, work []string) *sandbox.Spec {
	return p.sandboxIn(sandbox.Stricter(p.Config.Sandbox, p.Config.Provider(agent.ID).Sandbox), agent, work)
}

// SandboxIn returns the sandbox of an unknown agent in this mode. It ignores the mode of the configuration.
func (p *Project) SandboxIn(mode sandbox.Mode) *sandbox.Spec {
	return p.sandboxIn(mode, agents.Agent{Agent: provider.Agent{ID: "shell"}}, []string{p.Dir})
}

// CheckSandbox returns an error if this machine cannot start the sandbox that the configuration requires of all
// agents. A server calls it before it takes inputs.
func (p *Project) CheckSandbox() error {
	spec := p.SandboxIn(p.Config.Sandbox)
	if spec == nil {
		return nil
	}
	box, err := sandbox.New(*spec)
	if err != nil {
		return err
	}
	return box.Explain()
}

// offered is the name of an empty file in the state directory. The file exists after Perlica has told a person of
// the sandbox.
const offered = "sandbox-offered"

// OfferSandbox reports whether Perlica should tell a person of the sandbox: no setting names one, and this machine
// can start the mode protect. With the same state directory, OfferSandbox tries this only once.
func (p *Project) OfferSandbox(agent agents.Agent) bool {
	if p.Config.Sandbox != "" || p.Config.Provider(agent.ID).Sandbox != "" {
		return false
	}
	if _, err := sandbox.Find(sandbox.Protect); err != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(p.Dirs.State, offered), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written, so the error does not matter
	return sandbox.Check(*p.SandboxIn(sandbox.Protect), []string{p.Resolver().Self, "sandbox", "try"}).Available
}

func (p *Project) sandboxIn(mode sandbox.Mode, agent agents.Agent, work []string) *sandbox.Spec {
	if mode == "" || mode == sandbox.Off {
		return nil
	}
	spec := &sandbox.Spec{
		Mode: mode, Home: p.Dirs.Home, Work: append([]string{p.Workspace.Root}, work...),
		Keep: []string{p.Workspace.Dir()}, Program: p.Resolver().Self, Environ: p.Environ,
		Hide: []string{filepath.Join(p.Workspace.Dir(), "contexts"), p.Workspace.Service().Dir,
			p.Dirs.Config, p.Dirs.State, p.Dirs.Runtime},
		Show:  append(named(agent.Command), p.Workspace.Service().Files),
		Enter: []string{p.Resolver().Self, "sandbox", "enter"}, Hosts: p.hosts(agent),
	}
	for _, dir := range p.Config.SandboxWrite {
		if rel, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(p.Dirs.Home, rel)
		}
		spec.Own = append(spec.Own, dir)
	}
	spec.Own = append(spec.Own, p.own(agent)...)
	for _, k := range registry.All() {
		spec.Foreign = slices.Concat(spec.Foreign, k.Folders, k.Files)
	}
	for _, dir := range filepath.SplitList(p.environ("PATH")) {
		if !slices.ContainsFunc(spec.Work, func(work string) bool { return isWithin(dir, work) }) {
			spec.Search = append(spec.Search, dir)
		}
	}
	used, _ := List(p.Dirs) // after an error the other projects' logs stay visible
	for _, u := range used {
		if contexts := filepath.Dir(filepath.Dir(u.Log)); !u.Gone && !slices.Contains(spec.Hide, contexts) {
			spec.Hide = append(spec.Hide, contexts)
		}
	}
	return spec
}

// hosts returns the hosts that the agent may connect to in the mode offline. They come from the agent's own list, the
// general list, or the registry.
func (p *Project) hosts(agent agents.Agent) (hosts []proxy.Host) {
	c := p.Config.Provider(agent.ID)
	list := c.SandboxHosts
	if list == nil {
		list = p.Config.SandboxHosts
	}
	if list == nil {
		list = defaultHosts(agent, c.Model.API, c.Model.BaseURL)
	}
	for _, entry := range list {
		if h, err := proxy.ParseHost(entry); err == nil { // the lists were checked
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// defaultHosts returns the registry's hosts of the agent. api and base are the configured API of a model and its
// address, or empty.
func defaultHosts(agent agents.Agent, api, base string) (list []string) {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		if u.Port() == "" { // with a port, the entry may also be a private address
			u.Host += ":" + map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		return []string{u.Host}
	}
	for _, k := range registry.All() {
		if k.Model != nil && k.Model.API == api && k.Model.BaseURL == "" {
			list = append(list, k.Hosts...)
		}
	}
	for _, k := range known(agent) {
		list = append(list, k.Hosts...)
		if k.Model == nil {
			continue
		}
		if u, err := url.Parse(k.Model.BaseURL); err == nil && u.Host != "" {
			list = append(list, u.Host)
		}
	}
	return list
}

// known returns the registry's entries for the agent: the entry with its id, and the entry with its program.
func known(agent agents.Agent) (list []registry.Known) {
	for _, k := range registry.All() {
		if k.ID == agent.ID || len(agent.Command) > 0 && slices.ContainsFunc(k.Commands, func(c []string) bool {
			return c[0] != registry.Self && c[0] == filepath.Base(agent.Command[0])
		}) {
			list = append(list, k)
		}
	}
	return list
}

// own returns the agent's own folders and files: those in the registry, and the folders in the agent's variables. It
// creates missing folders, because the agent in the sandbox cannot create them.
func (p *Project) own(agent agents.Agent) (paths []string) {
	var folders []string
	for _, k := range known(agent) {
		for _, name := range k.Folders {
			folders = append(folders, filepath.Join(p.Dirs.Home, name))
		}
		paths = append(paths, k.Files...)
	}
	for _, name := range agent.Env {
		if dir := p.environ(name); filepath.IsAbs(dir) && (strings.HasSuffix(name, "_HOME") ||
			strings.HasSuffix(name, "_DIR")) {
			folders = append(folders, dir)
		}
	}
	for _, dir := range folders {
		_ = os.MkdirAll(dir, 0o700) // if a folder is missing, the agent reports its own error
	}
	return append(paths, folders...)
}

// named returns the files with an absolute path in a command line. For an event log it returns the log's folder.
func named(command []string) (files []string) {
	for _, word := range command {
		if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() {
			if filepath.Base(word) == "eventlog.db" {
				word = filepath.Dir(word)
			}
			files = append(files, word)
		}
	}
	return files
}

// isWithin reports whether the path is the folder dir or lies in it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
