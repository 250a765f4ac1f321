package provider

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/go-faster/jx"
)

// These are the protocol's names for the kinds of blocks other than text.
const (
	blockImage    = "image"
	blockAudio    = "audio"
	blockResource = "resource"
	blockLink     = "resource_link"
)

// Block is a piece of an agent's message other than text. Its fields are the agent's own claims.
type Block struct {
	Kind string `json:"type"` // as the agent wrote it: image, audio, resource, resource_link, or an unknown kind
	MIME string `json:"mimeType,omitempty"`
	Size int64  `json:"size"` // bytes of Data; for a link the agent's claim, or 0
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
	Data []byte `json:"-"` // the embedded content; nil for a link or for unreadable content
}

// maxWord limits the name, the type and the URI of a Block, in bytes. A URI can hold a whole file. The
// recorded line contains the full value.
const maxWord = 1024

// Embedded reports whether the agent sent the content itself and not only its location.
func (b Block) Embedded() bool { return b.Data != nil }

// Link reports whether a block only names a location. Perlica shows the location and never opens it.
func (b Block) Link() bool { return b.Kind == blockLink }

// extensions maps the type of a block to the extension of the saved file. The agent does not choose the extension,
// because it could choose the extension of a program.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp",
	"image/svg+xml": ".svg",
	"audio/wav":     ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/ogg": ".ogg",
	"audio/flac": ".flac", "audio/webm": ".webm",
	"text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv", "application/json": ".json",
	"application/pdf": ".pdf",
}

// unknownExtension is the extension of a file of an unknown type.
const unknownExtension = ".bin"

// Extension returns the file name extension for the block's type.
func (b Block) Extension() string {
	mime, _, _ := strings.Cut(strings.ToLower(b.MIME), ";")
	return cmp.Or(extensions[strings.TrimSpace(mime)], unknownExtension)
}

// Checked returns the block with a type that its content confirms, because the agent may claim any type. The first
// bytes of a picture or a sound show its type. A text or a PDF keeps its claimed type.
func (b Block) Checked() Block {
	claim := strings.ToLower(strings.TrimSpace(b.MIME))
	media := strings.HasPrefix(claim, "image/") || strings.HasPrefix(claim, "audio/")
	drawing := strings.HasPrefix(claim, "image/svg") && utf8.Valid(b.Data)
	if drawing || !media && b.Extension() != unknownExtension {
		return b
	}
	b.MIME = cmp.Or(MediaType(b.Data), "application/octet-stream")
	return b
}

// Noun returns the singular noun for this kind of block, for a text such as "2 images".
func (b Block) Noun() string {
	switch b.Kind {
	case blockImage:
		return "image"
	case blockAudio:
		return "sound"
	case blockResource:
		return "file"
	case blockLink:
		return "link"
	}
	return "block"
}

// String describes the block in one line: its kind, its claims and its size. It contains the agent's words.
func (b Block) String() string {
	words := []string{b.Noun()}
	switch b.Kind {
	case blockImage, blockAudio, blockResource, blockLink:
	default:
		words = append(words, "of an unknown type "+b.Kind)
	}
	for _, w := range []string{b.Name, b.URI, b.MIME} {
		if w != "" {
			words = append(words, w)
		}
	}
	text := strings.Join(words, " ")
	switch {
	case b.Embedded() || b.Size > 0:
		text += ", " + humanize.Bytes(uint64(max(b.Size, 0)))
	case b.Kind != blockLink:
		text += ", nothing in it can be read"
	}
	return text
}

// decodeContent sets u.Text or u.Block from the content of a message. It reports whether the content could be decoded.
func (u *Update) decodeContent(content []byte) bool {
	if len(content) == 0 {
		return false
	}
	var text, kind string
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(content)
	if d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "type":
			kind, err = d.Str()
		case "text":
			text, err = d.Str()
		default:
			err = d.Skip()
		}
		return err
	}) == nil && kind == "text" {
		u.Text = text
		u.noteHalves(content)
		return true
	}
	u.Block = parseBlock(content)
	return u.Block != nil
}

