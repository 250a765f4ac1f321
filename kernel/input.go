package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// Input is one thing to be answered.
type Input struct {
	ID          event.InputID // empty: a new one is made
	Text        string
	Attachments []string // paths of files
	Source      string   // where it came from: "run", "chat"
	Sender      string   // who it came from: a user's name
	// Prompt is what the agent is asked as a client of its own wrote it; Text is the text in it, and
	// there are no Attachments. nil: it is made of Text and Attachments.
	Prompt provider.Prompt
}

// An InputError says what is wrong with what was to be sent; nothing was.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// isUsage reports whether err is the caller's fault, not the agent's.
func isUsage(err error) bool {
	var input *InputError
	return errors.As(err, &input)
}

// offered makes an InputError of one that says what the agent does not offer.
func offered(err error) error {
	var offer *agents.OfferError
	if errors.As(err, &offer) {
		return &InputError{err}
	}
	return err
}

// An InputConflictError says that the input's id was called before with another text or other
// attachments. Nothing was sent, and the recorded result is not this input's.
type InputConflictError struct {
	Input           event.InputID
	Run             event.RunID // in which it was called
	Recorded, Given string      // the digests: see Input.digest
}

func (e *InputConflictError) Error() string {
	return fmt.Sprintf("the input %s was called before with another text or other attachments: sha256 %s is recorded, %s was given", e.Input, e.Recorded, e.Given)
}

// file is an attachment as it is sent.
type file struct {
	name, uri string
	data      []byte // nil: it is too large, and the agent gets a link
}

// maxEmbedded is the largest file that is put into a prompt; of a larger one the agent
// gets a link.
const maxEmbedded = 1 << 20

// files reads the attachments. The error is an *InputError.
func (in Input) files() ([]file, error) {
	var list []file
	for _, path := range in.Attachments {
		f, err := readFile(path)
		if err != nil {
			var broken *fs.PathError
			if errors.As(err, &broken) {
				err = broken.Err
			}
			return nil, &InputError{fmt.Errorf("attachment: %s: %w", path, err)}
		}
		list = append(list, f)
	}
	return list, nil
}

func readFile(path string) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() {
		return file{}, &fs.PathError{Op: "attach", Path: path, Err: errors.New("it is not a regular file")}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return file{}, err
	}
	f := file{name: filepath.Base(abs), uri: (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()}
	if info.Size() <= maxEmbedded {
		f.data, err = os.ReadFile(abs)
		if f.data == nil {
			f.data = []byte{} // an empty file is no link
		}
	}
	return f, err
}

// digest identifies what an input asks: the SHA-256 of its text in hex; where there are
// attachments, that of this digest and, for each of them in their order, the SHA-256 of its
// content ("-" where the agent gets a link only) and its URI, each on a line of its own. Of an input
// with a Prompt it is that of its bytes.
func (in Input) digest(files []file) string {
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	if in.Prompt != nil {
		return hash(in.Prompt)
	}
	text := hash([]byte(in.Text))
	if len(files) == 0 {
		return text
	}
	lines := text + "\n"
	for _, f := range files {
		content := "-"
		if f.data != nil {
			content = hash(f.data)
		}
		lines += content + "\n" + f.uri + "\n"
	}
	return hash([]byte(lines))
}

// Digest identifies an input by its text and its attachments, as its intent does. The error is an
// *InputError.
func (r *Runner) Digest(in Input) (string, error) {
	files, err := in.files()
	if err != nil {
		return "", err
	}
	return r.digest(in, files), nil
}

// digest is Input.digest as the log may hold it: where the log is masked, that of what is left.
func (r *Runner) digest(in Input, files []file) string {
	if !r.opt.RedactLog {
		return in.digest(files)
	}
	in.Text = r.opt.Redactor.Text(in.Text)
	if in.Prompt != nil {
		in.Prompt = r.opt.Redactor.Payload(in.Prompt)
	}
	masked := slices.Clone(files)
	for i, f := range masked {
		if f.data != nil {
			masked[i].data = []byte(r.opt.Redactor.Text(string(f.data)))
		}
	}
	return in.digest(masked)
}

// makePrompt is what the agent is asked, as it will be on the wire, and the attachments in it.
func (run *run) makePrompt(ctx context.Context) (provider.Prompt, []file, *fact.Truncated, error) {
	if run.carried != nil {
		return run.t.Input.Prompt, nil, nil, nil
	}
	files, err := run.t.Input.files()
	if err != nil {
		return nil, nil, nil, err
	}
	blocks, cut, err := run.blocks(ctx, files)
	if err != nil {
		return nil, nil, nil, err
	}
	prompt, err := provider.NewPrompt(blocks)
	if err != nil {
		err = &InputError{err}
	}
	return prompt, files, cut, err
}

// blocks is what the agent is asked: the system text and the transcript where they
// belong, then the input's text, then its attachments.
func (run *run) blocks(ctx context.Context, files []file) ([]acp.ContentBlock, *fact.Truncated, error) {
	var blocks []acp.ContentBlock
	var cut *fact.Truncated
	first := !run.agent.prompted && !(run.agent.how != continuedAnew) // the agent knows nothing yet
	if first && run.t.System != "" {
		blocks = append(blocks, acp.TextBlock(run.t.System))
	}
	if first && !run.created {
		h, err := run.r.history(ctx, run.refs.Session, run.refs.Run, run.t.Budget)
		if err != nil {
			return nil, nil, err
		}
		if text := h.transcript(); text != "" {
			blocks = append(blocks, acp.TextBlock(text))
		}
		if h.dropped > 0 || h.gone > 0 {
			cut = &fact.Truncated{Kept: len(h.turns), Dropped: h.dropped, Gone: h.gone, Budget: run.t.Budget, Estimate: h.tokens}
		}
	}
	blocks = append(blocks, acp.TextBlock(run.t.Input.Text))
	for _, f := range files {
		blocks = append(blocks, run.attachment(f))
	}
	return blocks, cut, nil
}

// imageType returns the MIME type of an image, or nothing for other data.
func imageType(data []byte) string {
	for start, mime := range map[string]string{
		"\x89PNG\r\n\x1a\n": "image/png", "\xff\xd8\xff": "image/jpeg", "GIF87a": "image/gif", "GIF89a": "image/gif",
		"BM": "image/bmp", "\x00\x00\x01\x00": "image/x-icon", "\x00\x00\x02\x00": "image/x-icon",
	} {
		if bytes.HasPrefix(data, []byte(start)) {
			return mime
		}
	}
	if len(data) >= 14 && string(data[:4]) == "RIFF" && string(data[8:14]) == "WEBPVP" {
		return "image/webp"
	}
	return ""
}

// attachment makes of a file what the agent can take: an image, an embedded text, else a
// link.
func (run *run) attachment(f file) acp.ContentBlock {
	can := run.agent.info.AgentCapabilities.PromptCapabilities
	mime := imageType(f.data)
	switch {
	case f.data == nil:
	case can.Image && mime != "":
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(f.data), mime)
	case can.EmbeddedContext && utf8.Valid(f.data):
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: f.uri, Text: string(f.data)}})
	}
	return acp.ResourceLinkBlock(f.name, f.uri)
}
