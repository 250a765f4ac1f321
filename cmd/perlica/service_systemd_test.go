//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// systemd is a stand-in for systemd. It receives the reports of a service.
type systemd struct {
	w       *world
	conn    *net.UnixConn
	notices chan string // The reports are read at once, because the socket has room for only a few.
}

func (w *world) systemd() *systemd {
	dir, err := os.MkdirTemp("", "notify") // The path of a socket must be short.
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(); _ = os.RemoveAll(dir) })
	w.env = append(w.env, "NOTIFY_SOCKET="+filepath.Join(dir, "s"), "WATCHDOG_USEC=100000")
	return &systemd{w, conn, make(chan string, 1<<16)}
}

// listen starts to receive reports.
func (s *systemd) listen() *systemd {
	go func() { // The goroutine ends when conn is closed.
		for b := make([]byte, 1000); ; {
			n, err := s.conn.Read(b)
			if err != nil {
				return
			}
			s.notices <- string(b[:n])
		}
	}()
	return s
}

// expect waits until a report has come n times. It returns the other reports that came before.
func (s *systemd) expect(notice string, n int) (before []string) {
	s.w.t.Helper()
	for late := time.After(patience); n > 0; {
		select {
		case got := <-s.notices:
			if got == notice {
				n--
			} else {
				before = append(before, got)
			}
		case <-late:
			s.w.t.Fatalf("%s never came: %q", notice, before)
		}
	}
	return before
}

// TestServiceWithADeafSupervisor checks a service when the supervisor does not read the service's reports. The service
// must serve and end, although the supervisor's socket is full.
func TestServiceWithADeafSupervisor(t *testing.T) {
	w := newWorld(t)
	sd := w.systemd()
	fill, err := net.DialUnix("unixgram", nil, sd.conn.LocalAddr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	for full := 0; full < 3; full++ {
		if err := fill.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := fill.Write([]byte("x")); err == nil {
			full = -1
		}
	}
	s := w.bridge()
	s.signal(syscall.SIGTERM)
	s.exits(0)
	w.audit()
}

// documented returns the code block that follows the given words in docs/service.md.
func documented(t *testing.T, words string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(b), words)
	_, rest, fenced := strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		t.Fatalf("docs/service.md has no block of code behind %q", words)
	}
	return block
}

// TestSystemdUnit checks that the systemd unit in the documentation is valid.
func TestSystemdUnit(t *testing.T) {
	unit := documented(t, "perlica@.service`, and")
	known := map[string][]string{
		"[Unit]": {"Description", "After"},
		"[Service]": {"Type", "WorkingDirectory", "ExecStart", "ExecReload", "Restart", "RestartSec", "WatchdogSec",
			"TimeoutStopSec",
			"KillMode", "NotifyAccess"},
		"[Install]": {"WantedBy"},
	}
	section, seen := "", map[string]string{}
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case known[line] != nil:
			section = line
		case ok && slices.Contains(known[section], key) && value != "":
			seen[key] = value
		default:
			t.Errorf("%s has the line %q", section, line)
		}
	}
	if seen["Type"] != "notify" || seen["KillMode"] != "mixed" ||
		!strings.HasSuffix(seen["ExecStart"], "perlica service") {
		t.Errorf("%q", seen)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	self, err := exec.LookPath("perlica")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "perlica.service")
	unit = strings.NewReplacer("ExecStart=perlica", "ExecStart="+self, "%f", dir).Replace(unit)
	if err := os.WriteFile(name, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(analyze, "--user", "verify", name)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) { // Other units on this machine may be invalid.
		if strings.Contains(line, "perlica.service") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
	t.Logf("systemd-analyze: %v, %s", err, out)
}

// TestLaunchdJob checks that the job in the documentation is a property list. launchd.plist(5) must know all its
// keys.
func TestLaunchdJob(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(documented(t, "org.perlica.service.plist`")))
	known := map[string]string{ // each key with the kind of its value
		"Label": "string", "ProgramArguments": "array", "WorkingDirectory": "string", "RunAtLoad": "true",
		"KeepAlive":      "dict",
		"SuccessfulExit": "false", "ExitTimeOut": "integer", "StandardErrorPath": "string", "EnvironmentVariables": "dict",
	}
	var path []string
	key, seen := "", []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name, parent := token.Name.Local, ""
			if len(path) > 0 {
				parent = path[len(path)-1]
			}
			if parent == "dict" && name != "key" {
				if known[key] != name {
					t.Errorf("the key %q has a %s", key, name)
				}
				seen, key = append(seen, key), ""
			}
			path = append(path, name)
		case xml.EndElement:
			path = path[:len(path)-1]
			if token.Name.Local == "dict" && key != "" {
				t.Errorf("the key %q has no value", key)
			}
		case xml.CharData:
			if len(path) > 0 && path[len(path)-1] == "key" {
				key = string(token)
			}
		}
	}
	for _, needed := range []string{"Label", "ProgramArguments", "WorkingDirectory", "KeepAlive"} {
		if !slices.Contains(seen, needed) {
			t.Errorf("there is no %s: %q", needed, seen)
		}
	}
}
