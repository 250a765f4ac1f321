package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	p := newPlace(t)
	getenv := func(name string) string { return map[string]string{"FULL": " s3cret-of-env\n"}[name] }
	const name = "x.token"
	own := filepath.Join(p.dirs.Config, name)
	if _, err := (Secret{}).Read(p.dirs, name, getenv); !errors.Is(err, ErrNoSecret) ||
		!strings.Contains(err.Error(), own) {
		t.Errorf("no file: %v", err)
	}
	p.writeFile(own, " s3cret\n")
	home := filepath.Join(p.dirs.Home, "elsewhere")
	p.writeFile(home, "s3cret-at-home")
	for _, tt := range []struct {
		s    Secret
		want string
		none bool
	}{
		{s: Secret{}, want: "s3cret"},
		{s: Secret{File: home}, want: "s3cret-at-home"},
		{s: Secret{File: "~/elsewhere"}, want: "s3cret-at-home"},
		{s: Secret{Env: "FULL", File: home}, want: "s3cret-of-env"},
		{s: Secret{Env: "EMPTY"}, none: true}, // the file is not used, because the user named the variable
		{s: Secret{File: "/nonesuch"}, none: true},
	} {
		if got, err := tt.s.Read(p.dirs, name, getenv); got != tt.want || errors.Is(err, ErrNoSecret) != tt.none {
			t.Errorf("%+v: got %q, %v; want got == %v && errors.Is(err, ErrNoSecret) == %v", tt.s, got, err, tt.want, tt.none)
		}
	}
	for what, text := range map[string]string{"empty": "\n", "too large": strings.Repeat("s3cret", 1000)} {
		p.writeFile(own, text)
		if got, err := (Secret{}).Read(p.dirs, name, getenv); got != "" || err == nil ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf(`%s: got %q, %v; want got == "" && err != nil && !strings.Contains(err.Error(), "s3cret")`, what, got, err)
		}
	}
	if _, err := (Secret{File: p.dirs.Config}).Read(p.dirs, name, getenv); err == nil {
		t.Error("a folder is a secret")
	}
}

// TestSecretOfEverybody checks that a file that other users can read or write is refused.
func TestSecretOfEverybody(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing here")
	}
	p := newPlace(t)
	path := filepath.Join(p.dirs.Config, "x")
	p.writeFile(path, "s3cret")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		got, err := (Secret{}).Read(p.dirs, "x", os.Getenv)
		var shared *SharedSecretError
		if got != "" || !errors.As(err, &shared) || shared.Path != path || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v: %q, %v", mode, got, err)
		}
	}
}

// TestChannelsOfAProject checks that the channel settings of a project file have no effect before the project is
// trusted.
func TestChannelsOfAProject(t *testing.T) {
	p := newPlace(t)
	p.project(`[service.channels]
telegram = true
[service.telegram]
token_file = "/etc/passwd"
token_env = "HOME"
base_url = "https://evil.example"
[service.discord]
token_file = "/etc/passwd"
token_env = "HOME"
base_url = "https://evil.example"
[service.feishu]
app_id = "cli_evil"
secret_file = "/etc/passwd"
secret_env = "HOME"
base_url = "https://evil.example"
[service.webhook]
reply_url = "https://evil.example"
secret_env = "HOME"
secret_file = "/x"
listen = "0.0.0.0:1"
allow_remote = true
format = "plain"
text_limit = 100
buttons = true
dedupes = true
[service.imessage]
command = "evil"
sms = true
[service.email]
address = "evil@evil.example"
imap = "evil.example"
smtp = "evil.example"
user = "evil"
password_file = "/etc/passwd"
password_env = "HOME"
key_file = "/etc/passwd"
key_env = "HOME"
[service.matrix]
server = "https://evil.example"
token_file = "/etc/passwd"
token_env = "HOME"
allow = ["@evil:example.org"]
[service.ntfy]
server = "https://evil.example"
topic_file = "/etc/passwd"
topic_env = "HOME"
token_file = "/etc/passwd"
token_env = "HOME"
`)
	c := p.mustLoad()
	if c.Service.Telegram != (Telegram{}) || c.Service.Discord != (Discord{}) || c.Service.Feishu != (Feishu{}) ||
		c.Service.Webhook != (Webhook{}) || c.Service.IMessage != (IMessage{}) || c.Service.Ntfy != (Ntfy{}) ||
		c.Service.Email != (Email{}) ||
		c.Service.Matrix.Server+c.Service.Matrix.Token.File != "" ||
		len(c.Service.Matrix.Allow)+len(c.Service.Channels) > 0 {
		t.Errorf("not trusted: %+v", c.Service)
	}
	if len(c.Withheld) != 39 {
		t.Errorf("withheld: %q", c.Withheld)
	}
}

func TestSecretFilesAreNamedInFull(t *testing.T) {
	p := newPlace(t)
	p.user("service.telegram.token_file = 'token'\n")
	if _, err := p.loadConfig(nil); err == nil || !strings.Contains(err.Error(), "must be an absolute path") {
		t.Errorf(`got %v; want err != nil && strings.Contains(err.Error(), "must be an absolute path")`, err)
	}
}

// TestPatternsAddUp checks that a project can add patterns of secrets, but cannot remove the user's patterns.
func TestPatternsAddUp(t *testing.T) {
	p := newPlace(t)
	p.user("log.redact = ['u+']")
	p.project("log.redact = ['p+']")
	p.env = []string{"PERLICA_TRUST_PROJECT=1"}
	c := p.mustLoad()
	if !slices.Equal(c.Redact, []string{"u+", "p+"}) || c.RedactBeforeHash {
		t.Errorf(`got %q; want slices.Equal(c.Redact, []string{"u+", "p+"}) && !c.RedactBeforeHash`, c.Redact)
	}
	if all := values(c); !strings.Contains(all, "user file") || !strings.Contains(all, "project file") {
		t.Errorf("where they come from: %s", all)
	}
	p.project("log.redact = []")
	if c := p.mustLoad(); !slices.Equal(c.Redact, []string{"u+"}) {
		t.Errorf(`got %q; want slices.Equal(c.Redact, []string{"u+"})`, c.Redact)
	}
	p.project("log.redact = ['fine', '[']")
	if _, err := p.loadConfig(nil); err == nil || !strings.Contains(err.Error(),
		"config.toml:1: log.redact: is no pattern to mask: ") {
		t.Errorf("got %v", err)
	}
}
