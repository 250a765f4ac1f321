package channel

import (
	"html"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// render returns a block in a platform's format.
func (b block) render(f Format) string {
	switch f {
	case Markdown:
		if !b.code {
			return b.text
		}
		ticks := "```"
		for strings.Contains(b.text, ticks) {
			ticks += "`"
		}
		return ticks + b.lang + "\n" + b.text + "\n" + ticks
	case HTML:
		if !b.code {
			return paragraph(b.text, htmlMarks)
		}
		if b.lang != "" {
			return `<pre><code class="language-` + html.EscapeString(b.lang) + `">` + html.EscapeString(b.text) + "</code></pre>"
		}
		return "<pre>" + html.EscapeString(b.text) + "</pre>"
	case Mrkdwn:
		if !b.code {
			return paragraph(b.text, mrkdwnMarks)
		}
		// A gap keeps three backticks of the code from ending the block.
		return "```\n" + strings.ReplaceAll(EscapeMrkdwn(b.text), "```", "``"+gap+"`") + "\n```"
	case Discord:
		if !b.code {
			return paragraph(b.text, discordMarks)
		}
		return "```" + langName(b.lang) + "\n" + apart(b.text) + "\n```"
	case Feishu:
		if !b.code {
			return paragraph(b.text, feishuMarks)
		}
		return "```" + langName(b.lang) + "\n" + apart(feishuCode(b.text)) + "\n```"
	}
	if !b.code {
		return paragraph(b.text, plainMarks)
	}
	return b.text
}

// marks is the notation of bold text, code and other Markdown in a format.
type marks struct {
	escape             func(string) string
	escapeCode         func(string) string
	codeOf             func(string) string // returns code with its marks; nil means escaped code between the marks
	bold, italic, code [2]string
	apart              string // follows a character that Markdown's backslash made literal
	link               func(text, url string) string
	heading            [2]string
}

// gap is a space without a width. Slack needs a space on both sides of a mark. Without the gap, Slack would show the
// marks of Chinese text and would format the words of an agent that contain marks.
const gap = "\u200b"

var (
	plainMarks = marks{
		escape: unchanged, escapeCode: unchanged,
		code: [2]string{"`", "`"}, // distinguishes a name from a word
		link: func(text, url string) string {
			if text == url {
				return url
			}
			return text + " (" + url + ")"
		},
	}
	htmlMarks = marks{
		escape: html.EscapeString, escapeCode: html.EscapeString,
		bold: [2]string{"<b>", "</b>"}, italic: [2]string{"<i>", "</i>"}, code: [2]string{"<code>", "</code>"},
		link:    func(text, url string) string { return `<a href="` + html.EscapeString(url) + `">` + text + "</a>" },
		heading: [2]string{"<b>", "</b>"},
	}
	mrkdwnMarks = marks{
		escape:     func(s string) string { return loosen(EscapeMrkdwn(s)) },
		escapeCode: EscapeMrkdwn,
		bold:       [2]string{gap + "*", "*" + gap}, italic: [2]string{gap + "_", "_" + gap},
		code: [2]string{gap + "`", "`" + gap}, apart: gap,
		link: func(text, url string) string {
			return "<" + strings.ReplaceAll(EscapeMrkdwn(url), "|", "%7C") + "|" + strings.ReplaceAll(text, "|", "¦") + ">"
		},
		heading: [2]string{"*", "*"},
	}
)

func unchanged(s string) string { return s }

var mrkdwnEntities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// EscapeMrkdwn returns a text in which Slack finds no mention, link or other object.
func EscapeMrkdwn(s string) string { return mrkdwnEntities.Replace(s) }

// loosen puts a gap after each character that would begin a mark of Slack. Such a character has no letter before it,
// and the same character follows it in the line.
func loosen(s string) string {
	if !strings.ContainsAny(s, "*_~`") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		if strings.IndexByte("*_~`", s[i]) < 0 {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		rest := s[i+1 : min(len(s), i+farthest)]
		if line, _, ok := strings.Cut(rest, "\n"); ok {
			rest = line
		}
		if !isWord(before) && strings.IndexByte(rest, s[i]) >= 0 {
			b.WriteString(gap)
		}
	}
	return b.String()
}

var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)(\s+#+)?\s*$`)
})

func paragraph(text string, m marks) string {
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i := 0; i < len(lines); i++ {
		if i > 0 {
			b.WriteByte('\n')
		}
		if h := heading().FindStringSubmatch(lines[i]); h != nil {
			if m.heading[0] == "" {
				b.WriteString(inline(h[1], m, 0))
			} else { // some platforms reject bold within bold
				b.WriteString(m.heading[0] + m.escape(h[1]) + m.heading[1])
			}
			continue
		}
		b.WriteString(inline(lines[i], m, 0))
	}
	return b.String()
}

