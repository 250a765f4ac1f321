package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Price is the price of a number of tokens.
type Price struct {
	Input       float64 `json:"input" toml:"input"`
	Output      float64 `json:"output" toml:"output"`
	CachedInput float64 `json:"cached_input" toml:"cached_input"` // 0 means the price of Input
	CacheWrite  float64 `json:"cache_write" toml:"cache_write"`   // 0 means unknown
	Currency    string  `json:"currency" toml:"currency"`         // ISO 4217
	Per         float64 `json:"per" toml:"per"`                   // number of tokens for one price; 0 means 1,000,000
	AsOf        string  `json:"as_of" toml:"as_of"`               // the date of the price
}

// checkNumbers returns an error for an invalid price.
func (p *Price) checkNumbers() error {
	for _, n := range []float64{p.Input, p.Output, p.CachedInput, p.CacheWrite, p.Per} {
		if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return errors.New("the price has a number below 0, or a number without an end")
		}
	}
	return nil
}

// cost returns the cost of the tokens. The result "known" is false if the price does not cover all of them.
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
	amount = float64(plain)*p.Input + float64(u.cachedRead)*cached + float64(u.cachedWrite)*p.CacheWrite +
		float64(u.output)*p.Output
	return amount / per, true
}

// usage is the API's token report. Input includes the tokens that were read from or written to a cache, and
// output includes the tokens of thoughts.
type usage struct {
	input, output, cachedRead, cachedWrite, thought int64
	known                                           bool // input and output are known
}

// result returns the usage in ACP's form.
func (u usage) result() object {
	o := object{"inputTokens": u.input, "outputTokens": u.output, "totalTokens": u.input + u.output}
	for name, n := range map[string]int64{"cachedReadTokens": u.cachedRead, "cachedWriteTokens": u.cachedWrite,
		"thoughtTokens": u.thought} {
		if n > 0 {
			o[name] = n
		}
	}
	return o
}

// maxCount is larger than the token count of any request. A larger number is not a token count.
const maxCount = 1 << 40

// count is a token count. Servers write it as an integer, a fraction or a text. Any other value, for example
// a negative number, is an unknown count and not an error: a wrong count must not lose an answer.
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

// loose is an optional object of an answer. A value of another form counts as absent.
type loose[T any] struct{ v *T }

// UnmarshalJSON reads the members that have the expected form.
func (l *loose[T]) UnmarshalJSON(b []byte) error {
	l.v = nil
	if bytes.HasPrefix(b, []byte("{")) {
		l.v = new(T)
		_ = json.Unmarshal(b, l.v) // a member of another form stays empty
	}
	return nil
}

// counted returns the usage from the five counts of openAI's APIs. openAI includes the tokens of thoughts in
// the tokens of the completion. xAI and Gemini's openAI-compatible API count them separately. The total shows
// which form applies.
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
