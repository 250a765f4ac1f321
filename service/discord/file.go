package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// fileTime is the ratio of the time limit of a file to the limit of any other request.
const fileTime = 10

func inboundFile(f file) channel.File {
	return channel.File{Name: attachment.Name(f.Name), MIME: f.MIME, Remote: f.ID, Size: f.Size}
}

// Fetch downloads a file to the private folder. It first asks for the file's address, because an address expires.
func (c *Channel) Fetch(ctx context.Context, message string, n int, f channel.File) (string, error) {
	switch {
	case c.opt.Files == "":
		return "", &channel.RejectedError{Why: "files are not taken here"}
	case f.Size > c.opt.MaxFile:
		return "", tooLarge()
	}
	address, err := c.addressOf(ctx, message, f.Remote)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	saved, err := c.download(ctx, message, n, f.Name, address)
	switch {
	case errors.Is(err, attachment.ErrTooLarge):
		return "", tooLarge()
	case err != nil:
		return "", c.clean(fmt.Errorf("discord: a file: %w", err))
	}
	return saved, nil
}

func tooLarge() error { return &channel.RejectedError{Why: "it is too large"} }

// addressOf returns the present address of a file.
func (c *Channel) addressOf(ctx context.Context, text, file string) (string, error) {
	chat, id, err := parseID(text)
	if err != nil {
		return "", err
	}
	var m message
	if err := c.call(ctx, getMessage, body{}, &m, chat, id); err != nil {
		return "", err
	}
	for _, f := range m.files() {
		if f.ID == file {
			return f.URL, nil
		}
	}
	return "", &channel.RejectedError{Why: "the message does not have the file any more"}
}

// download saves a file. The request does not have the token, because files lie on other servers than the API.
func (c *Channel) download(ctx context.Context, message string, n int, name, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !c.isOwn(u) {
		return "", &channel.RejectedError{Why: "its address is not one of Discord"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", channel.WithoutURL(err)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read or is not needed
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answers %d", resp.StatusCode)
	}
	return attachment.Save(c.opt.Files, message, n, name, resp.Body, c.opt.MaxFile)
}

// isOwn reports whether an address lies on the server of the API.
func (c *Channel) isOwn(u *url.URL) bool {
	base, err := url.Parse(c.base)
	return err == nil && u.Scheme == base.Scheme && u.Host == base.Host
}

// postFile sends m's file with the text and the buttons.
func (c *Channel) postFile(ctx context.Context, m channel.Outbound, o outgoing, sent *message) error {
	f, err := os.Open(m.File.Path)
	if err != nil {
		return &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return &channel.RejectedError{Why: "its file is not a regular file"}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("discord: %w: %w", channel.ErrNotSent, err)
	}
	// The rest of the form is built before the request begins. Then the request's length is known, and no second
	// goroutine is necessary.
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	err = w.WriteField("payload_json", string(text))
	_, werr := w.CreateFormFile("files[0]", attachment.Name(m.File.Name))
	head := form.Len()
	if err := errors.Join(err, werr, w.Close()); err != nil {
		return fmt.Errorf("discord: %w: %w", channel.ErrNotSent, err)
	}
	b := form.Bytes()
	whole := io.MultiReader(bytes.NewReader(b[:head]), io.LimitReader(f, info.Size()), bytes.NewReader(b[head:]))
	return c.call(ctx, postMessage, body{w.FormDataContentType(), whole, int64(len(b)) + info.Size()}, sent, m.Chat)
}
