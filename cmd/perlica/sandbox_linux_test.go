package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// sandboxed skips a test on a machine without sandboxes.
func sandboxed(t *testing.T) {
	t.Helper()
	ok, err := canSandbox()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skip("NOT TESTED: the sandbox: this machine cannot start one")
	}
}

// TestChatOffersTheSandbox checks that the chat names the sandbox in its first line and offers protect once, if no
// setting names a sandbox. The chat must not offer it if a setting has decided, even for off.
func TestChatOffersTheSandbox(t *testing.T) {
	sandboxed(t)
	w := newWorld(t)
	check := func(first string, offers bool) {
		t.Helper()
		s := w.chat()
		s.bye()
		if text := sgr.ReplaceAllString(s.text(), ""); !strings.Contains(text, first) ||
			strings.Contains(text, "this machine can keep agents from Perlica's files") != offers {
			t.Errorf("the chat shows %q, want %q and an offer: %t", text, first, offers)
		}
	}
	if err := os.Remove(w.offered()); err != nil {
		t.Fatal(err)
	}
	const off = "a new session with predictable, sandbox off; /help"
	w.env = append(w.env, "PERLICA_SANDBOX=off")
	check(off, false)
	w.env[len(w.env)-1] = "PERLICA_SANDBOX="
	check(off, true)
	check(off, false)
	w.env[len(w.env)-1] = "PERLICA_SANDBOX=project"
	check("a new session with predictable, sandbox project; /help", false)
	w.audit()
}

// boxed makes a log, and an agent that tries to read this log and then becomes the given program. Each start of the
// agent adds a line to the project's file "seen". The configuration puts the agent into the sandbox.
func (w *world) boxed(agent string) {
	w.t.Helper()
	sandboxed(w.t)
	w.run("session", "new", "earlier").exits(0)
	w.run("run", "-s", "earlier", "hello").exits(0)
	script := "#!/bin/sh\n" +
		"if head -c 1 " + logFile(w.project) + " >/dev/null 2>&1; then echo open; else echo closed; fi >>" +
		filepath.Join(w.project, "seen") + "\nexec " + agent + "\n"
	path := filepath.Join(w.t.TempDir(), "agent.sh")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.config("sandbox = \"protect\"\n[providers.boxed.adapter]\ncommand = \"" + path + "\"\n")
	w.env = append(w.env, "PERLICA_MODEL_DEFAULT_PROVIDER=boxed")
}

// inside checks that n agents started in the sandbox, could not read the log, and have the sandbox on record.
func (w *world) inside(n int) {
	w.t.Helper()
	seen, err := os.ReadFile(filepath.Join(w.project, "seen"))
	if want := strings.Repeat("closed\n", n); string(seen) != want {
		w.t.Errorf("the agents saw %q (%v), want %q", seen, err, want)
	}
	w.logged(n, "sandbox.entered", `"mode":"protect"`)
	w.logged(1, "sandbox.entered", `"mode":"off"`)
}

// TestSandboxReasonIsShown checks a question about a command that needs more than the sandbox gives. The page and a
// phone must show this reason in English and in Chinese.
func TestSandboxReasonIsShown(t *testing.T) {
	const ask = `@ask execute "List containers" command="docker ps"`
	t.Run("page", func(t *testing.T) {
		const english = "docker needs more than the sandbox project gives: this command will fail there"
		const chinese = "docker 需要的超出沙箱 project 所允许的：这条命令在那里会失败"
		sandboxed(t)
		w := newWorld(t)
		w.config("sandbox = \"project\"\n")
		p := w.browser()
		j, at := w.webServer()
		p.pairs(w, at)
		p.do(chromedp.Navigate(at + "/#/new"))
		p.wait("document.querySelector('select[name=provider] option')")
		p.sends(ask)
		p.sees(english)
		for language, reason := range map[string]string{"en": english, "zh": chinese} {
			if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any]("void localStorage.setItem('language', '"+language+
				"')")); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int64{390, 1280} {
				p.do(chromedp.EmulateViewport(width, 800), chromedp.Reload())
				p.sees(reason)
				p.wait("document.documentElement.scrollWidth <= innerWidth")
				p.show(fmt.Sprint(language, "-", width))
			}
		}
		w.run("pending", "deny").exits(0)
		j.signal(syscall.SIGTERM)
		j.exits(0)
	})
	t.Run("phone", func(t *testing.T) {
		sandboxed(t)
		w := newWorld(t)
		w.config("sandbox = \"project\"\n")
		s := w.service()
		alice := w.phone("alice")
		alice.says(ask)
		alice.hears("docker needs more than the") // A card is narrow, so the reason has several rows.
		alice.hears("command will fail there")
		w.run("pending", "deny").exits(0)
		alice.hears("permission: reject")
		alice.says("/language zh")
		alice.says(ask)
		alice.hears("docker 需要的超出沙箱")
		alice.hears("会失败")
		w.run("pending", "deny").exits(0)
		s.signal(syscall.SIGTERM)
		s.exits(0)
	})
}

