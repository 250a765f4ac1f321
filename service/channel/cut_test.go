package channel

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

// letters returns the characters that cutting must keep. These are all except punctuation, spaces
// and the marks that cutting inserts.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	number = regexp.MustCompile(`^\(\d+/\d+\)\n`)
)

func joined(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(number.ReplaceAllString(p, "") + "\n")
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	for markdown, want := range map[string][3]string{ // plain, HTML, Mrkdwn with the sign ° for a gap
		"**bold** and *thin*": {"bold and thin", "<b>bold</b> and <i>thin</i>", "°*bold*° and °_thin_°"},
		"a_b_c and 2*3*4 <x>&": {"a_b_c and 234 <x>&", "a_b_c and 2<i>3</i>4 &lt;x&gt;&amp;",
			"a_b_c and 2°_3_°4 &lt;x&gt;&amp;"},
		"# Title\ntext": {"Title\ntext", "<b>Title</b>\ntext", "*Title*\ntext"},
		"`a<b` and `` ` ``": {"`a<b` and ` ` `", "<code>a&lt;b</code> and <code> ` </code>",
			"°`a&lt;b`° and °` ` `°"},
		"[link](https://x.org/?a&b)": {"link (https://x.org/?a&b)", `<a href="https://x.org/?a&amp;b">link</a>`,
			"<https://x.org/?a&amp;b|link>"},
		"[x](javascript:alert)": {"[x](javascript:alert)", "[x](javascript:alert)", "[x](javascript:alert)"},
		"```go\nif a < b {\n}\n```": {"if a < b {\n}", "<pre><code class=\"language-go\">if a &lt; b {\n}</code></pre>",
			"```\nif a &lt; b {\n}\n```"},
		"not **closed and `neither": {"not **closed and `neither", "not **closed and `neither",
			"not *°*closed and `neither"},
		"**a *b* c**":             {"a b c", "<b>a <i>b</i> c</b>", "°*a °_b_° c*°"},
		`\*literal\*`:             {"*literal*", "*literal*", "*°literal*°"},
		"one\n\ntwo\n\n\n\nthree": {"one\n\ntwo\n\nthree", "one\n\ntwo\n\nthree", "one\n\ntwo\n\nthree"},
		"```\nnever closed\n\nfor it": {"never closed\n\nfor it", "<pre>never closed\n\nfor it</pre>",
			"```\nnever closed\n\nfor it\n```"},
	} {
		for i, f := range []Format{Plain, HTML, Mrkdwn} {
			got := Cut(markdown, Limits{Format: f})
			if len(got) != 1 || strings.ReplaceAll(got[0], gap, "°") != want[i] {
				t.Errorf("%q as %s: %q, want %q", markdown, f, got, want[i])
			}
		}
	}
}

// TestDiscord checks that a text means the same on Discord as in Markdown, and that no part of it is hidden.
func TestDiscord(t *testing.T) {
	for markdown, want := range map[string]string{
		"**bold**, *thin*, __bold__":          "**bold**, *thin*, **bold**",
		"# Title\n-# small\n- item":           "**Title**\n-\\# small\n- item",
		"a || rm -rf / || b":                  `a \|\| rm -rf / \|\| b`,
		"<@42> @everyone <t:1> <:a:1>":        `\<@42\> @everyone \<t:1\> \<:a:1\>`,
		"snake_case, 2 * 3, ~~no~~, > x":      `snake\_case, 2 \* 3, \~\~no\~\~, \> x`,
		"[x](https://x.org/a_b) [y](z:q)":     `[x](https://x.org/a_b) \[y](z:q)`,
		"see https://x.org/a_b?c=~d||e":       `see https://x.org/a_b?c=~d\|\|e`,
		"`a|b` and `` a`b ``":                 "`a|b` and `` a`b ``",
		"```go\na ||b||\n```":                 "```go\na ||b||\n```",
		"````\nx\n```\n||y||\n````":           "```\nx\n`\u200b`\u200b`\n||y||\n```",
		"```a/b\nx\n```":                      "```\nx\n```",
		`\*literal\* and \\ and 1 < 2 and #3`: `\*literal\* and \\ and 1 \< 2 and \#3`,
	} {
		if got := Cut(markdown, Limits{Format: Discord}); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", markdown, got, want)
		}
	}
	const words = "a || b, <@42>, *thin* and `c`\n\ncode"
	shown := Cut(words, Limits{Format: Discord})[0]
	if got := Unformatted(shown, Discord); got != "a || b, <@42>, thin and `c`\n\ncode" {
		t.Errorf("without formatting %q is %q", shown, got)
	}
	if got := DiscordLiteral("a ``` b"); got != "```\na `\u200b`\u200b` b\n```" {
		t.Errorf("literal code is %q", got)
	}
}

