package form

import "github.com/perlica/perlica/eventlog/message"

// These are the labels of Perlica's own answers to a form.
var (
	labelDecline = message.New("form.label-decline", "the agent is told that you give no answer")
	labelLeave   = message.New("form.label-leave", "leave this out")
	typeNumber   = message.New("form.type-number", "type a number")
	typeSome     = message.New("form.type-some",
		"type some of the values, or their numbers, with commas between them")
	typeText = message.New("form.type-text", "type a text")
)

// typeFormat has the labels for a typed text, by the format of the field.
var typeFormat = map[string]*message.Text{
	"email":     message.New("form.type-email", "type an email address"),
	"uri":       message.New("form.type-uri", "type a web address"),
	"date":      message.New("form.type-date", "type a date, such as 2026-11-24"),
	"date-time": message.New("form.type-time", "type a time, such as 2026-11-24T18:00:00Z"),
}
