package service

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/discord"
	"github.com/perlica/perlica/service/email"
	"github.com/perlica/perlica/service/feishu"
	"github.com/perlica/perlica/service/imessage"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/matrix"
	"github.com/perlica/perlica/service/ntfy"
	"github.com/perlica/perlica/service/slack"
	"github.com/perlica/perlica/service/telegram"
	"github.com/perlica/perlica/service/webhook"
)

// prepareChannel checks that a channel has all needed settings and files. It returns the function that opens the
// channel, and contacts no platform. The error names the missing part and has a hint. The function paired reports
// whether a contact is paired. Only a paired contact's files are fetched, and none if paired is nil.
type prepareChannel func(a *app, p *project.Project, paired func(contact string) bool) (openChannel, error)

// openChannel opens a channel for the bridge or for a test. If the channel is an io.Closer, the caller closes it
// after the bridge.
type openChannel func() (channel.Channel, error)

// channels lists all channels. A new channel needs one line here.
var channels = map[string]prepareChannel{
	local.Name: prepareLocal,
	"telegram": prepareTelegram,
	"discord":  prepareDiscord,
	"feishu":   prepareFeishu,
	"slack":    prepareSlack,
	"webhook":  prepareWebhook,
	"imessage": prepareIMessage,
	"email":    prepareEmail,
	"matrix":   prepareMatrix,
	"ntfy":     prepareNtfy,
}

func prepareLocal(_ *app, p *project.Project, _ func(string) bool) (openChannel, error) {
	return func() (channel.Channel, error) {
		return local.Listen(local.Path(p.Dirs.Runtime, p.Workspace.Root), local.DefaultLimits())
	}, nil
}

