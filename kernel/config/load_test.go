package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/policy"
)

// place has the folders and variables of a user with one project.
type place struct {
	t    testing.TB
	dirs Dirs
	ws   Workspace
	env  []string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, ws: Workspace{Root: filepath.Join(dir, "project"), Exists: true}}
	p.dirs = Dirs{Home: dir, Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}
	if err := os.MkdirAll(p.ws.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) writeFile(path, data string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) user(data string)    { p.t.Helper(); p.writeFile(p.dirs.ConfigFile(), data) }
func (p *place) project(data string) { p.t.Helper(); p.writeFile(p.ws.ConfigFile(), data) }

func (p *place) loadConfig(flags map[string]string) (*Config, error) {
	return Load(p.ws, p.dirs, p.env, flags)
}

func (p *place) mustLoad() *Config {
	p.t.Helper()
	c, err := p.loadConfig(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// text replaces the paths of a place's files with short names.
func (p *place) text(s string) string {
	s = strings.ReplaceAll(s, p.ws.ConfigFile(), "PROJECT")
	s = strings.ReplaceAll(s, p.ws.Dir(), "DIR")
	return strings.ReplaceAll(s, p.dirs.ConfigFile(), "USER")
}

func (c *Config) value(key string) Value {
	for _, v := range c.Values() {
		if v.Key == key {
			return v
		}
	}
	return Value{}
}

func TestDefaults(t *testing.T) {
	p := newPlace(t)
	for _, exists := range []bool{false, true} {
		p.ws.Exists = exists
		c := p.mustLoad()
		want := Config{
			SMTP:      SMTP{TLS: "starttls"},
			ContextID: "default", StreamSync: true, AnswerTimeout: 24 * time.Hour, BudgetRatio: 0.8,
			ContextWindows: map[string]int{}, Logs: Logs{10, 5, 200, "info"}, Chat: Chat{30 * time.Minute, "bell", false, true},
			Editor: struct{ ClientTools, Mode, Answers string }{"refuse", "ask", "asked"}, Providers: map[string]Provider{},
			Service: Service{Channels: map[string]bool{}, Language: "en", Ack: "auto", Stream: true, Team: true, Agents: 4,
				Idle: 15 * time.Minute, MaxAge: 24 * time.Hour, Grace: 20 * time.Second}}
		want.settings = c.settings
		if !reflect.DeepEqual(*c, want) {
			t.Errorf("got %+v\nwant %+v", *c, want)
		}
		wantProvider := Provider{ID: "x", Enabled: true, ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
			MaxLineBytes: 64 << 20}
		if got := c.Provider("x"); !reflect.DeepEqual(got, wantProvider) {
			t.Errorf("got %+v\nwant %+v", got, wantProvider)
		}
		for _, v := range c.Values() {
			if v.Origin != "default" {
				t.Errorf(`got %+v; want v.Origin == "default"`, v)
			}
		}
	}
}

func TestLayers(t *testing.T) {
	const key = "context.default_id"
	p := newPlace(t)
	p.user("[context]\ndefault_id = 'user'\n")
	check := func(flags map[string]string, want, origin string) {
		t.Helper()
		c, err := p.loadConfig(flags)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.value(key); c.ContextID != want || p.text(v.Origin) != origin {
			t.Errorf("got %q from %q, want %q from %q", c.ContextID, p.text(v.Origin), want, origin)
		}
	}
	check(nil, "user", "user file USER:2")
	p.project("\n\ncontext.default_id = 'project'")
	check(nil, "project", "project file PROJECT:3")
	p.env = []string{"PATH=/bin", "PERLICA_CONTEXT_DEFAULT_ID=environment"}
	check(nil, "environment", "environment PERLICA_CONTEXT_DEFAULT_ID")
	check(map[string]string{key: "flag"}, "flag", "flag")
	p.env = []string{"PERLICA_CONTEXT_DEFAULT_ID="}
	check(nil, "project", "project file PROJECT:3")
}

// modelOf decodes the model of a provider from JSON.
func modelOf(text string) (m struct {
	API        string
	Name       string
	BaseURL    string
	Proxy      string
	Blind      bool
	Key        Secret
	KeyCommand []string
	Options    map[string]any
	Price      map[string]any
}) {
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err) // the test wrote this text
	}
	return m
}

