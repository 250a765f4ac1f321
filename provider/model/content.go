package model

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// block is a content block of ACP with the members that models get.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // base64 of an image or of audio
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI      string  `json:"uri"`
		MimeType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// part is a block in the form that the mappings use: a text, or another file.
type part struct {
	text string
	mime string // the type of a file; empty for a text
	data string // base64
	name string
}

func (p part) isImage() bool { return strings.HasPrefix(p.mime, "image/") }

// dataURL returns the file as a data: URL.
func (p part) dataURL() string { return "data:" + p.mime + ";base64," + p.data }

// An inputError means that the model does not accept a part of the input. Nothing was sent.
type inputError struct{ what string }

func (e *inputError) Error() string { return e.what }

// parts converts blocks. A link becomes text, because Perlica never opens it.
func parts(blocks []block) ([]part, error) {
	var out []part
	for _, b := range blocks {
		p, err := b.part()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (b block) part() (part, error) {
	switch b.Type {
	case "text":
		return part{text: b.Text}, nil
	case "image":
		return file(b.MimeType, b.Data, b.URI)
	case "resource_link":
		return part{text: fmt.Sprintf("[%s](%s)", b.Name, b.URI)}, nil
	case "resource":
		switch r := b.Resource; {
		case r == nil:
			return part{}, &inputError{"a resource without contents"}
		case r.Text != nil:
			return part{text: fmt.Sprintf("%s:\n```\n%s\n```", r.URI, *r.Text)}, nil
		default:
			return file(r.MimeType, r.Blob, r.URI)
		}
	}
	return part{}, &inputError{fmt.Sprintf("a content block of the type %q cannot be sent to a model", b.Type)}
}

// hasFiles reports whether the turn contains a file other than text.
func (t turn) hasFiles() bool {
	ps, err := parts(t.blocks)
	return err == nil && slices.ContainsFunc(ps, func(p part) bool { return p.mime != "" })
}

// file returns an image or a PDF as a part. The four APIs accept no other types.
func file(mime, data, uri string) (part, error) {
	if !oneOf("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")(mime) {
		return part{}, &inputError{fmt.Sprintf(
			"a file of the type %q cannot be sent to a model: PNG, JPEG, GIF, WebP, PDF and text can", mime)}
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return part{}, &inputError{"the data of " + mime + " is no base64"}
	}
	name := uri[strings.LastIndexByte(uri, '/')+1:]
	if name == "" {
		name = "file"
	}
	return part{mime: mime, data: data, name: name}, nil
}

// object is a JSON object under construction.
type object = map[string]any

// messages returns the turns as a list of objects with a role and contents. The function "content" converts one part.
func messages(history []turn, assistant string, content func(p part, assistant bool) any) (list []object, err error) {
	for _, t := range history {
		role := "user"
		if t.assistant {
			role = assistant
		}
		ps, err := parts(t.blocks)
		if err != nil {
			return nil, err
		}
		contents := make([]any, len(ps))
		for i, p := range ps {
			contents[i] = content(p, t.assistant)
		}
		list = append(list, object{"role": role, "content": contents})
	}
	return list, nil
}

// fileAt returns the file at an address of an answer. A data: URL contains the file itself.
func fileAt(address string) []piece {
	if address == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(address, "data:")
	if !ok {
		return []piece{{kind: filePiece, file: answerFile{uri: address}}}
	}
	mime, data, _ := strings.Cut(rest, ";base64,")
	return []piece{{kind: filePiece, file: answerFile{mime: mime, data: data}}}
}

// content returns the file as a content block of ACP.
func (f answerFile) content() object {
	kind, _, _ := strings.Cut(f.mime, "/")
	switch {
	case f.data == "":
		return object{"type": "resource_link", "uri": f.uri, "name": cmp.Or(f.uri[strings.LastIndexByte(f.uri, '/')+1:], "file")}
	case kind == "image", kind == "audio":
		return object{"type": kind, "mimeType": f.mime, "data": f.data}
	}
	return object{"type": "resource", "resource": object{"uri": "", "mimeType": f.mime, "blob": f.data}}
}

// missing returns the end of the text "whole" that the user has not seen yet. The parameter "pieces" is the text that
// the user has seen. If "whole" does not begin with it, missing returns "", because a shown text cannot be changed.
func missing(whole, pieces string) string {
	rest, ok := strings.CutPrefix(whole, pieces)
	if !ok {
		return ""
	}
	return rest
}

// decode decodes the data of an event. The error names the API.
func decode(e event, api API, v any) error {
	if err := json.Unmarshal(e.data, v); err != nil {
		return fmt.Errorf("an event of the stream is not of the form of %s: %w", api, err)
	}
	return nil
}
