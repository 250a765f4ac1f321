package email

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/emersion/go-message"
	"golang.org/x/net/html"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// body is the content of a mail.
type body struct {
	text   string
	files  []file
	unread string // the kind of a content that cannot be read
}

type file struct {
	name, mime string
	data       []byte
}

const (
	maxDepth = 10
	maxParts = 200
)

// reader reads the parts of a mail.
type reader struct {
	body
	parts int
}

// readBody reads a whole mail. It reads as much as possible of a malformed one.
func readBody(whole []byte) body {
	r := &reader{}
	e, err := message.Read(bytes.NewReader(whole))
	if e != nil {
		r.read(e, err, 0)
	}
	return r.body
}

// read reads a part. The parameter "fault" is the error of its encoding.
func (r *reader) read(e *message.Entity, fault error, depth int) {
	kind, params, _ := e.Header.ContentType() // a malformed type counts as text
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	disposition, dparams, _ := e.Header.ContentDisposition()
	if r.parts++; r.parts > maxParts || depth > maxDepth {
		return
	}
	name := decodeWords(dparams["filename"])
	if name == "" {
		name = decodeWords(params["name"])
	}
	switch {
	case kind == "multipart/encrypted" || kind == "application/pkcs7-mime":
		r.unread = "an encrypted mail"
	case strings.HasPrefix(kind, "multipart/"):
		r.readParts(e, kind, depth)
	case (kind == "text/plain" || kind == "text/html") && disposition != "attachment" && name == "":
		r.readText(e, kind, params, fault)
	case kind == "application/pgp-signature", kind == "application/pkcs7-signature":
	default:
		data, err := io.ReadAll(e.Body)
		if err != nil {
			return
		}
		if name == "" {
			name = map[bool]string{true: "message.eml", false: "file"}[kind == "message/rfc822"]
		}
		r.files = append(r.files, file{name, kind, data})
	}
}

// readParts reads the parts of a part. Of alternatives it takes the plain text if there is one.
func (r *reader) readParts(e *message.Entity, kind string, depth int) {
	plain, rich := &reader{}, &reader{}
	parts := e.MultipartReader()
	for parts != nil {
		p, err := parts.NextPart()
		if p == nil || errors.Is(err, io.EOF) {
			break
		}
		into := r
		if t, _, _ := p.Header.ContentType(); kind == "multipart/alternative" {
			if into = rich; t == "text/plain" {
				into = plain
			}
		}
		into.parts = r.parts
		into.read(p, err, depth+1)
		r.parts = into.parts
	}
	if strings.TrimSpace(plain.text) == "" {
		plain.text = rich.text
	}
	r.add(plain.text)
	r.files = append(append(r.files, plain.files...), rich.files...)
	r.unread = cmp.Or(r.unread, plain.unread, rich.unread)
}

func (r *reader) add(text string) {
	if strings.TrimSpace(text) != "" {
		r.text = strings.TrimLeft(r.text+"\n\n"+strings.TrimSpace(text), "\n")
	}
}

