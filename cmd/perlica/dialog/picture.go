package dialog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // the formats
	_ "image/jpeg" // that terminals
	_ "image/png"  // draw
	"strings"
)

// What is drawn of an image at most: a terminal unpacks it, and an agent chose it.
const (
	pictureBytes  = 4 << 20
	picturePixels = 16 << 20
	pictureRows   = 15
)

// A cell of a terminal is taken to have these pixels; few terminals say.
const (
	cellWidth  = 10
	cellHeight = 20
)

// picture returns what draws an image on a terminal that has so many columns, in 15 rows at most, and ends its row;
// empty: this terminal cannot, or the bytes are no image of a size and format that it draws. A multiplexer such as
// tmux stands between, and nothing is drawn.
//
// The protocols are kitty's (sw.kovidgoyal.net/kitty/graphics-protocol), for PNG, and that of iTerm2
// (iterm2.com/documentation-images.html). Of what the agent sent only base64 is in either.
func picture(b []byte, columns int, getenv func(string) string) string {
	if len(b) > pictureBytes || columns < 1 {
		return ""
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width > picturePixels/size.Height {
		return ""
	}
	rows := (size.Height + cellHeight - 1) / cellHeight
	if wide := columns * cellWidth; size.Width > wide { // it shrinks in both directions
		rows = (size.Height*wide/size.Width + cellHeight - 1) / cellHeight
	}
	rows = min(max(rows, 1), pictureRows)
	data := base64.StdEncoding.EncodeToString(b)
	switch drawsBy(getenv) {
	case "kitty":
		if format == "png" {
			return kitty(data, rows)
		}
	case "iterm":
		return fmt.Sprintf("\x1b]1337;File=inline=1;size=%d;height=%d;preserveAspectRatio=1:%s\a\n", len(b), rows, data)
	}
	return ""
}

// drawsBy is the protocol by which a terminal draws images; empty: none that it is known by.
func drawsBy(getenv func(string) string) string {
	name, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case name == "dumb", getenv("TMUX") != "", getenv("STY") != "", strings.HasPrefix(name, "screen"), strings.HasPrefix(name, "tmux"):
		return ""
	case name == "xterm-kitty", name == "xterm-ghostty":
		return "kitty"
	case program == "iTerm.app", program == "WezTerm", program == "mintty", getenv("LC_TERMINAL") == "iTerm2":
		return "iterm"
	}
	return ""
}

// kitty takes 4096 bytes of base64 at once. q=2: the terminal answers nothing, which would be read as keys.
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
