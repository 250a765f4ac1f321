package service

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
)

// Contact is a person on a channel who may use the bridge.
type Contact struct {
	Channel string             `json:"channel"`
	ID      string             `json:"contact"` // the platform's
	Chat    string             `json:"chat"`    // where it was paired
	Name    string             `json:"name"`
	Rights  Rights             `json:"rights"`
	Paired  time.Time          `json:"paired"`
	Session eventlog.SessionID `json:"session"` // in which it talks; empty: in none yet
}

// Label names the contact on the record: its name may be anybody's, its id is not.
func (c Contact) Label() string {
	if c.Name == "" || c.Name == c.ID {
		return c.Channel + ":" + c.ID
	}
	return c.Name + " (" + c.Channel + ":" + c.ID + ")"
}

func (c Contact) key() contactFact { return contactFact{c.Channel, c.ID} }

// Right is something that a contact may do.
type Right string

// The rights.
const (
	Ask     Right = "ask"     // send inputs
	Approve Right = "approve" // answer the questions of its own runs
	Admin   Right = "admin"   // change what stays; answer everybody's questions, with Approve
)

// Rights are what a contact may do.
type Rights []Right

// DefaultRights are those of a contact of which nothing else was said.
func DefaultRights() Rights { return Rights{Ask, Approve} }

// Has reports whether r is among them.
func (rs Rights) Has(r Right) bool { return slices.Contains(rs, r) }

func (rs Rights) text() string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

// ParseRights reads rights as a person writes them: "ask,approve".
func ParseRights(s string) (Rights, error) {
	rs := readRights(s)
	for _, r := range rs {
		if r != Ask && r != Approve && r != Admin {
			return nil, fmt.Errorf("there is no right %q; they are %s, %s and %s", r, Ask, Approve, Admin)
		}
	}
	if len(rs) == 0 {
		return nil, fmt.Errorf("a contact without a right could do nothing; they are %s, %s and %s", Ask, Approve, Admin)
	}
	return rs, nil
}

func readRights(s string) (rs Rights) {
	for word := range strings.SplitSeq(s, ",") {
		if word = strings.TrimSpace(word); word != "" && !rs.Has(Right(word)) {
			rs = append(rs, Right(word))
		}
	}
	return rs
}