func TestEveryKeyIsRead(t *testing.T) {
	p := newPlace(t)
	p.user(`model.default_provider = "my-agent"
sandbox = "protect"
sandbox_write = ["/w"]
sandbox_hosts = ["h"]
[providers.my-agent]
enabled = false
sandbox = "project"
sandbox_hosts = []
adapter = { command = "agent", args = [], env_allowlist = ["A", "B"] }
[providers.my-agent.acp]
connect_timeout = "1s"
request_timeout = "2m"
max_line_bytes = 1_048_576
mode = "none"
[providers.my-agent.model]
api = "gemini"
name = "m"
base_url = "https://example.org"
proxy = "http://p:1"
images = false
key_env = "KEY"
key_file = "/key"
key_command = ["k", "x"]
options = { n = [true, { x = "y" }] }
price.per = 1.5
[providers.other.acp]
mode = "ask"
[permissions]
mode = "reads"
[interaction]
timeout = "1h"
[log]
stream_sync = false
[runtime]
context_budget_ratio = 1
provider_context_windows = { my-agent = 1000, other = 2000 }
[runtime.logs]
level = "debug"
max_size_mb = 1
max_files = 2
max_total_mb = 3
[[mcp.servers]]
name = "local"
command = "mcp"
args = ["x"]
env = { TOKEN = "hunter2" }
[[mcp.servers]]
name = "far"
url = "https://me:pw@example.org/mcp?key=hunter2"
headers.Authorization = "Bearer hunter2"
[[policy.rule]]
effect = "allow"
provider = "my-agent"
kind = ["read", "switch_mode"]
path = "inside"
command = "go test ./..."
reason = "why"
[[policy.rule]]
effect = "deny"
path = "**/*.{key,pem}"
[chat]
idle = "1m"
notify = "off"
thoughts = true
queue = false
[editor]
client_tools = "judge"
mode = "leave"
answers = "none"
[service]
language = "zh"
ack = ""
stream = false
team = false
agents = 2
idle = "1s"
max_age = "2s"
grace = "3s"
[service.channels]
local = false
other = true
[service.discord]
token_file = "~/token"
token_env = "TOKEN"
base_url = "http://ada:secret@127.0.0.1:8082"
[service.feishu]
app_id = "cli_1"
secret_file = "~/feishu"
secret_env = "FEISHU"
base_url = "https://open.larksuite.com"
[service.telegram]
token_file = "~/token"
token_env = "TOKEN"
base_url = "http://me:pw@127.0.0.1:8081"
[service.webhook]
secret_file = "/run/secret"
secret_env = "SECRET"
reply_url = "https://example.org/hunter2/in"
listen = "127.0.0.1:1"
allow_remote = true
format = "plain"
text_limit = 2000
buttons = true
dedupes = true
[service.imessage]
command = "my-imsg"
sms = true
[service.matrix]
server = "https://matrix.example.org"
token_file = "~/matrix"
token_env = "MATRIX"
allow = ["@ann:example.org"]
[service.ntfy]
server = "https://ntfy.example.org"
topic_file = "~/topic"
topic_env = "TOPIC"
token_file = "~/ntfy"
token_env = "NTFY"
[web]
listen = "127.0.0.1:2"
public_url = "https://example.org/perlica"
tls_cert = "~/cert"
tls_key = "~/key"
behind_proxy = "10.0.0.7"
[team]
url = "postgres://u:hunter2@db.example.org/t"
default = true
projects.website = "/srv/website"
[service.email]
address = "bot@mail.example"
imap = "mail.example:1993"
smtp = "mail.example"
user = "bot"
password_file = "~/password"
password_env = "PASSWORD"
key_file = "~/key"
key_env = "KEY"
[smtp]
host = "mail.example.org"
port = 25
tls = "implicit"
from = "me@example.org"
user = "me"
secret_file = "/run/smtp"
secret_env = "SMTP"
`)
	c := p.mustLoad()
	want := Config{SMTP: SMTP{"mail.example.org", "me", "me@example.org", "implicit", 25, Secret{"SMTP", "/run/smtp"}},
		DefaultProvider: "my-agent", Sandbox: "protect", SandboxWrite: []string{"/w"},
		SandboxHosts: []string{"h"},
		ContextID:    "default", Permissions: "reads", AnswerTimeout: time.Hour,
		BudgetRatio: 1, ContextWindows: map[string]int{"my-agent": 1000, "other": 2000}, Logs: Logs{1, 2, 3, "debug"},
		Chat: Chat{time.Minute, "off", true, false}, Editor: struct{ ClientTools, Mode, Answers string }{"judge", "leave",
			"none"},
		Web: struct{ Listen, PublicURL, Cert, Key, Proxy string }{"127.0.0.1:2", "https://example.org/perlica", "~/cert",
			"~/key", "10.0.0.7"},
		Service: Service{
			Channels: map[string]bool{"local": false, "other": true},
			Telegram: Telegram{Secret{"TOKEN", "~/token"}, "http://me:pw@127.0.0.1:8081"},
			Discord:  Discord{Secret{"TOKEN", "~/token"}, "http://ada:secret@127.0.0.1:8082"},
			Feishu:   Feishu{"cli_1", Secret{"FEISHU", "~/feishu"}, "https://open.larksuite.com"},
			Webhook: Webhook{
				Secret: Secret{"SECRET", "/run/secret"}, ReplyURL: "https://example.org/hunter2/in", Listen: "127.0.0.1:1",
				AllowRemote: true, Format: "plain", TextLimit: 2000, Buttons: true, Dedupes: true,
			},
			IMessage: IMessage{"my-imsg", true},
			Email: Email{"bot@mail.example", "mail.example:1993", "mail.example", "bot",
				Secret{"PASSWORD", "~/password"}, Secret{"KEY", "~/key"}},
			Matrix:   Matrix{"https://matrix.example.org", Secret{"MATRIX", "~/matrix"}, []string{"@ann:example.org"}},
			Ntfy:     Ntfy{"https://ntfy.example.org", Secret{"TOPIC", "~/topic"}, Secret{"NTFY", "~/ntfy"}},
			Language: "zh", Ack: "", Agents: 2, Idle: time.Second, MaxAge: 2 * time.Second, Grace: 3 * time.Second,
		},
		Providers: map[string]Provider{
			"my-agent": {"my-agent", false, "agent", []string{}, []string{"A", "B"}, time.Second, 2 * time.Minute, 1 << 20,
				"none", "project", []string{}, modelOf(
					`{"API":"gemini","Name":"m","BaseURL":"https://example.org","Proxy":"http://p:1","Blind":true,"Key":{"Env":"KEY","File":"/key"},"KeyCommand":["k","x"],"Options":{"n":[true,{"x":"y"}]},"Price":{"per":1.5}}`)},
			"other": {ID: "other", Enabled: true, ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
				MaxLineBytes: 64 << 20, Mode: "ask"},
		},
		MCPServers: []MCPServer{
			{Name: "local", Type: "stdio", Command: "mcp", Args: []string{"x"}, Env: map[string]string{"TOKEN": "hunter2"},
				Origin: "USER:42"},
			{Name: "far", Type: "http", URL: "https://me:pw@example.org/mcp?key=hunter2",
				Headers: map[string]string{"Authorization": "Bearer hunter2"}, Origin: "USER:47"},
		},
		Rules: []policy.Rule{
			{Effect: "allow", Provider: "my-agent", Kind: []string{"read", "switch_mode"}, Path: "inside",
				Command: "go test ./...", Reason: "why", Origin: "USER:51"},
			{Effect: "deny", Path: "**/*.{key,pem}", Origin: "USER:58"},
		},
	}
	want.Team.URL, want.Team.Default, want.Team.Projects = "postgres://u:hunter2@db.example.org/t", true,
		map[string]string{"website": "/srv/website"}
	want.settings = c.settings
	for i := range c.MCPServers {
		c.MCPServers[i].Origin = p.text(c.MCPServers[i].Origin)
	}
	for i := range c.Rules {
		c.Rules[i].Origin = p.text(c.Rules[i].Origin)
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("got  %+v\nwant %+v", *c, want)
	}
	if args := c.Provider("other").Args; args != nil {
		t.Errorf("absent arguments are %#v", args)
	}
	var b strings.Builder
	for _, v := range c.Values() {
		b.WriteString(v.Key + " = " + v.Value + "  # " + p.text(v.Origin) + "\n")
	}
	if strings.Contains(b.String(), "hunter2") || strings.Contains(b.String(), ":pw@") {
		t.Error("a secret is shown")
	}
	golden(t, filepath.Join("testdata", "values.golden"), b.String())
}

