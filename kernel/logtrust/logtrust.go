// Package logtrust decides which event logs this user's processes may append to.
//
// A log can replace an agent's answer: Perlica does not call again for an input with an answer in the log. A log from a
// clone could have false answers, and a harmless run in it would sign them. So a log must be known, in one of three
// ways. It was made here, with its database and the write-ahead log next to it. Or all its outcomes are signed, by a
// key of this machine or a key that the user trusts. Or the user trusted the log. The package stores one file for each
// known log in a folder of the state directory. These files are also the list of the user's logs. The package changes
// no log.
package logtrust

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// Store is the folder of the known logs in the state directory. The zero Store accepts every log. It is for programs
// without a state directory.
type Store struct {
	Dir string
	// Keys are the keys of this machine's user. Trusted are additional verifier keys that the user trusts. They are valid
	// for every log, even if their names mention another log.
	Keys    *evidence.Keys
	Trusted []string
}

// UnknownError means that a log is not known here, or has changed. Perlica used nothing of the log. A person must
// decide whether to trust it.
type UnknownError struct {
	Log    Log
	Reason Reason
	Why    string
}

// A Reason is the reason why a log is not known.
type Reason string

// These are the reasons why a log is not known.
const (
	stranger     Reason = "the event log was not made here and is not trusted"
	rolledBack   Reason = "the event log is older than it was seen here"
	otherContext Reason = "the event log is that of another context"
)

func (e *UnknownError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Reason, e.Log.Path, e.Why) }

// Log describes a log. A person decides with this description about trust in the log.
type Log struct {
	Path string `json:"path"`
	// Origin is the log's name: perlica/ID.
	Origin string `json:"origin"`
	Events int64  `json:"events"`
	// Made is the time of the log's first event.
	Made time.Time `json:"made"`
	// Newest is the time of the log's last event.
	Newest time.Time `json:"newest"`
	// Keys are the names of the keys in the signatures of the newest checkpoint, as NAME+ID.
	Keys []string `json:"keys,omitempty"`
}

// entry is the stored description of a known log. The name of the entry's file is a hash of the log's path.
type entry struct {
	Path   string `json:"path"`
	Origin string `json:"origin,omitempty"` // empty if the log was empty
	files
	// Keys are the keys that the user trusted for this log.
	Keys []knownKey `json:"keys,omitempty"`

	// Size and Leaf are the number and the hash of the newest event that was seen. Context is the name of the
	// context with the log in its folder at that time.
	Size    int64  `json:"size,omitempty"`
	Leaf    string `json:"leaf,omitempty"`
	Context string `json:"context,omitempty"`
}

// knownKey is an Ed25519 public key in base64.
type knownKey string

// parseKey returns the public key in a verifier key of a log: NAME+ID+KEY, as defined in https://c2sp.org/signed-note.
// The error wraps evidence.ErrVerifierKey.
func parseKey(vkey string) (knownKey, error) {
	if _, err := evidence.NewVerifier(vkey); err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.DecodeString(strings.SplitN(vkey, "+", 3)[2])
	if err != nil || len(b) != 1+ed25519.PublicKeySize || b[0] != 1 { // such as a key that only cosigns checkpoints
		return "", fmt.Errorf("%w of a log: %q", evidence.ErrVerifierKey, vkey)
	}
	return knownKey(base64.StdEncoding.EncodeToString(b[1:])), nil
}

// verifier returns a verifier for the key's signatures on checkpoints of the log with the name in "origin".
func (k knownKey) verifier(origin string) (note.Verifier, error) {
	public, err := base64.StdEncoding.DecodeString(string(k))
	if err != nil {
		return nil, err
	}
	return note.NewVerifier(evidence.VerifierKey(origin, public))
}

// Check returns nil if the log at path may be appended to or does not exist yet. Otherwise it returns an *UnknownError.
// It opens the log for reading only. If the log's files have changed since the last start, Check verifies the whole
// log.
func (s Store) Check(ctx context.Context, path string) error {
	if _, err := s.checkFiles(ctx, path); err != nil || s.Dir == "" {
		return err
	}
	r, err := store.OpenReader(ctx, path)
	if err != nil {
		return nil // the log does not exist, or Open reports the fault
	}
	defer func() { _ = r.Close() }() // only read, so the error does not matter
	return s.Compare(ctx, r)
}

