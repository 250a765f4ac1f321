package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/adhocore/gronx"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/provider/proxy"
)

// decodeValue converts a decoded TOML value to the Go type of the row's kind.
func (r *row) decodeValue(v any) (any, *fault) {
	switch r.kind {
	case text:
		if s, ok := v.(string); ok {
			return s, r.checkText(s)
		}
	case boolean:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case integer:
		if n, ok := v.(int64); ok {
			return int(n), r.checkRange(float64(n))
		}
	case number:
		switch n := v.(type) {
		case float64:
			return n, r.checkRange(n)
		case int64:
			return float64(n), r.checkRange(float64(n))
		}
	case duration:
		if s, ok := v.(string); ok {
			d, err := time.ParseDuration(s)
			if err != nil {
				return nil, r.wrongType()
			}
			if d <= 0 {
				return nil, &fault{reason: errNotPositive}
			}
			return d, nil
		}
	case texts:
		return r.decodeTexts(v)
	case textMap, anyTable:
		return r.decodeMap(v)
	}
	return nil, r.wrongType()
}

// parseText converts the text of an environment variable or a flag to the Go type of the row's kind.
func (r *row) parseText(s string) (v any, f *fault) {
	var err error
	switch v = s; r.kind {
	case boolean:
		v, err = strconv.ParseBool(s)
	case integer:
		v, err = strconv.ParseInt(s, 10, 64)
	case number:
		v, err = strconv.ParseFloat(s, 64)
	}
	if err != nil {
		return nil, r.wrongType()
	}
	return r.decodeValue(v)
}

// wrongType returns a mistake that names the expected type.
func (r *row) wrongType() *fault { return &fault{reason: wrongTypes[r.kind]} }

// decodeTexts returns an empty list for an empty TOML list. Nil would mean that the key is absent.
func (r *row) decodeTexts(v any) (any, *fault) {
	list, ok := v.([]any)
	if !ok {
		return nil, r.wrongType()
	}
	if len(list) == 0 && r.section() == ruleSection {
		return nil, &fault{reason: uncoded("is empty; leave it out to match everything")}
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, r.wrongType()
		}
		if f := r.checkText(s); f != nil {
			return nil, f
		}
		out = append(out, s)
	}
	return out, nil
}

func (r *row) decodeMap(v any) (any, *fault) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, r.wrongType()
	}
	if r.kind == anyTable {
		return m, nil
	}
	out := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		s, ok := m[name].(string)
		if !ok {
			return nil, r.wrongType()
		}
		if reason := r.check(name); reason != nil {
			return nil, &fault{reason: reason}
		}
		if hasNUL(s) {
			return nil, &fault{reason: uncoded("a value holds a NUL character")}
		}
		out[name] = s
	}
	return out, nil
}