// TestFrontEndsStartInside checks that the agent of each front end starts in the configured sandbox. Each agent must
// start exactly once.
func TestFrontEndsStartInside(t *testing.T) {
	const predictable = "perlica agent predictable"
	t.Run("run", func(t *testing.T) {
		w := newWorld(t)
		w.boxed(predictable)
		w.run("run", "hello").exits(0)
		w.inside(1)
	})
	t.Run("chat", func(t *testing.T) {
		w := newWorld(t)
		w.boxed(predictable)
		s := w.terminal(nil, "chat")
		s.expect("boxed ask ❯ \x1b[K") // the agent has opened its session
		s.press("hello\r")
		s.expect("You said: hello")
		s.expect("boxed ask ❯ \x1b[K") // before that, Ctrl-D does not leave the chat
		s.bye()
		w.inside(1)
		w.audit()
	})
	t.Run("service", func(t *testing.T) {
		w := newWorld(t)
		w.boxed(predictable)
		bridge := w.service()
		alice := w.phone("alice")
		alice.says("hello")
		alice.hears("You said: hello")
		bridge.signal(syscall.SIGTERM)
		bridge.exits(0)
		w.inside(1)
	})
	t.Run("web", func(t *testing.T) {
		w := newWorld(t)
		w.boxed(predictable)
		token := strings.TrimSpace(w.run("web", "token", "program").stdout.String())
		server, url := w.webServer()
		res := w.asks(t.Context(), token, "POST", url+"/v1/inputs",
			map[string]any{"project": w.project, "text": "hello", "wait": true}, "")
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
		server.signal(syscall.SIGTERM)
		server.exits(0)
		w.inside(1)
	})
	t.Run("acp", func(t *testing.T) {
		w := newWorld(t)
		w.boxed(predictable)
		w.editor("hello", `"id":3`)
		w.inside(1)
	})
	t.Run("replay", func(t *testing.T) {
		w := newWorld(t)
		w.boxed("perlica agent replay " + filepath.Join(w.project, "frames"))
		frames := filepath.Join(w.project, "frames")
		w.run("session", "export", "earlier", "--replay", frames).exits(0)
		w.run("run", "hello").exits(0)
		w.inside(1)
	})
}

// editor lets an editor send a prompt, and returns the lines that the editor gets. The last line has the text in
// the parameter "until".
func (w *world) editor(prompt, until string) string {
	w.t.Helper()
	cmd := w.command("acp", "--permissions", "allow")
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	editor := w.startCmd(cmd)
	for _, one := range [][2]string{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,` +
			`"clientCapabilities":{"terminal":true}}}`, `"id":1`},
		{`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + w.project + `","mcpServers":[]}}`, `"id":2`},
		{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1",` +
			`"prompt":[{"type":"text","text":` + strconv.Quote(prompt) + `}]}}`, until},
	} {
		if _, err := io.WriteString(in, one[0]+"\n"); err != nil {
			w.t.Fatal(err)
		}
		w.eventually(one[1], func() error {
			if out := editor.stdout.String(); !strings.Contains(out, one[1]) {
				return fmt.Errorf("the editor has %q", out)
			}
			return nil
		})
	}
	if err := in.Close(); err != nil {
		w.t.Fatal(err)
	}
	editor.exits(0)
	return editor.stdout.String()
}

