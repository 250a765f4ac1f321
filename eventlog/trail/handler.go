package trail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/redact"
)

const (
	maxValue = 16 << 10 // of one value, in bytes
	overlap  = 4 << 10  // read beyond the cut, so that a secret across it is seen whole
)

// newHandler returns a JSON handler that masks, cuts and never returns an error.
func newHandler(t *Trail, level slog.Leveler) slog.Handler {
	if t.opts.Dir == "" {
		return slog.DiscardHandler
	}
	return slog.NewJSONHandler(lines{t}, &slog.HandlerOptions{Level: level, ReplaceAttr: cleaner{t.opts.Redactor}.clean})
}

// lines takes one whole line a Write, as [slog.JSONHandler] gives it.
type lines struct{ t *Trail }

func (w lines) Write(p []byte) (int, error) {
	line := w.t.opts.Redactor.Payload(bytes.TrimRight(p, "\n"))
	line = append(line[:len(line):len(line)], '\n')
	if int64(len(line)) > w.t.maxSize() {
		line = fmt.Appendf(nil, "{\"level\":\"WARN\",\"msg\":\"a line of %d bytes was left out\"}\n", len(p))
		w.t.lost.Add(1)
	}
	w.t.write(line)
	return len(p), nil
}

// cleaner cleans attributes before they are encoded.
type cleaner struct{ redactor *redact.Redactor }

// clean masks the value of a key that names a secret and cuts what is too long.
// Secrets in short values are found when the line is complete.
func (c cleaner) clean(groups []string, a slog.Attr) slog.Attr {
	for _, g := range groups {
		if mask, ok := redact.Named(g, ""); ok {
			return slog.String(a.Key, mask)
		}
	}
	if mask, ok := redact.Named(a.Key, a.Value.String()); ok {
		return slog.String(a.Key, mask)
	}
	switch a.Value.Kind() {
	case slog.KindTime:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.KindString:
		if s := a.Value.String(); len(s) > maxValue {
			a.Value = slog.StringValue(c.cut(s))
		}
	case slog.KindAny:
		a.Value = c.cleanAny(a.Value)
	}
	return a
}

// cleanAny encodes a value once, to learn how long it is and whether it can be
// encoded at all.
func (c cleaner) cleanAny(v slog.Value) (out slog.Value) {
	defer func() {
		if p := recover(); p != nil {
			out = slog.StringValue(fmt.Sprintf("!PANIC: %v", p))
		}
	}()
	switch x := v.Any().(type) {
	case slog.Level, *slog.Source:
		return v
	case json.Marshaler:
	case error:
		return slog.StringValue(c.cut(x.Error()))
	case []byte:
		return slog.StringValue(c.cut(string(x)))
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.Any()); err != nil {
		return slog.StringValue("!ERROR: " + c.cut(err.Error()))
	}
	b := bytes.TrimSpace(buf.Bytes())
	if len(b) > maxValue {
		return slog.StringValue(c.cut(string(b)))
	}
	return slog.AnyValue(json.RawMessage(b))
}

// cut shortens s to maxValue bytes at a rune's edge and says so.
func (c cleaner) cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	head := c.redactor.Text(edge(s, maxValue+overlap))
	head = edge(head, maxValue)
	// A mask at the very end may itself have been cut.
	if i := strings.LastIndex(head, "…["); i >= 0 && len(head)-i < len(redact.Mask) {
		head = head[:i]
	}
	return fmt.Sprintf("%s…[cut, %d bytes]", head, len(s))
}

// edge returns at most n bytes of s and does not split a rune.
func edge(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := 0; i < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); i++ {
		n--
	}
	return s[:n]
}
