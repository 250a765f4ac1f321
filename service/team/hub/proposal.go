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
)

// Member is a statement that somebody joined or left, as an admin signed it. The newest Version about a name
// counts. Nothing here was checked.
type Member struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Key       string    `json:"key"` // a verifier key
	Rights    []string  `json:"rights"`
	Gone      bool      `json:"gone,omitempty"`
	Login     string    `json:"login"` // the role that may write in this name
	Signer    string    `json:"signer"`
	Signature []byte    `json:"signature"`
	Made      time.Time `json:"-"`
}

// JoinRequest is a wish to join.
type JoinRequest struct {
	Name, Key, Login string
	Made             time.Time
}

// Input is one thing to be answered, as its sender signed it.
type Input struct {
	ID          string
	Generation  string
	Sender      string
	Digest      string // of the payload
	Project     string
	Provider    string   // empty: any
	Labels      []string // that its worker must have
	Worker      string   // the one that has the session; empty: any
	Session     string   // the id of the session that it goes on with; empty: a new one
	Permissions string
	Priority    int // higher ones first
	NotBefore   time.Time
	Replaces    string // the id of an earlier input
	Attachments []Attachment
	Signature   []byte

	Payload [][]byte // the text, then each attachment; of a claim it is fetched
}

// Attachment is what is known of a file without its content.
type Attachment struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

// Question is a question that an agent asked at a worker.
type Question struct {
	ID, Input, Worker string
	Question          json.RawMessage // as the worker's log has it
	Asked             time.Time
}

// Digest identifies the question as it is shown: the SHA-256, in hex, of its bytes.
func (q Question) Digest() string { return Hash(q.Question) }

// Answer is a member's proposal. It counts when the worker's log has recorded it.
type Answer struct {
	Question, Member string
	Option, Text     string
	Signature        []byte
	Verdict          *string // what the worker says of it: nil nothing yet, empty that it counts
}

// Cancel is a member's wish to stop an input.
type Cancel struct {
	Input, Member string
	Signature     []byte
}

// A statement is text that a member signs (Ed25519, RFC 8032, over its bytes): a line that says what it is, and lines
// of a word, a space and a value, which has no line feed: two statements that differ have different texts, whatever others
// wrote in their values.
func statement(what string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "perlica team %s 1\n", what)
	for i := 0; i < len(lines); i += 2 {
		fmt.Fprintf(&b, "%s %s\n", lines[i], oneLine(lines[i+1]))
	}
	return b.String()
}

// oneLine is the value as it is, or as a Go string literal where it is more than a line of text or looks like a literal.
func oneLine(value string) string {
	if strings.HasPrefix(value, `"`) || strings.ContainsFunc(value, unicode.IsControl) || !utf8.ValidString(value) {
		return strconv.Quote(value)
	}
	return value
}

// ErrName says that a team, a member or a label cannot have a name.
var ErrName error = &Fault{Text: "a name has 1 to 63 of the letters a to z, digits, and . - _", ByUsage: true}

// Fault is an error of a team that knows what to do about it.
type Fault struct {
	Text    string
	Advice  string
	ByUsage bool // the command line or the configuration is wrong
}

func (f *Fault) Error() string { return f.Text }

// Hint returns what to do.
func (f *Fault) Hint() string { return f.Advice }

// Usage reports whether the command line or the configuration is wrong.
func (f *Fault) Usage() bool { return f.ByUsage }

// CheckName refuses names that are hard to tell apart or would not fit a line, with ErrName.
func CheckName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
	if bad || name == "" || len(name) > 63 {
		return fmt.Errorf("%w, not %q", ErrName, name)
	}
	return nil
}

// Text is what an admin signs of a membership in the team with this id.
func (m Member) Text(team string) string {
	return statement("member", "team", team, "name", m.Name, "version", strconv.Itoa(m.Version), "key", m.Key,
		"rights", strings.Join(m.Rights, ","), "gone", strconv.FormatBool(m.Gone), "login", m.Login)
}

// Text is what a member of the team signs of an input.
func (in *Input) Text(team string) string {
	lines := []string{"team", team, "generation", in.Generation, "input", in.ID, "sender", in.Sender, "digest", in.Digest,
		"project", in.Project, "provider", in.Provider, "labels", strings.Join(in.Labels, ","), "permissions", in.Permissions, "replaces", in.Replaces}
	if in.Session != "" { // an input without one has the text that it always had
		lines = append(lines, "worker", in.Worker, "session", in.Session)
	}
	return statement("input", lines...)
}

// SignedText is what a member of the team signs of an answer to a question of the worker; shown is the digest of the
// question that the member saw, so that nobody who can write to the hub has another one answered.
func (a Answer) SignedText(team, worker, shown string) string {
	return statement("answer", "team", team, "worker", worker, "question", a.Question, "shown", shown, "member", a.Member, "option", a.Option, "text", Hash([]byte(a.Text)))
}

// Text is what a member of the team signs of a stop.
func (c Cancel) Text(team string) string {
	return statement("cancel", "team", team, "input", c.Input, "member", c.Member)
}

// OpinionText is what a member of the team signs of what became of an input.
func OpinionText(team, input, by, text string) string {
	return statement("resolve", "team", team, "input", input, "member", by, "note", Hash([]byte(text)))
}

// OutcomeText is what a worker of the team signs of what became of an input; digest is the SHA-256, in hex, of the result's JSON.
func OutcomeText(team, input, worker, outcome, digest string) string {
	return statement("outcome", "team", team, "input", input, "worker", worker, "outcome", outcome, "result", digest)
}

// VerifySignature reports whether the verifier key made the signature.
func VerifySignature(key, text string, signature []byte) bool {
	v, err := note.NewVerifier(key)
	return err == nil && v.Verify([]byte(text), signature)
}

// Hash is the SHA-256 in hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// InputDigest identifies what an input asks: the hash of a line with that of its text, and for each attachment a line with
// the hash of its content and its name.
func InputDigest(text []byte, attachments []Attachment) string {
	var b strings.Builder
	b.WriteString(Hash(text) + "\n")
	for _, a := range attachments {
		b.WriteString(a.SHA256 + " " + a.Name + "\n")
	}
	return Hash([]byte(b.String()))
}

// Lane names what an input wants of a worker: inputs of one lane wait in one line.
func (in *Input) Lane() string {
	lane := in.Project + "\n" + in.Provider + "\n" + strings.Join(in.Labels, ",")
	if in.Worker != "" {
		lane += "\n" + in.Worker
	}
	return lane
}
