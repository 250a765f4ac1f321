package sandbox_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/sandbox"
)

var update = flag.Bool("update", false, "rewrite the table of docs/sandbox.md")

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 3 && os.Args[1] == "enter":
		locals := strings.FieldsFunc(os.Args[2], func(r rune) bool { return r == ',' })
		fmt.Fprintln(os.Stderr, proxy.Enter(locals, os.Args[4:], os.Environ()))
		os.Exit(1)
	case os.Getenv("PERLICA_ESCAPE_WORLD") != "":
		runEscape()
	case os.Getenv("PERLICA_VICTIM") != "":
		secret := [8]byte{'s', 'e', 'c', 'r', 'e', 't'}
		fmt.Println(uintptr(unsafe.Pointer(&secret)))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		fmt.Println(secret)
	default:
		os.Exit(m.Run())
	}
}

// requireBwrap skips a test on a machine that cannot start the sandbox. The test fails if PERLICA_REQUIRE_SANDBOX is
// set. It also fails if the machine can start bwrap with a few simple arguments, because the sandbox is at fault then.
func requireBwrap(t *testing.T) {
	t.Helper()
	box, err := sandbox.New(sandbox.Spec{Mode: sandbox.Protect, Home: t.TempDir()})
	if err == nil {
		err = box.Explain()
	}
	if err == nil {
		return
	}
	plain := exec.Command("bwrap", "--unshare-user-try", "--unshare-pid", "--ro-bind", "/", "/", "true")
	if os.Getenv("PERLICA_REQUIRE_SANDBOX") != "" || plain.Run() == nil {
		t.Fatal(err)
	}
	t.Skip("NOT TESTED: the sandbox:", err)
}

