package model

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/perlica/perlica/provider/agentside"
)

// failure is the end of a prompt without an answer.
type failure struct {
	message    string
	kind       string // the API's error type or code
	status     int    // the HTTP status; 0 if no response came
	requestID  string // the API's request id
	retryAfter string // as the API wrote it
	// unknown means that the request may have reached the model, and its effect is not known.
	unknown bool
}

func (f *failure) Error() string { return f.message }

// judge explains a response other than a stream by its status and its body. The API itself reports a failure
// with its own error object, with a redirect, or with the status of a refused request. Any other response may
// come from a gateway that lost the model's answer, so the outcome is unknown.
func judge(s Settings, resp *http.Response, body []byte) *failure {
	f := &failure{
		status: resp.StatusCode, message: resp.Status,
		retryAfter: resp.Header.Get("Retry-After"),
	}
	for _, name := range []string{"request-id", "x-request-id", "x-goog-request-id"} {
		if v := resp.Header.Get(name); v != "" {
			f.requestID = v
			break
		}
	}
	e := mappings[s.API].failure(body)
	switch {
	case e != nil:
		f.message += ": " + e.Message
		f.kind = e.Kind
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode == 499, resp.StatusCode >= 500,
		resp.StatusCode < 300:
		f.unknown = true
		fallthrough
	default:
		if text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 300)]), "\uFFFD")); text != "" {
			f.message += ": " + text
		}
	}
	if resp.StatusCode/100 == 3 {
		f.message += fmt.Sprintf(" (a redirect to %q is not followed)", resp.Header.Get("Location"))
	}
	switch name := unreadable(resp.Header); {
	case name != "" && e == nil:
		f.message = fmt.Sprintf("%s: the server sent the encoding %q, which was not asked for and cannot be read here",
			resp.Status, name)
	case resp.StatusCode/100 == 2:
		f.message = "the answer is no event stream: " + f.message
	}
	f.addDetails()
	f.addAdvice(s, e != nil)
	return f
}

// addDetails adds the facts to the message that help when the user asks the vendor.
func (f *failure) addDetails() {
	if f.requestID != "" {
		f.message += "; request id " + f.requestID
	}
	if f.retryAfter != "" {
		f.message += "; retry after " + f.retryAfter
	}
}

// addAdvice adds to the message how to fix a refusal that is caused by the configuration.
func (f *failure) addAdvice(s Settings, said bool) {
	switch {
	case f.unknown:
	case f.status == http.StatusUnauthorized && s.Key == "":
		f.message += " (the API wants a key: name its source in model.key_env, model.key_file or model.key_command)"
	case f.status == http.StatusUnauthorized:
		f.message += fmt.Sprintf(" (the API refused the key from %s: put the right key there)",
			cmp.Or(s.KeyFrom, "the settings"))
	case f.status == http.StatusNotFound && said:
		f.message += fmt.Sprintf(" (is %q a model of this API? /model in the chat lists them)", s.Model)
	case f.status == http.StatusNotFound, f.status == http.StatusMethodNotAllowed:
		f.message += fmt.Sprintf(" (is model.base_url %q right?)", s.base())
	case len(s.Options) > 0 && oneOf("400", "422")(strconv.Itoa(f.status)):
		f.message += " (model.options are part of the request, as they are)"
	}
}

// rpc returns the failure as a JSON-RPC error.
func (f *failure) rpc() *agentside.Error {
	data := map[string]any{}
	for name, v := range map[string]string{"type": f.kind, "requestId": f.requestID, "retryAfter": f.retryAfter} {
		if v != "" {
			data[name] = v
		}
	}
	if f.status != 0 {
		data["status"] = f.status
	}
	if f.unknown {
		data["perlica.dev/outcome"] = "unknown"
	}
	e := &agentside.Error{Code: agentside.CodeInternal, Message: f.message}
	if f.status == http.StatusUnauthorized && !f.unknown {
		e.Code = agentside.CodeAuthRequired // the message names the key's source, because this agent has no login
	}
	if len(data) > 0 {
		e.Data = agentside.Encode(data)
	}
	return e
}
