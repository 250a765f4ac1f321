package notify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tool returns the path of a program. It skips the test if the program is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// startTool starts a program that the end of the test ends.
func startTool(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }) // the signal makes its result an error
}

// eventually calls the function "ready" until it is true.
func eventually(t *testing.T, ready func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for tick := time.Tick(20 * time.Millisecond); !ready(); {
		select {
		case <-tick:
		case <-late:
			t.Fatal("it does not happen")
		}
	}
}

// runs delivers the notifications of two finished turns in two processes. A third process finds nothing to deliver.
func (w *world) runs() {
	w.Helper()
	for _, what := range []func(){func() { w.finish("the answer", 0) }, func() { w.finish("the answer", 0) }, func() {}} {
		_, end := w.child()
		what()
		end()
	}
	w.await(2)
}

// TestMailbox checks that the mails reach the mailbox of a user through a real mail server, one for each cause.
func TestMailbox(t *testing.T) {
	server := tool(t, "smtpd")
	if _, err := os.Stat("/var/run/smtpd.sock"); os.Geteuid() != 0 || err == nil {
		t.Skip("the server needs root, and only one may run on a machine")
	}
	box, err := os.MkdirTemp("", "") // another user can reach no t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(box) }() // nothing is left but a folder
	if err := os.Chmod(box, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close() // the server listens there
	w := newWorld(t, table("mailto:nobody@localhost", "")+fmt.Sprintf(
		"[smtp]\nhost = \"127.0.0.1\"\nport = %d\ntls = \"none\"\nfrom = \"perlica-%d@localhost\"\n", port, port))
	conf := filepath.Join(w.dir, "smtpd.conf")
	w.write(conf, fmt.Sprintf("listen on 127.0.0.1 port %d\naction \"local\" maildir \"%s\"\n"+
		"match from any for local action \"local\"\n", port, box))
	startTool(t, exec.Command(server, "-d", "-f", conf))
	eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close() // the connection only proves that the server listens
		}
		return err == nil
	})
	w.runs()
	sender := fmt.Sprintf("perlica-%d@localhost", port) // the server may also have mails of an earlier test
	var mails []string
	eventually(t, func() bool {
		mails = nil
		names, err := filepath.Glob(filepath.Join(box, "new", "*"))
		for _, name := range names {
			text, rerr := os.ReadFile(name)
			err = errors.Join(err, rerr)
			if strings.Contains(string(text), sender) {
				mails = append(mails, string(text))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(mails) >= 2
	})
	if got := w.history(); got != "started, sent, started, sent" || len(mails) != 2 {
		t.Errorf("%d mails; %s", len(mails), got)
	}
	for _, text := range mails {
		if !strings.Contains(text, "Subject: A turn is finished in shop") ||
			!strings.Contains(text, "perlica log show run-") || strings.Contains(text, "the answer") {
			t.Error(text)
		}
	}
}

// TestNotificationDaemon checks that the notifications reach the notification daemon of a desktop over D-Bus, one for
// each cause.
func TestNotificationDaemon(t *testing.T) {
	bus, daemon, ctl, screen := tool(t, "dbus-daemon"), tool(t, "dunst"), tool(t, "dunstctl"), tool(t, "Xvfb")
	tool(t, "notify-send")
	w := newWorld(t, table("desktop", ""))
	first := func(cmd *exec.Cmd) string {
		t.Helper()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		startTool(t, cmd)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	address := first(exec.Command(bus, "--session", "--nofork", "--nopidfile", "--print-address=1"))
	display := first(exec.Command(screen, "-displayfd", "1", "-nolisten", "tcp"))
	w.environ = append(w.environ, "DBUS_SESSION_BUS_ADDRESS="+address, "DISPLAY=:"+display, "PATH="+os.Getenv("PATH"))
	call := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = w.environ
		return cmd
	}
	startTool(t, call(daemon, "-conf", "/dev/null"))
	eventually(t, func() bool { return call(ctl, "count", "displayed").Run() == nil })
	w.runs()
	if out, err := call(ctl, "close-all").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := call(ctl, "history").Output()
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Data [][]struct {
			Summary, Body struct{ Data string }
			AppName       struct{ Data string } `json:"appname"`
		}
	}
	if err := json.Unmarshal(out, &shown); err != nil || len(shown.Data) != 1 || len(shown.Data[0]) != 2 {
		t.Fatalf("%v in %s", err, out)
	}
	for _, n := range shown.Data[0] {
		if n.Summary.Data != "A turn is finished in shop" || n.AppName.Data != "Perlica" ||
			!strings.Contains(n.Body.Data, "perlica log show run-") {
			t.Errorf("%+v", n)
		}
	}
	if got := w.history(); got != "started, sent, started, sent" {
		t.Error(got)
	}
}
