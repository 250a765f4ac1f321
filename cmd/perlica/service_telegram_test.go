//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/service/telegram/telegramtest"
)

const (
	botToken  = "123456:AAbridge-test-token-of-nobody-0123456"
	tokenPart = "AAbridge-test-token-of-nobody-0123456"
)

// bot is a server for the Bot API over real HTTP. It plays the person Ada in chat 7.
type bot struct {
	*telegramtest.Server
	w   *world
	url string
	// limited makes sending fail with 429, and down makes polling fail with 502. lost drops the responses to sent
	// messages.
	limited, down, lost atomic.Bool
}

func (w *world) bot() *bot {
	w.t.Helper()
	s, err := telegramtest.Open(botToken, filepath.Join(w.t.TempDir(), "journal"))
	if err != nil {
		w.t.Fatal(err)
	}
	b := &bot{Server: s, w: w}
	s.Fault = func(method string, _ int) (f telegramtest.Fault) {
		switch {
		case method == "sendMessage" && b.limited.Load():
			f = telegramtest.Fault{Status: 429, RetryAfter: 3600, Say: "Too Many Requests"}
		case method == "getUpdates" && b.down.Load():
			f = telegramtest.Fault{Status: 502, Say: "<html>" + botToken, Raw: true}
		case method == "sendMessage" && b.lost.Load():
			f = telegramtest.Fault{Lose: true}
		}
		return f
	}
	server := httptest.NewServer(s)
	b.url = server.URL
	w.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return b
}

// say sends a message from Ada.
func (b *bot) say(text string) {
	b.SayMore(7, 7, "Ada", map[string]any{"text": text, "date": time.Now().Unix()})
}

// sent waits for a message of the bot that matches the pattern. It ignores the first n messages.
func (b *bot) sent(n int, pattern string) telegramtest.Sent {
	b.w.t.Helper()
	re, found := regexp.MustCompile(pattern), telegramtest.Sent{}
	ctx, cancel := context.WithTimeout(b.w.t.Context(), 3*patience)
	defer cancel()
	err := b.Wait(ctx, func() bool {
		for _, m := range b.Messages()[min(n, len(b.Messages())):] {
			if re.MatchString(m.Text) {
				found = m
				return true
			}
		}
		return false
	})
	if err != nil {
		b.w.t.Fatalf("nobody says %q: %+v", pattern, b.Messages())
	}
	return found
}

// bridge starts a bridge and waits until it serves.
func (w *world) bridge() *job {
	w.t.Helper()
	j := w.start("service")
	j.expect("serving")
	return j
}

// code returns the last pairing code that the bridge has shown on its terminal.
func (j *job) code() string {
	j.w.t.Helper()
	j.expect("code=")
	all := regexp.MustCompile(`code="(\d{6})"`).FindAllStringSubmatch(j.stderr.String(), -1)
	return all[len(all)-1][1]
}