// deepest limits the nesting of marks.
const deepest = 3

// farthest limits the search for the end of a mark, in bytes, so that a line of a million marks stays fast.
const farthest = 2000

// inline translates code, emphasis and links within a line. An unclosed mark is text.
func inline(s string, m marks, depth int) string {
	var b strings.Builder
	plain := 0 // start of the text that is not yet written
	write := func(upto int) { b.WriteString(m.escape(s[plain:upto])) }
	for i := 0; i < len(s); {
		n, out := mark(s, i, m, depth)
		if n == 0 {
			if s[i] == '`' { // skip all backticks of an opening without an end
				n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
				i += n
				continue
			}
			i++
			continue
		}
		write(i)
		b.WriteString(out)
		i += n
		plain = i
	}
	write(len(s))
	return b.String()
}

// mark translates the marked text that begins at s[i]. It returns the length of the translated part of s, or 0 if no
// marked text begins there.
func mark(s string, i int, m marks, depth int) (n int, out string) {
	s = s[:min(len(s), i+farthest)]
	rest := s[i:]
	switch {
	case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte("\\`*_[]()#<>~|", rest[1]) >= 0:
		return 2, m.escape(rest[1:2]) + m.apart
	case rest[0] == '`':
		ticks := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
		end := closing(rest[len(ticks):], ticks)
		if end < 0 {
			return 0, ""
		}
		code := rest[len(ticks) : len(ticks)+end]
		if m.codeOf != nil {
			return 2*len(ticks) + end, m.codeOf(code)
		}
		return 2*len(ticks) + end, m.code[0] + m.escapeCode(code) + m.code[1]
	case depth >= deepest:
		return 0, ""
	case strings.HasPrefix(rest, "**"), strings.HasPrefix(rest, "__"):
		if inner, ok := emphasis(s, i, rest[:2]); ok {
			return len(inner) + 4, m.bold[0] + inline(inner, m, depth+1) + m.bold[1]
		}
	case rest[0] == '*' || rest[0] == '_':
		if inner, ok := emphasis(s, i, rest[:1]); ok {
			return len(inner) + 2, m.italic[0] + inline(inner, m, depth+1) + m.italic[1]
		}
	case rest[0] == '[':
		text, after, ok := strings.Cut(rest[1:], "](")
		url, _, closed := strings.Cut(after, ")")
		if ok && closed && !strings.ContainsAny(text, "[]") && isURL(url) {
			return len(text) + len(url) + 4, m.link(inline(text, m, deepest), url)
		}
	}
	return 0, ""
}

// closing finds the same number of backticks as in ticks, with no backtick before or after them.
func closing(s, ticks string) int {
	for at := 0; at < len(s); {
		if s[at] != '`' {
			at++
			continue
		}
		n := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if n == len(ticks) && at > 0 {
			return at
		}
		at += n
	}
	return -1
}

// emphasis returns the text between two marks, if they are emphasis: they touch the text, and an
// underscore within a word is a part of the word.
func emphasis(s string, i int, sign string) (inner string, ok bool) {
	rest := s[i+len(sign):]
	end := unescaped(rest, sign)
	if end <= 0 {
		return "", false
	}
	inner = rest[:end]
	first, _ := utf8.DecodeRuneInString(inner)
	last, _ := utf8.DecodeLastRuneInString(inner)
	if unicode.IsSpace(first) || unicode.IsSpace(last) || unescaped(inner, "`") >= 0 || inner[0] == sign[0] {
		return "", false
	}
	if sign[0] == '_' {
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(rest[end+len(sign):])
		if isWord(before) || isWord(after) {
			return "", false
		}
	}
	return inner, true
}

// unescaped finds the first mark without a backslash before it, or returns -1.
func unescaped(s, sign string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if strings.HasPrefix(s[i:], sign) {
			return i
		}
	}
	return -1
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

func isURL(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "mailto:")) &&
		!strings.ContainsAny(s, " \t<>\"")
}

var tag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`</?(?:b|strong|i|em|u|s|a|code|pre|blockquote)(?:\s[^<>]*)?>`)
})

var mrkdwnLink = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([^<>|]*)\|([^<>]*)>`) })

// Unformatted returns a formatted text as plain text. Markdown stays unchanged, because it is readable. The marks of
// Mrkdwn stay for the same reason.
func Unformatted(text string, f Format) string {
	switch f {
	case HTML:
		return html.UnescapeString(tag().ReplaceAllString(text, ""))
	case Mrkdwn:
		return html.UnescapeString(strings.ReplaceAll(mrkdwnLink().ReplaceAllString(text, "$2 ($1)"), gap, ""))
	case Discord: // a subset of Markdown
		return Cut(text, Limits{Format: Plain})[0]
	case Feishu:
		return feishuText(text)
	}
	return text
}
