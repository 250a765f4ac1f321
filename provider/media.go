package provider

import "strings"

// mediaStarts maps the first bytes of a file to its type. A text could begin with the letters of some starts, so these
// starts also have the next byte.
var mediaStarts = [][2]string{
	{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
	{"\x00\x00\x01\x00", "image/x-icon"}, {"\x00\x00\x02\x00", "image/x-icon"},
	{"ID3\x02", "audio/mpeg"}, {"ID3\x03", "audio/mpeg"}, {"ID3\x04", "audio/mpeg"},
	{"\xff\xfb", "audio/mpeg"}, {"\xff\xf3", "audio/mpeg"}, {"\xff\xf2", "audio/mpeg"},
	{"\xff\xf1", "audio/aac"}, {"\xff\xf9", "audio/aac"},
	{"fLaC\x00", "audio/flac"}, {"fLaC\x80", "audio/flac"}, {"caff\x00", "audio/x-caf"},
	{"#!AMR\n", "audio/amr"}, {"#!AMR-WB\n", "audio/amr-wb"},
}

// soundsInOgg are the first bytes of a sound's first packet in an Ogg file. The packet begins after the header of 28
// bytes.
var soundsInOgg = []string{"OpusHead", "\x01vorbis", "\x7fFLAC", "Speex   "}

// MediaHead is the number of bytes that [MediaType] reads.
const MediaHead = 64

// MediaType returns the MIME type of an image or a sound by its first bytes, or "" for other data. It believes no name
// and no stated type.
func MediaType(data []byte) string {
	head := string(data[:min(len(data), MediaHead)])
	for _, m := range mediaStarts {
		if strings.HasPrefix(head, m[0]) {
			return m[1]
		}
	}
	if len(head) < 14 {
		return ""
	}
	switch {
	case head[:2] == "BM" && head[6:10] == "\x00\x00\x00\x00": // these bytes are reserved
		return "image/bmp"
	case head[:4] == "RIFF" && head[8:14] == "WEBPVP":
		return "image/webp"
	case head[:4] == "RIFF" && head[8:12] == "WAVE":
		return "audio/wav"
	case head[:4] == "FORM" && head[8:12] == "AIFF":
		return "audio/aiff"
	case head[4:11] == "ftypM4A":
		return "audio/mp4"
	case head[:4] == "OggS" && len(head) > 28:
		for _, start := range soundsInOgg {
			if strings.HasPrefix(head[28:], start) {
				return "audio/ogg"
			}
		}
	}
	return ""
}
