package web

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
)

// where returns the place that a request's query names. Its fields are empty if the query does not
// name them.
func (r *request) where() place {
	q := r.URL.Query()
	return place{q.Get("project"), q.Get("context")}
}

// checkParameters refuses a query that has other parameters than the names. A misspelt filter would filter nothing.
func (r *request) checkParameters(names ...string) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest.problem(queryUnread)
	}
	for name, values := range q {
		if !slices.Contains(names, name) {
			return badRequest.problem(noParameter.With(name))
		}
		if len(values) > 1 && name != "q" && name != "kind" && name != "type" {
			return badRequest.problem(parameterTwice.With(name))
		}
	}
	return nil
}

// number returns the value of a numeric parameter, or the parameter "fallback" if the parameter is absent.
func (r *request) number(name string, fallback, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" && !r.URL.Query().Has(name) {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest.problem(badNumber.With(name, least, most))
	}
	return n, nil
}

// limit returns the largest length of a list, which is the parameter limit.
func (r *request) limit(fallback int64) (int, error) {
	n, err := r.number("limit", fallback, 1, 1000)
	return int(n), err
}

// flag returns the value of a parameter that is true or false.
func (r *request) flag(name string, fallback bool) (bool, error) {
	switch v := r.URL.Query().Get(name); {
	case !r.URL.Query().Has(name):
		return fallback, nil
	case v == "true", v == "false":
		return v == "true", nil
	}
	return false, badRequest.problem(badBool.With(name))
}

// moment returns the value of a time parameter, or the zero time if the parameter is absent.
func (r *request) moment(name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if !r.URL.Query().Has(name) {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, badRequest.problem(badTime.With(name))
	}
	return at, nil
}

// page decodes the parameter page into v. The client received this parameter with the previous page. Without the
// parameter, v stays unchanged.
func (r *request) page(v any) error {
	return decodePage(r.URL.Query().Get("page"), v)
}

// decodePage decodes the marker of a page into v. If the marker is empty, v stays unchanged.
func decodePage(text string, v any) error {
	if text == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = strict.Unmarshal(b, v)
	}
	if err != nil {
		return badRequest.problem(badPage)
	}
	return nil
}

// nextPage encodes the value that the client sends as the parameter page to get the next page.
func nextPage(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Plain fields can always be encoded.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