func TestReservedKeys(t *testing.T) {
	p := newPlace(t)
	p.user("runtime.max_tool_calls = 3\nruntime.max_summary_attempts = 1\nproviders.x.acp.max_retries = 2\n")
	c := p.mustLoad()
	if len(c.Notes) != 3 || p.text(
		c.Notes[0]) != "user file USER:1: runtime.max_tool_calls is reserved and does nothing: Perlica runs no tools." {
		t.Errorf("%q", c.Notes)
	}
}

func TestEnvironment(t *testing.T) {
	p := newPlace(t)
	p.user("providers.my_agent.enabled = true\n")
	p.env = []string{
		"PERLICA_MODEL_DEFAULT_PROVIDER=claude", "PERLICA_LOG_STREAM_SYNC=false", "PERLICA_RUNTIME_CONTEXT_BUDGET_RATIO=0.5",
		"PERLICA_INTERACTION_TIMEOUT=5m", "PERLICA_PROVIDERS_MY_AGENT_ACP_MODE=plan",
		"PERLICA_PROVIDERS_BIG_ONE_ADAPTER_COMMAND=cmd",
		"PERLICA_RUNTIME_PROVIDER_CONTEXT_WINDOWS_CLAUDE=9", "PERLICA_RUNTIME_LOGS_MAX_FILES=2",
		"PERLICA_HOME=/x", "PERLICA_TRUST_PROJECT=0", "PERLICA_PREDICTABLE_X=1", "PERLICA_PREDICTABLE=1",
		"PERLICA_PROVIDER=x", "PERLICA_CONTEXT_DEFAULT_IDS=x", "PERLICA_XYZZY\x1b=1", "PERLICA_MCP_SERVERS=x", "perlica_x=y",
		"odd",
	}
	c := p.mustLoad()
	if c.DefaultProvider != "claude" || c.StreamSync || c.BudgetRatio != 0.5 || c.AnswerTimeout != 5*time.Minute ||
		c.Provider("my_agent").Mode != "plan" || c.Provider("big-one").Command != "cmd" || c.ContextWindows["claude"] != 9 ||
		c.Logs.MaxFiles != 2 {
		t.Errorf("%+v", c)
	}
	want := []string{
		`environment PERLICA_PROVIDER: sets no key and is ignored; did you mean "PERLICA_MODEL_DEFAULT_PROVIDER"?`,
		`environment PERLICA_CONTEXT_DEFAULT_IDS: sets no key and is ignored; did you mean "PERLICA_CONTEXT_DEFAULT_ID"?`,
		`"environment PERLICA_XYZZY\x1b": sets no key and is ignored`,
		`environment PERLICA_MCP_SERVERS: sets no key and is ignored`,
	}
	for i, w := range c.Warnings {
		if i < 3 && w != want[i] || i == 3 && !strings.HasPrefix(w, want[i]) {
			t.Errorf("got %s\nwant %s", w, want[i])
		}
	}
	if len(c.Warnings) != 4 {
		t.Errorf("got %q; want len(c.Warnings) == 4", c.Warnings)
	}
}