// secretly writes a file that only the user may read.
func (w *world) secretly(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.home, ".perlica", "config", name)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// nowhere fails if a file of the world contains the text. Only the file in the parameter "but" may contain it.
func (w *world) nowhere(text, but string) {
	w.t.Helper()
	for _, root := range []string{w.home, w.project} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || path == but {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(text)) {
				w.t.Errorf("%s holds the secret", path)
			}
			return err
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// TestTelegram plays a user over HTTP: the missing settings, the bot's name, the code, messages and questions. It
// goes on after a restart of the bridge.
func TestTelegram(t *testing.T) {
	w := newWorld(t)
	b := w.bot()
	w.config(fmt.Sprintf("[service.telegram]\nbase_url = %q\n", b.url))
	var jobs []*job
	run := func(code int, args ...string) *job {
		t.Helper()
		j := w.run(args...)
		j.exits(code)
		jobs = append(jobs, j)
		return j
	}

	j := run(0, "service", "channel", "enable", "telegram")
	j.says("the bot's token: it is missing: no file " + filepath.Join(w.home, ".perlica", "config", "telegram.token"))
	j.says("@BotFather")
	run(2, "service").says("@BotFather")
	path := w.secretly("telegram.token", botToken)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	run(2, "service", "channel", "test", "telegram").says("chmod 600 " + path)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if j := run(0, "service", "check", "telegram"); !strings.Contains(j.stdout.String(), "ok    account       @test_bot") {
		t.Errorf("the account is not named: %s", j.stdout.String())
	}
	if j := run(0, "service", "channel", "test", "telegram"); !strings.Contains(j.stdout.String(),
		"there it is @test_bot (Test Bot)") {
		t.Errorf("the test says %q", j.stdout.String())
	}

	bridge := w.bridge()
	b.AddFile("notes", telegramtest.File{Name: "notes.txt", Data: []byte("what was noted")})
	document := map[string]any{"caption": "read this", "date": time.Now().Unix(),
		"document": map[string]any{"file_id": "notes", "file_name": "notes.txt"}}
	b.SayMore(5, 5, "Mallory", document)
	b.say(bridge.code())
	b.sent(0, "You are paired")
	if j := run(0, "service", "pair"); !strings.Contains(j.stderr.String(),
		"https://t.me/test_bot?start="+strings.TrimSpace(j.stdout.String())) {
		t.Errorf("no address is shown: %q", j.stderr.String())
	}
	b.say("hello")
	b.sent(1, "^You said: hello$")
	if got := b.Reacted(); len(got) != 1 || got[0].Chat != 7 || got[0].Emoji != "🫡" {
		t.Errorf("the acknowledgement is %+v", got)
	}
	b.say(`@ask execute "Look around" command="ls -la"`)
	card := b.sent(2, "ls -la")
	for _, button := range card.Buttons {
		if strings.HasSuffix(button.Text, "“Allow once”") {
			b.Press(5, "Mallory", card.ID, button.Data)
			b.Press(7, "Ada", card.ID, button.Data)
		}
	}
	b.sent(2, "permission: allow-once")
	answered := b.sent(2, "answered at .* Allow once")
	if answered.ID != card.ID || len(answered.Buttons) > 0 || len(card.Buttons) < 2 {
		t.Errorf("the card %+v became %+v", card, answered)
	}
	if n := b.Calls("getFile"); n > 0 {
		t.Error("a stranger's file was fetched")
	}
	b.SayMore(7, 7, "Ada", document)
	b.sent(4, "^You said: read this")
	if found, err := filepath.Glob(filepath.Join(w.project, ".perlica_config", "service", "files", "telegram",
		"*notes.txt")); len(found) != 1 || err != nil {
		t.Errorf("Ada's file: %v, %v", found, err)
	}
	for _, m := range b.Messages() {
		if m.Chat != 7 {
			t.Errorf("a stranger got %+v", m)
		}
	}
	if s := run(0, "doctor").stdout.String(); !regexp.MustCompile(`(?m)^ok +bridge +runs: process \d+`).MatchString(s) ||
		!regexp.MustCompile(`(?m)^ok +bridge-contacts +1 contact is paired`).MatchString(s) ||
		!regexp.MustCompile(`(?m)^ok +channel-telegram +enabled`).MatchString(s) {
		t.Errorf("doctor says %s", s)
	}

	// The bridge answers messages that arrived while it did not run, and shows no new code.
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	n := len(b.Messages())
	b.say("are you back?")
	second := w.bridge()
	b.sent(n, `(?s)^You said: .*are you back`)
	second.signal(syscall.SIGTERM)
	second.exits(0)
	if strings.Contains(second.stderr.String(), "code=") {
		t.Error("a code is shown although somebody is paired")
	}
	if got := b.Unconfirmed(); got > 1 {
		t.Errorf("%d updates are not confirmed", got)
	}
	for _, j := range append(jobs, bridge, second) {
		if strings.Contains(j.stdout.String()+j.stderr.String(), tokenPart) {
			t.Errorf("%q shows the token", j.cmd.Args)
		}
	}
	w.nowhere(tokenPart, path)
	w.audit()
}

// TestTelegramTroubles checks that the bridge waits if the platform limits requests or is down. The status must show
// this.
func TestTelegramTroubles(t *testing.T) {
	w := newWorld(t)
	b := w.bot()
	w.config(fmt.Sprintf(
		"service.channels = { local = false, telegram = true }\nservice.telegram = { base_url = %q, token_env = 'BOT' }\n",
		b.url))
	w.run("service").says("the environment variable BOT is empty")
	w.env = append(w.env, "BOT="+botToken)
	bridge := w.bridge()

	// After too many wrong guesses, a new code replaces the old one.
	first := bridge.code()
	for i := range int64(10) {
		b.Say(100+i, 100+i, "Mallory", "12345"+strconv.Itoa((int(first[5]-'0')+1)%10))
	}
	w.eventually("another code is shown", func() error {
		if second := bridge.code(); second == first {
			return errors.New("it is the same")
		}
		return nil
	})
	b.say(bridge.code())
	b.sent(0, "You are paired")

	looks := func(command, pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		w.eventually(command+" says "+pattern, func() error {
			if s := w.run(strings.Fields(command)...).stdout.String(); !re.MatchString(s) {
				return fmt.Errorf("it says %s", s)
			}
			return nil
		})
	}
	b.lost.Store(true)
	b.say("is it lost?")
	looks("service status", `1 to be sent \(of which 1 may have been sent before\)`)
	looks("doctor", `bridge-outbox .*of which 1 may have been sent before`)
	b.lost.Store(false)
	b.sent(0, `^\(possibly repeated\)\nYou said: is it lost`)

	b.limited.Store(true)
	b.say("hello")
	looks("service status", `sending failed: .*no more messages for 1h`)
	b.down.Store(true)
	b.say("hello again") // The message ends a poll that is running.
	looks("service status", `channel telegram: .*502`)
	looks("doctor", `(?m)^warn +channel-telegram +cannot be read since .*502`)
	looks("doctor",
		`(?m)^warn +bridge-outbox +\d messages are waiting to be sent(, of which \d may have been sent before)?; the last attempt failed: .*1h0m0s`)

	// A limit of an hour does not delay the stop, and no reply that waits is lost.
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	looks("doctor", `(?m)^warn +bridge-outbox +\d messages are waiting(.*\n)+? *hint: start the bridge`)
	b.limited.Store(false)
	b.down.Store(false)
	again := w.bridge()
	b.sent(1, "^You said: hello$")
	b.sent(1, "^You said: hello again$")
	again.signal(syscall.SIGTERM)
	again.exits(0)
	if s := bridge.stderr.String() + again.stderr.String(); strings.Contains(s, tokenPart) {
		t.Errorf("the token is shown: %s", s)
	}
	w.nowhere(tokenPart, "")
	w.audit()
}
