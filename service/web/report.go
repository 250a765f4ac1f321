package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/report"
)

// report sends a report for an auditor as a file to be saved. The browser must not show it here, because its script
// would then have the origin of the page.
func (s *Server) report(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "session", "since", "before"); err != nil {
		return err
	}
	q := event.Query{Session: event.SessionID(r.URL.Query().Get("session"))}
	var err, berr error
	q.Since, err = r.moment("since")
	q.Before, berr = r.moment("before")
	if err := cmp.Or(err, berr); err != nil {
		return err
	}
	file, err := s.writeReport(r.Context(), r.where(), q)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="report.html"`)
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write(file)
	return nil
}

// writeReport returns a report for an auditor. It is complete before the reply begins, so that an error can still be
// the reply.
func (s *Server) writeReport(ctx context.Context, where place, q event.Query) ([]byte, error) {
	l, log, err := s.proving(ctx, where)
	if err != nil {
		return nil, err
	}
	p, err := l.findProject()
	if err != nil {
		return nil, err
	}
	redactor, err := p.Redactor()
	if err != nil {
		return nil, err
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var file bytes.Buffer
	_, err = report.WriteVerifiable(ctx, &file, log, q, report.VerifiableOptions{Mask: redactor.Changes,
		Keys: p.VerifierKeys})
	if errors.Is(err, report.ErrNoEvents) {
		return nil, unfit.problem(report.ErrNoEvents)
	}
	if errors.Is(err, report.ErrNothingSigned) {
		return nil, unfit.problem(runsEndMakes.With(err))
	}
	return file.Bytes(), err
}

// openReports has the reports that a browser may open. A browser sends no signature with the address of a new tab, so
// the address of a report has a ticket.
type openReports struct {
	mu   sync.Mutex
	list []openReport // guarded by mu
}

// openReport is a report with its ticket.
type openReport struct {
	ticket  string
	visitor string // its maker
	expires time.Time
	file    []byte
}

// A ticket is valid for ticketTime, and the newest mostReports reports have one.
const (
	ticketTime  = 5 * time.Minute
	mostReports = 4
)

// add stores a report and drops the oldest ones.
func (o *openReports) add(one openReport, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = slices.DeleteFunc(o.list, func(r openReport) bool { return now.After(r.expires) })
	o.list = append(o.list, one)
	o.list = slices.Clone(o.list[max(0, len(o.list)-mostReports):])
}

// find returns the report with this ticket.
func (o *openReports) find(ticket string, now time.Time) (openReport, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.list, func(r openReport) bool { return r.ticket == ticket && now.Before(r.expires) })
	if i < 0 {
		return openReport{}, false
	}
	return o.list[i], true
}

// reportBody is the body of a request for a report.
type reportBody struct {
	Project string          `json:"project"`
	Context string          `json:"context"`
	Session event.SessionID `json:"session"`
	Since   *time.Time      `json:"since"`
	Before  *time.Time      `json:"before"`
}

func (s *Server) makeReport(w http.ResponseWriter, r *request) error {
	var body reportBody
	if err := cmp.Or(r.checkParameters(), r.decode(&body)); err != nil {
		return err
	}
	q := event.Query{Session: body.Session}
	if body.Since != nil {
		q.Since = *body.Since
	}
	if body.Before != nil {
		q.Before = *body.Before
	}
	file, err := s.writeReport(r.Context(), place{body.Project, body.Context}, q)
	if err != nil {
		return err
	}
	one := openReport{rand.Text(), r.visitor.ID, time.Now().Add(ticketTime), file}
	s.reports.add(one, time.Now())
	return reply(w, http.StatusCreated, struct {
		Path    string    `json:"path"`
		Expires time.Time `json:"expires"`
	}{"v1/reports/" + one.ticket, one.expires})
}

// openReport shows a report as a page without an origin. The page may run its own script, but the script reaches
// neither the keys of the device nor this server.
func (s *Server) openReport(w http.ResponseWriter, r *request) error {
	one, ok := s.reports.find(r.PathValue("ticket"), time.Now())
	if ok {
		select {
		case <-s.opt.Devices.Revoked(one.visitor):
			ok = false
		default:
		}
	}
	if !ok {
		return notFound.problem(reportGone)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox allow-scripts allow-forms; default-src 'none'; "+
		"script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write(one.file)
	return nil
}