// TestEditorActsOutside checks that the policy does not count on the agent's sandbox for a command that the editor
// runs. The command runs a file that the session has changed, so a person must be asked.
func TestEditorActsOutside(t *testing.T) {
	sandboxed(t)
	w := newWorld(t)
	w.config("sandbox = \"project\"\n[editor]\nclient_tools = \"judge\"\n")
	out := w.editor("@tool edit \"Write\" path=x.sh new=ls\n@terminal ./x.sh", "perlica pending show")
	if strings.Contains(out, "terminal/create") {
		t.Errorf("the editor got %s", out)
	}
	w.logged(1, "interaction.requested", "runs x.sh, which this session changed")
	w.logged(0, "policy.decided")
}

// TestServersNeedTheirSandbox checks that a server ends at its start if this machine cannot provide the configured
// sandbox. A server without this check waits for its first input.
func TestServersNeedTheirSandbox(t *testing.T) {
	for _, args := range [][]string{{"service"}, {"web", "--listen", "127.0.0.1:0"}, {"acp", "--provider", "predictable"}} {
		t.Run(args[0], func(t *testing.T) {
			w := newWorld(t)
			program, err := exec.LookPath("perlica")
			if err != nil {
				t.Fatal(err)
			}
			w.env = append(w.env, "PERLICA_SANDBOX=project", "PATH="+filepath.Dir(program))
			j := w.run(args...)
			j.exits(2)
			if said := j.stderr.String(); !strings.Contains(said, "sandbox project is not available") {
				t.Errorf("it said %q", said)
			}
		})
	}
}

// TestKilledOffline kills Perlica while the agent runs in the sandbox offline and has open connections. The agent and
// all its connections must end, however the connections were opened. No process may remain, and the next run must
// work.
func TestKilledOffline(t *testing.T) {
	sandboxed(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: a kill in the sandbox offline: there is no curl")
	}
	arrived, ended := make(chan string, 8), make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x") // only the start of an answer
		_ = http.NewResponseController(w).Flush()
		arrived <- r.URL.Path
		<-r.Context().Done()
		ended <- r.URL.Path
	}))
	defer server.Close()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "agent.sh")
	script := "#!/bin/sh\n"
	for _, words := range []string{"curl URL/request", "curl -p URL/tunnel", "curl --noproxy '*' URL/local",
		"setsid curl -p URL/daemon"} {
		script += strings.ReplaceAll(words, "URL", server.URL) + " >/dev/null 2>&1 &\n"
	}
	script += "exec perlica agent predictable\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	w.config("sandbox = \"offline\"\nsandbox_hosts = [\"" + strings.TrimPrefix(server.URL, "http://") +
		"\"]\n[providers.boxed.adapter]\ncommand = \"" + path + "\"\n")
	w.env = append(w.env, "PERLICA_MODEL_DEFAULT_PROVIDER=boxed")
	j := w.start("run", "@ignore eof\n@hang")
	four := func(from chan string, what string) {
		t.Helper()
		seen := map[string]bool{}
		for range 4 {
			select {
			case path := <-from:
				seen[path] = true
			case <-time.After(patience):
				t.Fatalf("of the connections have %s: %v; %s", what, seen, j.stderr.String())
			}
		}
	}
	four(arrived, "arrived")
	w.eventually("the prompt is on record", func() error {
		events, err := readLog(logFile(w.project))
		if err == nil && countEvents(events, "acp.request.sent", `"method":"session/prompt"`) == 0 {
			err = errors.New("there is no prompt")
		}
		return err
	})
	j.signal(syscall.SIGKILL)
	j.wait()
	four(ended, "ended")
	w.gone()
	w.config("sandbox = \"offline\"\nsandbox_hosts = []\n")
	w.run("run", "--provider", "predictable", "hello").exits(0)
	w.logged(1, "llm.outcome_unknown")
	w.logged(2, "sandbox.entered", `"mode":"offline"`)
	w.audit()
}
