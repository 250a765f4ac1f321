package screen

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// terminalReplies are the replies of terminals to other programs' queries.
var terminalReplies = []string{
	"\x1b]11;rgb:1414/1919/1f1f\x1b\\", "\x1b]10;rgb:ffff/ffff/ffff\a", "\x1b]52;c;aGVsbG8=\x1b\\",
	"\x1b]lthe ✜ title\u009c",
	"\x1bP1+r544e=78\x1b\\", "\x1bP!|00000000\x1b\\", "\x1bP>|XTerm(370)\x9c", "\x1b_Gi=31;OK\x1b\\",
	"\x1b^pm\x1b\\", "\x1bXsos\r\x1b\\",
	"\x9d11;rgb:0/0/0\x9c", "\u009d11;rgb:0/0/0\u009c", "\x901$r0m\x9c", "\x9fGi=1;OK\a", "\x9esecret\x9c", "\x98y\x9c",
	"\x1b[24;80R", "\x1b[?1;2c", "\x1b[>41;370;0c", "\x1b[?1u", "\x1b[I", "\x1b[O", "\x1b[0n", "\x1b[?2026;2$y",
	"\x1b[8;24;80t",
	"\x9b?62;4c", "\u009b24;80R", "\x1b[<0;12;3M", "\x1b[M !!",
}

// TestReplies cuts each reply at each byte and puts it between two keys. The reply must produce no key, not even
// Esc. The two keys must survive.
func TestReplies(t *testing.T) {
	for _, reply := range terminalReplies {
		for i := range len(reply) + 1 {
			k := &Keys{in: &script{chunks: []string{"a" + reply[:i], reply[i:] + "中"}}}
			if got := allKeys(t, k); !slices.Equal(got, []Key{r('a'), r('中')}) {
				t.Errorf("%q, cut at %d: %v", reply, i, got)
			}
		}
	}
}

// slow is an input that pauses before each chunk.
type slow struct {
	script
	pause time.Duration
	left  time.Duration
}

func (s *slow) readBytes(ctx context.Context, wait time.Duration) ([]byte, error) {
	if s.left == 0 {
		s.left = s.pause
	}
	if wait > 0 && wait < s.left {
		s.left -= wait
		<-time.After(wait)
		return nil, errNothing
	}
	<-time.After(s.left)
	s.left = 0
	return s.script.readBytes(ctx, wait)
}

// TestReplyWithPauses cuts each reply at each byte, with a pause of 100 ms. The first byte must not become the key
// Esc. After a longer pause it becomes Esc, but the rest of the reply must not become text.
func TestReplyWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, reply := range terminalReplies {
			for i := 1; i < len(reply); i++ {
				k := &Keys{in: &slow{script: script{chunks: []string{reply[:i], reply[i:], "y"}}, pause: 100 * time.Millisecond}}
				if got := allKeys(t, k); !slices.Equal(got, []Key{r('y')}) {
					t.Errorf("%q, cut at %d: %v", reply, i, got)
				}
			}
		}
		k := &Keys{in: &slow{script: script{chunks: []string{"\x1b", "]11;rgb:0/0/0\x1b\\", "y"}},
			pause: 400 * time.Millisecond}}
		if got := allKeys(t, k); !slices.Equal(got, []Key{{Kind: KeyEsc}, r('y')}) {
			t.Errorf("a late rest: %v", got)
		}
		k = &Keys{in: &slow{script: script{chunks: []string{"\x1b]11;rgb", "y"}}, pause: 1100 * time.Millisecond}}
		if got := allKeys(t, k); !slices.Equal(got, []Key{r('y')}) {
			t.Errorf("after a cut string: %v", got)
		}
	})
}

// TestPasteKeepsReplies checks that a reply within a paste, and the sequences of keys, are not changed.
func TestPasteKeepsReplies(t *testing.T) {
	for _, text := range []string{pasteBegin + "a\x1b]11;x\ab" + pasteEnd,
		"\x1b[A\x1bOB\x1b[1;5C\x1b[Z\x1b[3~\x1bb\x1b\r", "é\x1b[[A"} {
		for i := range len(text) + 1 {
			k := &Keys{in: &script{chunks: []string{text[:i], text[i:]}}}
			got := ""
			for {
				b, err := k.Read(t.Context(), 0)
				if got += string(b); err != nil {
					break
				}
			}
			if got != text {
				t.Errorf("%q, cut at %d: %q", text, i, got)
			}
		}
	}
	k := &Keys{in: &script{chunks: []string{"\x9bA"}}}
	if b, err := k.Read(t.Context(), 0); string(b) != "\x1b[A" || err != nil {
		t.Errorf("8-bit arrow: %q, %v", b, err)
	}
}

func allKeys(t *testing.T, k *Keys) (got []Key) {
	t.Helper()
	for {
		key, err := k.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil || len(got) > 100 {
			t.Fatalf("got %v; want err == nil && len(got) <= 100", err)
		}
		got = append(got, key)
	}
}

// FuzzReplies puts any content into each kind of control string and cuts it into two pieces. The keys around it must
// survive.
func FuzzReplies(f *testing.F) {
	f.Add("11;rgb:1/2/3", 3, 0)
	f.Add("é\r✜", 5, 6)
	f.Fuzz(func(t *testing.T, content string, cut, kind int) {
		for _, b := range content {
			if b < ' ' && b != '\r' && b != '\n' && b != '\t' || b >= 0x7f && b < 0xa0 || b == '\ufffd' {
				t.Skip("it ends a control string, or is not content")
			}
		}
		begins := []string{"\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x9d", "\x90", "\x9f", "\x9e", "\x98", "\u009d"}
		ends := []string{"\a", "\x1b\\", "\x9c", "\u009c"}
		kind &= 0xffff
		s := begins[kind%len(begins)] + content + ends[kind%len(ends)]
		cut = (cut & 0xffff) % (len(s) + 1)
		k := &Keys{in: &script{chunks: []string{"a" + s[:cut], s[cut:] + "b"}}}
		if got := allKeys(t, k); !slices.Equal(got, []Key{r('a'), r('b')}) {
			t.Errorf("%q, cut at %d: %v", s, cut, got)
		}
	})
}
