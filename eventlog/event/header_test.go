package event

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// TestParseHeader checks that ParseHeader parses the output of AppendHeader, and that it refuses a header with
// missing or additional bytes.
func TestParseHeader(t *testing.T) {
	want := Event{
		Seq: 7, ID: "id", Time: time.Unix(0, 1795242179123456789), Type: Requested, Class: Fact, Actor: "perlica",
		Writer: "w", Context: "c",
		Refs:       Refs{Session: "s", Conversation: "c", Run: "r", Trace: "t", Interaction: "i", Input: "n"},
		PayloadLen: 12, PayloadSHA256: [32]byte{1, 2, 3},
	}
	header := want.AppendHeader(nil)
	if got, err := ParseHeader(header); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range header {
		if _, err := ParseHeader(header[:i]); !errors.Is(err, ErrHeader) {
			t.Fatalf("its first %d bytes: %v", i, err)
		}
	}
	if _, err := ParseHeader(append(header, 0)); !errors.Is(err, ErrHeader) {
		t.Errorf("a byte more: %v", err)
	}
}

// FuzzParseHeader checks that AppendHeader writes the parsed bytes again, or that the leaf differs.
func FuzzParseHeader(f *testing.F) {
	e := Event{Seq: 1, ID: "id", Time: time.Unix(1, 0), Type: "t", Class: Fact}
	f.Add(e.AppendHeader(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseHeader(b)
		if err != nil {
			return
		}
		again, err := ParseHeader(e.AppendHeader(nil))
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%+v, %+v, %v", e, again, err)
		}
	})
}
