package provider

import (
	"net/http"
	"strings"
	"testing"
)

// TestMediaType compares the types of images with http.DetectContentType. The product does not use this function here,
// because it would import net/http. The sounds are the first bytes of each format's definition.
func TestMediaType(t *testing.T) {
	for _, data := range []string{
		"\x89PNG\r\n\x1a\n\x00", "\x89PNG\n", "\xff\xd8\xff\xe0", "\xff\xd8", "GIF87a;", "GIF89a;", "GIF88a;",
		"BM\x36\x00\x0c\x00\x00\x00\x00\x00\x36\x00\x00\x00", "B",
		"RIFF\x01\x00\x00\x00WEBPVP8 ", "RIFF\x01\x00\x00\x00WEBP", "\x00\x00\x01\x00", "\x00\x00\x02\x00",
		"", "%PDF-1.7", "text", "\xff\xfeU\x00T\x00F\x00", "<svg xmlns='http://www.w3.org/2000/svg'/>",
	} {
		want := http.DetectContentType([]byte(data))
		if !strings.HasPrefix(want, "image/") {
			want = ""
		}
		if got := MediaType([]byte(data)); got != want {
			t.Errorf("%q: got %q, want %q", data, got, want)
		}
	}
	ogg := "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x13"
	for data, want := range map[string]string{
		ogg + "OpusHead\x01": "audio/ogg", ogg + "\x01vorbis\x00": "audio/ogg", ogg + "\x80theora": "", "OggS": "",
		"RIFF\x01\x00\x00\x00WAVEfmt ": "audio/wav", "RIFF\x01\x00\x00\x00AVI LIST": "", "ID3\x04": "audio/mpeg",
		"\xff\xfb\x90": "audio/mpeg", "\xff\xf1\x50": "audio/aac", "fLaC\x00": "audio/flac", "#!AMR\n": "audio/amr",
		"caff\x00\x01": "audio/x-caf", "\x00\x00\x00\x1cftypM4A \x00\x00": "audio/mp4",
		"BMW is a maker of cars": "", "ID3 tags name a song": "", "caffeine is in coffee": "", "fLaCs of paint": "",
		"#!AMRO is no sound": "", "#!AMR-WB\n": "audio/amr-wb", "fLaC\x80": "audio/flac",
		"\x00\x00\x00\x1cftypisom\x00\x00": "", "FORM\x00\x00\x00\x01AIFFCOMM": "audio/aiff",
	} {
		if got := MediaType([]byte(data)); got != want {
			t.Errorf("%q: got %q, want %q", data, got, want)
		}
	}
}
