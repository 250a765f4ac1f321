package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

// problem is the description of an error in the format of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Code is the stable name of Detail, or of Title if there is no detail.
	Code   message.Code `json:"code"`
	Detail string       `json:"detail,omitempty"`

	Project string       `json:"project,omitempty"`
	Context string       `json:"context,omitempty"`
	Run     string       `json:"run_id,omitempty"`
	Input   string       `json:"input_id,omitempty"`
	Field   string       `json:"field,omitempty"` // the name of the flow's input that is at fault
	Word    string       `json:"word,omitempty"`
	Answer  *firstAnswer `json:"answer,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	At      *time.Time   `json:"at,omitempty"`

	// kind and text are the sentences of Title and Detail. text is nil if there is no detail.
	kind kind
	text *message.Text

	// cause is the error that Detail describes. It is nil if Detail alone describes the problem.
	cause error
}

// firstAnswer is the answer that counted.
type firstAnswer struct {
	Option string `json:"option"`
	By     string `json:"by"`
	Where  string `json:"where,omitempty"`
}

func newFirstAnswer(a *interaction.Answer) *firstAnswer {
	if a == nil {
		return nil
	}
	return &firstAnswer{a.Option, a.By, a.Where}
}

func (p *problem) Error() string { return p.Detail }

func (p *problem) Unwrap() error { return p.cause }

// kind is a kind of problem. name is the kind's section in docs/http.md, and status is the HTTP status.
type kind struct {
	name   string
	status int
	title  *message.Text
}

func newKind(name string, status int, title string) kind {
	return kind{name, status, message.New(message.Code("web."+name), title)}
}

// These are the kinds of problems. docs/http.md has a line for each.
var (
	badRequest     = newKind("bad-request", http.StatusBadRequest, "the request cannot be understood")
	unauthorized   = newKind("unauthorized", http.StatusUnauthorized, "a credential is needed")
	forbidden      = newKind("forbidden", http.StatusForbidden, "the credential does not allow this request")
	foreignOrigin  = newKind("foreign-origin", http.StatusForbidden, "a page of another site sent the request")
	notFound       = newKind("not-found", http.StatusNotFound, "it was not found")
	badMethod      = newKind("method", http.StatusMethodNotAllowed, "this path does not accept the method")
	inputDiffers   = newKind("input-differs", http.StatusConflict, "the input's id was used for another input")
	questionClosed = newKind("question-closed", http.StatusConflict, "the question is closed")
	questionOther  = newKind("question-differs", http.StatusConflict, "the question is not the one that was shown")
	sessionBusy    = newKind("session-busy", http.StatusConflict, "another process is using the session")
	runOver        = newKind("run-over", http.StatusConflict, "the run is over")
	whichContext   = newKind("which-context", http.StatusConflict, "the project has several contexts")
	logUnknown     = newKind("log-unknown", http.StatusConflict, "the log is not trusted here")
	logReplaced    = newKind("log-replaced", http.StatusGone, "the cursor belongs to a log that was replaced")
	tooLarge       = newKind("too-large", http.StatusRequestEntityTooLarge, "the request is too large")
	mediaType      = newKind("media-type", http.StatusUnsupportedMediaType, "the body must be application/json")
	misdirected    = newKind("misdirected", http.StatusMisdirectedRequest, "this server does not have that host name")
	unfit          = newKind("unfit", http.StatusUnprocessableEntity, "the request cannot be carried out in this form")
	wordNeeded     = newKind("word-needed", http.StatusUnprocessableEntity, "to allow this, type the word")
	alwaysNeeded   = newKind("always-needed", http.StatusUnprocessableEntity, "confirm 'always allow' separately")
	upgrade        = newKind("upgrade", http.StatusUpgradeRequired, "the path is for a WebSocket")
	budgetUsedUp   = newKind("budget-used-up", http.StatusTooManyRequests, "a budget is used up")
	tooMany        = newKind("too-many", http.StatusTooManyRequests, "too many requests")
	internal       = newKind("internal", http.StatusInternalServerError, "something went wrong")
	configuration  = newKind("configuration", http.StatusInternalServerError, "the project's configuration has mistakes")
	logFailed      = newKind("log-failed", http.StatusServiceUnavailable, "the log cannot be used")
	stoppingNow    = newKind("stopping", http.StatusServiceUnavailable, "the server is being stopped")
)

// problem returns a problem of the kind. The parameter "detail" may be nil.
func (k kind) problem(detail *message.Text) *problem {
	p := &problem{
		Type: "docs/http.md#" + k.name, Title: k.title.Text, Status: k.status, Code: k.title.Code,
		Detail: detail.String(), kind: k, text: detail,
	}
	if detail != nil {
		p.Code = cmp.Or(message.CodeOf(detail), p.Code)
	}
	return p
}

// wrap returns a problem of the kind with an error as its cause.
func (k kind) wrap(err error) *problem {
	p := k.problem(message.Of(err))
	p.cause = err
	return p
}

// known assigns errors to kinds of problems. The first match counts.
var known = []struct {
	err  error
	kind kind
}{
	{report.ErrNotFound, notFound},
	{flow.ErrNoRun, notFound},
	{report.ErrNoQuestion, notFound},
	{interaction.ErrUnknownQuestion, notFound},
	{disk.ErrNotExist, notFound},
	{fs.ErrNotExist, notFound},
	{interaction.ErrWord, wordNeeded},
	{interaction.ErrAlways, alwaysNeeded},
	{interaction.ErrNotAnOption, unfit},
	{interaction.ErrAmbiguous, unfit},
	{report.ErrNoWords, unfit},
	{filelock.ErrBusy, sessionBusy},
	{kernel.ErrRunGone, runOver},
	{errStopped, stoppingNow},
	{disk.ErrCorrupt, logFailed},
	{disk.ErrForeign, logFailed},
	{disk.ErrVersion, logFailed},
	{disk.ErrMoved, logFailed},
	{disk.ErrIO, logFailed},
	{disk.ErrFull, logFailed},
	{disk.ErrReadOnly, logFailed},
	{disk.ErrBusy, logFailed},
	{disk.ErrNoLocks, logFailed},
	{disk.ErrManyOpen, logFailed},
	{disk.ErrPart, logFailed},
	{context.DeadlineExceeded, logFailed},
}

// asProblem returns the problem that describes an error.
func asProblem(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	var taken *interaction.TakenError
	var refused *budget.RefusedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		p = budgetUsedUp.wrap(refused)
		if p.Reason = refused.Cause; !refused.Until.IsZero() {
			p.At = &refused.Until
		}
		return p
	case errors.As(err, &large):
		return tooLarge.wrap(err)
	case errors.As(err, &taken):
		p = questionClosed.wrap(taken)
		p.Answer, p.Reason = newFirstAnswer(taken.Answer), string(taken.Lapsed)
		if !taken.At.IsZero() {
			p.At = &taken.At
		}
		return p
	}
	if k, ok := typed(err); ok {
		return k.wrap(err)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.kind.wrap(err)
		}
	}
	return internal.wrap(err)
}

// typed finds the kind of a problem by the type of the error.
func typed(err error) (kind, bool) {
	for _, t := range []struct {
		as   any
		kind kind
	}{
		{new(*kernel.InputConflictError), inputDiffers},
		{new(*kernel.InputError), unfit},
		{new(*kernel.StoppedError), stoppingNow},
		{new(*logtrust.UnknownError), logUnknown},
		{new(*agents.Error), unfit},
		{new(*agents.OfferError), unfit},
		{new(*project.OtherAgentError), unfit},
		{new(*project.GoneError), unfit},
		{new(*config.ContextNameError), notFound},
		{new(config.Problems), configuration},
	} {
		if errors.As(err, t.as) {
			return t.kind, true
		}
	}
	return kind{}, false
}

// refuse writes a problem in the request's language.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, say := *asProblem(err), say(r.Context())
	p.Title, p.Detail = say.Say(p.kind.title), say.Say(p.text)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="perlica"`)
	case http.StatusTooManyRequests:
		if p.At == nil {
			h.Set("Retry-After", "10")
			break
		}
		h.Set("Retry-After", p.At.UTC().Format(http.TimeFormat))
	}
	w.WriteHeader(p.Status)
	// A failure means that the client has gone, and then nobody needs the answer.
	_ = json.NewEncoder(w).Encode(&p)
}

// reply writes v as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write(append(b, '\n'))
	return nil
}
