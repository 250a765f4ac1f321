//go:build linux

package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"
)

// TestChatDraws checks that an image is drawn once after the answer. It is drawn only on a terminal that can draw
// images.
func TestChatDraws(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 60))); err != nil {
		t.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString(b.Bytes())
	for name, drawn := range map[string]string{"xterm": "",
		"xterm-kitty": "\x1b_Ga=T,f=100,q=2,r=3,m=0;" + data + "\x1b\\\r\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = append(w.env, "TERM="+name)
			s := w.chat()
			s.send(`@update {"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"`+
				data+`"}}`, "the answer has 1 image")
			s.send("hello", "You said: hello")
			s.bye()
			if got := s.text(); strings.Count(got, drawn) != 1 && drawn != "" ||
				strings.Count(got, "\x1b_G") != strings.Count(drawn, "\x1b_G") {
				t.Errorf("it is not drawn as it is: %.200q", got[max(strings.Index(got, "\x1b_G"), 0):])
			}
		})
	}
}
