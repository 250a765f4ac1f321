package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// request is a request that passed the guard.
type request struct {
	*http.Request
	visitor device.Visitor
	// body is the complete body.
	body []byte
}

// route describes a path, its handler and the required right.
type route struct {
	pattern string       // in the syntax of http.ServeMux
	right   access.Right // the right that the route requires; empty means that any credential is enough
	open    bool         // no credential is needed
	limit   int64        // largest size of the body, in bytes
	serve   func(w http.ResponseWriter, r *request) error
}

// smallBody limits the body of most requests. inputBody limits an input with its attachments in
// base64.
const (
	smallBody = 64 << 10
	inputBody = 32 << 20
)

// bodyTime is the time limit for the arrival of a body.
const bodyTime = time.Minute

// securityHeaders are on every answer.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
		"require-trusted-types-for 'script'; trusted-types perlica",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
	"X-Frame-Options":              "DENY",
}

// ServeHTTP serves one request. It first makes the checks that need no route, in this order: the host name, the form of
// the path, the origin and the rate. guardRoute makes the other checks.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	r = withLanguage(r)
	// Remove the path below which the proxy shows the server, if the proxy left it in the request.
	if base := s.opt.Base; base != "" && strings.HasPrefix(r.URL.Path, base+"/") {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, base), strings.TrimPrefix(r.URL.RawPath, base)
	}
	a := &answer{ResponseWriter: w, patience: s.opt.Patience}
	for name, value := range securityHeaders {
		a.Header().Set(name, value)
	}
	if err := s.outside(r); err != nil {
		s.nonce(a)
		refuse(a, r, err)
	} else {
		s.mux.ServeHTTP(a, r)
	}
	s.opt.Trail.Info("http", "method", r.Method, "path", r.URL.Path, "status", a.status, "bytes", a.bytes,
		"ms", time.Since(began).Milliseconds(), "client", s.opt.Client(r), "visitor", a.visitor)
}

// outside checks a request's host name, the form of its path, its origin and its rate.
func (s *Server) outside(r *http.Request) error {
	if r.URL.Path == "/healthz" {
		// /healthz is served for every host name.
		return nil
	}
	if !slices.Contains(s.opt.Hosts, strings.ToLower(r.Host)) {
		return misdirected.problem(useHostName)
	}
	if p := r.URL.Path; p == "" || p[0] != '/' || path.Clean(p) != strings.TrimSuffix(p, "/") && p != "/" ||
		strings.Contains(p, "\\") {
		return notFound.problem(longPath)
	}
	if err := s.origin(r); err != nil {
		return err
	}
	switch {
	case r.URL.Path == acpPath && len(r.Header["Origin"]) > 0:
		// A page cannot be an ACP client.
		return foreignOrigin.problem(pageConnects)
	case r.Header.Get("Upgrade") != "" && r.URL.Path != acpPath:
		return badRequest.problem(noUpgrade)
	}
	if !s.limits.ofClient.allowName(s.opt.Client(r)) {
		return tooMany.problem(nil)
	}
	return nil
}

// origin refuses requests from foreign pages. A link on a foreign page may lead to this server, but only to the
// server's page itself.
func (s *Server) origin(r *http.Request) error {
	if o := r.Header["Origin"]; len(o) > 0 {
		u, err := url.Parse(o[0])
		if err != nil || len(o) > 1 || u.Scheme != "http" && u.Scheme != "https" ||
			!slices.Contains(s.opt.Hosts, strings.ToLower(u.Host)) {
			return foreignOrigin.problem(otherOrigin)
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet && r.URL.Path == "/" {
			return nil
		}
		return foreignOrigin.problem(otherSite.With(site))
	}
}

// nonce gives the client a nonce for its next signature.
func (s *Server) nonce(w http.ResponseWriter) { w.Header().Set("Perlica-Nonce", s.opt.Devices.Nonce()) }

// guardRoute wraps a route with the rest of the guard: it checks the credential, the size and type
// of the body, and the right.
func (s *Server) guardRoute(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		s.nonce(w)
		r := &request{Request: hr}
		var err error
		// The server reads no body before it knows the client.
		if !rt.open {
			if perr := s.opt.Devices.Precheck(hr); perr != nil {
				err = stranger(perr)
			}
		}
		if err == nil {
			err = r.readBody(w, rt.limit)
		}
		if err == nil && !rt.open {
			err = s.admitVisitor(r, rt.right)
			// The writer is an answer, because ServeHTTP made it.
			w.(*answer).visitor = r.visitor.ID
		}
		if err == nil {
			err = rt.serve(w, r)
		}
		if err != nil && !errors.Is(hr.Context().Err(), context.Canceled) {
			refuse(w, hr, err)
		}
	}
}

