// Package access says what those who come in from outside may do, and how often they may guess.
//
// It promises one reading of rights, one form of a pairing code on record and one limit of guesses to
// all front ends that people use from elsewhere. It knows no channel and no request, and keeps no
// list of who is paired.
package access

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perlica/perlica/kernel/fact"
)

// Right is something that a contact, a device or a program may do.
type Right = fact.Right

// The rights.
const (
	Read    Right = "read"    // see what is on record; contacts of the bridge need no such right
	Ask     Right = "ask"     // send inputs
	Approve Right = "approve" // answer questions: a contact those of its own runs
	Admin   Right = "admin"   // change what stays; a contact with Approve answers everybody's questions
)

// Rights are what a contact, a device or a program may do.
type Rights []Right

// OfContacts returns the rights that a contact of the bridge can have.
func OfContacts() Rights { return Rights{Ask, Approve, Admin} }

// OfDevices returns the rights that a browser or a program can have.
func OfDevices() Rights { return Rights{Read, Ask, Approve, Admin} }

// Has reports whether r is among them.
func (rs Rights) Has(r Right) bool { return slices.Contains(rs, r) }

// String is the form that Parse and Recorded read: "ask,approve".
func (rs Rights) String() string { return rs.join(",") }

func (rs Rights) join(sep string) string {
	words := make([]string, len(rs))
	for i, r := range rs {
		words[i] = string(r)
	}
	return strings.Join(words, sep)
}

// Shown is how people read them: "ask, approve".
func (rs Rights) Shown() string { return rs.join(", ") }

// listed is "ask, approve and admin".
func (rs Rights) listed() string {
	return rs[:len(rs)-1].join(", ") + " and " + string(rs[len(rs)-1])
}

// Parse reads rights as a person writes them, out of those that there are for whom they are meant:
// a contact, a device.
func Parse(s, whom string, of Rights) (Rights, error) {
	rs := Recorded(s)
	for _, r := range rs {
		if !of.Has(r) {
			return nil, fmt.Errorf("there is no right %q; they are %s", r, of.listed())
		}
	}
	if len(rs) == 0 {
		return nil, fmt.Errorf("a %s without a right could do nothing; they are %s", whom, of.listed())
	}
	return rs, nil
}

// Recorded reads rights as a view keeps them, which may be those of a later version.
func Recorded(s string) (rs Rights) {
	for word := range strings.SplitSeq(s, ",") {
		if word = strings.TrimSpace(word); word != "" && !rs.Has(Right(word)) {
			rs = append(rs, Right(word))
		}
	}
	return rs
}

// Visible is a text in one line without the signs that no one sees, some of which turn text around.
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

// longestName is how much of a name is shown, in characters.
const longestName = 48

// Name is a name as it is kept and shown: people call themselves anything, and it must not look like
// something that Perlica says.
func Name(s string) string { return Cut(s, longestName) }

// Cut is Visible, of at most so many characters.
func Cut(s string, most int) string {
	words := []rune(Visible(s))
	if len(words) > most {
		words = append(words[:most-1], '…')
	}
	return string(words)
}
