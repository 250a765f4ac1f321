package channel

import (
	"regexp"
	"strings"
	"sync"
)

var discordMarks = marks{
	escape: discordEscape, codeOf: ticked,
	bold: [2]string{"**", "**"}, italic: [2]string{"*", "*"},
	link: func(text, url string) string {
		return "[" + text + "](" + strings.ReplaceAll(url, "|", "%7C") + ")"
	},
	heading: [2]string{"**", "**"},
}

// discordSigns are the characters with meaning in Discord's Markdown. Without a backslash two vertical bars would hide
// text, "<" could begin a mention, and "-#" would make a line small.
var discordSigns = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`,
	">", `\>`, "#", `\#`, "[", `\[`)

// bareURL matches an address. Discord finds addresses before emphasis, and a backslash would become a part of them.
var bareURL = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("https?://[^\\s<>|`*\\[\\]()\\\\]+")
})

func discordEscape(s string) string {
	var b strings.Builder
	at := 0
	for _, u := range bareURL().FindAllStringIndex(s, -1) {
		b.WriteString(discordSigns.Replace(s[at:u[0]]) + s[u[0]:u[1]])
		at = u[1]
	}
	return b.String() + discordSigns.Replace(s[at:])
}

// ticked returns code within a line. Code with a backtick gets longer marks, as in CommonMark.
func ticked(code string) string {
	ticks := "`"
	for strings.Contains(code, ticks) {
		ticks += "`"
	}
	if len(ticks) > 1 {
		return ticks + " " + strings.TrimSpace(code) + " " + ticks
	}
	return ticks + code + ticks
}

// apart puts a space of no width between three backticks, because Discord has no longer mark of a code block, and
// Feishu documents none. Three backticks would end the block.
func apart(code string) string {
	const space = "\u200b"
	for strings.Contains(code, "``") {
		code = strings.ReplaceAll(code, "``", "`"+space+"`")
	}
	return code
}

// langName returns the name of a language, or nothing if Discord would show it as code.
func langName(lang string) string {
	if strings.ContainsFunc(lang, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("+-.#", r) }) {
		return ""
	}
	return lang
}

// DiscordLiteral returns a text without formatting in Discord's Markdown. It is a block of code, because only there no
// character has a meaning.
func DiscordLiteral(text string) string { return "```\n" + apart(text) + "\n```" }
