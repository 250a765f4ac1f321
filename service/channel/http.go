package channel

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// Client is a copy of the given client, or of one of its own, that follows no redirect: what is
// sent to an address is for that address.
func Client(given *http.Client) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// Do makes a request. Its errors are without the URL, see [WithoutURL], and of the kinds that
// [Channel] names: before there is a connection nothing can have been sent.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", ErrNotSent, WithoutURL(err))
	}
	return resp, WithoutURL(err)
}

// WithoutURL takes the URL off an error of net/http: addresses hold tokens and secrets.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
