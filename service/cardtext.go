package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/interaction"
	layout "github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/channel"
)

// mostOfACard is how many messages a card makes where the platform takes files: more would be read by no one.
const mostOfACard = 8

// parts are the messages of a card: texts, and, where they would be too many, its beginning, a file with all of
// it, and its end with the options.
func (b *Bridge) parts(c Contact, q interaction.Question, head string, limits channel.Limits) (list []bridge.Queued) {
	say := b.say(c.key())
	text := head + cardText(say, q, limits.Buttons)
	texts := b.cut(c.Channel, text)
	for _, text := range texts {
		list = append(list, bridge.Queued{Text: text})
	}
	// The options: what is cut into n messages by itself is in the last n+1, wherever it begins.
	_, options, _ := strings.Cut(text, say.Card.Lay(q, layout.PhoneWidth).Block())
	end := 1 + len(b.cut(c.Channel, options))
	if !limits.Files || len(list) <= mostOfACard || end >= mostOfACard-1 {
		return list
	}
	file := bridge.Queued{File: "question-" + shortID(q.ID) + ".txt", Text: b.render(c.Channel, fmt.Sprintf(say.CardFile, len(texts)))}
	return slices.Concat(list[:mostOfACard-1-end], []bridge.Queued{file}, list[len(list)-end:])
}

// cardText is a question with all that is to be judged.
func cardText(say *language.Sentences, q interaction.Question, pressed bool) string {
	var t strings.Builder
	command.Describe(&t, say, q)
	way := say.ByNumber
	if pressed {
		way = say.ByButton
	}
	fmt.Fprintf(&t, way, shortID(q.ID))
	if q.Word != "" {
		fmt.Fprintf(&t, say.YesTakesAll, shortID(q.ID))
	}
	if slices.ContainsFunc(q.Options, interaction.Option.Always) {
		t.WriteString(say.AlwaysBehind)
	}
	t.WriteString("\n")
	return t.String()
}

const buttonPrefix = "q:"

// buttonWidth is how many columns of an option a button shows; the card has all of it.
const buttonWidth = 40

func buttons(say *language.Sentences, q interaction.Question) (list []bridge.Button) {
	for i, o := range q.Options {
		data := fmt.Sprintf("%s%s:%d", buttonPrefix, q.ID, i+1)
		if len(data) <= 64 { // else it is answered by its number
			list = append(list, bridge.Button{Label: say.Option(o, buttonWidth), Data: data})
		}
	}
	return list
}
