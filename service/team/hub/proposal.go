package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/service/access"
)

// Member is an admin's signed statement that a member joined or left. The newest Version for a name
// counts. No field was verified.
type Member struct {
	Name      string        `json:"name"`
	Version   int           `json:"version"`
	Key       string        `json:"key"` // a verifier key
	Rights    access.Rights `json:"rights"`
	Gone      bool          `json:"gone,omitempty"`
	Login     string        `json:"login"` // the role that may write in this name
	Signer    string        `json:"signer"`
	Signature []byte        `json:"signature"`
	Made      time.Time     `json:"-"`
}

// JoinRequest is a request to join.
type JoinRequest struct {
	Name, Key, Login string
	Made             time.Time
}

// Input is one signed input.
type Input struct {
	ID          string
	Generation  string
	Sender      string
	Digest      string // the digest of the payload
	Project     string
	Provider    string   // empty means any
	Labels      []string // labels that the worker must have
	Worker      string   // the worker of the session; empty means any
	Session     string   // the session that the input continues; empty means a new one
	Permissions string
	Priority    int // higher ones first
	NotBefore   time.Time
	Replaces    string // the id of an earlier input
	Attachments []Attachment
	Signature   []byte

	// Payload is the text and then each attachment. The payload of a claim must be fetched.
	Payload [][]byte
}

// Attachment describes a file without its content.
type Attachment struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

// Question is a question of an agent at a worker.
type Question struct {
	ID, Input, Worker string
	Question          json.RawMessage // as on the worker's log
	Asked             time.Time
}

// Digest identifies the question as it is shown: the SHA-256 of its bytes in hex.
func (q Question) Digest() string { return Hash(q.Question) }

// Answer is a member's proposal. It counts when the worker's log has recorded it.
type Answer struct {
	Question, Member string
	Option, Text     string
	Signature        []byte
	// Verdict is the worker's verdict. It is nil before the verdict and empty if the answer counts.
	Verdict *string
}

// Cancel is a member's request to stop an input.
type Cancel struct {
	Input, Member string
	Signature     []byte
}

// A statement is the text that a member signs (Ed25519, RFC 8032, over its bytes). Its first line
// names its kind. Each further line has a word, a space and a value without line feeds. Different
// statements therefore have different texts, even with hostile values.
func statement(what string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "perlica team %s 1\n", what)
	for i := 0; i < len(lines); i += 2 {
		fmt.Fprintf(&b, "%s %s\n", lines[i], oneLine(lines[i+1]))
	}
	return b.String()
}

// oneLine returns the value, or a Go string literal of it if it is not a single line of text or
// begins like a literal.
func oneLine(value string) string {
	if strings.HasPrefix(value, `"`) || strings.ContainsFunc(value, unicode.IsControl) || !utf8.ValidString(value) {
		return strconv.Quote(value)
	}
	return value
}

// errName says that a name of a team, a member or a label is invalid.
var errName error = &Fault{Text: "a name has 1 to 63 of the letters a to z, digits, and . - _", ByUsage: true}

// Fault is an error of a team with its remedy.
type Fault struct {
	Text    string
	Advice  string
	ByUsage bool // the command line or the configuration is wrong
}

func (f *Fault) Error() string { return f.Text }

// Hint returns the remedy.
func (f *Fault) Hint() string { return f.Advice }

// Usage reports whether the command line or the configuration is wrong.
func (f *Fault) Usage() bool { return f.ByUsage }

// CheckName refuses names that are easily confused or do not fit a line. Its error is errName.
func CheckName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
	if bad || name == "" || len(name) > 63 {
		return fmt.Errorf("%w, not %q", errName, name)
	}
	return nil
}

// Text returns the text that an admin signs for a membership in the team with this id.
func (m Member) Text(team string) string {
	return statement("member", "team", team, "name", m.Name, "version", strconv.Itoa(m.Version), "key", m.Key,
		"rights", m.Rights.String(), "gone", strconv.FormatBool(m.Gone), "login", m.Login)
}

// Text returns the text that a member of the team signs for an input.
func (in *Input) Text(team string) string {
	lines := []string{"team", team, "generation", in.Generation, "input", in.ID, "sender", in.Sender, "digest", in.Digest,
		"project", in.Project, "provider", in.Provider, "labels", strings.Join(in.Labels, ","), "permissions", in.Permissions,
		"replaces", in.Replaces}
	// Only an input that continues a session has these lines.
	if in.Session != "" {
		lines = append(lines, "worker", in.Worker, "session", in.Session)
	}
	return statement("input", lines...)
}

// SignedText returns the text that a member of the team signs for an answer to the worker's question. The parameter
// "shown" is the digest of the question that the member saw. So nobody can exchange the question on the hub.
func (a Answer) SignedText(team, worker, shown string) string {
	return statement("answer", "team", team, "worker", worker, "question", a.Question, "shown", shown, "member", a.Member,
		"option", a.Option, "text", Hash([]byte(a.Text)))
}

// Text returns the text that a member of the team signs for a stop.
func (c Cancel) Text(team string) string {
	return statement("cancel", "team", team, "input", c.Input, "member", c.Member)
}

// OpinionText returns the text that a member of the team signs for an opinion about an input.
func OpinionText(team, input, by, text string) string {
	return statement("resolve", "team", team, "input", input, "member", by, "note", Hash([]byte(text)))
}

// OutcomeText returns the text that a worker of the team signs for the outcome of an input. digest
// is the SHA-256 of the result's JSON in hex.
func OutcomeText(team, input, worker, outcome, digest string) string {
	return statement("outcome", "team", team, "input", input, "worker", worker, "outcome", outcome, "result", digest)
}

// VerifySignature reports whether the verifier key made the signature.
func VerifySignature(key, text string, signature []byte) bool {
	v, err := note.NewVerifier(key)
	return err == nil && v.Verify([]byte(text), signature)
}

// Hash returns the SHA-256 in hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// InputDigest identifies the content of an input. It is the hash of several lines: the hash of the
// text, and the hash and the name of each attachment.
func InputDigest(text []byte, attachments []Attachment) string {
	var b strings.Builder
	b.WriteString(Hash(text) + "\n")
	for _, a := range attachments {
		b.WriteString(a.SHA256 + " " + a.Name + "\n")
	}
	return Hash([]byte(b.String()))
}

// Lane names the requirements of an input for a worker. Inputs of one lane wait in one queue.
func (in *Input) Lane() string {
	lane := in.Project + "\n" + in.Provider + "\n" + strings.Join(in.Labels, ",")
	if in.Worker != "" {
		lane += "\n" + in.Worker
	}
	return lane
}
