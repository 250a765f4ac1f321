package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// desktopTarget returns the target of this machine's screen: the notifications of the desktop, otherwise the terminal
// of the front end.
func desktopTarget(environ []string, opt Options) Target {
	t := Target{Name: "desktop"}
	look := getenv(environ)
	switch program := desktopProgram(look); {
	case program != "":
		t.send = func(ctx context.Context, n note) (string, error) { return show(ctx, program, environ, n) }
	case opt.Terminal != nil && look("TERM") != "dumb":
		t.send = func(_ context.Context, n note) (string, error) {
			_, err := io.WriteString(opt.Terminal, bell(look, n))
			return "written to the terminal", err
		}
	default:
		t.Elsewhere = "there is no desktop here; a front end at a terminal delivers it"
	}
	return t
}

// desktopProgram returns the path of the program that shows notifications, or "".
func desktopProgram(look func(string) string) string {
	name := "notify-send"
	switch {
	case runtime.GOOS == "darwin":
		name = "osascript"
	case look("DBUS_SESSION_BUS_ADDRESS") == "":
		if _, err := os.Stat(filepath.Join(look("XDG_RUNTIME_DIR"), "bus")); err != nil || look("XDG_RUNTIME_DIR") == "" {
			return ""
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// markup escapes the markup that desktops read in the text of a notification.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// show starts the program. The words of a note are arguments, and no shell reads them.
func show(ctx context.Context, program string, environ []string, n note) (string, error) {
	var args []string
	if filepath.Base(program) == "osascript" {
		args = []string{"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)",
			"-e", "end run", n.Title, n.body()}
	} else {
		urgency := "normal"
		if n.isUrgent() {
			urgency = "critical"
		}
		args = []string{"--app-name=Perlica", "--urgency=" + urgency, "--", n.Title, markup.Replace(n.body())}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = environ, time.Second
	out, err := cmd.CombinedOutput()
	said := oneLine(string(out), replyShown)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return said, nil
	case ctx.Err() != nil, errors.As(err, &exit) && exit.ExitCode() < 0:
		return "", fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	// The program did not start, or its exit code says that it showed nothing.
	return "", fmt.Errorf("%w: %s: %w: %s", channel.ErrNotSent, filepath.Base(program), err, said)
}

// bell returns the bytes that make a terminal show a notification and ring. Terminals know one of two sequences: OSC
// 777 has a title and a text, OSC 9 has only a text. A terminal ignores an unknown sequence.
func bell(look func(string) string, n note) string {
	title, text := oneLine(n.Title, maxError), oneLine(n.body(), maxContent)
	term := look("TERM")
	if strings.HasPrefix(term, "rxvt") || strings.HasPrefix(term, "foot") || look("VTE_VERSION") != "" {
		return "\x1b]777;notify;" + strings.ReplaceAll(title, ";", ",") + ";" + text + "\x1b\\\a"
	}
	return "\x1b]9;" + title + ". " + text + "\x1b\\\a"
}
