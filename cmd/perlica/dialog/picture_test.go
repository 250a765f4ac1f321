package dialog

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"image"
	"image/gif"
	"image/png"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestPicture checks that the escape sequence contains only the image. A terminal gets the sequence only if it is
// known to draw images.
func TestPicture(t *testing.T) {
	noise := image.NewGray(image.Rect(0, 0, 120, 90)) // too large for one sequence of kitty
	for i := range noise.Pix {
		noise.Pix[i] = byte(rand.IntN(256))
	}
	var asPNG, asGIF bytes.Buffer
	if err := png.Encode(&asPNG, noise); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, noise, nil); err != nil {
		t.Fatal(err)
	}
	// The header says that the image has a hundred thousand pixels in each direction.
	bomb := bytes.Clone(asPNG.Bytes())
	copy(bomb[16:], "\x00\x01\x86\xa0\x00\x01\x86\xa0")
	sum := crc32.ChecksumIEEE(bomb[12:29])
	copy(bomb[29:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})

	kitty := regexp.MustCompile(
		`^\x1b_Ga=T,f=100,q=2,r=5,m=1;[A-Za-z0-9+/=]+\x1b\\(\x1b_Gm=1;[A-Za-z0-9+/=]+\x1b\\)*\x1b_Gm=0;[A-Za-z0-9+/=]+\x1b\\\n$`)
	iterm := regexp.MustCompile(`^\x1b\]1337;File=inline=1;size=\d+;height=5;preserveAspectRatio=1:[A-Za-z0-9+/=]+\a\n$`)
	for name, c := range map[string]struct {
		env   string
		image []byte
		drawn *regexp.Regexp
	}{
		"kitty":              {"TERM=xterm-kitty", asPNG.Bytes(), kitty},
		"ghostty":            {"TERM=xterm-ghostty", asPNG.Bytes(), kitty},
		"kitty takes no GIF": {"TERM=xterm-kitty", asGIF.Bytes(), nil},
		"iTerm2":             {"TERM_PROGRAM=iTerm.app", asGIF.Bytes(), iterm},
		"iTerm2 over ssh":    {"LC_TERMINAL=iTerm2", asPNG.Bytes(), iterm},
		"WezTerm":            {"TERM_PROGRAM=WezTerm", asPNG.Bytes(), iterm},
		"behind tmux":        {"TERM_PROGRAM=iTerm.app TMUX=/tmp/tmux", asPNG.Bytes(), nil},
		"behind screen":      {"TERM=screen.xterm-kitty LC_TERMINAL=iTerm2", asPNG.Bytes(), nil},
		"xterm":              {"TERM=xterm-256color", asPNG.Bytes(), nil},
		"dumb":               {"TERM=dumb TERM_PROGRAM=iTerm.app", asPNG.Bytes(), nil},
		"no image":           {"TERM=xterm-kitty", []byte("\x1b]0;evil\a"), nil},
		"a bomb":             {"TERM=xterm-kitty", bomb, nil},
		"more bytes than a page": {"TERM=xterm-kitty", append(bytes.Clone(asPNG.Bytes()), make([]byte, pictureBytes)...),
			nil},
	} {
		getenv := func(key string) string {
			for _, v := range strings.Fields(c.env) {
				if k, value, _ := strings.Cut(v, "="); k == key {
					return value
				}
			}
			return ""
		}
		got := picture(c.image, 80, getenv)
		if c.drawn == nil {
			if got != "" {
				t.Errorf("%s: %d bytes are drawn", name, len(got))
			}
			continue
		}
		if !c.drawn.MatchString(got) {
			t.Errorf("%s: %.80q", name, got)
		}
		for part := range strings.SplitSeq(got, "\x1b\\") {
			if _, data, ok := strings.Cut(part, ";"); ok && strings.Contains(part, "_G") && len(data) > 4096 {
				t.Errorf("%s: %d bytes at once", name, len(data))
			}
		}
		data := regexp.MustCompile(`\x1b_G[^;]*;|\x1b\\|\x1b\]1337;[^:]*:|\a|\n`).ReplaceAllString(got, "")
		if b, err := base64.StdEncoding.DecodeString(data); err != nil || !bytes.Equal(b, c.image) {
			t.Errorf("%s: the bytes are others: %v", name, err)
		}
	}
	wide, kittys := new(bytes.Buffer), func(key string) string { return map[string]string{"TERM": "xterm-kitty"}[key] }
	if err := png.Encode(wide, image.NewGray(image.Rect(0, 0, 8000, 400))); err != nil {
		t.Fatal(err)
	}
	for columns, rows := range map[int]string{80: ",r=2,", 400: ",r=10,", 2000: ",r=15,"} {
		if got := picture(wide.Bytes(), columns, kittys); !strings.Contains(got, rows) {
			t.Errorf("%d columns: %.60q", columns, got)
		}
	}
}
