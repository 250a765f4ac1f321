// Package witness submits checkpoints of a log to witnesses. A witness is a server of another owner. It remembers the
// largest tree of a log that it has seen, and signs only checkpoints that include this tree. If the log's owner
// rewrites the log, a witness that saw the original refuses to sign.
//
// The package contacts only the given URL, through the proxy of the environment if there is one. It follows no
// redirections. It sends a checkpoint and hashes of the log's tree, and no content of an event. If the user gave the
// keys of the witness, the package accepts only signatures of these keys.
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

// These are the reasons why a witness did not sign. Errors wrap one of them.
var (
	ErrUnreachable  = errors.New("the witness cannot be reached")
	ErrUnknownLog   = errors.New("the witness does not know this log")                     // status 404
	ErrUnknownKey   = errors.New("the witness knows this log by another key")              // status 403
	ErrInconsistent = errors.New("the witness says that the log was rewritten")            // status 422
	ErrLarger       = errors.New("the witness has signed a larger tree of this log")       // status 409
	errProtocol     = errors.New("the witness does not answer as tlog-witness wants")      // any other status
	ErrCosignature  = errors.New("the witness's signature is not by the key it should be") // status 200
)

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 64 << 10

// attempts is the maximum number of submissions of a checkpoint. The answer to the first one has the size of the tree
// that the witness knows. The second one sends the proof from that size. Further ones are needed if other clients
// submit a checkpoint in between.
const attempts = 4

// Witness is one server.
type Witness struct {
	// URL is the witness's submission prefix, as defined in https://c2sp.org/tlog-witness.
	URL string
	// Keys are the accepted keys of the witness. If Keys is nil, every signature is accepted.
	Keys []note.Verifier
	// Client sends the requests. nil means http.DefaultClient.
	Client *http.Client
}

// CheckURL returns an error if prefix cannot be the URL of a witness.
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

// Cosign submits c, a signed checkpoint of log, to the witness. It returns c with the signatures of the witness added
// at the end. It does not write to the log.
func (w *Witness) Cosign(ctx context.Context, log *store.Reader, c evidence.Checkpoint) (evidence.Checkpoint, error) {
	cosigned, err := w.submitCheckpoint(ctx, log, c)
	if err != nil {
		return c, fmt.Errorf("witness %s: %w", w.URL, err)
	}
	return cosigned, nil
}

func (w *Witness) submitCheckpoint(ctx context.Context, log *store.Reader,
	c evidence.Checkpoint) (evidence.Checkpoint, error) {
	var old int64
	for range attempts {
		path, err := proof(ctx, log, old, c)
		if err != nil {
			return c, err
		}
		ans, err := w.postRequest(ctx, request(old, path, c))
		if err != nil {
			return c, err
		}
		switch ans.status {
		case http.StatusOK:
			return w.addSignatures(c, ans.body)
		case http.StatusConflict:
			if old, err = ans.knownSize(); err != nil {
				return c, err
			}
			if old > c.Size {
				return c, fmt.Errorf("%w: of %d events; this checkpoint has %d", ErrLarger, old, c.Size)
			}
		default:
			return c, ans.refusal()
		}
	}
	return c, fmt.Errorf("%w: it names another size each time", errProtocol)
}

// proof returns the hashes of the proof that c includes an earlier state of the log. The parameter "old" is the number
// of events in this state.
func proof(ctx context.Context, log *store.Reader, old int64, c evidence.Checkpoint) (path []string, err error) {
	if old == 0 || old == c.Size {
		return nil, nil // no proof is needed, or the witness will compare the roots
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

// request returns the body of an add-checkpoint request.
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

func (w *Witness) postRequest(ctx context.Context, body []byte) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(w.URL, "/")+"/add-checkpoint",
		bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	client := w.Client
	if client == nil {
		client = http.DefaultClient
	}
	// Follow no redirection. A witness that has moved answers with its new URL, and the user decides whether to use
	// that URL.
	here := *client
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := here.Do(req)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if len(text) > maxAnswer {
		return a, fmt.Errorf("%w: it answers with more than %d bytes", errProtocol, maxAnswer)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(text)}, nil
}

// knownSize parses an answer with status 409. It returns the size of the tree that the witness knows.
func (a answer) knownSize() (int64, error) {
	kind, _, err := mime.ParseMediaType(a.kind)
	digits, ok := strings.CutSuffix(a.body, "\n")
	n, perr := strconv.ParseInt(digits, 10, 64)
	if err != nil || kind != "text/x.tlog.size" || !ok || perr != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return 0, fmt.Errorf("%w: it answers 409 without the size it knows", errProtocol)
	}
	return n, nil
}

// refusal returns the error for an answer with a status other than 200 and 409.
func (a answer) refusal() error {
	err := map[int]error{
		http.StatusNotFound: ErrUnknownLog, http.StatusForbidden: ErrUnknownKey,
		http.StatusUnprocessableEntity: ErrInconsistent,
	}[a.status]
	if err == nil {
		err = fmt.Errorf("%w: status %d", errProtocol, a.status)
	}
	const most = 200
	if said := strings.TrimSpace(a.body); said != "" {
		err = fmt.Errorf("%w (%.*q)", err, most, said)
	}
	return err
}

// addSignatures appends the signature lines of an answer to the signatures of c. If Keys is set, it ignores the
// signatures of all other keys. It always ignores lines in the name of the log.
func (w *Witness) addSignatures(c evidence.Checkpoint, lines string) (evidence.Checkpoint, error) {
	msg, n := c.Note, 0
	for line := range strings.Lines(lines) {
		rest, ok := strings.CutPrefix(line, "— ")
		name, _, ok2 := strings.Cut(rest, " ")
		if !ok || !ok2 || !strings.HasSuffix(line, "\n") {
			return c, fmt.Errorf("%w: it answers 200 with something else than signature lines", errProtocol)
		}
		if name == c.Origin || w.Keys != nil && !w.isSigned(c, line) {
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
		return c, fmt.Errorf("%w: it answers 200 without a signature of its own", errProtocol)
	}
	cosigned, err := evidence.ParseCheckpoint(msg)
	if err != nil {
		return c, fmt.Errorf("%w: its signature lines are malformed: %w", errProtocol, err)
	}
	return cosigned, nil
}

// isSigned reports whether line is a cosignature of c by one of the Keys.
func (w *Witness) isSigned(c evidence.Checkpoint, line string) bool {
	c.Note = c.Text() + "\n" + line
	list, err := c.Signatures(w.Keys...)
	return err == nil && len(list) == 1 && !list[0].Time.IsZero()
}
