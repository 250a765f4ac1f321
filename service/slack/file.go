package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// fileTime is the ratio of the time limit of a file to the limit of any other request.
const fileTime = 10

// Fetch downloads a file to the private folder. Poll has named the file.
func (c *Channel) Fetch(ctx context.Context, message string, n int, f channel.File) (string, error) {
	switch {
	case c.opt.Files == "":
		return "", &channel.RejectedError{Why: "files are not taken here"}
	case f.Size > c.opt.MaxFile:
		return "", tooLarge()
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	var a struct {
		File file `json:"file"`
	}
	if err := c.call(ctx, "files.info", url.Values{"file": {f.Remote}}, &a); err != nil {
		return "", err
	}
	// The token must not reach another server. A file may be on another server, for example on Google Drive.
	at, err := url.Parse(a.File.URL)
	if err != nil || !c.isSlack(at) {
		return "", &channel.RejectedError{Why: "it does not lie on Slack"}
	}
	saved, err := c.download(ctx, message, n, f.Name, at)
	switch {
	case errors.Is(err, attachment.ErrTooLarge):
		return "", tooLarge()
	case err != nil:
		return "", c.cleanError(fmt.Errorf("slack: a file: %w", err))
	}
	return saved, nil
}

func tooLarge() error { return &channel.RejectedError{Why: "it is too large"} }

// isSlack reports whether an address belongs to Slack: to the server of the Web API, or to its domain.
func (c *Channel) isSlack(at *url.URL) bool {
	if at.Scheme != c.base.Scheme || at.User != nil {
		return false
	}
	return at.Host == c.base.Host || strings.HasSuffix(at.Host, "."+c.base.Host)
}

func (c *Channel) download(ctx context.Context, message string, n int, name string, at *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", channel.WithoutURL(err)
	}
	req.Header.Set("Authorization", "Bearer "+string(c.opt.BotToken))
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read or is not needed
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answers %d", resp.StatusCode)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.HasSuffix(name, ".html") {
		return "", &channel.RejectedError{Why: "Slack answers with a page for a login instead of the file"}
	}
	return attachment.Save(c.opt.Files, message, n, name, resp.Body, c.opt.MaxFile)
}

// sendFile uploads m's file and then shares it in its chat, with m's text if "commented" is true. Slack does not return
// the id of the message. The result therefore names the file.
func (c *Channel) sendFile(ctx context.Context, m channel.Outbound, commented bool) (id string, err error) {
	channelID, thread, err := place(m.Chat)
	if err != nil {
		return "", err
	}
	f, err := os.Open(m.File.Path)
	if err != nil {
		return "", &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", &channel.RejectedError{Why: "its file is not a regular file"}
	}
	name := attachment.Name(m.File.Name)
	fileID, err := c.upload(ctx, name, f, info.Size())
	if err != nil {
		return "", err
	}
	params := url.Values{"channel_id": {channelID}, "files": {asJSON([]map[string]string{{"id": fileID, "title": name}})}}
	if thread != "" {
		params.Set("thread_ts", thread)
	}
	if commented && m.Text != "" {
		params.Set("initial_comment", written(m))
	}
	if err := c.call(ctx, "files.completeUploadExternal", params, nil); err != nil {
		return "", err
	}
	return messageID(channelID, fileID), nil
}

// upload gives a file to Slack and returns its id. Nobody sees the file before the upload is completed, so every error
// means that nothing was sent.
func (c *Channel) upload(ctx context.Context, name string, f io.Reader, size int64) (id string, err error) {
	var a struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	params := url.Values{"filename": {name}, "length": {strconv.FormatInt(size, 10)}}
	if err := c.call(ctx, "files.getUploadURLExternal", params, &a); err != nil {
		return "", notSent(err)
	}
	at, err := url.Parse(a.URL)
	if err != nil || !c.isSlack(at) {
		return "", fmt.Errorf("slack: a file: %w: the address for it does not belong to Slack", channel.ErrNotSent)
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, io.LimitReader(f, size))
	if err != nil {
		return "", fmt.Errorf("slack: a file: %w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return "", c.cleanError(notSent(fmt.Errorf("slack: a file: %w", err)))
	}
	defer func() { _ = resp.Body.Close() }()                      // the body was read
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // the status says everything
	if err := channel.Judge(resp, nil, moment); err != nil {
		return "", notSent(fmt.Errorf("slack: a file: %w", err))
	}
	return a.ID, nil
}

// notSent returns an error that wraps channel.ErrNotSent, unless the error is final.
func notSent(err error) error {
	var rejected *channel.RejectedError
	if errors.Is(err, channel.ErrNotSent) || errors.As(err, &rejected) {
		return err
	}
	return fmt.Errorf("%w: %w", channel.ErrNotSent, err)
}
