package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/eventlog/tree"
)

// An export is text with a JSON object on each line; docs/export.md describes it. The first line is a header. The
// last line has the counts of the other lines. The lines between them are in the order of the log. There is one line
// for each selected event. The other events are replaced by subtrees, one on each line. Each subtree is the widest
// complete one without a selected event.

// formatVersion is the version of the format.
const formatVersion = 1

// Selection selects the events of an export. A zero field selects everything.
type Selection struct {
	Run     event.RunID
	Session event.SessionID
	// Since and Before select the events with Since <= Time < Before.
	Since  time.Time
	Before time.Time
}

// all reports whether every event is selected.
func (s Selection) all() bool { return s == Selection{} }

// query returns a query for the selected events up to the number in the parameter "until".
func (s Selection) query(until int64) event.Query {
	return event.Query{Run: s.Run, Session: s.Session, Since: s.Since, Before: s.Before, Until: event.Seq(until)}
}

// MarshalJSON writes the fields that are not zero.
func (s Selection) MarshalJSON() ([]byte, error) {
	v := struct {
		Run     event.RunID     `json:"run_id,omitempty"`
		Session event.SessionID `json:"session_id,omitempty"`
		Since   string          `json:"since,omitempty"`
		Before  string          `json:"before,omitempty"`
	}{Run: s.Run, Session: s.Session}
	if !s.Since.IsZero() {
		v.Since = strict.FormatTime(s.Since)
	}
	if !s.Before.IsZero() {
		v.Before = strict.FormatTime(s.Before)
	}
	return json.Marshal(v)
}

// UnmarshalJSON parses the output of MarshalJSON.
func (s *Selection) UnmarshalJSON(b []byte) error {
	var v Selection
	var since, before *string
	err := strict.Object(b, nil, map[string]any{"run_id": &v.Run, "session_id": &v.Session, "since": &since,
		"before": &before})
	if err != nil {
		return err
	}
	for _, t := range []struct {
		text *string
		to   *time.Time
	}{{since, &v.Since}, {before, &v.Before}} {
		if t.text == nil {
			continue
		}
		if *t.to, err = strict.Time(*t.text); err != nil {
			return err
		}
	}
	*s = v
	return nil
}

// Header is the first line of an export.
type Header struct {
	// Checkpoint is the head of the exported log's tree. Its Note is empty if it is not signed.
	evidence.Checkpoint
	Selection
}

func (h Header) line() ([]byte, error) {
	return json.Marshal(struct {
		Version   int       `json:"perlica_log_export"`
		Origin    string    `json:"origin,omitempty"`
		Size      int64     `json:"size"`
		Root      string    `json:"root"`
		Note      string    `json:"checkpoint,omitempty"`
		Selection Selection `json:"selection"`
	}{formatVersion, h.Origin, h.Size, h.Root.String(), h.Note, h.Selection})
}

// parseHeader parses the first line of an export. If the line has a signed checkpoint, parseHeader compares the
// checkpoint with the other members.
func parseHeader(b []byte) (Header, error) {
	var h Header
	var version int
	var root string
	var selection json.RawMessage
	if v := versionOf(b); v != nil && *v != formatVersion {
		return h, fmt.Errorf("%w (format %d, this version reads format %d)", disk.ErrVersion, *v, formatVersion)
	}
	err := strict.Object(b, map[string]any{
		"perlica_log_export": &version, "size": &h.Size, "root": &root, "selection": &selection,
	}, map[string]any{"origin": &h.Origin, "checkpoint": &h.Note})
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(selection, &h.Selection); err != nil {
		return h, fmt.Errorf("selection: %w", err)
	}
	if h.Root, err = strict.Hash(root); err != nil {
		return h, errors.New("root is no hash in base64")
	}
	if h.Size < 0 || h.Size > 1<<tree.MaxLevel {
		return h, fmt.Errorf("a log has no size of %d", h.Size)
	}
	if strings.ContainsRune(h.Origin, '\n') {
		return h, errors.New("origin is more than one line")
	}
	if h.Note == "" {
		return h, nil
	}
	c, err := evidence.ParseCheckpoint(h.Note)
	if err != nil {
		return h, err
	}
	if c != h.Checkpoint {
		return h, errors.New("its checkpoint is one of another tree")
	}
	return h, nil
}

// versionOf parses only the version, because another version may have unknown members. nil means that the line has no
// version.
func versionOf(b []byte) *int {
	var v struct {
		Version *int `json:"perlica_log_export"`
	}
	if json.Unmarshal(b, &v) != nil {
		return nil
	}
	return v.Version
}

func absentLine(a tree.Subtree) ([]byte, error) {
	type body struct {
		Seq   int64  `json:"seq"`
		Level int    `json:"level"`
		Hash  string `json:"hash"`
	}
	return json.Marshal(struct {
		Absent body `json:"absent"`
	}{body{a.Seq, a.Level, a.Hash.String()}})
}

func parseAbsence(b []byte) (a tree.Subtree, err error) {
	var body json.RawMessage
	if err := strict.Object(b, map[string]any{"absent": &body}, nil); err != nil {
		return a, err
	}
	var hash string
	if err := strict.Object(body, map[string]any{"seq": &a.Seq, "level": &a.Level, "hash": &hash}, nil); err != nil {
		return a, err
	}
	if a.Seq < 1 || a.Level < 0 || a.Level > tree.MaxLevel {
		return a, errors.New("there is no such subtree")
	}
	if a.Hash, err = strict.Hash(hash); err != nil {
		return a, errors.New("hash is no hash in base64")
	}
	return a, nil
}

// end is the last line of an export. If the line is missing, the export was cut. If Sum differs, the export was
// damaged. Sum also covers the selection and the signatures, because no hash of the log covers these.
type end struct {
	Events, Withheld, Absent int64
	Sum                      [sha256.Size]byte // the hash of all earlier lines
}

func (e end) line() ([]byte, error) {
	type body struct {
		Events   int64  `json:"events"`
		Withheld int64  `json:"withheld"`
		Absent   int64  `json:"absent"`
		SHA256   string `json:"sha256"`
	}
	return json.Marshal(struct {
		End body `json:"end"`
	}{body{e.Events, e.Withheld, e.Absent, hex.EncodeToString(e.Sum[:])}})
}

func parseEnd(b []byte) (e end, err error) {
	var body json.RawMessage
	if err := strict.Object(b, map[string]any{"end": &body}, nil); err != nil {
		return e, err
	}
	var sum string
	err = strict.Object(body, map[string]any{"events": &e.Events, "withheld": &e.Withheld, "absent": &e.Absent,
		"sha256": &sum}, nil)
	if err != nil {
		return e, err
	}
	if e.Sum, err = strict.SHA256(sum); err != nil {
		return e, errors.New("sha256 is no hash in hexadecimal")
	}
	return e, nil
}