// Open opens the log at path for work if Check accepts it, and stores that the log is known. If another file replaces
// the log after the check, or appears where no file was, Open checks that file, too. The result "kept" is the error of
// storing that the log is known. After such an error, the next opening checks the log again.
func (s Store) Open(ctx context.Context, path string, opt eventlog.Options) (log *eventlog.Log, kept, err error) {
	before, err := s.checkFiles(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if log, err = eventlog.Open(ctx, path, opt); err != nil || s.Dir == "" {
		return log, nil, err
	}
	err = s.admitFiles(ctx, path, before)
	if err == nil {
		err = s.compareNewest(ctx, &log.Reader, log.Newest())
	}
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	return log, s.addEntry(ctx, &log.Reader, log.Newest(), nil), nil
}

// admitFiles returns nil if the files at path passed the earlier check or pass a new one. The parameter "before" has
// the result of the earlier check. Opening the log may create a write-ahead log. admitFiles accepts it if it is empty,
// or if the log had no write-ahead log with content before.
func (s Store) admitFiles(ctx context.Context, path string, before files) error {
	now, err := look(path)
	if err != nil || before.File != "" && before.File == now.File &&
		(!before.frames || !now.frames || before.WAL == now.WAL) {
		return err
	}
	_, err = s.checkFiles(ctx, path)
	return err
}

// checkFiles checks the files of a log, as Check does, but not the newest event. It returns the accepted files. If no
// log exists, it returns no files and no error.
func (s Store) checkFiles(ctx context.Context, path string) (now files, err error) {
	if s.Dir == "" {
		return now, nil
	}
	now, err = look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return now, err
	}
	if s.knows(path, now) {
		return now, nil
	}
	r, err := store.OpenReader(ctx, path)
	if err != nil {
		return now, nil // Open reports the fault
	}
	defer func() { _ = r.Close() }() // only read, so the error does not matter
	origin, err := r.Origin(ctx)
	if err != nil || origin == "" {
		return now, err
	}
	if old, ok := s.readEntry(path); ok && old.File == "" && now.File == "" && old.Origin == origin {
		return now, nil // this system cannot distinguish files
	}
	err = s.verifyOutcomes(ctx, r, origin)
	if s.knows(path, now) {
		return now, nil // another process has just created the log
	}
	var unknown *UnknownError
	if errors.As(err, &unknown) && s.knows(path, files{File: now.File}) {
		unknown.Why = "its write-ahead log (-wal) is not the one that was made here, and " + unknown.Why
	}
	return now, err
}

// knows reports whether these files were the log's files at the last start. The log may have moved since then.
func (s Store) knows(path string, now files) bool {
	if now.File == "" {
		return false
	}
	if e, ok := s.readEntry(path); ok && e.match(now) {
		return true
	}
	list, _ := s.entries() // without a readable list, no log is known
	return slices.ContainsFunc(list, func(e entry) bool { return e.match(now) })
}

// verifyOutcomes checks that all outcomes of the log are signed by known keys.
func (s Store) verifyOutcomes(ctx context.Context, r *store.Reader, origin string) error {
	known, err := s.verifiers(origin)
	if err != nil {
		return err
	}
	unknown := func(format string, args ...any) error {
		log, err := Describe(ctx, r)
		return errors.Join(err, &UnknownError{log, stranger, fmt.Sprintf(format, args...)})
	}
	if last, ok, err := r.LastCheckpoint(ctx, 0); err != nil || !ok || !signs(last, known) {
		if err != nil && !errors.Is(err, evidence.ErrCheckpoint) {
			return err
		}
		return unknown("no key that is known here signed its newest checkpoint")
	}
	rep, err := verify.Log(ctx, r, verify.Options{Keys: known})
	switch {
	case err != nil && !errors.Is(err, evidence.ErrCheckpoint):
		return err
	case err != nil || !rep.OK():
		return unknown("it is damaged, see 'perlica log verify'")
	}
	outcome := event.Query{
		After: event.Seq(rep.Signed),
		Types: []event.Type{event.Responded, event.ProviderError, event.OutcomeUnknown},
	}
	if e, ok, err := r.Last(ctx, outcome); err != nil {
		return err
	} else if ok {
		return unknown("event %d is an outcome that no key known here signed; signed are %d events", e.Seq, rep.Signed)
	}
	return nil
}