// build creates the files and processes of a world and returns the spec of its sandboxes.
func build(t *testing.T) (w world, spec sandbox.Spec) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	project := filepath.Join(home, "src", "group", "p")
	config := filepath.Join(project, ".perlica_config")
	w = world{
		Home: home, Project: project, Other: filepath.Join(home, "other"), Token: "token-" + strconv.Itoa(os.Getpid()),
		Log: filepath.Join(config, "contexts", "default", "eventlog.db"), State: filepath.Join(home, ".local", "state",
			"perlica"),
		OtherLog: filepath.Join(home, "src", "q", ".perlica_config", "contexts", "default", "eventlog.db"),
		Perlica:  filepath.Join(home, "tools", "perlica"), Search: filepath.Join(home, "dev", "tools", "bin"),
		Sockets: map[string]string{}, Abstract: "perlica-escape-" + filepath.Base(root) + strconv.Itoa(os.Getpid()),
	}
	for _, path := range []string{
		w.Log, w.OtherLog, w.Perlica, filepath.Join(w.State, "key"), filepath.Join(config, "config.toml"),
		filepath.Join(home, ".bashrc"), filepath.Join(home, ".gitconfig"), filepath.Join(home, ".ssh", "id"),
		filepath.Join(home, ".other-agent", "token"), filepath.Join(w.Other, "dotfiles", "profile"),
		filepath.Join(w.Other, "dotfiles", "fish", "config.fish"), filepath.Join(w.Search, "tool"),
		filepath.Join(home, ".config", "autostart", "x.desktop"), filepath.Join(home, ".config", "systemd", "user",
			"x.service"),
	} {
		put(t, path, w.Token)
	}
	for link, to := range map[string]string{".profile": "profile", ".config/fish": "fish"} {
		if err := os.Symlink(filepath.Join(w.Other, "dotfiles", to), filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	short, err := os.MkdirTemp("/tmp", "px") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	run, uid := filepath.Join(short, "run"), strconv.Itoa(os.Getuid())
	for name, path := range map[string]string{
		"ssh": "/agent.1", "unknown": "/deep/down/listening", "bus": "/run/bus", "systemd": "/run/systemd/private",
		"wayland": "/run/wayland-0", "docker": "/docker.sock", "tmux": "/tmux-" + uid + "/default",
		"screen":  "/screens/S-x/1.s",
		"perlica": "/state/run/local.sock",
	} {
		w.Sockets[name] = short + path
		listen(t, w.Sockets[name])
	}
	w.Sockets["tmux-later"] = short + "/tmux-" + uid + "/later"
	listen(t, "@"+w.Abstract)
	w.victim(t)
	w.shared(t)
	w.Service, w.Listed = echo(t), echo(t)
	names(t)
	var hosts []proxy.Host
	for _, entry := range []string{w.Listed, portOf("*.example.org", w.Service), portOf("listed.example.net", w.Listed)} {
		h, err := proxy.ParseHost(entry)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	w.key(t)
	tty, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close(); _ = tty.Close() })
	w.Terminal = terminal.Name()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Log, 0)
	if err == nil {
		w.Handle, w.HandleType = base64.StdEncoding.EncodeToString(h.Bytes()), h.Type()
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return w, sandbox.Spec{
		Home: home, Work: []string{project}, Foreign: []string{".other-agent"},
		Hide: []string{filepath.Join(config, "contexts"), filepath.Join(config, "service"), w.State, short + "/state",
			filepath.Dir(filepath.Dir(w.OtherLog))},
		Keep: []string{config}, Show: []string{self}, Enter: []string{self, "enter"}, Hosts: hosts,
		Program: w.Perlica, Search: []string{w.Search},
		Environ: []string{"SSH_AUTH_SOCK=" + w.Sockets["ssh"], "XDG_RUNTIME_DIR=" + run,
			"DOCKER_HOST=unix://" + w.Sockets["docker"],
			"TMUX_TMPDIR=" + short, "SCREENDIR=" + short + "/screens"},
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, address string) {
	t.Helper()
	if !strings.HasPrefix(address, "@") {
		if err := os.MkdirAll(filepath.Dir(address), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // the attempt needs only a connection
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
}

// victim starts a process outside the sandbox, which the child tries to attack.
func (w *world) victim(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, w.Token)
	cmd.Dir, cmd.Env = filepath.Dir(w.Log), []string{"PERLICA_VICTIM=" + w.Token}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if w.VictimAddress, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
		t.Fatal(err)
	}
	w.Victim = cmd.Process.Pid
}

// echo starts a server outside the sandbox that sends back all bytes over TCP and UDP. It returns the address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	go answer(u, func(b []byte) []byte { return b })
	return l.Addr().String()
}

// answer answers each packet with the result of the function "to", until the connection is closed.
func answer(u net.PacketConn, to func([]byte) []byte) {
	b := make([]byte, 512)
	for {
		n, from, err := u.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = u.WriteTo(to(b[:n]), from) // if this fails, the other side gets no answer
	}
}

// names replaces the name server of this process by one that gives every name the address of this machine.
func names(t *testing.T) {
	t.Helper()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go answer(u, func(question []byte) []byte {
		var m dnsmessage.Message
		if m.Unpack(question) != nil || len(m.Questions) != 1 {
			return nil
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		b, _ := m.Pack() // m was unpacked from a valid message
		return b
	})
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", u.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = old; _ = u.Close() })
}

// otherAgent starts another agent in a sandbox of the mode Offline. It returns the address of the proxy in the network
// of that agent.
func otherAgent(t *testing.T, spec sandbox.Spec) string {
	t.Helper()
	spec.Mode = sandbox.Offline
	p, err := process.Start(process.Spec{Argv: []string{"/bin/sh", "-c", "echo $HTTP_PROXY; read end"}, Sandbox: &spec})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(t.Context()); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(p.Output()).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "http://")
}

// shared creates a System V shared memory segment outside the sandbox.
func (w *world) shared(t *testing.T) {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	w.Segment = id
}

// key puts a key into the session keyring of this process. On a system without keyrings it only logs a message.
func (w *world) key(t *testing.T) {
	t.Helper()
	id, err := unix.AddKey("user", w.Token, []byte(w.Token), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Log("NOT TESTED: the sandbox: the keyring:", err)
		return
	}
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_SESSION_KEYRING, 0, 0) })
}