func (r *reader) readText(e *message.Entity, kind string, params map[string]string, fault error) {
	data, _ := io.ReadAll(e.Body) // the rest of a mail that was cut off is missing
	if message.IsUnknownCharset(fault) {
		decoder := decoderOf(params["charset"])
		if decoder == nil {
			r.unread = "a mail in an unknown charset"
			return
		}
		if decoded, err := decoder.NewDecoder().Bytes(data); err == nil {
			data = decoded
		}
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\r\n", "\n")
	switch {
	case kind == "text/html":
		text = plainOf(text)
	case strings.EqualFold(params["format"], "flowed"):
		text = unfold(text, strings.EqualFold(params["delsp"], "yes"))
	}
	r.add(text)
}

// unfold joins the lines of a paragraph that a mail program has cut (RFC 3676). Such a line ends with a space, which
// belongs to the text if delSpace is false.
func unfold(text string, delSpace bool) string {
	var out strings.Builder
	depth, open := 0, false // of the last line
	for line := range strings.SplitSeq(text, "\n") {
		own := strings.TrimLeft(line, ">")
		marks := len(line) - len(own)
		own = strings.TrimPrefix(own, " ")
		cut := strings.HasSuffix(own, " ") && own != "-- "
		if cut && delSpace {
			own = strings.TrimSuffix(own, " ")
		}
		if !open || marks != depth || own == "-- " {
			out.WriteString("\n" + strings.TrimLeft(strings.Repeat(">", marks)+" ", " "))
		}
		out.WriteString(own)
		depth, open = marks, cut
	}
	return strings.TrimPrefix(out.String(), "\n")
}

// decoderOf returns the encoding with a name, or nil.
func decoderOf(name string) encoding.Encoding {
	name = letters(name)
	switch name {
	case "gb2312", "gbk", "gb18030", "cp936", "euccn", "hzgb2312":
		return simplifiedchinese.GB18030
	case "latin1":
		name = "iso88591"
	}
	name = strings.Replace(name, "cp125", "windows125", 1)
	for _, e := range charmap.All {
		if known := letters(fmt.Sprint(e)); known == name {
			return e
		}
	}
	return nil
}

// letters returns the letters and digits of a name, in small letters.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// charsetReader decodes a text in a header.
func charsetReader(charset string, input io.Reader) (io.Reader, error) {
	e := decoderOf(charset)
	if e == nil {
		return nil, fmt.Errorf("the charset %.40q is unknown", charset)
	}
	return e.NewDecoder().Reader(input), nil
}

// plainOf returns the text of an HTML document. A quotation has the mark "> " at the beginning of its lines.
func plainOf(document string) string {
	var out strings.Builder
	hidden, quotes := 0, 0
	line := func() { // begins a line
		if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteString("\n")
		}
	}
	write := func(text string) {
		for word := range strings.FieldsSeq(text) {
			switch s := out.String(); {
			case quotes > 0 && (s == "" || strings.HasSuffix(s, "\n")):
				out.WriteString(strings.Repeat("> ", quotes))
			case s != "" && !strings.HasSuffix(s, "\n"):
				out.WriteString(" ")
			}
			out.WriteString(word)
		}
	}
	tokens := html.NewTokenizer(strings.NewReader(document))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return strings.TrimSpace(out.String())
		}
		t := tokens.Token()
		step := map[html.TokenType]int{html.StartTagToken: 1, html.EndTagToken: -1}[kind]
		switch {
		case kind == html.TextToken && hidden == 0:
			write(t.Data)
		case kind == html.TextToken || kind == html.CommentToken || kind == html.DoctypeToken:
		case t.Data == "script" || t.Data == "style" || t.Data == "title":
			hidden = max(hidden+step, 0)
		case t.Data == "blockquote":
			line()
			quotes = min(max(quotes+step, 0), maxDepth)
		case t.Data == "br":
			out.WriteString("\n")
		case t.Data == "p" && step == 1:
			line()
			out.WriteString("\n")
		case strings.Contains(" p div li tr h1 h2 h3 h4 h5 h6 pre table ul ol hr ", " "+t.Data+" "):
			line()
		}
	}
}

// original matches the line above the whole answered mail.
var original = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-{2,} *(Original Message|Original-Nachricht|Ursprüngliche Nachricht|Message d'origine|` +
		`Mensaje original|原始邮件|原始邮件信息) *-{2,}$`)
})

// headOf matches the first line and the further lines of a header of an answered mail, as some programs quote it.
var headOf = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{regexp.MustCompile(`^\*?(From|Von|De|Da|Van|差出人|发件人) ?[:：]\*? ?.+`),
		regexp.MustCompile(`^\*?(Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|` +
			`Enviado|Para|Asunto|Inviato|Oggetto|Verzonden|Onderwerp|送信日時|宛先|件名|发送时间|日期|收件人|主题) ?[:：]`)}
})

// withoutQuote removes the answered mail below the text of a reply. Marked lines between the lines of the reply stay.
func withoutQuote(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		l = strings.TrimSpace(l)
		head := headOf()
		if original().MatchString(l) || head[0].MatchString(l) && i+1 < len(lines) &&
			head[1].MatchString(strings.TrimSpace(lines[i+1])) {
			lines = lines[:i]
			break
		}
	}
	end, cut := len(lines), false
	for end > 0 && (isQuote(lines[end-1]) || strings.TrimSpace(lines[end-1]) == "") {
		end--
		cut = cut || isQuote(lines[end])
	}
	if !cut {
		return strings.TrimRight(strings.Join(lines, "\n"), " \n_")
	}
	// The line above names the author, as in "On Monday, Ann wrote:". A mail program may fold a long line, so that its
	// last words stand alone in the next line.
	if end > 0 {
		if last := strings.TrimSpace(lines[end-1]); strings.HasSuffix(last, ":") || strings.HasSuffix(last, "：") {
			end--
			if len(last) < shortEnd && end > 0 && strings.Contains(lines[end-1], "@") {
				end--
			}
		}
	}
	return strings.TrimSpace(strings.Join(lines[:end], "\n"))
}

// shortEnd is a length. A shorter line before a quotation may be the end of a folded line.
const shortEnd = 20

func isQuote(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), ">") }

// hasQuote reports whether a text quotes another person, by marked lines or by a forwarded mail.
func hasQuote(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if isQuote(line) || original().MatchString(line) || headOf()[0].MatchString(line) ||
			strings.HasPrefix(line, "---------- Forwarded message") || strings.HasPrefix(line, "Begin forwarded message") {
			return true
		}
	}
	return false
}

// withoutSignature removes the signature, which begins with two dashes and a blank.
func withoutSignature(text string) string {
	if strings.HasPrefix(text, "-- \n") {
		return ""
	}
	own, _, _ := strings.Cut(text, "\n-- \n")
	return strings.TrimSpace(own)
}
