package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/ntfy"
	"github.com/perlica/perlica/service/webhook"
)

// ntfyKind begins the address of a user's own ntfy server, for example ntfy+https://HOST/TOPIC.
const ntfyKind = "ntfy"

// httpTarget is a target that gets one POST for each notification. It follows no redirect.
type httpTarget struct {
	client *http.Client
	url    *url.URL
	secret string
}

const (
	maxReply  = 64 << 10 // bytes
	minSecret = 16       // bytes of a webhook's secret
	// replyShown is the number of characters of a reply that are shown.
	replyShown = 200
	// rateLimitPause is the pause if a target asks for one and names no time.
	rateLimitPause = 30 * time.Second
)

// target returns the target that the address names.
func (h *httpTarget) target(kind string) (Target, error) {
	host := h.url.Hostname()
	switch {
	case kind == ntfyKind, host == "ntfy.sh":
		topic := path.Base(h.url.Path)
		h.url = h.url.ResolveReference(&url.URL{Path: "./"}) // without the topic, which is part of the body
		return Target{Name: "ntfy " + host, send: func(ctx context.Context, n note) (string, error) {
			return h.post(ctx, ntfyBody(topic, n), n)
		}}, nil
	case host == "hooks.slack.com":
		return Target{Name: "slack", send: func(ctx context.Context, n note) (string, error) {
			return h.post(ctx, slackBody(n), n)
		}}, nil
	case isDiscord(host) && strings.HasPrefix(h.url.Path, "/api/webhooks/"):
		return Target{Name: "discord", send: func(ctx context.Context, n note) (string, error) {
			return h.post(ctx, discordBody(n), n)
		}}, nil
	case len(h.secret) < minSecret:
		return Target{}, fmt.Errorf("a webhook needs secret_file or secret_env with at least %d bytes", minSecret)
	}
	return Target{Name: "webhook " + h.url.Host, Dedupes: true, send: func(ctx context.Context, n note) (string, error) {
		return h.post(ctx, webhookBody(n), n)
	}}, nil
}

func isDiscord(host string) bool {
	return host == "discord.com" || host == "discordapp.com" || strings.HasSuffix(host, ".discord.com")
}

// post makes the one request of an attempt.
func (h *httpTarget) post(ctx context.Context, body any, n note) (reply string, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return "", &channel.RejectedError{Why: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url.String(), bytes.NewReader(data))
	if err != nil {
		return "", &channel.RejectedError{Why: channel.WithoutURL(err).Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	switch body.(type) {
	case webhookMessage:
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		req.Header.Set(webhook.TimestampHeader, stamp)
		req.Header.Set(webhook.SignatureHeader, webhook.Sign(channel.Secret(h.secret), stamp, data))
		req.Header.Set(webhook.KeyHeader, n.Key)
	case ntfy.Message:
		if h.secret != "" {
			req.Header.Set("Authorization", "Bearer "+h.secret)
		}
	}
	// Without these two settings, net/http could repeat the request.
	req.GetBody = nil
	req.Close = true
	resp, err := channel.Do(h.client, req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()                   // the body was read
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxReply)) // only the status matters
	return fmt.Sprintf("%s %s", resp.Status, oneLine(string(text), replyShown)),
		channel.Judge(resp, text, rateLimitPause)
}

// ntfyTags has the emoji of ntfy for each kind.
var ntfyTags = map[string]string{question: "question", finished: "white_check_mark", failed: "x", unknown: "warning",
	budget: "moneybag", schedule: "alarm_clock", test: "bell"}

func ntfyBody(topic string, n note) ntfy.Message {
	priority := ntfy.Usual
	if n.isUrgent() {
		priority = ntfy.Urgent
	}
	return ntfy.Message{Topic: topic, Title: n.Title, Message: n.body(), Tags: []string{ntfyTags[n.Kind]},
		Priority: priority, Click: n.URL}
}

// isUrgent reports whether a person has to act.
func (n note) isUrgent() bool { return n.Kind == question || n.Kind == unknown }

// slackText is a text of Slack. A plain_text has no formatting and no mentions.
type slackText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackMessage struct {
	// Text is shown where blocks are not. Slack reads it as markup.
	Text        string       `json:"text"`
	Blocks      []slackBlock `json:"blocks"`
	UnfurlLinks bool         `json:"unfurl_links"`
	UnfurlMedia bool         `json:"unfurl_media"`
}

// slackEscaper escapes the characters with which each mention, link and command of Slack begins.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func slackBody(n note) slackMessage {
	text := n.Title + "\n" + n.body()
	if n.URL != "" {
		text += "\n" + n.URL
	}
	return slackMessage{Text: slackEscaper.Replace(n.Title),
		Blocks: []slackBlock{{"section", slackText{Type: "plain_text", Text: text}}}}
}

type discordMessage struct {
	Content         string          `json:"content"`
	AllowedMentions discordMentions `json:"allowed_mentions"`
	Flags           int             `json:"flags"`
}

// discordMentions lists the kinds of mentions that have an effect.
type discordMentions struct {
	Parse []string `json:"parse"`
}

// suppressEmbeds is a flag of a Discord message: its links make no previews.
const suppressEmbeds = 1 << 2

// discordEscaper escapes the Markdown of Discord.
var discordEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`,
	"#", `\#`, "-", `\-`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "<", `\<`, "@", `\@`, ":", `\:`)

// maxDiscord is the longest content of a Discord message, in characters.
const maxDiscord = 2000

func discordBody(n note) discordMessage {
	text := "**" + discordEscaper.Replace(n.Title) + "**\n" + discordEscaper.Replace(n.body())
	if n.URL != "" {
		text += "\n<" + n.URL + ">"
	}
	if r := []rune(text); len(r) > maxDiscord {
		text = string(r[:maxDiscord-1]) + "…"
	}
	return discordMessage{Content: text, AllowedMentions: discordMentions{Parse: []string{}}, Flags: suppressEmbeds}
}

// webhookMessage is the body of a signed webhook. docs/notify.md describes it.
type webhookMessage struct {
	Type    string `json:"type"` // "notification"
	Kind    string `json:"kind"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Project string `json:"project"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	Command string `json:"command,omitempty"`
	Content string `json:"content,omitempty"`
	URL     string `json:"url,omitempty"`
	Key     string `json:"key"`
}

func webhookBody(n note) webhookMessage {
	return webhookMessage{Type: "notification", Kind: n.Kind, Title: n.Title, Text: n.body(), Project: n.Project,
		Session: n.Session, Run: n.Run, Command: n.Command, Content: n.Content, URL: n.URL, Key: n.Key}
}
