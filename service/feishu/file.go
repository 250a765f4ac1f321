package feishu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// fileTime is the ratio of the time limit of a file to the limit of any other request.
const fileTime = 10

// These are Feishu's limits of sent files.
const (
	maxUpload = 30 << 20
	maxImage  = 10 << 20
)

// Fetch downloads a file to the private folder. Poll has named the file.
func (c *Channel) Fetch(ctx context.Context, message string, n int, f channel.File) (string, error) {
	kind, key, _ := strings.Cut(f.Remote, "/")
	switch {
	case c.opt.Files == "":
		return "", &channel.RejectedError{Why: "files are not taken here"}
	case kind != "image" && kind != "file" || !isID(key, "") || !isID(message, "om_"):
		return "", &channel.RejectedError{Why: "it is no file of Feishu"}
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime*c.opt.Timeout)
	defer cancel()
	r := request{method: http.MethodGet, path: "/open-apis/im/v1/messages/" + message + "/resources/" + key,
		query: url.Values{"type": {kind}}}
	resp, err := c.send(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read or is not needed
	// The answer is a file or an error. An error is JSON without a file name, and a JSON file has a file name.
	if resp.StatusCode != http.StatusOK || isJSON(resp) && resp.Header.Get("Content-Disposition") == "" {
		if err = readAnswer(resp, nil); err == nil {
			err = errors.New("the answer is no file")
		}
		return "", c.clean(r, err)
	}
	saved, err := attachment.Save(c.opt.Files, message, n, f.Name, resp.Body, c.opt.MaxFile)
	if errors.Is(err, attachment.ErrTooLarge) {
		err = &channel.RejectedError{Why: "it is too large"}
	}
	return saved, c.clean(r, err)
}

// images are the endings of images that Feishu shows.
var images = []string{".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"}

// upload gives a file to Feishu and returns its message. Nobody sees the file before the message is sent, so every
// error means that nothing was sent.
func (c *Channel) upload(ctx context.Context, f channel.File) (m message, err error) {
	name := attachment.Name(f.Name)
	content, err := readFile(f.Path)
	if err != nil {
		return m, err
	}
	r := request{method: http.MethodPost, path: "/open-apis/im/v1/files", slow: true}
	fields, part := [][2]string{{"file_type", "stream"}, {"file_name", name}}, "file"
	isImage := slices.Contains(images, strings.ToLower(path.Ext(name))) && len(content) <= maxImage
	if isImage {
		r.path, fields, part = "/open-apis/im/v1/images", [][2]string{{"image_type", "message"}}, "image"
	}
	if r.raw, r.kind, err = form(fields, part, name, content); err != nil {
		return m, notSent(err)
	}
	var a struct {
		File  string `json:"file_key"`
		Image string `json:"image_key"`
	}
	if err := c.call(ctx, r, &a); err != nil {
		return m, notSent(err)
	}
	if isImage {
		return message{Type: "image", Content: asJSON(map[string]string{"image_key": a.Image})}, nil
	}
	return message{Type: "file", Content: asJSON(map[string]string{"file_key": a.File})}, nil
}

// readFile returns the content of a file to send.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	defer func() { _ = f.Close() }() // the file was only read
	content, err := io.ReadAll(io.LimitReader(f, maxUpload+1))
	switch {
	case err != nil:
		return nil, &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	case len(content) == 0:
		return nil, &channel.RejectedError{Why: "its file is empty, and Feishu takes no empty file"}
	case len(content) > maxUpload:
		return nil, &channel.RejectedError{Why: fmt.Sprintf("its file has more than %d MiB", maxUpload>>20)}
	}
	return content, nil
}

// form returns a form with a file, and its media type.
func form(fields [][2]string, part, name string, content []byte) (io.Reader, string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, "", err
		}
	}
	p, err := w.CreateFormFile(part, name)
	if err == nil {
		_, err = p.Write(content)
	}
	return &b, w.FormDataContentType(), errors.Join(err, w.Close())
}