// attack runs the hostile child in the sandbox of spec. Its results map the name of each attempt to "refused" or
// "possible", and to the reason.
func attack(t *testing.T, w world, spec *sandbox.Spec) (results, why map[string]string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Spec{Argv: []string{self},
		Env: []string{"PERLICA_ESCAPE_WORLD=" + string(told), "GORACE=atexit_sleep_ms=0"}, Dir: w.Project,
		Grace: time.Minute, Sandbox: spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Sockets["tmux-later"]); err != nil {
		listen(t, w.Sockets["tmux-later"]) // the child has not made this attempt yet, because its first attempts take longer
	}
	out, err := io.ReadAll(p.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.End(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(p.Forced().Rest); n > 0 {
		t.Errorf("%d processes were left: %v", n, p.Forced().Rest)
	}
	results, why = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		result, reason, _ := strings.Cut(rest, "\t")
		if path, made := strings.CutPrefix(reason, "made "); made && result == "possible" {
			if os.Remove(path) != nil { // the file does not exist outside the sandbox
				result, reason = "refused", "it is in a place of the agent's own"
			}
		}
		results[name], why[name] = result, reason
	}
	if len(results) != len(escapes) {
		t.Fatalf("the child tried %d of %d:\n%s\n%s", len(results), len(escapes), out, p.StderrTail())
	}
	return results, why
}

// page is the path of the page in the documentation with the generated tables.
const page = "../../docs/sandbox.md"

// checkTable compares the table with this name in the page with the generated table. With -update it writes the table
// into the page.
func checkTable(t *testing.T, name, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table %s", page, name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("the table %s of docs/sandbox.md is old: go test ./provider/sandbox -update\n%s", name, table)
	}
}

// TestVersion checks that the version of bwrap is the one that the program itself prints.
func TestVersion(t *testing.T) {
	requireBwrap(t)
	box, err := sandbox.New(sandbox.Spec{Mode: sandbox.Protect, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	path, err := sandbox.Find(sandbox.Protect)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := "bubblewrap " + box.Version(); got != strings.TrimSpace(string(out)) {
		t.Errorf("%q, want %q", got, out)
	}
}

// TestEscapes runs a hostile child in each mode. It checks that each mode refuses the attempts that it should refuse,
// and that docs/sandbox.md has the results.
func TestEscapes(t *testing.T) {
	requireBwrap(t)
	modes := append(sandbox.Modes()[1:], sandbox.Off)
	found := map[string]map[string]string{}
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			w, spec := build(t)
			w.Proxy = otherAgent(t, spec)
			spec.Mode = mode
			s := &spec
			if mode == sandbox.Off {
				s = nil
			}
			results, why := attack(t, w, s)
			found[string(mode)] = results
			for _, e := range escapes {
				refused := mode != sandbox.Off && sandbox.Stricter(sandbox.Mode(e.from), mode) == mode
				if strings.Contains(e.name, "abstract") && s != nil {
					box, err := sandbox.New(*s)
					if err != nil {
						t.Fatal(err)
					}
					if !box.Scoped {
						t.Log("ABSTRACT SOCKETS ARE NOT TESTED: this kernel cannot close them")
						continue
					}
				}
				switch got := results[e.name]; {
				case !refused && !e.free:
				case refused && got != "refused":
					t.Errorf("%s: possible (%s)", e.name, why[e.name])
				case !refused && e.free && got != "possible":
					t.Errorf("%s: refused (%s), want possible", e.name, why[e.name])
				case testing.Verbose():
					t.Logf("%-60s %s: %s", e.name, got, why[e.name])
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	table := "| attempt | `protect` | `project` | `offline` |\n|---|---|---|---|\n"
	for _, e := range escapes {
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", e.name, found["protect"][e.name], found["project"][e.name],
			found["offline"][e.name])
	}
	checkTable(t, "escapes", table)
}

// TestCachesTable checks that docs/sandbox.md has the table of the cache folders to which an agent may write.
func TestCachesTable(t *testing.T) { checkTable(t, "caches", sandbox.CachesTable()) }
