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
	maxValue = 16 << 10 // bytes of one value
	overlap  = 4 << 10  // bytes read after the cut, so that a secret at the cut is read as a whole
)

// newHandler returns a JSON handler that masks secrets, cuts long values and never returns an
// error.
func newHandler(t *Trail, level slog.Leveler) slog.Handler {
	if t.opts.Dir == "" {
		return slog.DiscardHandler
	}
	return slog.NewJSONHandler(lines{t}, &slog.HandlerOptions{Level: level,
		ReplaceAttr: cleaner{t.opts.Redactor}.cleanAttr})
}

// lines is a writer. Each call must write one whole line, as [slog.JSONHandler] does.
type lines struct{ t *Trail }

func (w lines) Write(p []byte) (int, error) {
	line := w.t.opts.Redactor.Payload(bytes.TrimRight(p, "\n"))
	line = append(line[:len(line):len(line)], '\n')
	if int64(len(line)) > w.t.maxSize() {
		line = fmt.Appendf(nil, "{\"level\":\"WARN\",\"msg\":\"a line of %d bytes was left out\"}\n", len(p))
		w.t.lost.Add(1)
	}
	w.t.writeLine(line)
	return len(p), nil
}

// cleaner masks and shortens attributes before they are encoded.
type cleaner struct{ redactor *redact.Redactor }

// cleanAttr masks the value of an attribute that has the name of a secret, and shortens long values. Secrets in short
// values are masked later, when the line is complete.
func (c cleaner) cleanAttr(groups []string, a slog.Attr) slog.Attr {
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
			a.Value = slog.StringValue(c.cutValue(s))
		}
	case slog.KindAny:
		a.Value = c.cleanAny(a.Value)
	}
	return a
}

// cleanAny encodes a value. If the value is too long or cannot be encoded, cleanAny replaces it by a text.
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
		return slog.StringValue(c.cutValue(x.Error()))
	case []byte:
		return slog.StringValue(c.cutValue(string(x)))
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.Any()); err != nil {
		return slog.StringValue("!ERROR: " + c.cutValue(err.Error()))
	}
	b := bytes.TrimSpace(buf.Bytes())
	if len(b) > maxValue {
		return slog.StringValue(c.cutValue(string(b)))
	}
	return slog.AnyValue(json.RawMessage(b))
}

// cutValue shortens s to maxValue bytes without splitting a rune, and adds the length of s.
func (c cleaner) cutValue(s string) string {
	if len(s) <= maxValue {
		return s
	}
	head := c.redactor.Text(edge(s, maxValue+overlap))
	head = edge(head, maxValue)
	// The cut may have split a mask at the end. Remove that part.
	if i := strings.LastIndex(head, "…["); i >= 0 && len(head)-i < len(redact.Mask) {
		head = head[:i]
	}
	return fmt.Sprintf("%s…[cut, %d bytes]", head, len(s))
}

// edge returns at most the first n bytes of s and does not split a rune.
func edge(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := 0; i < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); i++ {
		n--
	}
	return s[:n]
}
