package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Price is what a number of tokens costs.
type Price struct {
	Input       float64 `json:"input" toml:"input"`
	Output      float64 `json:"output" toml:"output"`
	CachedInput float64 `json:"cached_input" toml:"cached_input"` // 0: as Input
	CacheWrite  float64 `json:"cache_write" toml:"cache_write"`   // 0: unknown
	Currency    string  `json:"currency" toml:"currency"`         // ISO 4217
	Per         float64 `json:"per" toml:"per"`                   // so many tokens; 0: 1,000,000
	AsOf        string  `json:"as_of" toml:"as_of"`               // the date of the price
}

// check says what is wrong with the price.
func (p *Price) check() error {
	for _, n := range []float64{p.Input, p.Output, p.CachedInput, p.CacheWrite, p.Per} {
		if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return errors.New("the price has a number below 0, or a number without an end")
		}
	}
	return nil
}

// cost returns the cost of the tokens by the price, and whether the price covers all of them.
func (p *Price) cost(u usage) (amount float64, known bool) {
	if !u.known || u.cachedWrite > 0 && p.CacheWrite == 0 {
		return 0, false
	}
	per, cached := p.Per, p.CachedInput
	if per == 0 {
		per = 1_000_000
	}
	if cached == 0 {
		cached = p.Input
	}
	plain := max(u.input-u.cachedRead-u.cachedWrite, 0)
	amount = float64(plain)*p.Input + float64(u.cachedRead)*cached + float64(u.cachedWrite)*p.CacheWrite + float64(u.output)*p.Output
	return amount / per, true
}

// usage is the API's report on tokens. Input includes the tokens that a cache gave or took, and output
// includes the tokens of thoughts.
type usage struct {
	input, output, cachedRead, cachedWrite, thought int64
	known                                           bool // input and output are known
}

// result is the usage as ACP has it.
func (u usage) result() object {
	o := object{"inputTokens": u.input, "outputTokens": u.output, "totalTokens": u.input + u.output}
	for name, n := range map[string]int64{"cachedReadTokens": u.cachedRead, "cachedWriteTokens": u.cachedWrite, "thoughtTokens": u.thought} {
		if n > 0 {
			o[name] = n
		}
	}
	return o
}

// maxCount is more than any request has tokens. A larger number is not a count of tokens.
const maxCount = 1 << 40

// count is a number of tokens. Servers write it as an integer, a fraction or a text. Anything else, a
// negative number among it, is an unknown count and no error: the answer is worth more than its count.
type count struct {
	n     int64
	known bool
}

// UnmarshalJSON reads the count from any JSON value.
func (c *count) UnmarshalJSON(b []byte) error {
	*c = count{}
	n, err := strconv.ParseFloat(string(bytes.Trim(b, `" `)), 64)
	if err == nil && n >= 0 && n <= maxCount {
		*c = count{n: int64(math.Round(n)), known: true}
	}
	return nil
}

// loose is an object that an answer can do without: a value of another form is an absent one.
type loose[T any] struct{ v *T }

// UnmarshalJSON reads the object as far as it has the expected form.
func (l *loose[T]) UnmarshalJSON(b []byte) error {
	l.v = nil
	if bytes.HasPrefix(b, []byte("{")) {
		l.v = new(T)
		_ = json.Unmarshal(b, l.v) // a member of another form is absent
	}
	return nil
}

// counted is the usage by the five counts of OpenAI's APIs. OpenAI counts the tokens of thoughts as
// tokens of the completion. xAI counts them next to it, and so does Gemini in this form. The total tells
// the two apart.
func counted(input, output, cached, thought, total count) usage {
	u := usage{input: input.n, output: output.n, thought: thought.n, known: input.known && output.known}
	u.cachedRead = min(cached.n, input.n)
	switch more := total.n - input.n - output.n; {
	case thought.n > output.n || more > 0 && more == thought.n:
		u.output += thought.n
	case more > 0 && !thought.known && cached.n == 0:
		u.output += more
	}
	return u
}
