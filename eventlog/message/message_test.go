package message_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"

	"github.com/perlica/perlica/eventlog/message"
)

var (
	full   = message.New("test.full", "the disk is full")
	failed = message.New("test.failed", "%s failed: %s")
)

// TestErrors checks that callers can test for a sentence with errors.Is, with and without inserted values.
func TestErrors(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "/x", Err: full}
	err := fmt.Errorf("save: %w", failed.With("writing", cause))
	if got, want := err.Error(), "save: writing failed: open /x: the disk is full"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var path *fs.PathError
	if !errors.Is(err, failed) || !errors.Is(err, full) || !errors.As(err, &path) {
		t.Errorf("%v does not wrap its causes", err)
	}
	if errors.Is(err, message.New("test.other", "the disk is full")) {
		t.Error("sentences with different codes are equal")
	}
	if got := message.CodeOf(err); got != "test.full" {
		t.Errorf("the innermost code is %q, want test.full", got)
	}
	if got := message.CodeOf(errors.New("x")); got != "" {
		t.Errorf("foreign words have the code %q", got)
	}
}

// TestJSON checks that JSON preserves the code of a wrapped sentence, its inserted values and the words around it.
func TestJSON(t *testing.T) {
	said := message.Of(fmt.Errorf("save: %w", failed.With("writing", fmt.Errorf("%w: 3", full))))
	b, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	var read message.Text
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&read)
	if err != nil || string(again) != string(b) || read.Text != said.Text {
		t.Errorf("got %s (%v), want %s", again, err, b)
	}
	inner, ok := read.Args[1].(*message.Text)
	if !ok || inner.Code != "test.failed" || inner.Args[0] != "writing" || message.CodeOf(inner) != "test.full" {
		t.Errorf("got %#v", read.Args)
	}
	var args message.Args
	if err := json.Unmarshal([]byte(`[3, "3", 0.5]`), &args); err != nil ||
		!reflect.DeepEqual(args, message.Args{int64(3), "3", 0.5}) {
		t.Errorf("got %#v (%v)", args, err)
	}
}
