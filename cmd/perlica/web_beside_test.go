//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestServiceServesThePage checks the setting service.web.listen. The bridge must then serve the page, answer inputs
// from the page, and end together with the page.
func TestServiceServesThePage(t *testing.T) {
	w := newWorld(t)
	w.config("[service.web]\nlisten = \"127.0.0.1:0\"\n")
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	j := w.start("service")
	j.expect("no one is paired") // This is the output of the bridge itself.
	w.eventually("the page is served", func() error {
		if strings.Contains(j.stderr.String(), "the page is at http://127.0.0.1:") {
			return nil
		}
		return fmt.Errorf("the bridge goes on without the page: %q", j.stderr.String())
	})
	at := pageAt.FindStringSubmatch(j.stderr.String())[1]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream := w.asks(ctx, token, "GET", at+"/v1/events", nil, "")
	defer stream.Body.Close()
	in := map[string]any{"project": w.project, "text": "@say Hello", "wait": true}
	res := w.asks(ctx, token, "POST", at+"/v1/inputs", in, "")
	if b, err := io.ReadAll(res.Body); err != nil || !bytes.Contains(b, []byte(`"text":"Hello"`)) {
		t.Errorf("%d %s %v", res.StatusCode, b, err)
	}
	j.signal(syscall.SIGTERM)
	j.exits(0)
	_, _ = io.Copy(io.Discard, stream.Body) // The stream ends when the process ends.
	w.logged(1, "llm.requested")
	w.audit()
	w.gone()
}

// TestServiceCannotServeThePage checks that the bridge reports an address in use. It does not start without the
// configured page.
func TestServiceCannotServeThePage(t *testing.T) {
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w.config("[service.web]\nlisten = \"" + taken.Addr().String() + "\"\n")
	j := w.start("service")
	w.eventually("perlica ends", func() error {
		switch {
		case j.over():
			return nil
		case strings.Contains(j.stderr.String(), "no one is paired"):
			t.Fatalf("the bridge goes on without the page: %q", j.stderr.String())
		}
		return errors.New("it has not")
	})
	j.exits(1)
	j.says("is taken")
	w.gone()
}

// TestSocketActivation checks that the server uses a socket from systemd. It must also answer requests that were
// sent before it started.
func TestSocketActivation(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	early, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if _, err := io.WriteString(early, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	// The variables name the process that should use the socket, as systemd sets them.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec perlica web`)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = w.project, slices.Clone(w.env), []*os.File{file}
	j := w.startCmd(cmd)
	j.expect("the page is at http://" + l.Addr().String() + "/")
	if b, err := io.ReadAll(early); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200") {
		t.Errorf("%q, %v", b, err)
	}
	res, err := http.Get("http://" + l.Addr().String() + "/")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	j.signal(syscall.SIGTERM)
	j.exits(0)

	// If the variables name another process, the socket is not used.
	cmd = exec.Command("sh", "-c", `LISTEN_PID=1 LISTEN_FDS=1 exec perlica web --listen 127.0.0.1:0`)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = w.project, slices.Clone(w.env), []*os.File{file}
	j = w.startCmd(cmd)
	j.expect("the page is at http://127.0.0.1:")
	if strings.Contains(j.stderr.String(), l.Addr().String()) {
		t.Error(j.stderr.String())
	}
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.gone()
}
