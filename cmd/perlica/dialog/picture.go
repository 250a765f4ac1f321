package dialog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // decodes GIF
	_ "image/jpeg" // decodes JPEG
	_ "image/png"  // decodes PNG
	"strings"
)

// These are the largest sizes of a drawn image. An agent chose the image, and the terminal must decode it.
const (
	pictureBytes  = 4 << 20
	picturePixels = 16 << 20
	pictureRows   = 15
)

// This is the assumed size of a terminal's cell in pixels, because few terminals report it.
const (
	cellWidth  = 10
	cellHeight = 20
)

// picture returns the escape sequence that draws an image in at most 15 rows and ends the last row. It returns "" if
// the terminal cannot draw, or if the bytes are not an image of a supported size and format. It also returns "" in a
// multiplexer such as tmux.
//
// The protocols are kitty's (sw.kovidgoyal.net/kitty/graphics-protocol) for PNG and iTerm2's
// (iterm2.com/documentation-images.html). Both contain the agent's bytes only as base64.
func picture(b []byte, columns int, getenv func(string) string) string {
	if len(b) > pictureBytes || columns < 1 {
		return ""
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width > picturePixels/size.Height {
		return ""
	}
	rows := (size.Height + cellHeight - 1) / cellHeight
	if wide := columns * cellWidth; size.Width > wide { // The width and the height shrink by the same factor.
		rows = (size.Height*wide/size.Width + cellHeight - 1) / cellHeight
	}
	rows = min(max(rows, 1), pictureRows)
	data := base64.StdEncoding.EncodeToString(b)
	switch imageProtocol(getenv) {
	case "kitty":
		if format == "png" {
			return kitty(data, rows)
		}
	case "iterm":
		return fmt.Sprintf("\x1b]1337;File=inline=1;size=%d;height=%d;preserveAspectRatio=1:%s\a\n", len(b), rows, data)
	}
	return ""
}

// imageProtocol returns the name of the protocol by which the terminal draws images, or "" if no protocol is known.
func imageProtocol(getenv func(string) string) string {
	name, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case name == "dumb", getenv("TMUX") != "", getenv("STY") != "", strings.HasPrefix(name, "screen"),
		strings.HasPrefix(name, "tmux"):
		return ""
	case name == "xterm-kitty", name == "xterm-ghostty":
		return "kitty"
	case program == "iTerm.app", program == "WezTerm", program == "mintty", getenv("LC_TERMINAL") == "iTerm2":
		return "iterm"
	}
	return ""
}

// kitty returns the sequences that draw an image with kitty's protocol, which accepts at most 4096 bytes of base64
// at once. With q=2 the terminal sends no reply. A reply would arrive as typed keys.
func kitty(data string, rows int) string {
	const most = 4096
	var t strings.Builder
	head := fmt.Sprintf("a=T,f=100,q=2,r=%d,", rows)
	for data != "" {
		n, more := min(len(data), most), 1
		if n == len(data) {
			more = 0
		}
		fmt.Fprintf(&t, "\x1b_G%sm=%d;%s\x1b\\", head, more, data[:n])
		head, data = "", data[n:]
	}
	return t.String() + "\n"
}
