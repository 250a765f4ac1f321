package interaction

import (
	"encoding/json"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/message"
)

// Input has the conditions on a typed text, as the JSON Schema of ACP's elicitations defines them. An empty field
// sets no condition.
type Input struct {
	Type      string   `json:"type"` // "string", "number", "integer", or "array" of some of Values
	Format    string   `json:"format,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength *int     `json:"min_length,omitempty"` // number of characters
	MaxLength *int     `json:"max_length,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	Values    []string `json:"values,omitempty"`
	MinItems  *int     `json:"min_items,omitempty"`
	MaxItems  *int     `json:"max_items,omitempty"`
}

// mostInput is the maximum length of a text, in bytes.
const mostInput = 64 << 10

// misfit names the condition that a text violates. It wraps ErrNotAnOption.
type misfit struct{ why *message.Text }

var doesNotFit = message.New("interaction.does-not-fit", "the text does not fit: it must %s")

// Tell returns the sentence of the error.
func (e *misfit) Tell() *message.Text { return doesNotFit.With(e.why) }

func (e *misfit) Error() string { return e.Tell().Text }

func (e *misfit) Unwrap() error { return ErrNotAnOption }

func unfit(why *message.Text, args ...any) error {
	if len(args) > 0 {
		why = why.With(args...)
	}
	return &misfit{why}
}

// Value returns the JSON value for a typed text. The text of an array has commas between its values. A nil Input
// refuses every text.
func (i *Input) Value(text string) (json.RawMessage, error) {
	switch {
	case i == nil:
		return nil, unfit(knownKind)
	case len(text) > mostInput || !utf8.ValidString(text):
		return nil, unfit(shortText, mostInput)
	}
	switch i.Type {
	case "number", "integer":
		return i.numberValue(strings.TrimSpace(text))
	case "array":
		return i.listValue(text)
	}
	return i.textValue(text)
}

func (i *Input) numberValue(text string) (json.RawMessage, error) {
	var n json.Number
	if err := json.Unmarshal([]byte(text), &n); err != nil || strings.HasPrefix(text, `"`) {
		return nil, unfit(beNumber)
	}
	if _, err := n.Int64(); err != nil && i.Type == "integer" {
		return nil, unfit(beWhole)
	}
	f, err := n.Float64()
	switch {
	case err != nil:
		return nil, unfit(beSmaller)
	case i.Minimum != nil && f < *i.Minimum:
		return nil, unfit(beAtLeast, *i.Minimum)
	case i.Maximum != nil && f > *i.Maximum:
		return nil, unfit(beAtMost, *i.Maximum)
	}
	return json.RawMessage(text), nil
}

func (i *Input) textValue(text string) (json.RawMessage, error) {
	n := utf8.RuneCountInString(text)
	switch {
	case i.MinLength != nil && n < *i.MinLength:
		return nil, unfit(haveAtLeast, *i.MinLength)
	case i.MaxLength != nil && n > *i.MaxLength:
		return nil, unfit(haveAtMost, *i.MaxLength)
	case !formatted(i.Format, text):
		return nil, unfit(beFormat, i.Format)
	}
	// Some patterns of JSON Schema are invalid in Go. The agent must check such a pattern itself.
	if p, err := regexp.Compile(i.Pattern); err == nil && !p.MatchString(text) {
		return nil, unfit(beMatch, i.Pattern)
	}
	return json.Marshal(text)
}

// formatted reports whether a text has the given format. It accepts every text for a format that ACP does not define.
func formatted(format, text string) bool {
	var err error
	switch format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(text); err == nil && a.Address != text {
			return false
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && u.Scheme == "" {
			return false
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	return err == nil
}

func (i *Input) listValue(text string) (json.RawMessage, error) {
	chosen := []string{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if n := optionNumber(part); n > 0 && n <= len(i.Values) && !slices.Contains(i.Values, part) {
			part = i.Values[n-1]
		}
		switch {
		case part == "":
		case !slices.Contains(i.Values, part):
			return nil, unfit(beSome, strings.Join(i.Values, ", "))
		case !slices.Contains(chosen, part):
			chosen = append(chosen, part)
		}
	}
	switch {
	case i.MinItems != nil && len(chosen) < *i.MinItems:
		return nil, unfit(beManyOf, *i.MinItems, strings.Join(i.Values, ", "))
	case i.MaxItems != nil && len(chosen) > *i.MaxItems:
		return nil, unfit(beFewOf, *i.MaxItems, strings.Join(i.Values, ", "))
	}
	return json.Marshal(chosen)
}

// These sentences name the conditions on a text.
var (
	knownKind   = message.New("interaction.known-kind", "be of a kind that Perlica knows")
	shortText   = message.New("interaction.short-text", "be UTF-8 text of at most %d bytes")
	beNumber    = message.New("interaction.be-number", "be a number, such as 12 or 0.5")
	beWhole     = message.New("interaction.be-whole", "be a whole number")
	beSmaller   = message.New("interaction.be-smaller", "be a smaller number")
	beAtLeast   = message.New("interaction.be-at-least", "be at least %v")
	beAtMost    = message.New("interaction.be-at-most", "be at most %v")
	haveAtLeast = message.New("interaction.have-at-least", "have at least %d characters")
	haveAtMost  = message.New("interaction.have-at-most", "have at most %d characters")
	beFormat    = message.New("interaction.be-format", "have the format %s")
	beMatch     = message.New("interaction.be-match", "match the pattern %s")
	beSome      = message.New("interaction.be-some", "be one or more of these, with commas between them: %s")
	beManyOf    = message.New("interaction.be-many-of", "name at least %d of these: %s")
	beFewOf     = message.New("interaction.be-few-of", "name at most %d of these: %s")
	beNoSecret  = message.New("interaction.be-no-secret", "not look like a secret, because the log masks secrets")
)
