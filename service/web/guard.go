package web

import (
	"context"
	"errors"
	"fmt"
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

// request is one that passed the guard.
type request struct {
	*http.Request
	visitor device.Visitor
	body    []byte // whole
}

// route is what is served at a path, and to whom.
type route struct {
	pattern string       // as http.ServeMux has it
	right   access.Right // empty: any credential is enough
	open    bool         // no credential is needed
	limit   int64        // of the body, in bytes
	serve   func(w http.ResponseWriter, r *request) error
}

// The largest bodies: of most requests, and of an input with its attachments in base64.
const (
	smallBody = 64 << 10
	inputBody = 32 << 20
)

// bodyTime is how long a body may take to come.
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

// ServeHTTP serves one request: what is wrong with it from outside is found here, before anything of
// it is looked at, in this order: its path and form, the name of the host, where it comes from, how
// many there are. The rest of the guard is pass, which knows the route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	r = withLanguage(r)
	if base := s.opt.Base; base != "" && strings.HasPrefix(r.URL.Path, base+"/") { // a proxy that does not take it away
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

// outside judges a request by what stands outside of it.
func (s *Server) outside(r *http.Request) error {
	if r.URL.Path == "/healthz" {
		return nil // under any name
	}
	if !slices.Contains(s.opt.Hosts, strings.ToLower(r.Host)) {
		return misdirected.is("ask one of the names that the configuration lists")
	}
	if p := r.URL.Path; p == "" || p[0] != '/' || path.Clean(p) != strings.TrimSuffix(p, "/") && p != "/" || strings.Contains(p, "\\") {
		return notFound.is("the path is not in its shortest form")
	}
	if err := s.origin(r); err != nil {
		return err
	}
	switch {
	case r.URL.Path == acpPath && len(r.Header["Origin"]) > 0: // no page is an ACP client
		return foreignOrigin.is("a page cannot connect here")
	case r.Header.Get("Upgrade") != "" && r.URL.Path != acpPath:
		return badRequest.is("nothing here is upgraded to another protocol")
	}
	if !s.limits.ofClient.allow(s.opt.Client(r)) {
		return tooMany.is("")
	}
	return nil
}

// origin refuses what a page from elsewhere asks for. A link that leads here is followed; it leads to
// the page alone.
func (s *Server) origin(r *http.Request) error {
	if o := r.Header["Origin"]; len(o) > 0 {
		u, err := url.Parse(o[0])
		if err != nil || len(o) > 1 || u.Scheme != "http" && u.Scheme != "https" || !slices.Contains(s.opt.Hosts, strings.ToLower(u.Host)) {
			return foreignOrigin.is("the Origin is none of this server's")
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet && r.URL.Path == "/" {
			return nil
		}
		return foreignOrigin.is("the request comes from a page of another site: " + site)
	}
}

// nonce gives the client what its next signature is made over.
func (s *Server) nonce(w http.ResponseWriter) { w.Header().Set("Perlica-Nonce", s.opt.Devices.Nonce()) }

// pass is the rest of the guard: who asks, the size and the kind of the body, and whether they may.
func (s *Server) pass(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		s.nonce(w)
		r := &request{Request: hr}
		var err error
		if !rt.open { // of strangers no body is read
			if perr := s.opt.Devices.Precheck(hr); perr != nil {
				err = stranger(perr)
			}
		}
		if err == nil {
			err = r.read(w, rt.limit)
		}
		if err == nil && !rt.open {
			err = s.admit(r, rt.right)
			w.(*answer).visitor = r.visitor.ID // it was made by ServeHTTP
		}
		if err == nil {
			err = rt.serve(w, r)
		}
		if err != nil && !errors.Is(hr.Context().Err(), context.Canceled) {
			refuse(w, hr, err)
		}
	}
}

// read reads the body, which must be JSON; of what is asked with GET there is none.
func (r *request) read(w http.ResponseWriter, limit int64) (err error) {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Now().Add(bodyTime)) // else the connection's end ends it
	defer func() { _ = out.SetReadDeadline(time.Time{}) }()
	if r.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) && limit > 0 {
			return tooLarge.is(fmt.Sprintf("the body may have %d bytes", limit))
		}
		return badRequest.is("the body cannot be read")
	}
	if r.Method != http.MethodPost {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return mediaType.is("the Content-Type must be application/json")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return mediaType.is("the body must not be compressed")
	}
	return nil
}

// admit finds out who asks, and whether the route is open to them.
func (s *Server) admit(r *request, right access.Right) error {
	v, err := s.opt.Devices.Authenticate(r.Request, r.body)
	if err != nil {
		return stranger(err)
	}
	r.visitor = v
	if !s.limits.ofVisitor.allow(v.ID) {
		return tooMany.is("")
	}
	if right != "" && !v.Rights.Has(right) {
		return forbidden.is(fmt.Sprintf("this takes the right %q", right))
	}
	return nil
}

// stranger is the answer to those who are not known.
func stranger(err error) error {
	switch {
	case errors.Is(err, device.ErrLimited):
		return tooMany.of(err)
	case slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }):
		return unauthorized.of(err)
	}
	return err // the user's own log cannot be read
}

// refusals are why a credential is none.
var refusals = []error{
	device.ErrNone, device.ErrMalformed, device.ErrNonce, device.ErrClock, device.ErrSignature, device.ErrReplayed,
	device.ErrUnknown, device.ErrRevoked,
}

// answer keeps what the debug trail is told of a response.
type answer struct {
	http.ResponseWriter
	patience time.Duration
	status   int
	bytes    int64
	visitor  string
}

// WriteHeader sends the status.
func (a *answer) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

// begin gives the client so long to take the answer.
func (a *answer) begin(status int) {
	if a.status == 0 {
		a.status = status
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.patience)) // else the connection's end ends it
	}
}

// Write sends a part of the body.
func (a *answer) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func hostOnly(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// limits are how many requests are taken: by client and by visitor. A page with all
// its tabs stays far below.
type limits struct{ ofClient, ofVisitor *limit }

func newLimits() *limits {
	return &limits{
		ofClient:  &limit{every: rate.Every(2 * time.Millisecond), burst: 2000, of: map[string]*rate.Limiter{}},
		ofVisitor: &limit{every: rate.Every(5 * time.Millisecond), burst: 1000, of: map[string]*rate.Limiter{}},
	}
}

// mostLimited is of how many a limit keeps an account. When there are more, all begin anew.
const mostLimited = 10_000

// limit is one for each name.
type limit struct {
	every rate.Limit
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func (l *limit) allow(name string) bool {
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
