package provider

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// IDKey returns an id in one form for all spellings of the same value, such as "\u0061" and "a", or 1.0, 10e-1
// and 1. It rounds no number. A text that is not a JSON-RPC id is its own key.
func IDKey(id string) string {
	switch {
	case id == "":
		return ""
	case id[0] == '"':
		return stringKey(id)
	case id[0] == '-', id[0] >= '0' && id[0] <= '9':
		return numberKey(id)
	}
	return id
}

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// stringKey removes unnecessary escapes. A string with half of a surrogate pair stays as it was written,
// because two such strings could be equal after decoding.
func stringKey(id string) string {
	if strings.IndexByte(id, '\\') < 0 {
		return id
	}
	var s string
	if json.Unmarshal([]byte(id), &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return id
	}
	return `"` + quote.Replace(s) + `"`
}

// numberKey returns the same text for all spellings of a number, so that equal ids can be compared as texts. For
// example, it returns "1e2" for 100, 1e2 and 10E1, and "7" for 7 and 7.0.
func numberKey(id string) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(id), "e")
	digits, negative := strings.CutPrefix(digits, "-")
	digits, fraction, _ := strings.Cut(digits, ".")
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil || power > maxPower || power < -maxPower {
			return id // no real id has such an exponent
		}
	}
	power -= len(fraction)
	digits = strings.TrimLeft(digits+fraction, "0")
	whole := strings.TrimRight(digits, "0")
	power += len(digits) - len(whole)
	switch {
	case whole == "":
		return "0"
	case negative:
		whole = "-" + whole
	}
	if power != 0 {
		whole += "e" + strconv.Itoa(power)
	}
	return whole
}

// maxPower is the largest exponent of an id that is compared by value.
const maxPower = 1 << 30
