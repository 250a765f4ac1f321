package service_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/local"
)

// voice is the beginning of a voice message: an Ogg file with Opus.
const voice = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13" +
	"OpusHead\x01\x01"

// TestVoice checks that an agent that takes sounds gets a voice message as a sound. Another agent gets the file, and
// the sender reads one sentence. Each voice message makes one call.
func TestVoice(t *testing.T) {
	for name, c := range map[string]struct {
		scenario, sound string
		prompt, says    string
	}{
		"taken": {"", voice, `{"data":"` + base64.StdEncoding.EncodeToString([]byte(voice)) +
			`","mimeType":"audio/ogg","type":"audio"}`, ""},
		"not taken": {"[initialize]\n@set agentCapabilities.promptCapabilities.audio false", voice,
			`"type":"resource_link"`, "the agent does not take sounds, so it gets the sound as a file"},
		"too large": {"", voice + strings.Repeat("\x00", 1<<20), `"type":"resource_link"`,
			"the sound is larger than 1 MiB, so the agent gets it as a file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scenario = c.scenario
			s := w.serve(local.DefaultLimits())
			alice := w.phone("alice")
			w.pair(s, alice)
			// The name and the stated type do not count.
			alice.deliver(local.Message{Text: "listen", Files: []string{w.file("voice.bin", c.sound)}})
			got := alice.expect("You said: listen").Text
			if !strings.Contains(got, c.says) || c.says == "" && strings.Contains(got, "as a file") {
				t.Errorf("the sender reads %q", got)
			}
			if n := strings.Count(got, "ℹ️"); n > 1 {
				t.Errorf("the sender reads %d remarks: %q", n, got)
			}
			if p := w.prompts(); strings.Count(p, "session/prompt") != 1 || !strings.Contains(p, c.prompt) {
				t.Errorf("the agent got %.2000s", p)
			}
		})
	}
}

// picturesOver checks that the pictures of an answer and the last pictures of its tools arrive as pictures, in order
// and once, also after a restart. The agent's word about a type does not count.
func picturesOver(w *world, v *venue, s channeltest.Subject) {
	const chunk = `@update {"sessionUpdate":"agent_message_chunk","content":`
	encode := base64.StdEncoding.EncodeToString
	picture := func(width int) string {
		return `{"type":"image","mimeType":"image/jpeg","data":"` + encode(channeltest.Picture(width, 1)) + `"}`
	}
	var tool []string
	for _, width := range []int{1, 2, 3, 3, 4, 5} {
		tool = append(tool, `{"type":"content","content":`+picture(width)+`}`)
	}
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	alice.say(`@update {"sessionUpdate":"tool_call","toolCallId":"t","title":"Look","status":"completed","content":[` +
		strings.Join(tool, ",") + "]}\n" + chunk + picture(1) + "}\n" +
		chunk + `{"type":"image","mimeType":"image/png","data":"` + encode([]byte("no picture")) + `"}}` + "\n@say look")
	alice.expect("Pictures of its tools that are only on record: 1")
	alice.say("after the pictures")
	alice.expect("You said: after the pictures")
	want := []string{"picture 1", "file answer-2.bin", "picture 3", "picture 4", "picture 5"}
	check := func() {
		w.t.Helper()
		var got []string
		for _, m := range v.Sent() {
			if m.File == nil {
				continue
			}
			text := "file " + m.File.Name
			for width := range 6 {
				if m.File.Picture == s.Shows() && bytes.Equal(m.File.Data, channeltest.Picture(width, 1)) {
					text = fmt.Sprint("picture ", width)
				}
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			w.t.Errorf("got %q, want %q", got, want)
		}
	}
	check()
	stop()
	_, stop = v.serve()
	alice.say("after the restart")
	alice.expect("You said: after the restart")
	check()
	stop()
}