// readBody reads the body, which must be JSON. A GET request must have no body.
func (r *request) readBody(w http.ResponseWriter, limit int64) (err error) {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Now().Add(bodyTime)) // if this fails, a slow body has no time limit
	defer func() { _ = out.SetReadDeadline(time.Time{}) }()
	if r.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) && limit > 0 {
			return tooLarge.problem(bodyTooLarge.With(limit))
		}
		return badRequest.problem(bodyUnread)
	}
	if r.Method != http.MethodPost {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || params["charset"] != "" &&
		!strings.EqualFold(params["charset"], "utf-8") {
		return mediaType.problem(notJSON)
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return mediaType.problem(compressed)
	}
	return nil
}

// admitVisitor identifies the visitor and checks the right that the route requires.
func (s *Server) admitVisitor(r *request, right access.Right) error {
	v, err := s.opt.Devices.Authenticate(r.Request, r.body)
	if err != nil {
		return stranger(err)
	}
	r.visitor = v
	if !s.limits.ofVisitor.allowName(v.ID) {
		return tooMany.problem(nil)
	}
	if right != "" && !v.Rights.Has(right) {
		return forbidden.problem(needsRight.With(right))
	}
	return nil
}

// stranger returns the error for a visitor that was not identified.
func stranger(err error) error {
	switch {
	case errors.Is(err, device.ErrLimited):
		return tooMany.wrap(err)
	case slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }):
		return unauthorized.wrap(err)
	}
	// Any other error means that the user's own log cannot be read.
	return err
}

// refusals are the errors of an invalid credential.
var refusals = []error{
	device.ErrNone, device.ErrMalformed, device.ErrNonce, device.ErrClock, device.ErrSignature, device.ErrReplayed,
	device.ErrUnknown, device.ErrRevoked,
}

// answer records the status and size of a response for the debug trail.
type answer struct {
	http.ResponseWriter
	patience time.Duration
	status   int
	bytes    int64
	visitor  string
}

// WriteHeader sends the status.
func (a *answer) WriteHeader(status int) {
	a.beginAnswer(status)
	a.ResponseWriter.WriteHeader(status)
}

// beginAnswer starts the time limit for the client to receive the answer.
func (a *answer) beginAnswer(status int) {
	if a.status == 0 {
		a.status = status
		// If this fails, the write has no time limit and ends at the latest with the connection.
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.patience))
	}
}

// Write sends a part of the body.
func (a *answer) Write(b []byte) (int, error) {
	a.beginAnswer(http.StatusOK)
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func hostOnly(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// limits hold the rate limits for each client and each visitor. A page with many tabs stays far
// below these limits.
type limits struct{ ofClient, ofVisitor *limit }

func newLimits() *limits {
	return &limits{
		ofClient:  &limit{every: rate.Every(2 * time.Millisecond), burst: 2000, of: map[string]*rate.Limiter{}},
		ofVisitor: &limit{every: rate.Every(5 * time.Millisecond), burst: 1000, of: map[string]*rate.Limiter{}},
	}
}

// mostLimited is the number of names that a limit remembers. When the number is exceeded, all
// counts start again.
const mostLimited = 10_000

// limit has one rate limiter for each name.
type limit struct {
	every rate.Limit
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func (l *limit) allowName(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) >= mostLimited {
		clear(l.of)
	}
	one := l.of[name]
	if one == nil {
		one = rate.NewLimiter(l.every, l.burst)
		l.of[name] = one
	}
	return one.Allow()
}
