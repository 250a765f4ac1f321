package config

import "github.com/perlica/perlica/eventlog/message"

// These say where a mistake is, and which word was probably meant.
var (
	inSource   = message.New("config.in-source", "%s: %s")
	didYouMean = message.New("config.did-you-mean", "%s; did you mean %q?")
	nextLine   = message.New("config.next-line", "%s\n%s")
)

// These are the mistakes that a table such as [[schedule]] can have. Other mistakes have no code.
var (
	errUnreadable = message.New("config.unreadable", "cannot be read: %s")
	errNotTOML    = message.New("config.not-toml", "%s; correct the line")
	errUnknownKey = message.New("config.unknown-key", "unknown key")
	errMissingKey = message.New("config.missing-key", "%s is missing")
	errMissingOne = message.New("config.missing-one", "%s or %s is missing")
	errBothKeys   = message.New("config.both-keys", "has both %s and %s; remove one")
	errTaken      = message.New("config.taken", "the %s is taken by the table at line %d; choose another one")
	errEmpty      = message.New("config.empty", "is empty")
	errName       = message.New("config.name",
		"a name has at most 64 letters, digits, - and _, and begins with a letter or digit")
	errProvider = message.New("config.provider",
		"a provider is named by at most 64 letters, digits, - and _, beginning with a letter or digit")
	errChoice   = message.New("config.choice", "%q is not one of %s")
	errTimezone = message.New("config.timezone",
		`is not a timezone of the IANA database; write one such as "Europe/Berlin"`)
	errNotPositive = message.New("config.not-positive", "must be more than zero")
	errEvery       = message.New("config.every", "every is at least 1s and at most 24h; for longer times use cron")
	errInputs      = message.New("config.inputs", "inputs are for a flow; remove them, or set flow in place of text")
	errCron        = message.New("config.cron",
		`is not five fields of cron: minute, hour, day of the month, month, day of the week; write "0 8 * * 1-5"`)
)

// wrongTypes are the mistakes of a value that has another kind than its key.
var wrongTypes = map[kind]*message.Text{
	text:     message.New("config.type-text", `must be a string such as "x"`),
	boolean:  message.New("config.type-boolean", "must be true or false"),
	integer:  message.New("config.type-integer", "must be a whole number"),
	number:   message.New("config.type-number", "must be a number"),
	duration: message.New("config.type-duration", `must be a duration such as "30s"`),
	texts:    message.New("config.type-texts", `must be a list of strings such as ["a", "b"]`),
	textMap:  message.New("config.type-text-map", `must be a table of strings such as { NAME = "value" }`),
	anyTable: message.New("config.type-table", "must be a table such as { name = 1 }"),
}

// uncoded returns words without a code, which are not translated.
func uncoded(words string) *message.Text { return &message.Text{Text: words} }
