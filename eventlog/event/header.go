package event

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrHeader says that some bytes are not the header of an event.
var ErrHeader = errors.New("not the header of an event")

// ParseHeader parses the output of AppendHeader. It also accepts some bytes that AppendHeader would not write. The
// leaf of such an event differs, so the caller must compare the leaf. ParseHeader does not set Payload and LeafHash.
// The error wraps ErrHeader.
func ParseHeader(b []byte) (e Event, err error) {
	text := string(b) // text is one string. The fields share its memory.
	field := func() (s string) {
		if len(text) < 4 {
			err = ErrHeader
			return ""
		}
		n := int64(binary.BigEndian.Uint32([]byte(text[:4])))
		if text = text[4:]; n > int64(len(text)) {
			err = ErrHeader
			return ""
		}
		s, text = text[:n], text[n:]
		return s
	}
	number := func() int64 {
		s := field()
		n, bad := strconv.ParseInt(s, 10, 64)
		if bad != nil && err == nil {
			err = fmt.Errorf("%w: %q is no number", ErrHeader, s)
		}
		return n
	}
	format := field()
	e.Seq, e.ID, e.Time = Seq(number()), field(), time.Unix(0, number())
	e.Type, e.Class, e.Actor, e.Writer, e.Context = Type(field()), Class(field()), field(), field(), field()
	e.Session, e.Conversation, e.Run = SessionID(field()), ConversationID(field()), RunID(field())
	e.Trace, e.Interaction, e.Input = TraceID(field()), InteractionID(field()), InputID(field())
	e.PayloadLen = number()
	sum := field()
	switch {
	case err != nil:
		return Event{}, err
	case format != leafFormat, len(sum) != sha256.Size, text != "":
		return Event{}, ErrHeader
	}
	copy(e.PayloadSHA256[:], sum)
	return e, nil
}
