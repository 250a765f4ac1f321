package kernel

import (
	"net/http"
	"strings"
	"testing"
)

// TestImageType compares imageType with http.DetectContentType, which the kernel does not use because it would import
// net/http.
func TestImageType(t *testing.T) {
	for _, data := range []string{
		"\x89PNG\r\n\x1a\n\x00", "\x89PNG\n", "\xff\xd8\xff\xe0", "\xff\xd8", "GIF87a;", "GIF89a;", "GIF88a;", "BM\x00", "B",
		"RIFF\x01\x00\x00\x00WEBPVP8 ", "RIFF\x01\x00\x00\x00WEBP", "RIFF\x01\x00\x00\x00WAVEfmt ", "\x00\x00\x01\x00",
		"\x00\x00\x02\x00",
		"", "%PDF-1.7", "text", "<svg xmlns='http://www.w3.org/2000/svg'/>",
	} {
		want := http.DetectContentType([]byte(data))
		if !strings.HasPrefix(want, "image/") {
			want = ""
		}
		if got := imageType([]byte(data)); got != want {
			t.Errorf("%q: got %q, want %q", data, got, want)
		}
	}
}
