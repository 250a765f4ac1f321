package config

import (
	"maps"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider/sandbox"
)

// kind is the type of a key's value.
type kind int

const (
	text     kind = iota // string
	boolean              // bool
	integer              // integer, in TOML's sense
	number               // float64
	duration             // time.Duration, written as "30s"
	texts                // []string
	textMap              // map[string]string
	anyTable             // map[string]any
)

// String returns the kind's name for errors and docs.
func (k kind) String() string {
	return [...]string{"string", "boolean", "integer", "number", "duration", "list of strings", "table of strings",
		"table"}[k]
}

// scalar reports whether a value fits into an environment variable or a flag.
func (k kind) scalar() bool { return k < texts }

// anyID is the placeholder of a provider's id in the name of a key.
const anyID = "<id>"

// These sections describe objects of which several can exist.
const (
	providerSection = "provider"
	serverSection   = "mcp.servers"
	ruleSection     = "policy.rule"
	programSection  = "policy.program"
	scheduleSection = "schedule"
	budgetSection   = "budget"
	hookSection     = "hook"
	notifySection   = "notify"
)

// row describes one key.
type row struct {
	name string // such as "providers.<id>.acp.mode" or "mcp.servers[].url"
	kind kind
	// def is the default, in the kind's Go type. Nil means that the key has no default.
	def any
	// example is a TOML literal for the key. It is set if the key's default explains nothing.
	example string
	help    string
	choices []string
	// min and max limit the value if max > 0. The limits of a duration are in seconds.
	min, max float64
	check    func(string) *message.Text // returns the mistake in a value, or nil
	required bool
	reserved bool
	// secret masks the values in listings.
	secret bool
	// adds means that each file adds to the list instead of replacing it.
	adds    bool
	loosens loosening
	// personal means that the key is an error in a project's file, even in a trusted one.
	personal bool
	// exampleID replaces <id> in examples. Empty means the constant exampleID.
	exampleID string
	store     func(target, any)
}

// target is the object that gets a value. The caller sets the fields that the row's section needs.
type target struct {
	config   *Config
	id       string
	provider *Provider
	server   *MCPServer
	rule     *policy.Rule
	program  *PolicyProgram
	schedule *Schedule
	budget   *Budget
	hook     *Hook
	notify   *Notify
}

const (
	kib = 1 << 10
	gib = 1 << 30
)

// modes returns the names of the sandboxes, the loosest first.
func modes() (names []string) {
	for _, m := range sandbox.Modes() {
		names = append(names, string(m))
	}
	return names
}

// noEffect stores nothing. Reserved keys use it.
func noEffect(target, any) {}