func TestWarnsOfARuleThatAllowsEverything(t *testing.T) {
	p := newPlace(t)
	p.user("[[policy.rule]]\neffect = 'allow'\nreason = 'x'\n")
	if w := p.mustLoad().Warnings; len(w) != 1 || p.text(w[0]) != "USER:1: this rule allows everything" {
		t.Errorf(`got %q; want len(w) == 1 && p.text(w[0]) == "USER:1: this rule allows everything"`, w)
	}
}

func TestBadEnvironmentAndFlags(t *testing.T) {
	p := newPlace(t)
	p.project("")
	p.env = []string{"PERLICA_LOG_STREAM_SYNC=maybe", "PERLICA_PERMISSIONS_MODE=alow", "PERLICA_TRUST_PROJECT=si"}
	c, err := p.loadConfig(map[string]string{"context.default_id": "../..", "no.key": "1", "providers.x.adapter.args": "a",
		"runtime.logs.max_files": "x"})
	want := `environment PERLICA_TRUST_PROJECT: must be 1 or 0
environment PERLICA_LOG_STREAM_SYNC: must be true or false
environment PERLICA_PERMISSIONS_MODE: "alow" is not one of ask, reads, deny, allow; did you mean "allow"?
flag: context.default_id: the name of a context does not begin with a dot
flag: no.key: is not a key a flag can set
flag: providers.x.adapter.args: is not a key a flag can set
flag: runtime.logs.max_files: must be a whole number`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v", err)
	}
	var one *Problem
	if !errors.As(err, &one) || one.Source != "environment PERLICA_TRUST_PROJECT" {
		t.Errorf(`got %#v; want errors.As(err, &one) && one.Source == "environment PERLICA_TRUST_PROJECT"`, one)
	}
	if c == nil || c.ContextID != "default" || !c.StreamSync || c.Permissions != "" {
		t.Errorf("what is valid is not kept: %+v", c)
	}
}

