package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// fileTime is the ratio of the time limit of a file to the limit of any other request.
const fileTime = 10

// Fetch downloads a file to the private folder.
func (c *Channel) Fetch(ctx context.Context, message string, n int, f channel.File) (string, error) {
	server, media, ok := strings.Cut(strings.TrimPrefix(f.Remote, "mxc://"), "/")
	switch {
	case c.opt.Files == "":
		return "", &channel.RejectedError{Why: "files are not taken here"}
	case f.Size > c.opt.MaxFile:
		return "", tooLarge()
	case !ok || !strings.HasPrefix(f.Remote, "mxc://") || server == "" || media == "" || strings.Contains(media, "/"):
		return "", &channel.RejectedError{Why: "its address is not one of Matrix"}
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	resp, err := c.open(ctx, request{http.MethodGet, at("/_matrix/client/v1/media/download/%s/%s", server, media), nil,
		"", nil, -1})
	if code := codeOf(err); code == "M_UNRECOGNIZED" || err != nil && code == "" && refused(err) {
		// Servers before version 1.11 of the specification have only this path.
		resp, err = c.open(ctx, request{http.MethodGet, at("/_matrix/media/v3/download/%s/%s", server, media), nil, "", nil,
			-1})
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	saved, err := attachment.Save(c.opt.Files, message, n, f.Name, resp.Body, c.opt.MaxFile)
	switch {
	case errors.Is(err, attachment.ErrTooLarge):
		return "", tooLarge()
	case err != nil:
		return "", fmt.Errorf("matrix: a file: %w", channel.WithoutURL(err))
	}
	return saved, nil
}

func tooLarge() error { return &channel.RejectedError{Why: "it is too large"} }

// attach uploads the file of a message and makes body the content of a file. If the process dies after the upload, no
// message names the uploaded file.
func (c *Channel) attach(ctx context.Context, m channel.Outbound, body object) error {
	f, err := os.Open(m.File.Path)
	if err != nil {
		return &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return &channel.RejectedError{Why: "its file is not a regular file"}
	}
	const header = 512 // bytes that show the type
	head := make([]byte, min(header, info.Size()))
	if _, err := io.ReadFull(f, head); err != nil {
		return &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	mime, kind := http.DetectContentType(head), "m.file"
	for prefix, is := range map[string]string{"image/": "m.image", "audio/": "m.audio", "video/": "m.video"} {
		if strings.HasPrefix(mime, prefix) {
			kind = is
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	var uploaded struct {
		URL string `json:"content_uri"`
	}
	name := attachment.Name(m.File.Name)
	if err := c.send(ctx, request{http.MethodPost, "/_matrix/media/v3/upload", url.Values{"filename": {name}}, mime,
		io.LimitReader(f, info.Size()), info.Size()}, &uploaded); err != nil {
		return err
	}
	body["msgtype"], body["url"], body["filename"] = kind, uploaded.URL, name
	body["info"] = object{"mimetype": mime, "size": info.Size()}
	if body["body"] == "" {
		body["body"] = name
	}
	return nil
}
