package web

import (
	_ "embed"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/service/access"
)

// description is the description of the API. The tests check every answer against its schema.
//
//go:embed openapi.json
var description []byte

// routes returns the handler of all routes.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range []route{
		{pattern: "GET /v1/self", serve: s.self},
		{pattern: "GET /v1/devices", right: access.Admin, serve: s.deviceList},
		{pattern: "POST /v1/devices/{id}/revoke", limit: smallBody, serve: s.revoke},
		{pattern: "POST /v1/pairing/begin", open: true, limit: smallBody, serve: s.pairingBegin},
		{pattern: "POST /v1/pairing", open: true, limit: smallBody, serve: s.pairing},
		{pattern: "GET /v1/pairing/{pairing}", open: true, serve: s.pairingState},
		{pattern: "GET /v1/contexts", right: access.Read, serve: s.contexts},
		{pattern: "GET /v1/providers", right: access.Read, serve: s.providers},
		{pattern: "GET /v1/sessions", right: access.Read, serve: s.sessions},
		{pattern: "GET /v1/sessions/{id}", right: access.Read, serve: s.session},
		{pattern: "GET /v1/runs", right: access.Read, serve: s.runs},
		{pattern: "GET /v1/runs/{id}", right: access.Read, serve: s.run},
		{pattern: "GET /v1/runs/{id}/story", right: access.Read, serve: s.story},
		{pattern: "POST /v1/runs/{id}/cancel", right: access.Ask, limit: smallBody, serve: s.cancel},
		{pattern: "POST /v1/inputs", right: access.Ask, limit: inputBody, serve: s.input},
		{pattern: "GET /v1/flows", right: access.Read, serve: s.flows},
		{pattern: "GET /v1/flow-runs", right: access.Read, serve: s.flowRuns},
		{pattern: "POST /v1/flow-runs", right: access.Ask, limit: inputBody, serve: s.startFlow},
		{pattern: "GET /v1/flow-runs/{id}", right: access.Read, serve: s.flowRun},
		{pattern: "POST /v1/flow-runs/{id}/cancel", right: access.Ask, limit: smallBody, serve: s.cancelFlowRun},
		{pattern: "POST /v1/flow-runs/{id}/retry", right: access.Ask, limit: smallBody, serve: s.retryFlowStep},
		{pattern: "GET /v1/questions", right: access.Read, serve: s.questions},
		{pattern: "GET /v1/questions/{id}", right: access.Read, serve: s.question},
		{pattern: "POST /v1/questions/{id}/answer", right: access.Approve, limit: smallBody, serve: s.answer},
		{pattern: "GET /v1/push", right: access.Approve, serve: s.pushState},
		{pattern: "POST /v1/push/subscribe", right: access.Approve, limit: smallBody, serve: s.subscribe},
		{pattern: "POST /v1/push/unsubscribe", limit: smallBody, serve: s.unsubscribe},
		{pattern: "GET /v1/events", right: access.Read, serve: s.events},
		{pattern: "GET /v1/search", right: access.Read, serve: s.search},
		{pattern: "GET /v1/changes", right: access.Read, serve: s.changes},
		{pattern: "GET /v1/blame", right: access.Read, serve: s.blame},
		{pattern: "POST /v1/policy/try", right: access.Read, limit: smallBody, serve: s.tryRules},
		{pattern: "GET /v1/policy/suggest", right: access.Read, serve: s.suggestRules},
		{pattern: "GET /v1/stats", right: access.Read, serve: s.stats},
		{pattern: "GET /v1/verify", right: access.Read, serve: s.verify},
		{pattern: "GET /v1/report", right: access.Read, serve: s.report},
		{pattern: "POST /v1/reports", right: access.Read, limit: smallBody, serve: s.makeReport},
		{pattern: "GET /v1/reports/{ticket}", open: true, serve: s.openReport},
		{pattern: "GET /v1/proofs/{event}", right: access.Read, serve: s.proof},
		{pattern: "GET /metrics", right: access.Read, serve: s.metrics},
		{pattern: "GET /readyz", right: access.Read, serve: s.ready},
		{pattern: "GET " + acpPath, right: access.Ask, serve: s.acp},
		{pattern: "GET /openapi.json", serve: s.describe},
		{pattern: "GET /healthz", open: true, serve: s.health},
	} {
		mux.HandleFunc(rt.pattern, s.guardRoute(rt))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.nonce(w)
		if err := s.other(mux, w, r); err != nil {
			refuse(w, r, err)
		}
	})
	return mux
}

// other serves the files of the page. For other paths it returns an error.
func (s *Server) other(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		as := r.Clone(r.Context())
		as.Method = method
		if _, pattern := mux.Handler(as); pattern != "/" {
			w.Header().Set("Allow", method)
			return badMethod.problem(otherMethod.With(method))
		}
	}
	if s.opt.Page == nil || strings.HasPrefix(r.URL.Path, "/v1/") {
		return notFound.problem(nothingHere)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		return badMethod.problem(pageByGet)
	}
	// The page's files lie below this path, so the path must end with a slash.
	if s.opt.Base != "" && r.URL.Path == s.opt.Base {
		w.Header().Set("Location", s.opt.Base+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	data, err := fs.ReadFile(s.opt.Page, name)
	kind := kinds[path.Ext(name)]
	if err != nil || kind == "" || slices.ContainsFunc(strings.Split(name, "/"),
		func(part string) bool { return strings.HasPrefix(part, ".") }) {
		return notFound.problem(nothingHere)
	}
	w.Header().Set("Content-Type", kind)
	if _, err := w.Write(data); err != nil {
		// The client has gone, so nobody needs an answer.
		return nil
	}
	return nil
}

// kinds holds the media types of the page's files. Files of other types are not served.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".webmanifest": "application/manifest+json", ".png": "image/png", ".svg": "image/svg+xml",
	".ico": "image/x-icon", ".txt": "text/plain; charset=utf-8",
}

func (s *Server) self(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
		return err
	}
	v := r.visitor
	return reply(w, http.StatusOK, struct {
		ID     string        `json:"id"`
		Name   string        `json:"name"`
		Rights access.Rights `json:"rights"`
		Token  bool          `json:"token"`
		Team   bool          `json:"team"`
	}{v.ID, v.Name, append(access.Rights{}, v.Rights...), v.Token, s.opt.Team != nil})
}

func (s *Server) describe(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/json")
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write(description)
	return nil
}

func (s *Server) health(w http.ResponseWriter, _ *request) error { return plain(w, "ok\n") }

// plain writes a text.
func plain(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write([]byte(text))
	return nil
}

// ready checks whether a log can be written where the user's own log lies. It also checks the logs
// that are open for work.
func (s *Server) ready(w http.ResponseWriter, r *request) error {
	select {
	case <-s.stopping:
		return stoppingNow.problem(nil)
	default:
	}
	paths, err := s.opt.Dirs.EnsureOwn()
	if err != nil {
		return logFailed.wrap(err)
	}
	began := time.Now()
	if err := eventlog.TryWrite(r.Context(), paths.Dir); err != nil {
		return logFailed.wrap(err)
	}
	s.counts.tried(time.Since(began))
	if err := s.logs.failed(); err != nil {
		return logFailed.wrap(err)
	}
	return plain(w, "ok\n")
}