// parseBlock decodes a block other than text as far as possible. It returns nil if the block states no type.
func parseBlock(content []byte) *Block {
	var v struct {
		Type     string `json:"type"`
		MIME     string `json:"mimeType"`
		Data     string `json:"data"`
		URI      string `json:"uri"`
		Name     string `json:"name"`
		Title    string `json:"title"`
		Size     int64  `json:"size"`
		Resource struct {
			MIME string  `json:"mimeType"`
			URI  string  `json:"uri"`
			Blob string  `json:"blob"`
			Text *string `json:"text"`
		} `json:"resource"`
	}
	if _, err := lenient(content, &v); err != nil || v.Type == "" || v.Type == "text" {
		return nil
	}
	b := &Block{Kind: v.Type, MIME: v.MIME, URI: v.URI, Name: cmp.Or(v.Title, v.Name)}
	switch v.Type {
	case blockImage, blockAudio:
		b.Data = unpack(v.Data)
	case blockResource:
		b.MIME, b.URI = v.Resource.MIME, v.Resource.URI
		if b.Data = unpack(v.Resource.Blob); b.Data == nil && v.Resource.Text != nil {
			b.Data = []byte(*v.Resource.Text)
		}
	case blockLink:
		b.Size = max(v.Size, 0)
	}
	if b.Data != nil {
		b.Size = int64(len(b.Data))
	}
	for _, w := range []*string{&b.Kind, &b.MIME, &b.URI, &b.Name} {
		if len(*w) > maxWord {
			*w = strings.ToValidUTF8((*w)[:maxWord], "") + "…"
		}
	}
	return b
}

// unpack decodes base64 with or without padding. It returns nil if there is no data.
func unpack(s string) []byte {
	if s == "" {
		return nil
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil
	}
	return data
}

// Saying returns the text of an update that concerns the session and not a message: a notice, a compaction,
// or any unknown kind that has a text in a usual member.
func (u Update) Saying() string {
	if u.Title != "" {
		return "session title: " + u.Title
	}
	if !u.unknown || u.Kind == compactionChunk {
		return ""
	}
	var v struct {
		Severity    string    `json:"severity"`
		Message     blockText `json:"message"`
		Text        blockText `json:"text"`
		Title       blockText `json:"title"`
		Description blockText `json:"description"`
		Status      string    `json:"status"`
		Content     blockText `json:"content"`
		Summary     blockText `json:"summary"`
		Error       blockText `json:"error"`
	}
	_, _ = lenient(u.Raw, &v) // the readable part is shown
	kind := strings.ReplaceAll(strings.TrimSuffix(u.Kind, "_update"), "_", " ")
	if v.Severity != "" && v.Severity != "info" {
		kind += " (" + strings.TrimSpace(strings.ReplaceAll(v.Severity, "_", " ")) + ")"
	}
	text := cmp.Or(v.Message, v.Text, v.Title, v.Content, blockText(strings.ReplaceAll(v.Status, "_", " ")))
	words := []string{kind, string(text), string(v.Description), string(v.Error), string(v.Summary)}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": ")
}

// compactionChunk is a piece of the summary that replaces earlier messages. It is recorded but not shown, because an
// agent may also send the whole summary in a compaction_update.
const compactionChunk = "compaction_summary_chunk"

// blockText is a text in any of the usual forms: a string, a content block, a message with its content, or a
// list of these.
type blockText string

// UnmarshalJSON reads the text. A value of another form has no text.
func (t *blockText) UnmarshalJSON(b []byte) error {
	var text string
	var list []blockText
	var block struct{ Text, Content, Message blockText }
	switch {
	case json.Unmarshal(b, &text) == nil:
		*t = blockText(text)
	case json.Unmarshal(b, &list) == nil:
		var words []string
		for _, item := range list {
			if item != "" {
				words = append(words, string(item))
			}
		}
		*t = blockText(strings.Join(words, ": "))
	case json.Unmarshal(b, &block) == nil:
		*t = cmp.Or(block.Text, block.Content, block.Message)
	}
	return nil
}
