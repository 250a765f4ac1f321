package form

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// corpus returns a form with one field for each line of a file.
func corpus(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "{"):
			forms[line] = `{"type":"object","properties":{"v":` + line + `}}`
		default:
			p := map[string]string{"type": "string", "title": line}
			if kind, rest, ok := strings.Cut(line, "|"); ok {
				p["type"] = kind
				p["title"], p["description"], _ = strings.Cut(rest, "|")
			}
			field, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			forms[line] = `{"type":"object","properties":{"v":` + string(field) + `}}`
		}
	}
	return forms
}

// TestSecrets checks that Read refuses every form that asks for a secret. The form may use any language, spelling or
// mark, and any of its texts may name the secret.
func TestSecrets(t *testing.T) {
	forms := corpus(t, "secret.txt")
	if len(forms) < 200 {
		t.Errorf("only %d forms", len(forms))
	}
	for line, schema := range forms {
		if _, err := Read("Deploy settings", []byte(schema)); !errors.Is(err, ErrSecret) {
			t.Errorf("%s: %v", line, err)
		}
		if strings.HasPrefix(line, "{") {
			continue
		}
		quoted, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, schema := range []string{
			`{"properties":{` + string(quoted) +
				`:{"type":"string"}}}`, `{"properties":{"v":{"type":"string","description":` + string(quoted) + `}}}`,
			`{"title":` + string(quoted) + `,"properties":{"v":{"type":"string"}}}`,
		} {
			if _, err := Read("Deploy settings", []byte(schema)); !errors.Is(err, ErrSecret) {
				t.Errorf("%s: %v", schema, err)
			}
		}
		if _, err := Read(line, []byte(`{"properties":{"v":{"type":"string"}}}`)); !errors.Is(err, ErrSecret) {
			t.Errorf("the message %s: %v", line, err)
		}
	}
}

// TestOrdinary checks that Read refuses at most 2 % of the harmless forms.
func TestOrdinary(t *testing.T) {
	forms := corpus(t, "ordinary.txt")
	if len(forms) < 120 {
		t.Errorf("only %d forms", len(forms))
	}
	var declined []string
	for line, schema := range forms {
		if _, err := Read("Settings of the project", []byte(schema)); errors.Is(err, ErrSecret) {
			declined = append(declined, line)
		}
	}
	t.Logf("declined: %d of %d: %q", len(declined), len(forms), declined)
	if len(declined)*100 > 2*len(forms) {
		t.Errorf("%d of %d are declined: %q", len(declined), len(forms), declined)
	}
}