func prepareTelegram(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Telegram
	token, err := a.readSecret(p, "the bot's token", s.Token, "telegram.token",
		"@BotFather on Telegram gives one (/newbot). Run (umask 077; mkdir -p %s && cat > %s), paste it, press "+
			"Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	opt := telegram.Options{Token: channel.Secret(token), BaseURL: s.BaseURL}
	if paired != nil {
		opt.Files = filesOf(p, "telegram")
	}
	c, err := telegram.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-telegram.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareSlack(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Slack
	app, err := a.readSecret(p, "the app-level token", s.AppToken, "slack-app.token",
		"docs/channel-slack.md says how to make the app. Run (umask 077; mkdir -p %s && cat > %s), paste the token that "+
			"begins with xapp-, press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	bot, err := a.readSecret(p, "the bot token", s.BotToken, "slack-bot.token",
		"your app at https://api.slack.com/apps shows it (OAuth & Permissions). Run (umask 077; mkdir -p %s && cat > %s), "+
			"paste the token that begins with xoxb-, press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	opt := slack.Options{AppToken: channel.Secret(app), BotToken: channel.Secret(bot), BaseURL: s.BaseURL}
	if paired != nil {
		opt.Files = filesOf(p, "slack")
	}
	c, err := slack.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-slack.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareDiscord(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Discord
	token, err := a.readSecret(p, "the bot's token", s.Token, "discord.token",
		"https://discord.com/developers/applications gives one (page \"Bot\"). Run (umask 077; mkdir -p %s && cat > %s), "+
			"paste it, press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	opt := discord.Options{Token: channel.Secret(token), BaseURL: s.BaseURL, Paired: paired}
	if paired != nil {
		opt.Files = filesOf(p, "discord")
	}
	c, err := discord.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-discord.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareFeishu(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Feishu
	if s.AppID == "" {
		return nil, frame.WithHint(errors.New("the id of the app is missing"),
			"docs/channel-feishu.md says how to make the app; set service.feishu.app_id in %s",
			agents.CommandLine([]string{p.Dirs.ConfigFile()}))
	}
	secret, err := a.readSecret(p, "the app secret", s.Secret, "feishu.secret",
		"the page \"Credentials & Basic Info\" of your app shows it. Run (umask 077; mkdir -p %s && cat > %s), paste it, "+
			"press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	opt := feishu.Options{AppID: s.AppID, Secret: channel.Secret(secret), BaseURL: s.BaseURL}
	if paired != nil {
		opt.Files = filesOf(p, "feishu")
	}
	c, err := feishu.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-feishu.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareWebhook(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Webhook
	secret, err := a.readSecret(p, "the secret of the webhook", s.Secret, "webhook.secret",
		"make one: (umask 077; mkdir -p %s && openssl rand -hex 32 > %s)")
	if err != nil {
		return nil, err
	}
	if s.ReplyURL == "" {
		return nil, frame.WithHint(errors.New("the webhook has no address for its replies"),
			"set service.webhook.reply_url in %s", agents.CommandLine([]string{p.Dirs.ConfigFile()}))
	}
	opt := webhook.Options{
		Listen: s.Listen, ReplyURL: s.ReplyURL, Secret: channel.Secret(secret), AllowRemote: s.AllowRemote,
		Dedupes: s.Dedupes, Buttons: s.Buttons, Format: channel.Format(s.Format), Text: s.TextLimit,
	}
	if paired != nil {
		opt.Files, opt.Accept = filesOf(p, "webhook"), paired
	}
	if err := webhook.Check(opt); err != nil {
		return nil, frame.WithHint(err, "see docs/channel-webhook.md")
	}
	return func() (channel.Channel, error) { return webhook.Open(opt) }, nil
}

// filesOf returns the folder for the files that arrive on a channel. Each channel has its own folder, because the
// names of files are message ids. Two channels may have the same message id.
func filesOf(p *project.Project, channel string) string {
	return filepath.Join(p.Workspace.Service().Files, channel)
}

func prepareIMessage(a *app, p *project.Project, _ func(string) bool) (openChannel, error) {
	s := p.Config.Service.IMessage
	c, err := imessage.New(imessage.Options{Command: s.Command, SMS: s.SMS, System: a.System})
	switch {
	case errors.Is(err, imessage.ErrSystem):
		return nil, frame.WithHint(err, "'perlica service channel list' shows the others")
	case errors.Is(err, imessage.ErrNoCommand):
		return nil, frame.WithHint(err, "'brew install steipete/tap/imsg', or name it in service.imessage.command")
	case err != nil:
		return nil, err
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareMatrix(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Matrix
	if s.Server == "" {
		return nil, frame.WithHint(errors.New("the address of the homeserver is missing"),
			"set service.matrix.server in %s", agents.CommandLine([]string{p.Dirs.ConfigFile()}))
	}
	token, err := a.readSecret(p, "the access token", s.Token, "matrix.token",
		"log in as the bot's account, see docs/channel-matrix.md. Run (umask 077; mkdir -p %s && cat > %s), paste the "+
			"token, press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	opt := matrix.Options{Server: s.Server, Token: channel.Secret(token), Allow: s.Allow, Paired: paired,
		Refusal: language.Language(p.Config.Service.Language).Sentences().Encrypted}
	if paired != nil {
		opt.Files = filesOf(p, "matrix")
	}
	c, err := matrix.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-matrix.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareNtfy(a *app, p *project.Project, _ func(string) bool) (openChannel, error) {
	s := p.Config.Service.Ntfy
	topic, err := a.readSecret(p, "the topic", s.Topic, "ntfy.topic",
		"make a name: (umask 077; mkdir -p %s && openssl rand -hex 16 > %s)")
	if err != nil {
		return nil, err
	}
	token := ""
	if s.Token != (config.Secret{}) {
		if token, err = a.readSecret(p, "the access token", s.Token, "ntfy.token",
			"make one with 'ntfy token add'; folder %s, file %s"); err != nil {
			return nil, err
		}
	}
	c, err := ntfy.New(ntfy.Options{Server: s.Server, Topic: channel.Secret(topic), Token: channel.Secret(token),
		Key: p.Dirs.ViewKey()})
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-ntfy.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

func prepareEmail(a *app, p *project.Project, paired func(string) bool) (openChannel, error) {
	s := p.Config.Service.Email
	if s.Address == "" || s.IMAP == "" || s.SMTP == "" {
		return nil, frame.WithHint(errors.New("the channel has no mailbox"), "set service.email.address, "+
			"service.email.imap and service.email.smtp in %s", agents.CommandLine([]string{p.Dirs.ConfigFile()}))
	}
	password, err := a.readSecret(p, "the password of the mailbox", s.Password, "email.password",
		"Run (umask 077; mkdir -p %s && cat > %s), paste the password, press Enter and Ctrl-D")
	if err != nil {
		return nil, err
	}
	key, err := a.readSecret(p, "the key of the secret addresses", s.Key, "email.key",
		"make one: (umask 077; mkdir -p %s && openssl rand -hex 32 > %s)")
	if err != nil {
		return nil, err
	}
	opt := email.Options{Address: s.Address, Key: channel.Secret(key),
		IMAP: mailServer(s, s.IMAP, password, 993, 143), SMTP: mailServer(s, s.SMTP, password, 465, 587)}
	if paired != nil {
		opt.Files, opt.Accept = filesOf(p, "email"), paired
	}
	c, err := email.New(opt)
	if err != nil {
		return nil, frame.WithHint(err, "see docs/channel-email.md")
	}
	return func() (channel.Channel, error) { return c, nil }, nil
}

// mailServer returns a server of the channel "email". The port chooses the encryption. Only a server on this machine
// with another port has none.
func mailServer(s config.Email, at, password string, implicit, startTLS int) email.Server {
	host, port, _ := config.SplitServer(at) // the configuration was checked
	m := email.Server{Host: host, Port: port, Encryption: email.Implicit, User: cmp.Or(s.User, s.Address),
		Password: channel.Secret(password)}
	switch {
	case port == 0 || port == implicit:
	case config.IsLoopback(host) && port != startTLS:
		m.Encryption = email.None
	case port == startTLS || implicit == 465: // a server for sending begins without encryption on all other ports
		m.Encryption = email.StartTLS
	}
	return m
}

// readSecret reads a channel's secret. The parameter "what" is a description of the secret for messages. The parameter
// "name" is the name of the default file. The parameter "how" is a format for the instructions to make the file. Its
// two arguments are the folder and the path.
func (a *app) readSecret(p *project.Project, what string, s config.Secret, name, how string) (string, error) {
	v, err := s.Read(p.Dirs, name, a.Getenv)
	var shared *config.SharedSecretError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &shared):
		return "", frame.WithHint(fmt.Errorf("%s: %w", what, err),
			"'chmod 600 %s'; if others may have read it, get a new one", agents.CommandLine([]string{shared.Path}))
	case errors.Is(err, config.ErrNoSecret) && s.Env != "":
		return "", frame.WithHint(fmt.Errorf("%s: %w", what, err), "set it where the bridge is started")
	case errors.Is(err, config.ErrNoSecret):
		path := s.Path(p.Dirs, name)
		return "", frame.WithHint(fmt.Errorf("%s: %w", what, err), how, agents.CommandLine([]string{filepath.Dir(path)}),
			agents.CommandLine([]string{path}))
	}
	return "", fmt.Errorf("%s: %w", what, err)
}

// channelSetups returns the state of each configured channel: whether all needed settings and files are there.
func (a *app) channelSetups(p *project.Project) (list []service.Setup) {
	names, err := servedChannels(p)
	if errors.Is(err, errNoChannel) {
		return nil // Without a channel only the start of the bridge fails.
	}
	if err != nil {
		return []service.Setup{{Name: "names", Err: err, Hint: frame.ExplicitHint(err)}}
	}
	for _, name := range names {
		_, err := channels[name](a, p, nil)
		list = append(list, service.Setup{Name: name, Err: err, Hint: frame.ExplicitHint(err), Left: len(names) > 1 &&
			errors.Is(err, imessage.ErrSystem)})
	}
	return list
}
