package redact

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkMegabyte masks lines of 1 MB: typical output of agents, and inputs made to be slow.
func BenchmarkMegabyte(b *testing.B) {
	const size = 1 << 20
	quoted := func(s string) string {
		out, _ := json.Marshal(map[string]string{"text": s})
		return string(out)
	}
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, text := range map[string]string{
		"words":            fill("the quick brown fox jumps over the lazy dog "),
		"json":             `[` + fill(ordinary+",") + `1]`,
		"json, one secret": `[` + fill(ordinary+",") + `"` + ghKey + `"]`,
		"code": quoted(fill(
			"func login(ctx context.Context, password string) error {\n\treturn s.login(ctx, password)\n}\n")),
		"base64":     quoted(fill("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk")),
		"one secret": quoted(fill("the quick brown fox jumps over the lazy dog ") + " " + ghKey),
		"secrets":    quoted(fill("password=hunter2 " + ghKey + "\n")),
		"colours":    quoted(fill("\x1b[31mred\x1b[0m ")),
		"escapes":    fill(`\`),
		"names":      fill(`token="`),
		"tripled":    fill(`token="""a`),
		"commands":   fill("curl -u "),
		"prefixes":   fill("sk-eyJ.s.-"),
		"pem":        fill("-----BEGIN PRIVATE KEY-----."),
		"tags":       fill("<password></a>"),
		"lines":      fill("token:\n"),
		"blocks":     fill("password: |\n  a\n"),
		"continued":  fill("a1b2c3d4e5f6\n"),
		"names2":     fill("a_b-c.d_token"),
		"source":     quoted(sources(b, size) + ghKey),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Text(text)
			}
		})
	}
	b.Run("payload", func(b *testing.B) {
		var none *Redactor
		text := []byte(quoted(fill("the quick brown fox jumps over the lazy dog ") + " " + ghKey))
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			none.Payload(text)
		}
	})
}

// sources returns size bytes of this repository's source code.
func sources(b *testing.B, size int) string {
	var text strings.Builder
	for text.Len() < size {
		before := text.Len()
		for _, pattern := range []string{"*/*.go", "*/*/*.go"} {
			files, _ := filepath.Glob("../../" + pattern)
			for _, file := range files {
				if code, err := os.ReadFile(file); err == nil && filepath.Base(filepath.Dir(file)) != "redact" {
					text.Write(code)
				}
			}
		}
		if text.Len() == before {
			b.Fatal("no source code was found")
		}
	}
	return text.String()[:size]
}