// checkRange checks an integer or a number. If max is 0, any number is valid.
func (r *row) checkRange(f float64) *fault {
	if math.IsNaN(f) || r.max > 0 && (f < r.min || f > r.max) {
		return &fault{reason: uncoded("must be from " + plain(r.min) + " to " + plain(r.max))}
	}
	return nil
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// checkText checks a string value, or one string of a list.
func (r *row) checkText(s string) *fault {
	if hasNUL(s) {
		return &fault{reason: uncoded("holds a NUL character")}
	}
	if r.choices != nil && !slices.Contains(r.choices, s) {
		return &fault{
			reason:  errChoice.With(printable(s), strings.Join(r.choices, ", ")),
			nearest: nearest(s, r.choices),
		}
	}
	if r.check == nil || r.kind == textMap {
		return nil
	}
	reason := r.check(s)
	if reason == nil {
		return nil
	}
	f := &fault{reason: reason}
	if r.section() == ruleSection {
		f.nearest = nearest(s, pathWords)
	}
	return f
}

// format writes a value as a TOML literal on one line.
func format(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return quote(v)
	case time.Duration:
		return quote(shortDuration(v))
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]string:
		if len(v) == 0 {
			return "{}"
		}
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quote(k)+" = "+quote(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quote(k)+" = "+format(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = format(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// shortDuration returns a duration without trailing zero units: 24h instead of 24h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quote returns a TOML basic string without control characters.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// The following functions check one value each. They return the mistake, or nil.

// checkEventType refuses a text that is not a type of events. A hook does not get hook.failed, because its own failure
// would then start it again.
func checkEventType(s string) *message.Text {
	switch {
	case event.Type(s) == event.HookFailed:
		return uncoded("a hook does not get events of this type")
	case !slices.Contains(event.Known().Types(), event.Type(s)):
		return uncoded("is not a type of events; docs/log-format.md has the types")
	}
	return nil
}

func checkNotEmpty(s string) *message.Text {
	if strings.TrimSpace(s) == "" {
		return errEmpty
	}
	return nil
}

// validID reports whether s is a valid id of a provider. An id must fit into a key, an environment variable and a
// command line.
func validID(s string) bool {
	for i, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || r != '-' && r != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func checkID(s string) *message.Text {
	if !validID(s) {
		return errProvider
	}
	return nil
}

func checkOptionalID(s string) *message.Text {
	if s == "" {
		return nil
	}
	return checkID(s)
}

// checkName refuses a text that cannot name a schedule or a flow, because the name becomes a part of input ids.
func checkName(s string) *message.Text {
	if !validID(s) {
		return errName
	}
	return nil
}

func checkTimezone(s string) *message.Text {
	if _, err := Timezone(s); err != nil || s == "" || s == "Local" {
		return errTimezone
	}
	return nil
}

// checkCron accepts five fields, or a word that package gronx expands to five fields, such as "@daily". Times have no
// seconds and no years.
func checkCron(s string) *message.Text {
	fields := len(strings.Fields(s))
	if word := fields == 1 && s[0] == '@' && s != "@everysecond"; fields != 5 && !word || !gronx.IsValid(s) {
		return errCron
	}
	return nil
}

// checkMoney accepts an amount and a currency code of ISO 4217, such as "20 EUR".
func checkMoney(s string) *message.Text {
	amount, currency, ok := strings.Cut(s, " ")
	n, err := strconv.ParseFloat(amount, 64)
	if !ok || err != nil || !(n >= 0 && n < 1e12) || len(currency) != 3 || strings.Trim(currency, upperCase) != "" {
		return uncoded(`must be an amount and a currency, such as "20 EUR"`)
	}
	return nil
}

const upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func checkEnvName(s string) *message.Text {
	if s == "" || strings.ContainsAny(s, "= \t\r\n") {
		return uncoded("the name of an environment variable is not empty and holds no = and no space")
	}
	return nil
}

// checkHost refuses a text that is not a valid host.
func checkHost(s string) *message.Text {
	if _, err := proxy.ParseHost(s); err != nil {
		return uncoded(err.Error())
	}
	return nil
}

// noTarget is the mistake of a text that is not a target of notifications. It does not repeat the text, because an
// address may contain a secret.
var noTarget = uncoded("is not a target: use desktop, push, contact:NAME, mailto:ADDRESS, https://HOST/PATH or " +
	"ntfy+https://HOST/TOPIC")

// checkTarget refuses a text that is not a target of notifications. It does not check whether a contact is paired,
// because a contact is paired after the bridge has read the configuration.
func checkTarget(s string) *message.Text {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "desktop", "push":
		if rest == "" && kind == s {
			return nil
		}
		return noTarget
	case "contact":
		if strings.TrimSpace(rest) == "" {
			return uncoded("names no contact: use contact:NAME; 'perlica service contacts' lists the names")
		}
		return nil
	case "mailto":
		if a, err := mail.ParseAddress(rest); err != nil || a.Address != rest || strings.Contains(rest, "?") {
			return uncoded("is not a mail address: use mailto:ADDRESS")
		}
		return nil
	}
	return checkTargetAddress(s)
}

// checkTargetAddress checks the address of a target that gets HTTP requests.
func checkTargetAddress(s string) *message.Text {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return noTarget
	}
	scheme, ntfy := strings.CutPrefix(u.Scheme, "ntfy+")
	port, perr := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	switch {
	case scheme != "https" && scheme != "http":
		return noTarget
	case u.Hostname() == "":
		return uncoded("names no host: use https://HOST/PATH or ntfy+https://HOST/TOPIC")
	case perr != nil || port == 0:
		return uncoded("has a port that does not exist")
	case u.User != nil:
		return uncoded("has a user or a password in its address: use secret_file or secret_env")
	case scheme == "http" && !IsLoopback(u.Hostname()):
		return uncoded("must begin with https, because http is only for this machine")
	case !ntfy && u.Hostname() != "ntfy.sh":
		return nil
	}
	topic := u.Path[strings.LastIndex(u.Path, "/")+1:]
	if topic == "" || len(topic) > 64 || strings.Trim(topic, topicCharacters) != "" || u.RawQuery != "" {
		return uncoded("must end with a topic of ntfy: at most 64 letters, digits, - and _")
	}
	return nil
}

const topicCharacters = upperCase + "abcdefghijklmnopqrstuvwxyz0123456789-_"

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// SplitServer returns the host and the port of a server's address. The port is 0 if the address has none.
func SplitServer(address string) (host string, port int, ok bool) {
	u, err := url.Parse("//" + address)
	if err != nil || u.Host != address || u.Hostname() == "" {
		return "", 0, false
	}
	if number := u.Port(); number != "" {
		port, err = strconv.Atoi(number)
		ok = err == nil && port >= 1 && port <= 65535
		return u.Hostname(), port, ok
	}
	return u.Hostname(), 0, !strings.HasSuffix(address, ":")
}

func checkMailServer(s string) *message.Text {
	if _, _, ok := SplitServer(s); !ok {
		return uncoded("must be the name of a server, with or without a port")
	}
	return nil
}

// checkSecretFile refuses relative paths, because their meaning depends on the working directory.
func checkSecretFile(s string) *message.Text {
	if !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return uncoded(`must be an absolute path, or begin with "~/"`)
	}
	return nil
}

func checkHeaderName(s string) *message.Text {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return uncoded("the name of a header is printable ASCII without space or colon")
	}
	return nil
}

func checkPattern(s string) *message.Text {
	if err := redact.CheckPattern(s); err != nil {
		return uncoded("is no pattern to mask: " + printable(err.Error()))
	}
	return nil
}

func checkURL(s string) *message.Text {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return uncoded("must be an http or https address")
	}
	return nil
}

// pathWords are the words that a rule's path accepts in addition to globs.
var pathWords = []string{"inside", "outside"}

// checkRulePath accepts "inside", "outside" and globs. It refuses a word that is nearly "inside" or "outside", because
// that is probably a typing mistake.
func checkRulePath(s string) *message.Text {
	switch {
	case s == "":
		return uncoded("is empty; leave it out to match everything")
	case slices.Contains(pathWords, s):
		return nil
	case !strings.ContainsAny(s, "*?[{./~\\") && nearest(s, pathWords) != "":
		return uncoded(`must be "inside", "outside" or a glob`)
	case !doublestar.ValidatePattern(s):
		return uncoded("is not a valid glob")
	}
	return nil
}

// toolKinds are the kinds of tool calls in ACP.
var toolKinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode",
	"other"}

// section returns the section that the row's key belongs to: "providers", or the name of a list of tables. It returns
// "" for a key outside of these sections.
func (r *row) section() string {
	if strings.HasPrefix(r.name, "providers."+anyID) {
		return providerSection
	}
	if list, _, ok := strings.Cut(r.name, "[]."); ok {
		return list
	}
	return ""
}
