//go:build linux

package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perlica/perlica/service/discord/discordtest"
	"github.com/perlica/perlica/service/email/emailtest"
	"github.com/perlica/perlica/service/feishu/feishutest"
	"github.com/perlica/perlica/service/matrix/matrixtest"
	"github.com/perlica/perlica/service/ntfy/ntfytest"
	"github.com/perlica/perlica/service/slack/slacktest"
	"github.com/perlica/perlica/service/telegram/telegramtest"
)

// TestServiceCheck runs testdata/check/*.txtar: the output that a newcomer reads for a wrong token, for a missing
// setting, and when all is well. Each script gets the addresses of its platforms in variables.
func TestServiceCheck(t *testing.T) {
	t.Parallel()
	platforms := map[string]func(t *testing.T) map[string]string{
		"discord": discords, "email": mailboxes, "feishu": feishus, "matrix": homeservers, "ntfy": ntfys,
		"slack": slacks, "telegram": telegrams,
	}
	for _, name := range slices.Sorted(maps.Keys(platforms)) {
		vars := platforms[name](t)
		runScripts(t, []string{filepath.Join("testdata", "check", name+".txtar")}, func(env *testscript.Env) error {
			for key, value := range vars {
				env.Setenv(key, value)
			}
			return nil
		})
	}
}

// host serves a handler until the end of the test.
func host(t *testing.T, h http.Handler) (address string) {
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// without returns a list without some of its elements.
func without(list []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(names, s) })
}

func slacks(t *testing.T) map[string]string {
	well, scopes, off := slacktest.New(t), slacktest.New(t), slacktest.New(t)
	scopes.Scopes = without(slacktest.Scopes, "chat:write", "files:read")
	off.Disconnect("link_disabled")
	return map[string]string{"WELL": well.URL, "SCOPES": scopes.URL, "OFF": off.URL, "SLACK_APP": slacktest.AppToken,
		"SLACK_BOT": slacktest.BotToken, "OTHER_BOT": "xoxb-1-2-of-another-app"}
}

func feishus(t *testing.T) map[string]string {
	well, scopes, events := feishutest.New(t), feishutest.New(t), feishutest.New(t)
	scopes.Scopes = without(feishutest.Scopes, "im:message.p2p_msg:readonly", "im:resource")
	events.Mode = "webhook"
	return map[string]string{"WELL": well.URL, "SCOPES": scopes.URL, "EVENTS": events.URL, "APP": feishutest.AppID,
		"FEISHU": feishutest.Secret, "OTHER": "the-secret-of-another-app"}
}

func discords(t *testing.T) map[string]string {
	const token = "OTAwMDAwMDAwMDAwMDAwMDAx.Ga1b2c.mZk3Qw8vLs0TgYh5NrXc2Bd7PfJa"
	well, rights, alone := discordtest.New(token), discordtest.New(token), discordtest.New(token)
	rights.SetRight(1<<6|1<<10|1<<15|1<<38, true)
	rights.SetFlags(0)
	alone.SetRight(0, false)
	return map[string]string{"WELL": host(t, well) + "/api/v10", "RIGHTS": host(t, rights) + "/api/v10",
		"ALONE": host(t, alone) + "/api/v10", "DISCORD": token, "OTHER": token[:len(token)-4] + "XXXX"}
}

func homeservers(t *testing.T) map[string]string {
	const token = "syt_cGVybGljYQ_hqTcvCHvGWJxfSeofSAs_0K5PAL"
	well, secret := matrixtest.New(token), matrixtest.New(token)
	for _, s := range []*matrixtest.Server{well, secret} {
		s.Enter("!room:example.org", "@ann:example.org", "Ann")
		s.Enter("!room:example.org", matrixtest.Bot, "Perlica")
	}
	secret.SetState("!room:example.org", "@ann:example.org", "m.room.encryption", "",
		matrixtest.Object{"algorithm": "x"})
	return map[string]string{"WELL": host(t, well), "SECRET": host(t, secret), "MATRIX": token, "OTHER": token + "x",
		"NOBODY": host(t, http.NotFoundHandler())}
}

func ntfys(t *testing.T) map[string]string {
	const topic, token = "6f1c0b9d2e8a4475b3e0", "tk_0123456789"
	open, well, closed := ntfytest.New(), ntfytest.New(), ntfytest.New()
	well.Token, well.Everyone, closed.Token = token, []string{topic + "-answers"}, token
	return map[string]string{"OPEN": host(t, open), "WELL": host(t, well), "CLOSED": host(t, closed), "TOPIC": topic,
		"NTFY": token, "OTHER": token + "x"}
}

// refuse returns a server's replies: one for commands that begin with a verb, and the usual ones for all others.
func refuse(verb, reply string) func(command string) string {
	return func(command string) string {
		if strings.HasPrefix(command, verb) {
			return reply
		}
		return ""
	}
}

func mailboxes(t *testing.T) map[string]string {
	vars := map[string]string{"ADDRESS": emailtest.Address, "USER_NAME": emailtest.User, "PASSWORD": emailtest.Password,
		"OTHER": "wrong", "KEY": strings.Repeat("0123456789abcdef", 2)}
	for name, reply := range map[string]func(string) string{
		"WELL":  nil,
		"WRONG": refuse("AUTH", "535 5.7.8 authentication failed"),
		"PLUS":  refuse("RCPT", "550 5.1.1 no such mailbox"),
	} {
		s := &emailtest.Server{Reply: reply}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // its connections were cut
		opt := s.Options()
		vars[name+"_IMAP"], vars[name+"_SMTP"] = fmt.Sprint("127.0.0.1:", opt.IMAP.Port), fmt.Sprint("127.0.0.1:",
			opt.SMTP.Port)
	}
	return vars
}

func telegrams(t *testing.T) map[string]string {
	return map[string]string{"WELL": host(t, telegramtest.New(botToken)), "TELEGRAM": botToken, "OTHER": botToken + "x"}
}
