package channel

import (
	"html"
	"regexp"
	"strings"
	"sync"
)

var feishuMarks = marks{
	escape: feishuEscape, codeOf: func(code string) string { return ticked(feishuCode(code)) },
	bold: [2]string{"**", "**"}, italic: [2]string{"*", "*"},
	link: func(text, url string) string {
		return "[" + text + "](" + strings.NewReplacer("(", "%28", ")", "%29", "*", "%2A", "_", "%5F").Replace(url) + ")"
	},
	heading: [2]string{"**", "**"},
}

// feishuSigns are the characters with meaning in the Markdown of Feishu's cards. "<" could begin a mention.
var feishuSigns = strings.NewReplacer("&", "&#38;", "<", "&#60;", ">", "&#62;", "*", "&#42;", "_", "&#95;",
	"~", "&#126;", "`", "&#96;", "#", "&#35;", "[", "&#91;", "]", "&#93;", `\`, "&#92;", "|", "&#124;", "$", "&#36;")

// feishuEmoji matches a name that Feishu shows as an emoji, such as ":OK:".
var feishuEmoji = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:([A-Za-z][A-Za-z0-9_]*:)`) })

// feishuEscape returns a text in which Feishu finds no marks.
func feishuEscape(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range feishuEmoji().FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(feishuSigns.Replace(s[at:m[0]]) + "&#58;")
		at = m[2]
	}
	return b.String() + feishuSigns.Replace(s[at:])
}

// feishuTag matches the beginning of a tag that notifies people. Feishu does not document whether it has an effect
// within code.
var feishuTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(at|person)\b`) })

// feishuCode puts a space of no width into each tag that notifies people.
func feishuCode(code string) string { return feishuTag().ReplaceAllString(code, "<\u200b$1") }

// feishuText returns the text of Feishu's Markdown.
func feishuText(text string) string { return html.UnescapeString(Cut(text, Limits{Format: Plain})[0]) }
