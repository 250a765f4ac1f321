package provider

import (
	"strings"
	"testing"
)

func TestBlockInARow(t *testing.T) {
	for content, want := range map[string]string{
		`{"type":"image","mimeType":"image/png","data":"eHh4"}`:                         "image image/png, 3 B",
		`{"type":"audio","mimeType":"audio/wav","data":"!"}`:                            "sound audio/wav, nothing in it can be read",
		`{"type":"resource","resource":{"uri":"file:///a","text":""}}`:                  "file file:///a, 0 B",
		`{"type":"resource_link","name":"n","uri":"file:///b"}`:                         "link n file:///b",
		`{"type":"resource_link","name":"n","title":"T","uri":"https://x","size":2000}`: "link T https://x, 2.0 kB",
		`{"type":"hologram"}`: "block of an unknown type hologram, nothing in it can be read",
		`{"type":"resource_link","uri":"` + strings.Repeat("é", 600) + `"}`: "link " + strings.Repeat("é", 512) + "…",
	} {
		if got := parseBlock([]byte(content)).String(); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
	for _, content := range []string{`null`, `[]`, `"x"`, `{}`, `{"type":7}`, `{"type":"text","text":7}`} {
		if b := parseBlock([]byte(content)); b != nil {
			t.Errorf("%s: got %+v; want b == nil", content, b)
		}
	}
}

// TestOnlyWhatIsEmbeddedHasContent checks that a link has no content, even if it has unusual members.
func TestOnlyWhatIsEmbeddedHasContent(t *testing.T) {
	for content, want := range map[string]bool{
		`{"type":"image","data":"eA=="}`:                                                  true,
		`{"type":"image","uri":"file:///etc/passwd"}`:                                     false,
		`{"type":"resource_link","uri":"file:///etc/passwd","data":"eA==","blob":"eA=="}`: false,
		`{"type":"resource","resource":{"uri":"file:///etc/passwd"}}`:                     false,
	} {
		if b := parseBlock([]byte(content)); b == nil || b.Embedded() != want {
			t.Errorf("%s: got %+v; want b != nil && b.Embedded() == %v", content, b, want)
		}
	}
}

func TestSaying(t *testing.T) {
	for update, want := range map[string]string{
		`{"sessionUpdate":"session_info_update","title":"T"}`:                                                                                                          "session title: T",
		`{"sessionUpdate":"session_info_update","updatedAt":"2026"}`:                                                                                                   "",
		`{"sessionUpdate":"notice","level":"info","message":"slow today"}`:                                                                                             "notice: slow today",
		`{"sessionUpdate":"compaction","status":"in_progress"}`:                                                                                                        "compaction: in progress",
		`{"sessionUpdate":"notice","severity":"info","title":"A new version"}`:                                                                                         "notice: A new version",
		`{"sessionUpdate":"notice","severity":"_very_odd","title":"Quota","description":"9 % are left"}`:                                                               "notice (very odd): Quota: 9 % are left",
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`:                                                                              "compaction: in progress",
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"failed","error":"no room"}`:                                                                 "compaction: failed: no room",
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","error":null,"summary":[{"type":"text","text":"all of it"},{"type":"image"},7]}`: "compaction: completed: all of it",
		`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"al"}}`:                                                        "",
		`{"sessionUpdate":"context_compacted"}`:                                                                                                                        "context compacted",
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}`:                                                                                 "",
		`{"sessionUpdate":"session_message","content":[{"type":"text","text":"a word"},{"type":"image"}]}`:                                                             "session message: a word",
		`{"sessionUpdate":"session_message","message":{"role":"agent","content":[{"type":"text","text":"b"}]}}`:                                                        "session message: b",
		`{"sessionUpdate":"session_message","message":{"content":{"type":"text","text":"c"}}}`:                                                                         "session message: c",
		`{"sessionUpdate":"odd_note","message":{"a":1},"content":{"type":"text","text":"t"}}`:                                                                          "odd note: t",
	} {
		_, u, ok := parseUpdate(params(update))
		if got := u.Saying(); !ok || got != want {
			t.Errorf("%s: %q, want %q", update, got, want)
		}
	}
}

// TestChecked checks that the content decides about the type of a picture or a sound, and that a text keeps its type.
func TestChecked(t *testing.T) {
	for _, c := range []struct{ claim, data, mime, extension string }{
		{"image/jpeg", "\x89PNG\r\n\x1a\n", "image/png", ".png"},
		{"image/png", "MZ\x90", "application/octet-stream", ".bin"},
		{"Audio/OGG", "fLaC\x00", "audio/flac", ".flac"},
		{"application/x-sh", "#!/bin/sh", "application/octet-stream", ".bin"},
		{"", "GIF89a", "image/gif", ".gif"},
		{"text/plain", "BM is a text", "text/plain", ".txt"},
		{"application/pdf", "%PDF-1.7", "application/pdf", ".pdf"},
		{"image/svg+xml", "<svg/>", "image/svg+xml", ".svg"},
		{"image/svg+xml", "\xff\x00", "application/octet-stream", ".bin"},
	} {
		b := Block{Kind: blockImage, MIME: c.claim, Data: []byte(c.data)}.Checked()
		if b.MIME != c.mime || b.Extension() != c.extension {
			t.Errorf("%q as %q: got %q and %q, want %q and %q", c.data, c.claim, b.MIME, b.Extension(), c.mime, c.extension)
		}
	}
}