// TestListsOfBothFiles checks that a trusted project adds to each list, and that its schedule replaces the user's.
func TestListsOfBothFiles(t *testing.T) {
	p := newPlace(t)
	p.user(`[[schedule]]
id = "a"
every = "2h"
text = "user"
[[schedule]]
id = "b"
cron = "0 8 * * *"
text = "user"
[[budget]]
per = "day"
calls = 0
[[hook]]
on = ["llm.responded"]
command = ["x"]
`)
	p.project(`[[schedule]]
id = "a"
cron = "0 9 * * *"
flow = "f.toml"
inputs = { base = "main" }
[[budget]]
per = "run"
tokens = 10
money = "2.50 EUR"
[[policy.program]]
command = ["y"]
[[notify]]
when = ["question"]
to = "desktop"
after = "30s"
`)
	c, err := p.loadConfig(nil)
	if err != nil || len(c.Schedules) != 2 || len(c.Programs) != 0 || len(c.Notify) != 0 || len(c.Withheld) != 3 {
		t.Fatalf("before trust: %v, %+v, withheld %q", err, c.Schedules, c.Withheld)
	}
	if len(c.Budgets) != 2 || c.Budgets[0].Calls == nil || *c.Budgets[0].Calls != 0 || c.Budgets[0].Scope != "log" ||
		*c.Budgets[1].Tokens != 10 || c.Budgets[1].Money != "2.50 EUR" {
		t.Errorf("budgets %+v", c.Budgets)
	}
	p.env = []string{"PERLICA_TRUST_PROJECT=1"}
	if c, err = p.loadConfig(nil); err != nil {
		t.Fatal(err)
	}
	if len(c.Schedules) != 2 || c.Schedules[0].ID != "b" || c.Schedules[1].Flow != "f.toml" ||
		c.Schedules[1].Permissions != "deny" || c.Schedules[1].Inputs["base"] != "main" {
		t.Errorf("schedules %+v", c.Schedules)
	}
	if len(c.Hooks) != 1 || c.Hooks[0].Timeout != 10*time.Second || len(c.Programs) != 1 || len(c.Notify) != 1 ||
		c.Notify[0].After != 30*time.Second {
		t.Errorf("hooks %+v, programs %+v, notify %+v", c.Hooks, c.Programs, c.Notify)
	}
}

func TestServersOfBothFiles(t *testing.T) {
	p := newPlace(t)
	p.env = []string{"PERLICA_TRUST_PROJECT=1"}
	p.user("[[mcp.servers]]\nname='a'\ncommand='user-a'\n[[mcp.servers]]\nname='b'\ncommand='user-b'\n[[policy.rule]]\neffect='allow'\nkind=['read']\n")
	p.project("[[policy.rule]]\neffect='ask'\n[[mcp.servers]]\nname='a'\ncommand='project-a'\n")
	c := p.mustLoad()
	var got []string
	for _, s := range c.MCPServers {
		got = append(got, s.Command)
	}
	for _, r := range c.Rules {
		got = append(got, string(r.Effect))
	}
	if want := []string{"user-b", "project-a", "allow", "ask"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
