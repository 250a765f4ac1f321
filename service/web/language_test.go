package web

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// differ collects the members, at any depth, in which two answers differ.
func differ(t *testing.T, member string, en, zh any, found map[string]bool) {
	switch en := en.(type) {
	case map[string]any:
		other, _ := zh.(map[string]any)
		if !slices.Equal(slices.Sorted(maps.Keys(en)), slices.Sorted(maps.Keys(other))) {
			t.Errorf("%s: %v and %v", member, en, zh)
		}
		for name := range en {
			differ(t, name, en[name], other[name], found)
		}
	case []any:
		other, _ := zh.([]any)
		if len(en) != len(other) {
			t.Errorf("%s: %v and %v", member, en, zh)
			return
		}
		for i := range en {
			differ(t, member, en[i], other[i], found)
		}
	default:
		if reflect.DeepEqual(en, zh) {
			return
		}
		found[member] = true
		if said, _ := zh.(string); !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s: %v and %v", member, en, zh)
		}
	}
}

// TestLanguage compares English and Chinese answers. Only the members that docs/http.md names are
// Chinese. A request without the Chinese language gets the English bytes unchanged.
func TestLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	died := w.ask(w.dirs[0], "@exit 3")["run_id"].(string)
	denied := w.do("POST", "/v1/inputs", object{"project": w.dirs[0],
		"text": "@ask execute Why command=\"sudo make\"\n@mode auto", "permissions": "deny", "wait": true}).want(200).
		object()["run_id"].(string)
	// the title is the agent's text in every language
	_, asking := w.send("@ask execute \"no log contains it\" command=\"sudo make\"", "")
	id := w.question()["id"].(string)
	_, hangs := w.send("@hang", "")
	w.do("POST", "/v1/runs/"+hangs+"/cancel", object{"why": "enough"}).want(202)
	// Wait until the log has a checkpoint and an anchor for each of the three turns. After that, the log no longer
	// changes.
	for end := time.Now().Add(time.Minute); ; {
		is := w.do("GET", "/v1/verify?project="+w.dirs[0], nil).want(200).object()
		if is["checkpoints"] == 3.0 && is["anchors"] == 3.0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the log does not come to rest: %v", is)
		}
	}
	check(t, os.WriteFile(filepath.Join(w.dirs[1], ".perlica_config", "contexts", "default", "eventlog.db"),
		[]byte(strings.Repeat("no database ", 1000)), 0o600))

	anchor, err := os.OpenFile(filepath.Join(w.dirs[0], ".perlica_config", "contexts", "default", "eventlog.anchor"),
		os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = anchor.WriteString("none\n")
	check(t, errors.Join(err, anchor.Close()))

	in := func(language string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Accept", "application/json")
			r.Header.Set("Accept-Language", language)
		}
	}
	all := []string{"detail", "title"}
	for path, want := range map[string][]string{
		"/v1/runs":                                {"error"}, // of the unreadable log
		"/v1/runs/" + died:                        {"error"},
		"/v1/runs/" + died + "/story":             {"error", "known", "text", "words"},
		"/v1/runs/" + denied + "/story":           {"text", "words"},
		"/v1/runs/" + hangs + "/story":            {"text", "words"},
		"/v1/questions":                           {"error", "label", "text", "why"},
		"/v1/questions/" + id:                     {"label", "text", "why"},
		"/v1/events?after=0&run=" + died:          {"error"},
		"/v1/events?after=0&run=" + denied:        {"error", "why"},
		"/v1/events?after=0&run=" + asking:        {"error", "label", "why"},
		"/v1/verify?project=" + w.dirs[1]:         all,
		"/v1/verify?project=" + w.dirs[0]:         {"damage", "what"},
		"/v1/sessions?limit=x":                    all,
		"/v1/runs/none?project=" + w.dirs[0]:      all,
		"/v1/questions/none?project=" + w.dirs[0]: all,
		"/v1/stats?project=" + w.dirs[0]:          nil,
		"/v1/search?q=exit&project=" + w.dirs[0]:  nil,
		"/v1/providers?project=" + w.dirs[0]:      {"why"},
		"/v1/sessions?project=" + w.dirs[0]:       nil,
		"/openapi.json":                           nil,
	} {
		was := w.do("GET", path, nil, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
		for _, other := range []string{"en", "fr, de;q=0.5", "en-GB, zh;q=0.9"} {
			if is := w.do("GET", path, nil, in(other)); string(is.body) != string(was.body) {
				t.Errorf("%s: in %s it is\n%s, without a language\n%s", path, other, is.body, was.body)
			}
		}
		found := map[string]bool{}
		differ(t, "", was.object(), w.do("GET", path, nil, in("zh-CN,zh;q=0.9,en;q=0.8")).object(), found)
		if is := slices.Sorted(maps.Keys(found)); !slices.Equal(is, want) {
			t.Errorf("%s: in Chinese are %q, want %q", path, is, want)
		}
	}
	if lines := w.do("GET", "/v1/questions/"+id, nil, in("zh")).object(); lines["title"] != "no log contains it" {
		t.Errorf("the agent's title is %q", lines["title"])
	}
}