func signs(c evidence.Checkpoint, known []note.Verifier) bool {
	by, err := c.Signed(known...)
	return err == nil && len(by) > 0
}

// verifiers returns the trusted keys for the log with the name in "origin". A signature of one of these keys makes
// the log a known log.
func (s Store) verifiers(origin string) ([]note.Verifier, error) {
	var list []note.Verifier
	if s.Keys != nil {
		list = s.Keys.Verifiers(origin)
	}
	var keys []knownKey
	for _, text := range s.Trusted {
		k, err := parseKey(text)
		if err != nil {
			return nil, fmt.Errorf("PERLICA_TRUST_LOG: %w", err)
		}
		keys = append(keys, k)
	}
	kept, _ := s.entries() // without a readable list, no key is known
	for _, e := range kept {
		if e.Origin == origin {
			keys = append(keys, e.Keys...)
		}
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		v, err := k.verifier(origin)
		if err != nil {
			continue // a person has edited this entry
		}
		if !slices.ContainsFunc(list, func(o note.Verifier) bool { return o.KeyHash() == v.KeyHash() }) {
			list = append(list, v)
		}
	}
	return list, nil
}

// Describe returns a description of a log.
func Describe(ctx context.Context, r *store.Reader) (l Log, err error) {
	l.Path = r.Path()
	if l.Origin, err = r.Origin(ctx); err != nil {
		return l, err
	}
	if l.Events, _, err = r.Head(ctx); err != nil {
		return l, err
	}
	for e, err := range r.Events(ctx, event.Query{Limit: 1}) {
		if err != nil {
			return l, err
		}
		l.Made = e.Time
	}
	if e, ok, err := r.Last(ctx, event.Query{}); err != nil {
		return l, err
	} else if ok {
		l.Newest = e.Time
	}
	if c, ok, err := r.LastCheckpoint(ctx, 0); err == nil && ok {
		l.Keys = c.KeyNames()
	}
	return l, nil
}

// Add stores that the log at path is known, because it was made here or Check accepted it.
func (s Store) Add(ctx context.Context, r *store.Reader) error {
	if s.Dir == "" {
		return nil
	}
	n, err := newest(ctx, r)
	if err != nil {
		return err
	}
	return s.addEntry(ctx, r, n, nil)
}

// Trust stores that a foreign log is known. With a verifier key, its later states are also known as far as that key has
// signed them.
func (s Store) Trust(ctx context.Context, r *store.Reader, vkey string) error {
	n, err := newest(ctx, r)
	if err != nil {
		return err
	}
	if vkey == "" {
		return s.addEntry(ctx, r, n, nil)
	}
	key, err := parseKey(vkey)
	if err != nil {
		return err
	}
	origin, err := r.Origin(ctx)
	if err != nil {
		return err
	}
	only := Store{Dir: s.Dir, Trusted: []string{vkey}}
	if err := only.verifyOutcomes(ctx, r, origin); err != nil {
		return err
	}
	return s.addEntry(ctx, r, n, []knownKey{key})
}

// addEntry stores that the log is known in its present state.
func (s Store) addEntry(ctx context.Context, r *store.Reader, n store.Newest, keys []knownKey) (err error) {
	now, err := look(r.Path())
	if err != nil {
		return err
	}
	e, ok := s.readEntry(r.Path())
	same := ok && now.File != "" && e.File == now.File && len(keys) == 0
	seen := e
	seen.setNewest(n, real(r.Path()))
	if same && e.WAL == now.WAL && seen.Size == e.Size && seen.Leaf == e.Leaf && seen.Context == e.Context {
		return nil
	}
	origin := e.Origin
	if !same || origin == "" { // an empty log has no name yet
		if origin, err = r.Origin(ctx); err != nil {
			return err
		}
	}
	if e.Origin != origin {
		e.Keys = nil
	}
	e = entry{Path: real(r.Path()), Origin: origin, files: now, Keys: append(e.Keys, keys...)}
	e.setNewest(n, e.Path)
	return s.writeEntry(e)
}
