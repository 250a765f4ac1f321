// Package access defines the rights of visitors from outside and the limits of their guesses.
//
// All front ends for people on other machines read rights in one way, record a pairing code in one form, and limit
// guesses alike. The package knows no channel and no request and keeps no list of paired visitors.
package access

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perlica/perlica/kernel/fact"
)

// Right is an action that a contact, a device, a program or a member of a team may be allowed to do.
type Right = fact.Right

// These are the rights.
const (
	Read    Right = "read"    // read the record; only devices and programs need this right
	Ask     Right = "ask"     // send inputs, stop them, and resolve them for a team
	Approve Right = "approve" // answer questions; a contact may answer the questions of its own runs
	// change lasting settings or a team; a contact that also has Approve may answer every question
	Admin Right = "admin"
)

// These texts of a command's help explain the rights.
const (
	HelpOfPeople = `Rights: "ask" allows inputs to the agent. "approve" allows answers to the questions of one's
own runs. "admin" allows changes of lasting state and, with "approve", answers to the questions
of all runs.`
	HelpOfDevices = `Rights: "read" shows everything on record. "ask" allows inputs to the agent, and stops of
running turns. "approve" allows answers to questions. "admin" allows changes of lasting state.`
)

// Rights lists the rights of a visitor.
type Rights []Right

// OfPeople returns the rights that a contact of the bridge or a member of a team can have.
func OfPeople() Rights { return Rights{Ask, Approve, Admin} }

// OfDevices returns the rights that a browser or a program can have.
func OfDevices() Rights { return Rights{Read, Ask, Approve, Admin} }

// Has reports whether the list contains r.
func (rs Rights) Has(r Right) bool { return slices.Contains(rs, r) }

// String returns the form that Parse and Recorded read: "ask,approve".
func (rs Rights) String() string { return rs.join(",") }

func (rs Rights) join(sep string) string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, sep)
}

// Shown returns the form for people: "ask, approve".
func (rs Rights) Shown() string { return rs.join(", ") }

// Listed returns the form for sentences: "ask, approve and admin".
func (rs Rights) Listed() string {
	return rs[:len(rs)-1].join(", ") + " and " + string(rs[len(rs)-1])
}

// Parse reads rights as a person writes them. Each right must be in the list "of". The parameter "whom" is the owner's
// name in an error: a contact or a device.
func Parse(s, whom string, of Rights) (Rights, error) {
	rs := Recorded(s)
	for _, r := range rs {
		if !of.Has(r) {
			return nil, fmt.Errorf("there is no right %q; they are %s", r, of.Listed())
		}
	}
	if len(rs) == 0 {
		return nil, fmt.Errorf("a %s without a right could do nothing; they are %s", whom, of.Listed())
	}
	return rs, nil
}

// Recorded reads rights as a view stores them. They may come from a later version.
func Recorded(s string) (rs Rights) {
	for word := range strings.SplitSeq(s, ",") {
		if word = strings.TrimSpace(word); word != "" && !rs.Has(Right(word)) {
			rs = append(rs, Right(word))
		}
	}
	return rs
}

// Visible returns a text in one line without invisible characters. Some of these would reverse the
// text.
func Visible(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// longestName is the largest length of a shown name, in characters.
const longestName = 48

// Name returns the stored and shown form of a name. People may choose any name, and it must not
// look like Perlica's own text.
func Name(s string) string { return Cut(s, longestName) }

// Cut returns the Visible form of a text with at most this many characters.
func Cut(s string, most int) string {
	words := []rune(Visible(s))
	if len(words) > most {
		words = append(words[:most-1], '…')
	}
	return string(words)
}