// table has a row for every key, in the order of the documentation.
var table = []row{
	{name: "sandbox", kind: text, choices: modes(), example: `"protect"`, loosens: whenOpener,
		help: "The sandbox in which agents start; see docs/sandbox.md. Without this key it is off. Perlica sends nothing " +
			"if this machine cannot provide it.",
		store: func(t target, v any) { t.config.Sandbox = sandbox.Mode(v.(string)) }},
	{name: "sandbox_write", kind: texts, example: `["/data/builds"]`, check: checkSecretFile, adds: true, loosens: always,
		help:  "Further files and folders to which an agent in a sandbox may write. They must exist.",
		store: func(t target, v any) { t.config.SandboxWrite = v.([]string) }},
	{name: "sandbox_hosts", kind: texts, example: `["api.example.org", "*.example.org:8443", "localhost:11434"]`,
		check: checkHost, loosens: whenMoreHosts,
		help: "The hosts to which an agent in the sandbox `offline` may connect, instead of those of the registry. " +
			"`[]` means none.",
		store: func(t target, v any) { t.config.SandboxHosts = append([]string{}, v.([]string)...) }},

	{name: "model.default_provider", kind: text, def: "", example: `"claude"`, check: checkOptionalID,
		loosens: whenProjectDefines,
		help: "The provider that is used when a command names no other one. Empty: the first installed agent of the " +
			"registry; at a terminal without one, the built-in predictable agent.",
		store: func(t target, v any) { t.config.DefaultProvider = v.(string) }},

	{name: "providers.<id>.enabled", kind: boolean, def: true, loosens: whenTrue,
		help:  "A disabled provider is never started.",
		store: func(t target, v any) { t.provider.Enabled = v.(bool) }},
	{name: "providers.<id>.sandbox", kind: text, choices: modes(), example: `"project"`, loosens: whenOpener,
		help:  "The sandbox of this provider's agent, if it is stricter than the general one.",
		store: func(t target, v any) { t.provider.Sandbox = sandbox.Mode(v.(string)) }},
	{name: "providers.<id>.sandbox_hosts", kind: texts, example: `["api.example.org"]`, check: checkHost,
		loosens: whenMoreHosts,
		help:    "The hosts of this provider's agent, instead of the general ones.",
		store:   func(t target, v any) { t.provider.SandboxHosts = append([]string{}, v.([]string)...) }},
	{name: "providers.<id>.adapter.command", kind: text, example: `"my-agent"`, check: checkNotEmpty, loosens: always,
		help: "The program that speaks ACP on its standard input and output, looked up on PATH. Absent: as the " +
			"registry has it.",
		store: func(t target, v any) { t.provider.Command = v.(string) }},
	{name: "providers.<id>.adapter.args", kind: texts, example: `["--acp"]`, loosens: always,
		help:  "Its arguments. `[]` means no arguments; absent means those of the registry. Shown with their secrets masked.",
		store: func(t target, v any) { t.provider.Args = v.([]string) }},
	{name: "providers.<id>.adapter.env_allowlist", kind: texts, example: `["MY_AGENT_KEY"]`, check: checkEnvName,
		loosens: always,
		help:    "Names of further environment variables that are passed to the agent.",
		store:   func(t target, v any) { t.provider.Env = v.([]string) }},
	{name: "providers.<id>.acp.connect_timeout", kind: duration, def: 60 * time.Second,
		help:  "The limit for starting the agent and for `initialize`.",
		store: func(t target, v any) { t.provider.ConnectTimeout = v.(time.Duration) }},
	{name: "providers.<id>.acp.request_timeout", kind: duration, def: 60 * time.Second,
		help:  "The limit for any other request but `session/prompt`.",
		store: func(t target, v any) { t.provider.RequestTimeout = v.(time.Duration) }},
	{name: "providers.<id>.acp.max_line_bytes", kind: integer, def: 64 << 20, min: 64 * kib, max: gib, loosens: whenHigher,
		help: "The longest line of the agent that is kept. Of a longer one the length, the hash and the first 64 " +
			"KiB are kept.",
		store: func(t target, v any) { t.provider.MaxLineBytes = v.(int) }},
	{name: "providers.<id>.acp.mode", kind: text, def: "", example: `"default"`, loosens: always,
		help: "The mode that is selected at the start of a session. Empty: the agent's asking mode, as the registry has " +
			"it; `\"none\"`: Perlica selects no mode.",
		store: func(t target, v any) { t.provider.Mode = v.(string) }},
	{name: "providers.<id>.acp.max_retries", kind: integer, max: 1000, example: "0", reserved: true, store: noEffect,
		help: "Perlica sends nothing twice."},

	{name: "providers.<id>.model.api", kind: text, choices: []string{"anthropic", "openai", "openai-chat", "gemini"},
		example: `"openai-chat"`, loosens: always,
		help:  "The protocol of a model's HTTP API. The provider is then a model without an agent; see docs/models.md.",
		store: func(t target, v any) { t.provider.Model.API = v.(string) }},
	{name: "providers.<id>.model.name", kind: text, example: `"claude-sonnet-4-5"`, check: checkNotEmpty, loosens: always,
		help:  "The model, as its maker names it; `--model` names another.",
		store: func(t target, v any) { t.provider.Model.Name = v.(string) }},
	{name: "providers.<id>.model.base_url", kind: text, example: `"https://openrouter.ai/api/v1"`, check: checkURL,
		loosens: always,
		help: "The address of the API, without the path of its endpoint: https, or http on this machine. Absent: " +
			"the maker's.",
		store: func(t target, v any) { t.provider.Model.BaseURL = v.(string) }},
	{name: "providers.<id>.model.key_env", kind: text, example: `"OPENROUTER_API_KEY"`, check: checkEnvName,
		loosens: always,
		help:    "The environment variable that holds the key.",
		store:   func(t target, v any) { t.provider.Model.Key.Env = v.(string) }},
	{name: "providers.<id>.model.key_file", kind: text, example: `"~/secrets/openrouter.key"`, check: checkSecretFile,
		loosens: always,
		help:    "The file that holds the key, instead of a variable. No one else may read it (0600).",
		store:   func(t target, v any) { t.provider.Model.Key.File = v.(string) }},
	{name: "providers.<id>.model.key_command", kind: texts, example: `["gcloud", "auth", "print-access-token"]`,
		check: checkNotEmpty, loosens: always,
		help: "A program that prints the key, and its arguments, instead of a variable or a file. It runs once for each " +
			"agent process, without a shell, before the first request, for at most 30 seconds.",
		store: func(t target, v any) { t.provider.Model.KeyCommand = v.([]string) }},
	{name: "providers.<id>.model.proxy", kind: text, example: `"http://proxy.example.org:3128"`, check: checkNotEmpty,
		loosens: always,
		help:    "The proxy to an API at an https address. Absent: as in `HTTPS_PROXY` and `NO_PROXY`.",
		store:   func(t target, v any) { t.provider.Model.Proxy = v.(string) }},
	{name: "providers.<id>.model.images", kind: boolean, example: "false", loosens: always,
		help:  "The model takes images and PDFs. With `false`, an input with one is refused before anything is sent.",
		store: func(t target, v any) { t.provider.Model.Blind = !v.(bool) }},
	{name: "providers.<id>.model.options", kind: anyTable, example: `{ max_tokens = 4096, temperature = 0 }`,
		loosens: always,
		help:    "Members of the request's body, sent unchanged.",
		store:   func(t target, v any) { t.provider.Model.Options = v.(map[string]any) }},
	{name: "providers.<id>.model.price", kind: anyTable, example: `{ input = 3.0, output = 15.0, currency = "USD", as_of = "2026-11-01" }`, loosens: always,
		help: "The prices of `per` (1,000,000) tokens: `input`, `output`, `cached_input`, `cache_write`, `currency` and " +
			"the date `as_of`. The cost is an estimate. It is unknown without a price, and without `cache_write` if tokens " +
			"were written to a cache.",
		store: func(t target, v any) { t.provider.Model.Price = v.(map[string]any) }},

	{name: "permissions.mode", kind: text, choices: []string{"ask", "reads", "deny", "allow"}, example: `"ask"`,
		loosens: whenLaxer,
		help: "The mode that answers an agent's questions after the rules: `ask`: a person; `reads`: yes to reads inside " +
			"the working directory, otherwise a person; `deny`: no; `allow`: yes to every ordinary command. Absent: `ask`. " +
			"Without a terminal a question to a person goes unanswered, and the answer is no.",
		store: func(t target, v any) { t.config.Permissions = v.(string) }},
	{name: "interaction.timeout", kind: duration, def: 24 * time.Hour,
		help:  "The time for which a question stays open; after it the answer is no.",
		store: func(t target, v any) { t.config.AnswerTimeout = v.(time.Duration) }},
	{name: "chat.idle", kind: duration, def: 30 * time.Minute,
		help:  "The time for which the chat keeps an idle agent. The next input continues its session.",
		store: func(t target, v any) { t.config.Chat.Idle = v.(time.Duration) }},
	{name: "chat.notify", kind: text, def: "bell", choices: []string{"off", "bell", "osc9"},
		help: "The signal of the chat for an open question, and for the end of a turn of more than 10 seconds: none, the " +
			"terminal's bell, or the notification of terminals that know OSC 9.",
		store: func(t target, v any) { t.config.Chat.Notify = v.(string) }},
	{name: "chat.thoughts", kind: boolean, def: false,
		help:  "The chat shows the agent's thoughts.",
		store: func(t target, v any) { t.config.Chat.Thoughts = v.(bool) }},
	{name: "chat.queue", kind: boolean, def: true,
		help: "Enter during a turn of the chat queues the typed text as the next input. With `false`, the text stands in " +
			"the next prompt.",
		store: func(t target, v any) { t.config.Chat.Queue = v.(bool) }},
	{name: "editor.client_tools", kind: text, def: "refuse", choices: []string{"refuse", "judge"}, loosens: always,
		help: "An editor may read and write files and run commands for the agent of `perlica acp`: never, or if the " +
			"policy or a person at another front end allows it.",
		store: func(t target, v any) { t.config.Editor.ClientTools = v.(string) }},
	{name: "editor.mode", kind: text, def: "ask", choices: []string{"ask", "leave"}, loosens: always,
		help: "The mode in which `perlica acp` starts an agent: its asking mode, or its own choice. A mode that is " +
			"chosen later in the editor counts.",
		store: func(t target, v any) { t.config.Editor.Mode = v.(string) }},
	{name: "editor.answers", kind: text, def: "asked", choices: []string{"ordinary", "asked", "none"}, loosens: always,
		help: "The questions that an editor may answer: those of the ordinary tier, all but those of the refused tier, " +
			"or none. The others wait at Perlica's own front ends.",
		store: func(t target, v any) { t.config.Editor.Answers = v.(string) }},
	{name: "context.default_id", kind: text, def: "default", check: contextFault,
		help:  "The set of databases that is used when a command names no other one.",
		store: func(t target, v any) { t.config.ContextID = v.(string) }},
	{name: "log.stream_sync", kind: boolean, def: true, loosens: whenFalse,
		help:  "The agent's output is on disk before it is shown. With `false`, it may be shown at most 20 ms earlier.",
		store: func(t target, v any) { t.config.StreamSync = v.(bool) }},
	{name: "log.redact", kind: texts, example: `["CUST-[0-9]{8}"]`, check: checkPattern, adds: true, loosens: always,
		help: "Regular expressions of further secrets to mask in the debug trail and in exports, and on the log itself " +
			"with `log.redact_before_hash`. If an expression has a group, the first one is masked. The lists of all " +
			"files count.",
		store: func(t target, v any) { t.config.Redact = v.([]string) }},
	{name: "log.redact_before_hash", kind: boolean, def: false, loosens: always,
		help: "Secrets are masked before an event is hashed and written, so they never reach the log. A masked text is " +
			"no evidence of the line on the wire; see docs/retention.md.",
		store: func(t target, v any) { t.config.RedactBeforeHash = v.(bool) }},

	{name: "record.git", kind: boolean, example: "true", loosens: whenTrue,
		help: "In a git work tree, the record has the commit and the hashes of changed files before and after each turn; " +
			"see docs/changes.md. Absent: in trusted projects.",
		store: func(t target, v any) { on := v.(bool); t.config.RecordGit = &on }},
	{name: "service.channels.<id>", kind: boolean, example: "true", exampleID: "telegram", loosens: whenSwitchedOn,
		help: "The bridge serves this channel: `local`, `telegram`, `slack`, `discord`, `feishu`, `webhook`, `imessage`, " +
			"`email`, `matrix` or `ntfy`. Absent: `local` is served, the others are not.",
		store: func(t target, v any) { t.config.Service.Channels[t.id] = v.(bool) }},
	{name: "service.telegram.token_file", kind: text, example: `"~/secrets/telegram.token"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the bot's token. No one else may read it (0600). Absent: `telegram.token` in the " +
			"user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Telegram.Token.File = v.(string) }},
	{name: "service.telegram.token_env", kind: text, example: `"TELEGRAM_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the bot's token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Telegram.Token.Env = v.(string) }},
	{name: "service.telegram.base_url", kind: text, example: `"http://127.0.0.1:8081"`, check: checkURL, secret: true,
		loosens: always,
		help:    "The address of a Bot API server of your own. Absent: Telegram's.",
		store:   func(t target, v any) { t.config.Service.Telegram.BaseURL = v.(string) }},
	{name: "service.slack.app_token_file", kind: text, example: `"~/secrets/slack-app.token"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the app's app-level token (`xapp-`). No one else may read it (0600). Absent: " +
			"`slack-app.token` in the user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Slack.AppToken.File = v.(string) }},
	{name: "service.slack.app_token_env", kind: text, example: `"SLACK_APP_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the app-level token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Slack.AppToken.Env = v.(string) }},
	{name: "service.slack.bot_token_file", kind: text, example: `"~/secrets/slack-bot.token"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the app's bot token (`xoxb-`). No one else may read it (0600). Absent: " +
			"`slack-bot.token` in the user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Slack.BotToken.File = v.(string) }},
	{name: "service.slack.bot_token_env", kind: text, example: `"SLACK_BOT_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the bot token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Slack.BotToken.Env = v.(string) }},
	{name: "service.slack.base_url", kind: text, example: `"https://slack-gov.com/api"`, check: checkURL, secret: true,
		loosens: always,
		help:    "The address of the Web API. Absent: `https://slack.com/api`.",
		store:   func(t target, v any) { t.config.Service.Slack.BaseURL = v.(string) }},
	{name: "service.discord.token_file", kind: text, example: `"~/secrets/discord.token"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the bot's token. No one else may read it (0600). Absent: `discord.token` in the " +
			"user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Discord.Token.File = v.(string) }},
	{name: "service.discord.token_env", kind: text, example: `"DISCORD_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the bot's token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Discord.Token.Env = v.(string) }},
	{name: "service.discord.base_url", kind: text, example: `"http://127.0.0.1:8082/api/v10"`, check: checkURL,
		secret: true, loosens: always,
		help:  "The address of another REST API with Discord's methods, such as a proxy. Absent: Discord's.",
		store: func(t target, v any) { t.config.Service.Discord.BaseURL = v.(string) }},
	{name: "service.feishu.app_id", kind: text, example: `"cli_a1b2c3d4e5f6"`, loosens: always,
		help:  "The id of the app. It begins with `cli_`.",
		store: func(t target, v any) { t.config.Service.Feishu.AppID = v.(string) }},
	{name: "service.feishu.secret_file", kind: text, example: `"~/secrets/feishu.secret"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the app's secret. No one else may read it (0600). Absent: `feishu.secret` in the " +
			"user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Feishu.Secret.File = v.(string) }},
	{name: "service.feishu.secret_env", kind: text, example: `"FEISHU_APP_SECRET"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the app's secret, instead of a file.",
		store: func(t target, v any) { t.config.Service.Feishu.Secret.Env = v.(string) }},
	{name: "service.feishu.base_url", kind: text, example: `"https://open.larksuite.com"`, check: checkURL, secret: true,
		loosens: always,
		help:    "The address of the platform. Absent: `https://open.feishu.cn`. Lark has the address of the example.",
		store:   func(t target, v any) { t.config.Service.Feishu.BaseURL = v.(string) }},
	{name: "service.webhook.secret_file", kind: text, example: `"~/secrets/webhook.secret"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the secret with which both sides sign. No one else may read it (0600). Absent: " +
			"`webhook.secret` in the user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Webhook.Secret.File = v.(string) }},
	{name: "service.webhook.secret_env", kind: text, example: `"WEBHOOK_SECRET"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the secret, instead of a file.",
		store: func(t target, v any) { t.config.Service.Webhook.Secret.Env = v.(string) }},
	{name: "service.webhook.reply_url", kind: text, example: `"http://127.0.0.1:9000/replies"`, check: checkURL,
		secret: true, loosens: always,
		help:  "The address to which replies are posted. Shown masked.",
		store: func(t target, v any) { t.config.Service.Webhook.ReplyURL = v.(string) }},
	{name: "service.webhook.listen", kind: text, example: `"127.0.0.1:8787"`, check: checkNotEmpty, loosens: always,
		help:  "The address for messages, as `host:port`. Absent: `127.0.0.1:8787`.",
		store: func(t target, v any) { t.config.Service.Webhook.Listen = v.(string) }},
	{name: "service.webhook.allow_remote", kind: boolean, example: "true", loosens: always,
		help:  "Other machines may send messages, and replies may go to another machine without TLS.",
		store: func(t target, v any) { t.config.Service.Webhook.AllowRemote = v.(bool) }},
	{name: "service.webhook.format", kind: text, choices: []string{"markdown", "plain"}, example: `"plain"`,
		loosens: always,
		help:    "The format of replies. Absent: `markdown`.",
		store:   func(t target, v any) { t.config.Service.Webhook.Format = v.(string) }},
	{name: "service.webhook.text_limit", kind: integer, min: 100, max: gib, example: "2000", loosens: always,
		help: "The longest text that the receiver takes, in UTF-16 code units; longer replies are cut into several. " +
			"Absent: no limit.",
		store: func(t target, v any) { t.config.Service.Webhook.TextLimit = v.(int) }},
	{name: "service.webhook.buttons", kind: boolean, example: "true", loosens: always,
		help:  "The receiver shows buttons; otherwise options are numbered.",
		store: func(t target, v any) { t.config.Service.Webhook.Buttons = v.(bool) }},
	{name: "service.webhook.dedupes", kind: boolean, example: "true", loosens: always,
		help:  "The receiver recognises repeated keys, so that a repeated message needs no mark.",
		store: func(t target, v any) { t.config.Service.Webhook.Dedupes = v.(bool) }},
	{name: "service.imessage.command", kind: text, example: `"/opt/homebrew/bin/imsg"`, check: checkNotEmpty,
		loosens: always,
		help:    "The command that reads and writes Messages. Absent: `imsg`, looked up on PATH.",
		store:   func(t target, v any) { t.config.Service.IMessage.Command = v.(string) }},
	{name: "service.imessage.sms", kind: boolean, example: "true", loosens: always,
		help:  "The bridge also takes SMS and RCS, whose senders can be forged.",
		store: func(t target, v any) { t.config.Service.IMessage.SMS = v.(bool) }},
	{name: "service.email.address", kind: text, example: `"perlica@example.org"`, check: checkNotEmpty, loosens: always,
		help: "The address of the bridge's own mailbox. Mails to this address with `+` and a word before the `@` must " +
			"arrive there, too.",
		store: func(t target, v any) { t.config.Service.Email.Address = v.(string) }},
	{name: "service.email.imap", kind: text, example: `"imap.example.org"`, check: checkMailServer, loosens: always,
		help: "The IMAP server, with a port if it is not 993. The connection is encrypted. On port 143 the encryption " +
			"begins after STARTTLS. A server on this machine with another port is not encrypted.",
		store: func(t target, v any) { t.config.Service.Email.IMAP = v.(string) }},
	{name: "service.email.smtp", kind: text, example: `"smtp.example.org"`, check: checkMailServer, loosens: always,
		help: "The SMTP server, with a port if it is not 465. The connection is encrypted. On other ports the " +
			"encryption begins after STARTTLS. A server on this machine with a port other than 465 and 587 is not encrypted.",
		store: func(t target, v any) { t.config.Service.Email.SMTP = v.(string) }},
	{name: "service.email.user", kind: text, example: `"perlica"`, check: checkNotEmpty, loosens: always,
		help:  "The name for the login at both servers. Absent: the address.",
		store: func(t target, v any) { t.config.Service.Email.User = v.(string) }},
	{name: "service.email.password_file", kind: text, example: `"~/secrets/email.password"`, check: checkSecretFile,
		loosens: always,
		help: "The file with the password of both servers. No one else may read it (0600). Absent: `email.password` in the " +
			"user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Email.Password.File = v.(string) }},
	{name: "service.email.password_env", kind: text, example: `"EMAIL_PASSWORD"`, check: checkEnvName, loosens: always,
		help:  "The environment variable with the password, instead of a file.",
		store: func(t target, v any) { t.config.Service.Email.Password.Env = v.(string) }},
	{name: "service.email.key_file", kind: text, example: `"~/secrets/email.key"`, check: checkSecretFile, loosens: always,
		help: "The file with the key from which the secret addresses are made. No one else may read it (0600). Absent: " +
			"`email.key` in the user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Email.Key.File = v.(string) }},
	{name: "service.email.key_env", kind: text, example: `"EMAIL_KEY"`, check: checkEnvName, loosens: always,
		help:  "The environment variable with the key, instead of a file.",
		store: func(t target, v any) { t.config.Service.Email.Key.Env = v.(string) }},
	{name: "service.matrix.server", kind: text, example: `"https://matrix.example.org"`, check: checkURL, secret: true,
		loosens: always,
		help:    "The address of the homeserver of the bot's account.",
		store:   func(t target, v any) { t.config.Service.Matrix.Server = v.(string) }},
	{name: "service.matrix.token_file", kind: text, example: `"~/secrets/matrix.token"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the access token of the bot's account. No one else may read it (0600). Absent: " +
			"`matrix.token` in the user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Matrix.Token.File = v.(string) }},
	{name: "service.matrix.token_env", kind: text, example: `"MATRIX_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the access token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Matrix.Token.Env = v.(string) }},
	{name: "service.matrix.allow", kind: texts, example: `["@ann:example.org"]`, loosens: always,
		help:  "The ids of the people that may invite the bot to a room. Paired contacts may invite it, too.",
		store: func(t target, v any) { t.config.Service.Matrix.Allow = v.([]string) }},
	{name: "service.ntfy.server", kind: text, example: `"https://ntfy.example.org"`, check: checkURL, secret: true,
		loosens: always,
		help:    "The address of the ntfy server. Absent: `https://ntfy.sh`.",
		store:   func(t target, v any) { t.config.Service.Ntfy.Server = v.(string) }},
	{name: "service.ntfy.topic_file", kind: text, example: `"~/secrets/ntfy.topic"`, check: checkSecretFile,
		loosens: always,
		help: "The file that holds the name of the topic. No one else may read it (0600). Absent: `ntfy.topic` in the " +
			"user's configuration directory.",
		store: func(t target, v any) { t.config.Service.Ntfy.Topic.File = v.(string) }},
	{name: "service.ntfy.topic_env", kind: text, example: `"NTFY_TOPIC"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the name of the topic, instead of a file.",
		store: func(t target, v any) { t.config.Service.Ntfy.Topic.Env = v.(string) }},
	{name: "service.ntfy.token_file", kind: text, example: `"~/secrets/ntfy.token"`, check: checkSecretFile,
		loosens: always,
		help:    "The file that holds an access token of the ntfy server. Absent: no token.",
		store:   func(t target, v any) { t.config.Service.Ntfy.Token.File = v.(string) }},
	{name: "service.ntfy.token_env", kind: text, example: `"NTFY_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable that holds the access token, instead of a file.",
		store: func(t target, v any) { t.config.Service.Ntfy.Token.Env = v.(string) }},
	{name: "service.language", kind: text, def: "en", choices: []string{"en", "zh"},
		help:  "The language of the bridge for contacts without a choice by `/language`: English or Chinese.",
		store: func(t target, v any) { t.config.Service.Language = v.(string) }},
	{name: "service.ack", kind: text, def: "auto",
		help: "The text that acknowledges a message as soon as it is on disk, without a sound. `auto`: a reaction if the " +
			"platform has them, otherwise a word in the contact's language. Empty: no acknowledgement.",
		store: func(t target, v any) { t.config.Service.Ack = v.(string) }},
	{name: "service.stream", kind: boolean, def: true,
		help: "If the platform can edit and remove messages, an answer appears while it is written, in one silent " +
			"message. The whole answer then replaces it.",
		store: func(t target, v any) { t.config.Service.Stream = v.(bool) }},
	{name: "service.team", kind: boolean, def: true, loosens: whenSwitchedOn,
		help: "If this machine belongs to a team, its contacts with the rights `approve` and `admin` get the open " +
			"questions of the team's workers.",
		store: func(t target, v any) { t.config.Service.Team = v.(bool) }},
	{name: "service.agents", kind: integer, def: 4, min: 1, max: 100, loosens: whenHigher,
		help: "The largest number of agents that work for contacts at the same time. Agents that wait for a person's " +
			"answer do not count.",
		store: func(t target, v any) { t.config.Service.Agents = v.(int) }},
	{name: "service.idle", kind: duration, def: 15 * time.Minute,
		help:  "The bridge ends an agent that was idle for this time. The next message continues its session.",
		store: func(t target, v any) { t.config.Service.Idle = v.(time.Duration) }},
	{name: "service.max_age", kind: duration, def: 24 * time.Hour,
		help:  "The bridge reports an older message to its sender and does not answer it.",
		store: func(t target, v any) { t.config.Service.MaxAge = v.(time.Duration) }},
	{name: "service.grace", kind: duration, def: 20 * time.Second,
		help:  "The time that a turn has after the bridge was told to stop. Then the turn is cancelled.",
		store: func(t target, v any) { t.config.Service.Grace = v.(time.Duration) }},
	{name: "service.web.listen", kind: text, example: `"127.0.0.1:8788"`, check: checkNotEmpty, loosens: always,
		help: "The address at which the bridge also serves the page and HTTP, with the keys of `web`. It counts in the " +
			"user's configuration alone. Absent: it serves neither.",
		store: func(t target, v any) { t.config.Service.Web = v.(string) }},
	{name: "smtp.host", kind: text, example: `"mail.example.org"`, check: checkNotEmpty, loosens: always, personal: true,
		help:  "The server that sends mail for `[[notify]]`; see docs/notify.md.",
		store: func(t target, v any) { t.config.SMTP.Host = v.(string) }},
	{name: "smtp.port", kind: integer, min: 1, max: 65535, example: "587", loosens: always, personal: true,
		help:  "Its port. Absent: 587 with `starttls`, 465 with `implicit`, 25 with `none`.",
		store: func(t target, v any) { t.config.SMTP.Port = v.(int) }},
	{name: "smtp.tls", kind: text, def: "starttls", choices: []string{"starttls", "implicit", "none"}, loosens: always,
		personal: true,
		help:     "The encryption of the connection. `none` is for a server on this machine alone.",
		store:    func(t target, v any) { t.config.SMTP.TLS = v.(string) }},
	{name: "smtp.from", kind: text, example: `"perlica@example.org"`, check: checkNotEmpty, loosens: always,
		personal: true,
		help:     "The sender's address.",
		store:    func(t target, v any) { t.config.SMTP.From = v.(string) }},
	{name: "smtp.user", kind: text, example: `"perlica"`, check: checkNotEmpty, loosens: always, personal: true,
		help:  "The name for the login. Absent: no login.",
		store: func(t target, v any) { t.config.SMTP.User = v.(string) }},
	{name: "smtp.secret_file", kind: text, example: `"~/secrets/smtp"`, check: checkSecretFile, loosens: always,
		personal: true,
		help:     "The file with the password. Absent: `smtp.secret` in the user's configuration directory.",
		store:    func(t target, v any) { t.config.SMTP.Secret.File = v.(string) }},
	{name: "smtp.secret_env", kind: text, example: `"SMTP_PASSWORD"`, check: checkEnvName, loosens: always, personal: true,
		help:  "The environment variable with the password, instead of a file.",
		store: func(t target, v any) { t.config.SMTP.Secret.Env = v.(string) }},

	{name: "web.listen", kind: text, example: `"127.0.0.1:8788"`, check: checkNotEmpty, loosens: always,
		help: "The address of `perlica web`, as `host:port`. Absent: `127.0.0.1:8788`. The keys of `web` count in the " +
			"user's configuration alone.",
		store: func(t target, v any) { t.config.Web.Listen = v.(string) }},
	{name: "web.public_url", kind: text, example: `"https://perlica.example.org"`, check: checkURL, loosens: always,
		help:  "The address at which a proxy shows the page, with the path of the page on that host.",
		store: func(t target, v any) { t.config.Web.PublicURL = v.(string) }},
	{name: "web.tls_cert", kind: text, example: `"~/tls/perlica.pem"`, check: checkSecretFile, loosens: always,
		help:  "The file of the certificate with which `perlica web` speaks TLS.",
		store: func(t target, v any) { t.config.Web.Cert = v.(string) }},
	{name: "web.tls_key", kind: text, example: `"~/tls/perlica.key"`, check: checkSecretFile, loosens: always,
		help:  "The file of the certificate's key.",
		store: func(t target, v any) { t.config.Web.Key = v.(string) }},
	{name: "web.behind_proxy", kind: text, example: `"10.0.0.7"`, check: checkNotEmpty, loosens: always,
		help: "The address, or the network, of the proxy that speaks TLS. Only it may connect, and its `X-Forwarded-For` " +
			"names the origin of a request.",
		store: func(t target, v any) { t.config.Web.Proxy = v.(string) }},

	{name: "team.url", kind: text, example: `"postgres://alice@db.example.org/team?sslmode=verify-full"`,
		check: checkNotEmpty, secret: true, loosens: always, personal: true,
		help: "The database of the team, as a connection string of PostgreSQL. TLS is required, except on a Unix socket " +
			"and on loopback. Shown masked. The keys of `team` are an error in a project's file.",
		store: func(t target, v any) { t.config.Team.URL = v.(string) }},
	{name: "team.default", kind: boolean, def: false, loosens: always, personal: true,
		help: "`perlica run` and the chat hand inputs to the team, as with `--team`. With `--team=false` the agent " +
			"here answers.",
		store: func(t target, v any) { t.config.Team.Default = v.(bool) }},
	{name: "team.projects.<id>", kind: text, example: `"/home/alice/src/website"`, exampleID: "website",
		check: checkSecretFile, loosens: always, personal: true,
		help: "The directory in which `perlica team work` answers the inputs of a project, by the project's name. Absent: " +
			"the directory in which it is started, under its own name.",
		store: func(t target, v any) {
			t.config.Team.Projects = maps.Collect(maps.All(t.config.Team.Projects)) // copies the map; nil is valid
			t.config.Team.Projects[t.id] = v.(string)
		}},

	{name: "runtime.context_budget_ratio", kind: number, def: 0.8, min: 0.01, max: 1,
		help:  "The share of a provider's context window that earlier turns may fill in a fresh session.",
		store: func(t target, v any) { t.config.BudgetRatio = v.(float64) }},
	{name: "runtime.provider_context_windows.<id>", kind: integer, min: 1, max: gib, example: "200000",
		help:  "The context window of a provider, in tokens.",
		store: func(t target, v any) { t.config.ContextWindows[t.id] = v.(int) }},
	{name: "runtime.logs.level", kind: text, def: "info", choices: []string{"debug", "info", "warn", "error"},
		help:  "The lowest level that the debug trail records.",
		store: func(t target, v any) { t.config.Logs.Level = v.(string) }},
	{name: "runtime.logs.max_size_mb", kind: integer, def: 10, min: 1, max: 10240, loosens: whenHigher,
		help:  "The debug trail begins a new file at this size.",
		store: func(t target, v any) { t.config.Logs.MaxSizeMB = v.(int) }},
	{name: "runtime.logs.max_files", kind: integer, def: 5, min: 1, max: 1000, loosens: whenHigher,
		help:  "The number of older files that a process keeps.",
		store: func(t target, v any) { t.config.Logs.MaxFiles = v.(int) }},
	{name: "runtime.logs.max_total_mb", kind: integer, def: 200, min: 1, max: 102400, loosens: whenHigher,
		help:  "The largest total size of the debug trails of all processes.",
		store: func(t target, v any) { t.config.Logs.MaxTotalMB = v.(int) }},
	{name: "runtime.max_tool_calls", kind: integer, max: gib, example: "0", reserved: true, store: noEffect,
		help: "Perlica runs no tools."},
	{name: "runtime.max_summary_attempts", kind: integer, max: gib, example: "0", reserved: true, store: noEffect,
		help: "Perlica summarises nothing."},

	{name: "mcp.servers[].name", kind: text, required: true, example: `"files"`, check: checkNotEmpty, loosens: always,
		help:  "The agent's name for the server; unique in its file. A project's server replaces a user's of the same name.",
		store: func(t target, v any) { t.server.Name = v.(string) }},
	{name: "mcp.servers[].type", kind: text, choices: []string{"stdio", "http", "sse"}, example: `"stdio"`,
		loosens: always,
		help:    "Absent: `stdio` with a command, `http` with a url.",
		store:   func(t target, v any) { t.server.Type = v.(string) }},
	{name: "mcp.servers[].command", kind: text, example: `"mcp-files"`, check: checkNotEmpty, loosens: always,
		help:  "The program, for `stdio`. The agent starts it, not Perlica.",
		store: func(t target, v any) { t.server.Command = v.(string) }},
	{name: "mcp.servers[].args", kind: texts, example: `["--root", "."]`, loosens: always,
		help:  "Its arguments. Shown with their secrets masked.",
		store: func(t target, v any) { t.server.Args = v.([]string) }},
	{name: "mcp.servers[].env", kind: textMap, example: `{ NAME = "value" }`, check: checkEnvName, secret: true,
		loosens: always,
		help:    "Its environment. Shown masked.",
		store:   func(t target, v any) { t.server.Env = v.(map[string]string) }},
	{name: "mcp.servers[].url", kind: text, example: `"https://example.org/mcp"`, check: checkURL, loosens: always,
		help:  "The address, for `http` and `sse`.",
		store: func(t target, v any) { t.server.URL = v.(string) }},
	{name: "mcp.servers[].headers", kind: textMap, example: `{ Authorization = "Bearer ..." }`, check: checkHeaderName,
		secret: true, loosens: always,
		help:  "Headers sent with each request. Shown masked.",
		store: func(t target, v any) { t.server.Headers = v.(map[string]string) }},

	{name: "policy.rule[].effect", kind: text, required: true, choices: []string{"allow", "ask", "deny"},
		example: `"deny"`, loosens: whenAllow,
		help:  "The answer of the rule. A matching deny wins over a matching ask, and that over a matching allow.",
		store: func(t target, v any) { t.rule.Effect = policy.Effect(v.(string)) }},
	{name: "policy.rule[].provider", kind: text, example: `"claude"`, check: checkID,
		help:  "Matches calls of this provider. A missing field of a rule matches everything.",
		store: func(t target, v any) { t.rule.Provider = v.(string) }},
	{name: "policy.rule[].kind", kind: texts, choices: toolKinds, example: `["edit", "delete"]`,
		help:  "Matches these kinds of tool calls.",
		store: func(t target, v any) { t.rule.Kind = v.([]string) }},
	{name: "policy.rule[].path", kind: text, example: `"outside"`, check: checkRulePath,
		help:  "`inside` or `outside` the working directory, or a glob.",
		store: func(t target, v any) { t.rule.Path = v.(string) }},
	{name: "policy.rule[].command", kind: text, example: `"git push ..."`, check: checkNotEmpty,
		help:  "Words, compared after parsing; `*` stands for one word, `...` for the rest.",
		store: func(t target, v any) { t.rule.Command = v.(string) }},
	{name: "policy.rule[].tier", kind: text, choices: []string{"ordinary"}, example: `"ordinary"`,
		help:  "With `ordinary`, an allow rule does not allow always-asked commands and files.",
		store: func(t target, v any) { t.rule.Tier = shell.Tier(v.(string)) }},
	{name: "policy.rule[].reason", kind: text, example: `"releases are made by people"`,
		help:  "Shown with the decision.",
		store: func(t target, v any) { t.rule.Reason = v.(string) }},

	{name: "policy.program[].command", kind: texts, required: true, example: `["/usr/local/bin/judge"]`,
		check: checkNotEmpty, loosens: always,
		help: "A program of yours, with its arguments, that judges a request before a person is asked; see " +
			"docs/policy-programs.md. Perlica starts it without a shell.",
		store: func(t target, v any) { t.program.Command = v.([]string) }},
	{name: "policy.program[].timeout", kind: duration, def: 5 * time.Second,
		help:  "The time that the program has. After it, a person is asked.",
		store: func(t target, v any) { t.program.Timeout = v.(time.Duration) }},

	{name: "schedule[].id", kind: text, required: true, example: `"morning"`, check: checkName, loosens: always,
		help:  "The name of the schedule; unique in its file. A project's schedule replaces a user's of the same name.",
		store: func(t target, v any) { t.schedule.ID = v.(string) }},
	{name: "schedule[].cron", kind: text, example: `"0 8 * * 1-5"`, check: checkCron, loosens: always,
		help:  "The times, as minute, hour, day of the month, month and day of the week; see docs/schedule-times.md.",
		store: func(t target, v any) { t.schedule.Cron = v.(string) }},
	{name: "schedule[].every", kind: duration, example: `"2h"`, loosens: always,
		help: "The time between two inputs, instead of `cron`: at least 1s and at most 24h. It is counted from the " +
			"beginning of the day in the timezone.",
		store: func(t target, v any) { t.schedule.Every = v.(time.Duration) }},
	{name: "schedule[].timezone", kind: text, example: `"Europe/Berlin"`, check: checkTimezone, loosens: always,
		help:  "The timezone of the times. Absent: the system's.",
		store: func(t target, v any) { t.schedule.Timezone = v.(string) }},
	{name: "schedule[].text", kind: text, example: `"What changed since yesterday?"`, check: checkNotEmpty,
		loosens: always,
		help:    "The text of the input.",
		store:   func(t target, v any) { t.schedule.Text = v.(string) }},
	{name: "schedule[].flow", kind: text, example: `"flows/review.toml"`, check: checkNotEmpty, loosens: always,
		help:  "The file of a flow to run, instead of `text`.",
		store: func(t target, v any) { t.schedule.Flow = v.(string) }},
	{name: "schedule[].inputs", kind: textMap, example: `{ base = "main" }`, check: checkNotEmpty, loosens: always,
		help:  "The inputs of the flow.",
		store: func(t target, v any) { t.schedule.Inputs = v.(map[string]string) }},
	{name: "schedule[].provider", kind: text, example: `"claude"`, check: checkID, loosens: always,
		help:  "The provider that answers. Absent: the default provider.",
		store: func(t target, v any) { t.schedule.Provider = v.(string) }},
	{name: "schedule[].permissions", kind: text, def: "deny", choices: []string{"ask", "reads", "deny", "allow"},
		loosens: always,
		help:    "The mode that answers the agent's questions. With `ask`, a question waits for a person.",
		store:   func(t target, v any) { t.schedule.Permissions = v.(string) }},
	{name: "schedule[].missed", kind: text, def: "skip", choices: []string{"skip", "latest"}, loosens: always,
		help:  "The treatment of times that passed while no process kept the schedule: none is made up, or the latest one.",
		store: func(t target, v any) { t.schedule.Missed = v.(string) }},
	{name: "schedule[].overlap", kind: text, def: "skip", choices: []string{"skip", "wait"}, loosens: always,
		help:  "The treatment of a time at which the earlier input still runs: it is skipped, or it waits.",
		store: func(t target, v any) { t.schedule.Overlap = v.(string) }},
	{name: "schedule[].jitter", kind: duration, example: `"5m"`, loosens: always,
		help: "The largest delay of an input. The delay follows from the schedule's name and the time. It is less than the " +
			"time until the next input.",
		store: func(t target, v any) { t.schedule.Jitter = v.(time.Duration) }},

	{name: "budget[].per", kind: text, required: true, choices: []string{"run", "session", "day", "week", "month"},
		example: `"day"`,
		help:    "The period of the limits. Days, weeks and months are those of the calendar; a week begins on Monday.",
		store:   func(t target, v any) { t.budget.Per = v.(string) }},
	{name: "budget[].calls", kind: integer, max: gib, example: "200",
		help:  "The largest number of calls.",
		store: func(t target, v any) { calls := v.(int); t.budget.Calls = &calls }},
	{name: "budget[].tokens", kind: integer, max: 1 << 50, example: "5000000",
		help:  "The largest number of tokens, of input and output together.",
		store: func(t target, v any) { tokens := v.(int); t.budget.Tokens = &tokens }},
	{name: "budget[].money", kind: text, example: `"20 EUR"`, check: checkMoney,
		help:  "The largest cost, in the currency that the agent reports or that its price names.",
		store: func(t target, v any) { t.budget.Money = v.(string) }},
	{name: "budget[].provider", kind: text, example: `"claude"`, check: checkID,
		help:  "Only calls of this provider count. A missing condition takes every call.",
		store: func(t target, v any) { t.budget.Provider = v.(string) }},
	{name: "budget[].schedule", kind: text, example: `"morning"`, check: checkName,
		help:  "Only calls of this schedule count.",
		store: func(t target, v any) { t.budget.Schedule = v.(string) }},
	{name: "budget[].flow", kind: text, example: `"review"`, check: checkName,
		help:  "Only calls of the flow of this name count.",
		store: func(t target, v any) { t.budget.Flow = v.(string) }},
	{name: "budget[].contact", kind: text, example: `"alice"`, check: checkNotEmpty,
		help:  "Only calls of this contact count.",
		store: func(t target, v any) { t.budget.Contact = v.(string) }},
	{name: "budget[].project", kind: text, example: `"website"`, check: checkNotEmpty,
		help:  "Only calls in the project with this folder name count. It needs the scope `user`.",
		store: func(t target, v any) { t.budget.Project = v.(string) }},
	{name: "budget[].timezone", kind: text, example: `"Europe/Berlin"`, check: checkTimezone,
		help:  "The timezone of the calendar. Absent: the system's.",
		store: func(t target, v any) { t.budget.Timezone = v.(string) }},
	{name: "budget[].scope", kind: text, def: "log", choices: []string{"log", "user"},
		help:  "The calls that count: those of this log, or those of all projects of the user.",
		store: func(t target, v any) { t.budget.Scope = v.(string) }},
	{name: "budget[].unknown", kind: text, def: "allow", choices: []string{"allow", "refuse"},
		help: "The treatment of a provider without reported or configured costs, for a limit of money: it is allowed, " +
			"or refused.",
		store: func(t target, v any) { t.budget.Unknown = v.(string) }},
	{name: "budget[].stop", kind: boolean, def: false,
		help:  "A running call that exceeds the budget is cancelled. Otherwise only the next call is refused.",
		store: func(t target, v any) { t.budget.Stop = v.(bool) }},

	{name: "hook[].on", kind: texts, required: true, example: `["llm.responded", "interaction.requested"]`,
		check: checkEventType, loosens: always,
		help:  "The types of events for which the program starts; see docs/log-format.md.",
		store: func(t target, v any) { t.hook.On = v.([]string) }},
	{name: "hook[].command", kind: texts, required: true, example: `["/usr/local/bin/on-answer"]`,
		check: checkNotEmpty, loosens: always,
		help: "A program of yours and its arguments. It gets the event as JSON on its standard input; see docs/hooks.md. " +
			"Perlica starts it without a shell.",
		store: func(t target, v any) { t.hook.Command = v.([]string) }},
	{name: "hook[].timeout", kind: duration, def: 10 * time.Second, loosens: always,
		help:  "The time that the program has for one event.",
		store: func(t target, v any) { t.hook.Timeout = v.(time.Duration) }},

	{name: "notify[].when", kind: texts, required: true, example: `["question", "failed"]`,
		choices: []string{"question", "finished", "failed", "unknown", "budget", "schedule"}, loosens: always,
		help:  "The causes of a notification; see docs/notify.md.",
		store: func(t target, v any) { t.notify.When = v.([]string) }},
	{name: "notify[].to", kind: text, required: true, example: `"desktop"`, check: checkTarget, secret: true,
		loosens: always,
		help: "The target: `desktop`, `push`, `contact:NAME`, `mailto:ADDRESS`, or an https address of ntfy, Slack, Discord " +
			"or a webhook; see docs/notify.md.",
		store: func(t target, v any) { t.notify.To = v.(string) }},
	{name: "notify[].after", kind: duration, example: `"30s"`, loosens: always,
		help: "The time for which a question must be open, or a turn must have run, before it causes a notification. " +
			"Absent: no time.",
		store: func(t target, v any) { t.notify.After = v.(time.Duration) }},
	{name: "notify[].content", kind: boolean, def: false, loosens: always,
		help:  "The notification has text of questions and answers. Otherwise it names only the cause and the project.",
		store: func(t target, v any) { t.notify.Content = v.(bool) }},
	{name: "notify[].secret_file", kind: text, example: `"~/secrets/ntfy.token"`, check: checkSecretFile, loosens: always,
		help:  "The file with the target's secret: a token, a password, or the key that signs a webhook.",
		store: func(t target, v any) { t.notify.Secret.File = v.(string) }},
	{name: "notify[].secret_env", kind: text, example: `"NTFY_TOKEN"`, check: checkEnvName, loosens: always,
		help:  "The environment variable with the target's secret, instead of a file.",
		store: func(t target, v any) { t.notify.Secret.Env = v.(string) }},
}

// lists are the sections that are arrays of tables.
var lists = []string{serverSection, ruleSection, programSection, scheduleSection, budgetSection, hookSection,
	notifySection}

// static reports whether the key can have only one value: its name has neither <id> nor [].
func (r *row) static() bool {
	return !strings.Contains(r.name, anyID) && !strings.Contains(r.name, "[]")
}

// rowOf finds the row of a key such as "providers.claude.acp.mode", and the id in the key.
func rowOf(key string) (r *row, id string) {
	for i := range table {
		r := &table[i]
		if r.name == key {
			return r, ""
		}
		before, after, ok := strings.Cut(r.name, anyID)
		if !ok || len(key) <= len(before)+len(after) ||
			!strings.HasPrefix(key, before) || !strings.HasSuffix(key, after) {
			continue
		}
		if id := key[len(before) : len(key)-len(after)]; validID(id) {
			return r, id
		}
	}
	return nil, ""
}
