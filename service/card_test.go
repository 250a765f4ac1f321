package service

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/channel"
)

// TestCardShowsWordsAsTheyAre checks that a card shows an agent's text unchanged, without Markdown.
func TestCardShowsWordsAsTheyAre(t *testing.T) {
	const words = "a**b** _c_ `d` [e](https://f) ~g~ # <i> h* *i \\j ** `"
	var b strings.Builder
	command.Describe(&b, language.English.Sentences(), interaction.Question{
		ID: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Title: words, Subject: interaction.Subject{Provider: "claude"},
		Options: []interaction.Option{{ID: "y", Label: words}},
	})
	plain := channel.Cut(b.String(), channel.Limits{Format: channel.Plain})[0]
	if strings.Count(plain, words) != 2 {
		t.Errorf("plain: %s", plain)
	}
	rich := channel.Cut(b.String(), channel.Limits{Format: channel.HTML})[0]
	shown := strings.NewReplacer("&lt;", "<", "&gt;", ">").Replace(rich)
	if strings.Count(shown, words) != 2 || !strings.HasPrefix(shown, "<b>"+words+"</b>") {
		t.Errorf("HTML: %s", rich)
	}
}
