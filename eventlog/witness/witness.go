// Package witness hands checkpoints of a log to witnesses: servers of others that remember the
// largest tree they saw of a log and sign only what holds all of it. A log whose owner rewrote
// it cannot get the signature of a witness that saw it before.
//
// It promises that nothing is contacted but the address it is given (and the proxy that the
// environment names for it): redirections are not followed, and that nothing of an event
// leaves: what is sent is a checkpoint and hashes of its tree. It refuses signatures of a key
// that is not the witness's, where that is known.
//
// The protocol is https://c2sp.org/tlog-witness.
package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// What a witness may say instead of signing. Errors wrap one of them.
var (
	ErrUnreachable  = errors.New("the witness cannot be reached")
	ErrUnknownLog   = errors.New("the witness does not know this log")                     // 404
	ErrUnknownKey   = errors.New("the witness knows this log by another key")              // 403
	ErrInconsistent = errors.New("the witness says that the log was rewritten")            // 422
	ErrLarger       = errors.New("the witness has signed a larger tree of this log")       // 409
	ErrProtocol     = errors.New("the witness does not answer as tlog-witness wants")      // any other
	ErrCosignature  = errors.New("the witness's signature is not by the key it should be") // of 200
)

// maxAnswer is more than a witness has to say.
const maxAnswer = 64 << 10

// attempts is how often a checkpoint is handed in: first to learn the size that the witness knows,
// then with the proof from there, and again if somebody else handed one in between.
const attempts = 4

// Witness is one server.
type Witness struct {
	URL    string          // the submission prefix
	Keys   []note.Verifier // one of them is its own; nil: what it signs is taken as it is
	Client *http.Client    // nil: http.DefaultClient
}

// CheckURL returns an error unless prefix is an address that a witness may have.
func CheckURL(prefix string) error {
	u, err := url.Parse(prefix)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is no https address", prefix)
	}
	return nil
}

// Cosign hands c, a signed checkpoint of log, to the witness and returns it with the witness's
// signatures behind those it had. The log is only read.
func (w *Witness) Cosign(ctx context.Context, log *store.Reader, c evidence.Checkpoint) (evidence.Checkpoint, error) {
	cosigned, err := w.cosign(ctx, log, c)
	if err != nil {
		return c, fmt.Errorf("witness %s: %w", w.URL, err)
	}
	return cosigned, nil
}

func (w *Witness) cosign(ctx context.Context, log *store.Reader, c evidence.Checkpoint) (evidence.Checkpoint, error) {
	var old int64
	for range attempts {
		path, err := proof(ctx, log, old, c)
		if err != nil {
			return c, err
		}
		ans, err := w.post(ctx, request(old, path, c))
		if err != nil {
			return c, err
		}
		switch ans.status {
		case http.StatusOK:
			return w.take(c, ans.body)
		case http.StatusConflict:
			if old, err = ans.size(); err != nil {
				return c, err
			}
			if old > c.Size {
				return c, fmt.Errorf("%w: of %d events; this checkpoint has %d", ErrLarger, old, c.Size)
			}
		default:
			return c, ans.refusal()
		}
	}
	return c, fmt.Errorf("%w: it names another size each time", ErrProtocol)
}

// proof returns the hashes that show that c holds the first old events of the log.
func proof(ctx context.Context, log *store.Reader, old int64, c evidence.Checkpoint) (path []string, err error) {
	if old == 0 || old == c.Size {
		return nil, nil // nothing is to be shown, or the witness compares the roots
	}
	root, err := log.Root(ctx, old)
	if err != nil {
		return nil, err
	}
	p, err := eventlog.ProveConsistency(ctx, log, evidence.Checkpoint{Origin: c.Origin, Size: old, Root: root}, c)
	for _, h := range p.Path {
		path = append(path, h.String())
	}
	return path, err
}

// request is the body of add-checkpoint.
func request(old int64, path []string, c evidence.Checkpoint) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "old %d\n", old)
	for _, h := range path {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintf(&b, "\n%s", c.Note)
	return b.Bytes()
}

type answer struct {
	status int
	kind   string // Content-Type
	body   string
}

func (w *Witness) post(ctx context.Context, body []byte) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(w.URL, "/")+"/add-checkpoint", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	client := w.Client
	if client == nil {
		client = http.DefaultClient
	}
	// A witness that has moved says where to; anyone who uses it decides whether to follow.
	here := *client
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := here.Do(req)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if len(text) > maxAnswer {
		return a, fmt.Errorf("%w: it answers with more than %d bytes", ErrProtocol, maxAnswer)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(text)}, nil
}

// size is the tree that the witness knows, by an answer 409.
func (a answer) size() (int64, error) {
	kind, _, err := mime.ParseMediaType(a.kind)
	digits, ok := strings.CutSuffix(a.body, "\n")
	n, perr := strconv.ParseInt(digits, 10, 64)
	if err != nil || kind != "text/x.tlog.size" || !ok || perr != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return 0, fmt.Errorf("%w: it answers 409 without the size it knows", ErrProtocol)
	}
	return n, nil
}

// refusal is the error of an answer that is neither 200 nor 409.
func (a answer) refusal() error {
	err := map[int]error{
		http.StatusNotFound: ErrUnknownLog, http.StatusForbidden: ErrUnknownKey, http.StatusUnprocessableEntity: ErrInconsistent,
	}[a.status]
	if err == nil {
		err = fmt.Errorf("%w: status %d", ErrProtocol, a.status)
	}
	const most = 200
	if said := strings.TrimSpace(a.body); said != "" {
		err = fmt.Errorf("%w (%.*q)", err, most, said)
	}
	return err
}

// take returns c with the signature lines of an answer behind its own. With keys only what they
// signed counts; in any case no line may be in the name of the log.
func (w *Witness) take(c evidence.Checkpoint, lines string) (evidence.Checkpoint, error) {
	msg, n := c.Note, 0
	for line := range strings.Lines(lines) {
		rest, ok := strings.CutPrefix(line, "— ")
		name, _, ok2 := strings.Cut(rest, " ")
		if !ok || !ok2 || !strings.HasSuffix(line, "\n") {
			return c, fmt.Errorf("%w: it answers 200 with something else than signature lines", ErrProtocol)
		}
		if name == c.Origin || w.Keys != nil && !w.signed(c, line) {
			continue
		}
		n++
		if !strings.Contains(msg, "\n"+line) {
			msg += line
		}
	}
	if n == 0 && w.Keys != nil {
		return c, fmt.Errorf("%w: %.200q", ErrCosignature, lines)
	}
	if n == 0 {
		return c, fmt.Errorf("%w: it answers 200 without a signature of its own", ErrProtocol)
	}
	cosigned, err := evidence.ParseCheckpoint(msg)
	if err != nil {
		return c, fmt.Errorf("%w: its signature lines are none: %w", ErrProtocol, err)
	}
	return cosigned, nil
}

// signed reports whether a signature line is the witness's, under c.
func (w *Witness) signed(c evidence.Checkpoint, line string) bool {
	c.Note = c.Text() + "\n" + line
	list, err := c.Signatures(w.Keys...)
	return err == nil && len(list) == 1 && !list[0].Time.IsZero()
}
