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

// TestOnForgeable checks the options that a channel may offer if the name of a sender can be forged.
func TestOnForgeable(t *testing.T) {
	for name, c := range map[string]struct {
		kind, tier, word string
		text, want       bool
	}{
		"yes":                      {kind: "allow_once", tier: "ordinary", want: true},
		"yes, always asked":        {kind: "allow_once", tier: "always-asked"},
		"yes, refused":             {kind: "allow_once", tier: "refused"},
		"yes without a tier":       {kind: "allow_once"},
		"yes with a typed word":    {kind: "allow_once", tier: "ordinary", word: "yes"},
		"always":                   {kind: "allow_always", tier: "ordinary"},
		"no":                       {kind: "reject_once", tier: "always-asked", word: "yes", want: true},
		"no, always":               {kind: "reject_always", tier: "ordinary", want: true},
		"answer":                   {kind: "answer", want: true},
		"answer, always asked":     {kind: "answer", tier: "always-asked"},
		"answer with a text":       {kind: "answer", text: true},
		"a kind that is not known": {kind: "other", tier: "ordinary"},
	} {
		q := interaction.Question{Word: c.word, Subject: interaction.Subject{Tier: c.tier}}
		if got := onForgeable(q, interaction.Option{Kind: c.kind, Text: c.text}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
