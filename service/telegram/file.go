package telegram

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
	"strings"

	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// files returns the files of a message, and only the largest size of a picture.
func (m *message) files() (list []file) {
	for _, f := range []struct {
		f    *file
		name string
		mime string
	}{
		{m.Document, "document", ""}, {m.largest(), "photo.jpg", "image/jpeg"}, {m.Voice, "voice.ogg", "audio/ogg"},
		{m.Audio, "audio", ""}, {m.Video, "video.mp4", "video/mp4"}, {m.Note, "video.mp4", "video/mp4"},
	} {
		if f.f == nil {
			continue
		}
		one := *f.f
		if one.Name == "" {
			one.Name = f.name
		}
		one.Name = attachment.Name(one.Name)
		if one.MIME == "" {
			one.MIME = f.mime
		}
		list = append(list, one)
	}
	return list
}

func (m *message) largest() *file {
	if len(m.Photo) == 0 {
		return nil
	}
	return &m.Photo[len(m.Photo)-1]
}

// fileTime is a factor. The time limit of a file is this factor times the limit of any other request.
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
	var at file
	if err := c.callMethod(ctx, "getFile", map[string]string{"file_id": f.Remote}, &at); err != nil {
		return "", err
	}
	// A server in local mode names a file on its own disk. A server's words must never open a file
	// on this machine.
	if at.Path == "" || path.IsAbs(at.Path) || strings.Contains(at.Path, "..") || strings.ContainsAny(at.Path, `\:`) {
		return "", &channel.RejectedError{Why: "the server does not hand it out over HTTP"}
	}
	saved, err := c.downloadFile(ctx, message, n, f.Name, at.Path)
	switch {
	case errors.Is(err, attachment.ErrTooLarge):
		return "", tooLarge()
	case err != nil:
		return "", c.cleanError(fmt.Errorf("telegram: a file: %w", err))
	}
	return saved, nil
}

func tooLarge() error { return &channel.RejectedError{Why: "it is too large"} }

func (c *Channel) downloadFile(ctx context.Context, message string, n int, name, at string) (string, error) {
	parts := strings.Split(at, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		c.base+"/file/bot"+string(c.opt.Token)+"/"+strings.Join(parts, "/"), nil)
	if err != nil {
		return "", channel.WithoutURL(err)
	}
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

// A fileKind is a way in which Telegram shows a file.
type fileKind struct{ method, field string }

var (
	document = fileKind{"sendDocument", "document"}
	photo    = fileKind{"sendPhoto", "photo"}
)

// largestPhoto is Telegram's limit for a photo, in bytes.
const largestPhoto = 10_000_000

// kindOf returns photo for a picture that Telegram can show as one, and otherwise document. The first bytes of the file
// decide. Telegram shows a GIF as an animation only if it is a document.
func kindOf(path string) fileKind {
	f, err := os.Open(path)
	if err != nil {
		return document // sendFile reports the error
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil || info.Size() > largestPhoto {
		return document
	}
	head := make([]byte, 512)    // the bytes that DetectContentType reads
	n, _ := io.ReadFull(f, head) // a shorter file has fewer bytes
	switch http.DetectContentType(head[:n]) {
	case "image/png", "image/jpeg", "image/webp":
		return photo
	}
	return document
}

// sendFile sends m's file with a caption.
func (c *Channel) sendFile(ctx context.Context, kind fileKind, m channel.Outbound, o outgoing) (id string, err error) {
	f, err := os.Open(m.File.Path)
	if err != nil {
		return "", &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", &channel.RejectedError{Why: "its file is not a regular file"}
	}
	// The rest of the form is made first. The length of the request is then known, and no other goroutine has to write.
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	thread := ""
	if o.Thread != 0 {
		thread = decimal(o.Thread)
	}
	fields := [][2]string{{"chat_id", o.Chat}, {"message_thread_id", thread}, {"caption", o.Text},
		{"parse_mode", o.ParseMode}, {"reply_parameters", asJSON(o.ReplyTo)}, {"reply_markup", asJSON(o.Keyboard)}}
	for _, field := range fields {
		if field[1] != "" {
			err = errors.Join(err, w.WriteField(field[0], field[1]))
		}
	}
	_, werr := w.CreateFormFile(kind.field, attachment.Name(m.File.Name))
	head := form.Len()
	if err := errors.Join(err, werr, w.Close()); err != nil {
		return "", fmt.Errorf("telegram: %s: %w: %w", kind.method, channel.ErrNotSent, err)
	}
	b := form.Bytes()
	body := io.MultiReader(bytes.NewReader(b[:head]), io.LimitReader(f, info.Size()), bytes.NewReader(b[head:]))
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var sent message
	if err := c.postBody(ctx, kind.method, w.FormDataContentType(), body, int64(len(b))+info.Size(),
		&sent); err != nil {
		return "", err
	}
	return messageID(&sent), nil
}
