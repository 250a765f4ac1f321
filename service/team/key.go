package team

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// keyName is the name under which keys sign for teams. A user has one key for all logs and teams.
const keyName = "perlica/team"

// signText signs a statement with this machine's key.
func (t *Team) signText(text string) ([]byte, error) {
	s, err := t.keys.Signer(keyName)
	if err != nil {
		return nil, err
	}
	return s.Sign([]byte(text))
}

// checkLine refuses a value that would break the line of a statement.
func checkLine(what, s string, most int) error {
	if len(s) > most || !utf8.ValidString(s) || strings.ContainsFunc(s,
		func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%s is at most %d bytes of UTF-8 without control characters", what, most)
	}
	return nil
}
