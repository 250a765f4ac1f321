package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/sandbox"
)

// Input is a message that the agent must answer.
type Input struct {
	ID          event.InputID // empty means a new id
	Text        string
	Attachments []string // paths of the attached files
	Source      string   // "run", "chat" or another front end
	Sender      string   // the name of the user or program that sent it
	// Prompt is the prompt that the agent's own client wrote. If it is set, Text is the text in it, and Attachments is
	// empty. If it is nil, Perlica makes the prompt from Text and Attachments.
	Prompt provider.Prompt
}

// owners has, for each reserved beginning of an input's id, the sources whose inputs may have it. A team's worker
// answers the steps of other members' flows. With 'perlica run', a person makes a missed call of a schedule.
var owners = map[string][]string{
	event.FlowPrefix:     {"flow", "team"},
	event.SchedulePrefix: {"schedule", "run", "team"},
}

// CheckID returns an *InputError if the id is reserved for a flow or a schedule, and the input comes from another
// source. Such an input would use up the one call of the step or of the planned time.
func (in Input) CheckID() error {
	for prefix, sources := range owners {
		if strings.HasPrefix(string(in.ID), prefix) && !slices.Contains(sources, in.Source) {
			return &InputError{inputReserved.With(in.ID)}
		}
	}
	return nil
}

// An InputError means that the input or the setup is not valid, so that nothing was sent.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// isUsage reports whether the caller or a budget caused the error, and not the agent.
func isUsage(err error) bool {
	var input *InputError
	var refused *budget.RefusedError
	return errors.As(err, &input) || errors.Is(err, sandbox.ErrUnavailable) || errors.As(err, &refused) ||
		errors.Is(err, budget.ErrNotChecked)
}

// offered wraps an *agents.OfferError in an *InputError. It returns other errors unchanged.
func offered(err error) error {
	var offer *agents.OfferError
	if errors.As(err, &offer) {
		return &InputError{err}
	}
	return err
}

// An InputConflictError means that the input's id was already used for another text or other attachments. Nothing was
// sent, and the recorded result belongs to the other input.
type InputConflictError struct {
	Input           event.InputID
	Run             event.RunID // the run of the earlier call
	Recorded, Given string      // digests of the two inputs; see Input.digest
}

// Tell returns the error's sentence.
func (e *InputConflictError) Tell() *message.Text {
	return inputDiffers.With(e.Input, e.Recorded, e.Given)
}

func (e *InputConflictError) Error() string { return e.Tell().Text }

// file is an attachment, ready to be sent.
type file struct {
	name, uri string
	mime      string // the type of an image or a sound by its first bytes, or ""
	data      []byte // nil if the file is too large; the agent then gets a link
}

func (f file) isSound() bool { return strings.HasPrefix(f.mime, "audio/") }

// maxEmbedded is the maximum size, in bytes, of a file that is sent as a whole. For a larger file the agent gets a
// link.
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
		return file{}, &fs.PathError{Op: "attach", Path: path, Err: notRegular}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return file{}, err
	}
	f := file{name: filepath.Base(abs), uri: (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()}
	if info.Size() <= maxEmbedded {
		f.data, err = os.ReadFile(abs)
		f.mime = provider.MediaType(f.data)
		if f.data == nil {
			f.data = []byte{} // nil would mean a link
		}
		return f, err
	}
	f.mime, err = typeOf(abs)
	return f, err
}

// typeOf returns the type of a large image or sound, or "".
func typeOf(path string) (string, error) {
	r, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // the content was only read
	head := make([]byte, provider.MediaHead)
	_, err = io.ReadFull(r, head)
	return provider.MediaType(head), err
}

// digest identifies an input by a SHA-256 in hex. Without attachments it is the hash of the text. With attachments it
// hashes several lines: the hash of the text, and then two lines for each attachment. These are the hash of the file's
// content, or "-" for a link, and the file's URI. With a Prompt it is the hash of the Prompt.
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

// Digest identifies an input by its text and its attachments. The intent on the log has the same digest. The error is
// an *InputError.
func (r *Runner) Digest(in Input) (string, error) {
	files, err := in.files()
	if err != nil {
		return "", err
	}
	return r.digest(in, files), nil
}

// digest returns the digest of the input. If the log is masked, it first masks the input in the same way.
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

// makePrompt returns the prompt as it is sent, its attachments, and a report of the earlier turns that the transcript
// omits.
func (run *run) makePrompt(ctx context.Context) (provider.Prompt, []file, *fact.Truncated, error) {
	if run.clientPrompt != nil {
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

// blocks returns the content of the prompt: the input's text and its attachments. If the agent does not know them yet,
// the system text and the transcript come first.
func (run *run) blocks(ctx context.Context, files []file) ([]acp.ContentBlock, *fact.Truncated, error) {
	var blocks []acp.ContentBlock
	var cut *fact.Truncated
	// first means that the agent knows neither the system text nor earlier turns.
	first := !run.agent.prompted && !(run.agent.how != continuedAnew)
	if first && run.t.System != "" {
		blocks = append(blocks, acp.TextBlock(run.t.System))
	}
	if first && !run.created {
		h, err := run.r.readHistory(ctx, run.refs.Session, run.refs.Run, run.t.Budget)
		if err != nil {
			return nil, nil, err
		}
		if text := h.Transcript(); text != "" {
			blocks = append(blocks, acp.TextBlock(text))
		}
		if h.Dropped > 0 || h.Gone > 0 {
			cut = &fact.Truncated{Kept: len(h.Turns), Dropped: h.Dropped, Gone: h.Gone, Budget: run.t.Budget, Estimate: h.Tokens}
		}
	}
	blocks = append(blocks, acp.TextBlock(run.t.Input.Text))
	for _, f := range files {
		blocks = append(blocks, run.attachment(f))
	}
	return blocks, cut, nil
}

// attachment returns a file in the best form that the agent accepts: as an image, a sound, an embedded text, or a link.
func (run *run) attachment(f file) acp.ContentBlock {
	can := run.agent.info.AgentCapabilities.PromptCapabilities
	switch {
	case f.data == nil:
	case can.Image && strings.HasPrefix(f.mime, "image/"):
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(f.data), f.mime)
	case can.Audio && f.isSound():
		return acp.AudioBlock(base64.StdEncoding.EncodeToString(f.data), f.mime)
	case can.EmbeddedContext && !f.isSound() && utf8.Valid(f.data):
		return acp.ResourceBlock(acp.EmbeddedResourceResource{
			TextResourceContents: &acp.TextResourceContents{Uri: f.uri, Text: string(f.data)},
		})
	}
	return acp.ResourceLinkBlock(f.name, f.uri)
}

// warnOfSounds warns if the agent gets a sound as a link to its file.
func (run *run) warnOfSounds(files []file) {
	takes := run.agent.info.AgentCapabilities.PromptCapabilities.Audio
	for _, f := range files {
		switch {
		case !f.isSound():
		case !takes:
			run.client.warn("sound", soundNotTaken)
		case f.data == nil:
			run.client.warn("sound", soundTooLarge)
		}
	}
}
