package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
)

// where is the place that a request's query names; what is empty is left open.
func (r *request) where() place {
	q := r.URL.Query()
	return place{q.Get("project"), q.Get("context")}
}

// only returns an error if the query has other parameters than these: a filter with a typing mistake
// would filter nothing.
func (r *request) only(names ...string) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest.is("the query cannot be read")
	}
	for name, values := range q {
		if !slices.Contains(names, name) {
			return badRequest.is(fmt.Sprintf("there is no parameter %q", name))
		}
		if len(values) > 1 && name != "q" && name != "kind" && name != "type" {
			return badRequest.is(fmt.Sprintf("the parameter %q is there twice", name))
		}
	}
	return nil
}

// number is a parameter that is a number, or what stands for it where it is absent.
func (r *request) number(name string, otherwise, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" && !r.URL.Query().Has(name) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest.is(fmt.Sprintf("%s must be a number from %d to %d", name, least, most))
	}
	return n, nil
}

// limit is how many a list may have.
func (r *request) limit(otherwise int64) (int, error) {
	n, err := r.number("limit", otherwise, 1, 1000)
	return int(n), err
}

// flag is a parameter that is true or false.
func (r *request) flag(name string, otherwise bool) (bool, error) {
	switch v := r.URL.Query().Get(name); {
	case !r.URL.Query().Has(name):
		return otherwise, nil
	case v == "true", v == "false":
		return v == "true", nil
	}
	return false, badRequest.is(name + " must be true or false")
}

// moment is a parameter that is a time; the zero time where it is absent.
func (r *request) moment(name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if !r.URL.Query().Has(name) {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, badRequest.is(name + " must be a time as RFC 3339 has it")
	}
	return at, nil
}

// page reads what the page before said was next; v stays as it is where there was none.
func (r *request) page(v any) error {
	text := r.URL.Query().Get("page")
	if text == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = strict.Unmarshal(b, v)
	}
	if err != nil {
		return badRequest.is("page is none that was handed out")
	}
	return nil
}

// nextPage is what page reads.
func nextPage(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of plain fields
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