// TestFeishu checks that a text means the same in Feishu's cards as in Markdown, and that no part of it is a mention.
func TestFeishu(t *testing.T) {
	for markdown, want := range map[string]string{
		"**bold**, *thin*, __bold__":       "**bold**, *thin*, **bold**",
		"# Title\n- item":                  "**Title**\n- item",
		"<at id=all></at> & 1 < 2":         "&#60;at id=all&#62;&#60;/at&#62; &#38; 1 &#60; 2",
		"snake_case, 2 * 3, ~~no~~, $x":    "snake&#95;case, 2 &#42; 3, &#126;&#126;no&#126;&#126;, &#36;x",
		"12:30:45 :OK: a::b":               "12:30:45 &#58;OK: a::b",
		"[x](https://x.org/a_b) [y](z:q)":  "[x](https://x.org/a%5Fb) &#91;y&#93;(z:q)",
		"`a<b` and `<AT id=all>`":          "`a<b` and `<\u200bAT id=all>`",
		"```go\na < <at id=all></at>\n```": "```go\na < <\u200bat id=all></at>\n```",
	} {
		if got := Cut(markdown, Limits{Format: Feishu}); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", markdown, got, want)
		}
	}
	shown := Cut("a < b, *thin* and `c`\n\ncode", Limits{Format: Feishu})[0]
	if got := Unformatted(shown, Feishu); got != "a < b, thin and `c`\n\ncode" {
		t.Errorf("without formatting %q is %q", shown, got)
	}
}

// TestCodeBlocksAreReopened checks that each part is a complete code block.
func TestCodeBlocksAreReopened(t *testing.T) {
	var b strings.Builder
	b.WriteString("Look:\n\n```go\n")
	for i := range 50 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	b.WriteString("```\n\nThat is all.")
	parts := Cut(b.String(), Limits{Text: 200, Format: Markdown})
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range parts {
		if n := strings.Count(p, "```"); n%2 != 0 {
			t.Errorf("part %d has a block that is open: %q", i, p)
		}
		if !strings.HasPrefix(p, fmt.Sprintf("(%d/%d)\n", i+1, len(parts))) {
			t.Errorf("part %d is not numbered: %q", i, p)
		}
	}
}

// TestHostileRepliesTakeAMoment checks that no text of an agent keeps the bridge busy.
func TestHostileRepliesTakeAMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time, which the race detector makes of another kind")
	}
	for _, unit := range []string{"*", "_a", "`", "[", "[a](", "**a", "` ``", "\n", "语"} {
		begin := time.Now()
		Cut(strings.Repeat(unit, 200_000/len(unit)), Limits{Text: 4096, Format: HTML})
		Cut(strings.Repeat(unit, 200_000/len(unit)), Limits{Text: 3000, Format: Mrkdwn})
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%q took %s", unit, took)
		}
	}
	begin := time.Now() // this takes too long if each line renders all earlier lines again
	Cut(strings.Repeat("a line of an answer\n", 250_000), Limits{Text: 16_000, Format: Plain})
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("5 MB took %s", took)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("# A\n\n**b** `c` _d_ [e](https://f)\n\n```go\ncode\n```\n\n- list\n", 100)
	f.Add("```\n"+strings.Repeat("x", 500), 60)
	f.Add(strings.Repeat("语", 300)+" `a", 70)
	f.Add("a***b**c*d\\*`", 50)
	f.Add("~~~\n```\n~~~", 50)
	f.Add(strings.Repeat("\xb5", 1600)+" no beginning of a character before the middle", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if len(text) > 4000 {
			return
		}
		limit = 64 + max(limit, -limit, 0)%5000
		for _, format := range []Format{Plain, Markdown, HTML, Discord, Feishu} {
			parts := Cut(text, Limits{Text: limit, Format: format})
			for _, p := range parts {
				// Tags and entities may be longer than the limit for one character.
				if n := Units(p); n > limit+smallest && format != HTML && format != Feishu {
					t.Errorf("%s: %d units, the limit is %d: %q", format, n, limit, p)
				}
			}
			if format != HTML {
				continue
			}
			for _, p := range parts {
				for _, tag := range []string{"b", "i", "code", "pre", "a"} {
					open := strings.Count(p, "<"+tag+">") + strings.Count(p, "<"+tag+" ")
					if closed := strings.Count(p, "</"+tag+">"); open != closed {
						t.Errorf("<%s> is opened %d times and closed %d times: %q", tag, open, closed, p)
					}
				}
			}
		}
		// Every letter arrives at every limit. Only the marks of Markdown vanish.
		whole := letters(strings.Join(plainBlocks(text), "\n"))
		if got := letters(joined(Cut(text, Limits{Text: limit, Format: Plain}))); !sameLetters(got, whole) {
			t.Errorf("plain: %q became %q", whole, got)
		}
		stripped := tags.ReplaceAllString(joined(Cut(text, Limits{Text: limit, Format: HTML})), "")
		if got := letters(html.UnescapeString(stripped)); !strings.Contains(text, "](") && !strings.Contains(text, "&") &&
			!sameLetters(got, whole) {
			t.Errorf("HTML: %q became %q", whole, got)
		}
	})
}

// plainBlocks returns the texts of the blocks as they were written.
func plainBlocks(text string) (list []string) {
	for _, b := range parseBlocks(strings.ToValidUTF8(text, "\uFFFD")) {
		list = append(list, b.text)
	}
	return list
}

// sameLetters compares texts. A link that was cut in two keeps its letters.
func sameLetters(a, b string) bool { return a == b }
