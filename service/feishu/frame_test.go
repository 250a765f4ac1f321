package feishu

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// recorded has frames in the encoding of Feishu's own library for Go (larksuite/oapi-sdk-go, ws/pbbp2.pb.go).
var recorded = map[string]frame{
	"08071080808080802018f681801020012a0d0a047479706512056576656e742a110a0a6d6573736167655f696412036d2d312a080a0373756d" +
		"1201312a080a0373657112013032003a0042107b22736368656d61223a22322e30227d4a083230323631313237": {
		seq: 7, log: 1 << 40, service: 33554678, method: data, payload: []byte(`{"schema":"2.0"}`), logNew: "20261127",
		headers: []header{{"type", "event"}, {"message_id", "m-1"}, {"sum", "1"}, {"seq", "0"}}},
	"0800100018f681801020002a0c0a0474797065120470696e6732003a004a00": {
		service: 33554678, headers: []header{{"type", "ping"}}},
	"0800100018ffffffffffffffffff01200032003a004a00": {service: -1},
}

// TestRecordedFrames compares the encoding with that of Feishu's library.
func TestRecordedFrames(t *testing.T) {
	for text, want := range recorded {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %+v, %v; want %+v", got, err, want)
		}
		if got := hex.EncodeToString(want.encode()); got != text {
			t.Errorf("encoded %s, want %s", got, text)
		}
	}
}

// TestMalformedFrames checks that an incomplete or malformed frame is refused, and that unknown fields are ignored.
func TestMalformedFrames(t *testing.T) {
	for _, text := range []string{"08", "0880", "42", "4205", "4205aa", "2a030a05", "09", "0900", "0d000000", "0b", "00",
		"ffffffffffffffffffff01", "42ffffffffffffffffff01", "0f"} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := decode(b); err == nil {
			t.Errorf("%s: decoded %+v", text, f)
		}
	}
	for _, text := range []string{"", "500152020304", "510102030405060708", "5501020304"} { // unknown fields
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := decode(b); err != nil || !reflect.DeepEqual(f, frame{}) {
			t.Errorf("%s: decoded %+v, %v", text, f, err)
		}
	}
}

// FuzzFrame checks that decoding never panics, and that encoding keeps each decoded frame.
func FuzzFrame(f *testing.F) {
	for text := range recorded {
		b, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\x2a\x03\x0a\x05a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(first.encode())
		if err != nil || !reflect.DeepEqual(first, again) {
			t.Errorf("%+v became %+v, %v", first, again, err)
		}
	})
}

// TestJoin checks the parts of an event. They may come in any order, and never make more than their event.
func TestJoin(t *testing.T) {
	part := func(id, sum, seq, payload string) frame {
		return frame{payload: []byte(payload), headers: []header{{"message_id", id}, {"sum", sum}, {"seq", seq}}}
	}
	at := &connection{parts: map[string][][]byte{}}
	for _, c := range []struct {
		f    frame
		want string
	}{
		{part("a", "1", "0", "alone"), "alone"}, {part("a", "3", "2", "c"), ""}, {part("b", "2", "0", "x"), ""},
		{part("a", "3", "0", "a"), ""}, {part("a", "3", "0", "A"), ""}, {part("a", "3", "1", "b"), "Abc"},
		{part("b", "2", "2", "y"), ""}, {part("b", "2", "-1", "y"), ""}, {part("b", "65", "1", "y"), ""},
		{part("b", "2", "1", "y"), "xy"}, {part("b", "2", "1", "y"), ""},
	} {
		got, whole := at.join(c.f)
		if string(got) != c.want || whole != (c.want != "") {
			t.Errorf("%+v: got %q %t, want %q", c.f, got, whole, c.want)
		}
	}
	for i := range 1000 {
		at.join(part(string(rune('A'+i)), "2", "0", "x"))
	}
	if len(at.parts) > maxSplit {
		t.Errorf("%d events wait for their parts", len(at.parts))
	}
}
