package form

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/interaction"
)

// one returns the field of a form with one property.
func one(t *testing.T, property string) Field {
	t.Helper()
	fields, err := Read("Fill it in", []byte(`{"type":"object","properties":{"f":`+property+`},"required":["f"]}`))
	if err != nil || len(fields) != 1 {
		t.Fatalf("%s: %v, %d fields", property, err, len(fields))
	}
	return fields[0]
}

// TestValues checks that choices and typed texts become values that fit the schema, or are refused with a reason.
func TestValues(t *testing.T) {
	for _, c := range []struct{ property, option, text, want string }{
		{`{"type":"string"}`, textID, "a \"b\"", `"a \"b\""`},
		{`{"type":"string"}`, textID, "", `""`},
		{`{"type":"string","minLength":3}`, textID, "中文", "at least 3 characters"},
		{`{"type":"string","maxLength":2}`, textID, "中文", `"中文"`},
		{`{"type":"string","maxLength":2}`, textID, "abc", "at most 2 characters"},
		{`{"type":"string","pattern":"^a+$"}`, textID, "aab", "match the pattern ^a+$"},
		{`{"type":"string","pattern":"(?=x)"}`, textID, "y", `"y"`}, // Go does not support such patterns
		{`{"type":"string","format":"email"}`, textID, "a@b.example", `"a@b.example"`},
		{`{"type":"string","format":"email"}`, textID, "A <a@b.example>", "format email"},
		{`{"type":"string","format":"uri"}`, textID, "no", "format uri"},
		{`{"type":"string","format":"date"}`, textID, "2026-02-30", "format date"},
		{`{"type":"string","format":"date-time"}`, textID, "2026-02-28T10:00:00Z", `"2026-02-28T10:00:00Z"`},
		{`{"type":"string","format":"hostname"}`, textID, "any", `"any"`},
		{`{"type":"string","default":"main"}`, valueID + "1", "", `"main"`},
		{`{"type":"string","default":"main","maxLength":2}`, valueID + "1", "", "not one of the options"},
		{`{"type":"integer"}`, textID, " 12 ", `12`},
		{`{"type":"integer"}`, textID, "1.5", "a whole number"},
		{`{"type":"integer"}`, textID, `"1"`, "a number"},
		{`{"type":"number"}`, textID, "1e400", "a smaller number"},
		{`{"type":"number","minimum":2.5}`, textID, "2", "at least 2.5"},
		{`{"type":"number","maximum":2.5}`, textID, "2.5", `2.5`},
		{`{"type":"number"}`, textID, "NaN", "a number"},
		{`{"type":"boolean"}`, valueID + "2", "", `false`},
		{`{"type":"boolean","default":false}`, valueID + "1", "", `false`},
		{`{"type":"string","enum":["a","b"]}`, valueID + "2", "", `"b"`},
		{`{"type":"string","enum":["a","b"],"default":"b"}`, valueID + "1", "", `"b"`},
		{`{"type":"string","oneOf":[{"const":"x","title":"The X"}]}`, valueID + "1", "", `"x"`},
		{`{"type":"string","enum":["a"]}`, valueID + "2", "", "not one of the options"},
		{`{"type":"string","enum":["a"]}`, textID, "a", "kind that Perlica knows"},
		{`{"type":"string"}`, leaveID, "", "not one of the options"}, // the field is required
		{`{"type":"array","items":{"type":"string","enum":["a","b","c"]}}`, textID, "c, 1, a", `["c","a"]`},
		{`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, textID, "", `[]`},
		{`{"type":"array","items":{"type":"string","enum":["a"]}}`, textID, "d", "one or more of these"},
		{`{"type":"array","minItems":1,"items":{"type":"string","enum":["a"]}}`, textID, "", "at least 1 of these: a"},
		{`{"type":"array","maxItems":1,"items":{"type":"string","enum":["a","b"]}}`, textID, "a,b",
			"at most 1 of these: a, b"},
		{`{"type":"array","default":["b"],"items":{"type":"string","enum":["a","b"]}}`, valueID + "1", "", `["b"]`},
	} {
		f := one(t, c.property)
		v, _, err := f.Value(interaction.Answer{Option: c.option, Text: c.text})
		got := string(v)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, interaction.ErrNotAnOption) {
				t.Errorf("%s: %q: the error is no ErrNotAnOption: %v", c.property, c.text, err)
			}
			if !strings.Contains(got, c.want) || strings.HasPrefix(c.want, `"`) {
				t.Errorf("%s: %q gives %q, want %q", c.property, c.text, got, c.want)
			}
		} else if got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.property, c.text, got, c.want)
		}
		// The coordinator must accept and refuse the same texts.
		if c.option == textID {
			q := interaction.Question{}
			f.Ask(&q)
			cerr := q.Check(interaction.Answer{Option: c.option, Text: c.text, By: "somebody"})
			if (cerr == nil) != (err == nil) {
				t.Errorf("%s: %q: the coordinator says %v, the form %v", c.property, c.text, cerr, err)
			}
		}
	}
}

// TestFields checks that the fields have the order of the schema, that optional fields can be left out, and that
// every field can be declined.
func TestFields(t *testing.T) {
	fields, err := Read("Fill it in",
		[]byte(`{"properties":{"z":{"type":"string","title":"Zed","description":"d"},"a":{"type":"array","items":{"enum":["x"]}}},"required":["a"]}`))
	if err != nil || len(fields) != 2 || fields[0].Title != "Zed" || fields[1].Title != "a" || fields[0].Required ||
		!fields[1].Required {
		t.Fatalf("%+v, %v", fields, err)
	}
	if _, ok, err := fields[0].Value(interaction.Answer{Option: leaveID}); ok || err != nil {
		t.Errorf("it is not left out: %v", err)
	}
	if got := fields[1].Says(); !slices.Equal(got, []string{"1. x"}) {
		t.Errorf("it says %q", got)
	}
	for _, f := range fields {
		q := interaction.Question{}
		f.Ask(&q)
		if o, ok := q.Refusal(); !ok || o.ID != DeclineID {
			t.Errorf("%s cannot be refused", f.Name)
		}
		for _, o := range q.Options {
			if o.Always() || o.Offer && strings.Contains(o.Label, "Zed") {
				t.Errorf("the option %+v", o)
			}
		}
	}
	if fields, err := Read("Fill it in", []byte(`{}`)); err != nil || len(fields) != 0 {
		t.Errorf("a form without fields: %v, %v", fields, err)
	}
}

// TestNoForm checks that Read refuses an invalid form, and a form that asks for a secret.
func TestNoForm(t *testing.T) {
	for _, schema := range []string{
		`[]`, `{"properties":[]}`, `{"properties":{"a":3}}`, `{"properties":{"a":{"type":"object"}}}`,
		`{"properties":{"a":{}}}`,
		`{"properties":{"a":{"type":"string","enum":[1]}}}`, `{"properties":{` +
			strings.TrimSuffix(strings.Repeat(`"a":{"type":"string"},`, 51), ",") + `}}`,
	} {
		if fields, err := Read("Fill it in", []byte(schema)); !errors.Is(err, errForm) {
			t.Errorf("%s: %v, %v", schema, fields, err)
		}
	}
	for _, name := range []string{"password", "dbPassword", "api_key", "apiKey", "API key", "github-token", "Secret",
		"PIN", "pw", "密码", "Passwort", "access key"} {
		for _, property := range []string{`"` + name + `":{"type":"string"}`, `"a":{"type":"string","title":"` + name +
			`"}`, `"a":{"type":"string","description":"Your ` + name + `"}`} {
			if _, err := Read("Fill it in", []byte(`{"properties":{`+property+`}}`)); !errors.Is(err, ErrSecret) {
				t.Errorf("%s: %v", property, err)
			}
		}
	}
	for _, form := range []string{
		`{"properties":{"odd":7,"in":{"type":"object","properties":{"password":{"type":"string"}}}}}`,
		`{"title":"Your PIN","properties":{"v":{"type":"integer"}}}`,
		`{"description":"The password","properties":{"v":{"type":["string","null"]}}}`,
		`{"properties":{"v":{"type":"boolean"},"w":{"type":"array","items":7},"secret":3}}`,
		strings.Repeat(`{"type":"object","properties":{"v":`, 5000) + `7` + strings.Repeat(`}}`, 5000),
	} {
		if _, err := Read("Fill it in", []byte(form)); !errors.Is(err, ErrSecret) {
			t.Errorf("%s: %v", form, err)
		}
	}
	for form, secret := range map[string]bool{
		`{"properties":{"v":{"type":"string"}}}`: true, `{"properties":{"v":{"type":"boolean"}}}`: false,
		`{"properties":{"v":{"type":"string","enum":["yes"]}}}`: false, `{}`: false,
	} {
		if _, err := Read("Your password?", []byte(form)); errors.Is(err, ErrSecret) != secret {
			t.Errorf("%s: %v", form, err)
		}
	}
	for _, name := range []string{"max_tokens", "spinner", "branch", "compass",
		"secrets of the trade" /* is taken for one */, "secretary of state"} {
		_, err := Read("Fill it in", []byte(`{"properties":{"`+name+`":{"type":"integer"}}}`))
		if harmless := !strings.Contains(name, "trade"); (err == nil) != harmless {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzForm checks that every schema and every answer gives valid JSON or an error.
func FuzzForm(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"integer","minimum":1}},"required":["b"]}`,
		"2")
	f.Fuzz(func(t *testing.T, schema, text string) {
		fields, err := Read("Fill it in", []byte(schema))
		if err != nil {
			return
		}
		for _, field := range fields {
			q := interaction.Question{}
			field.Ask(&q)
			for _, o := range q.Options {
				a := interaction.Answer{Option: o.ID, Text: text, By: "somebody"}
				if _, ok, err := field.Value(a); ok && err == nil && q.Check(a) != nil {
					t.Errorf("%s: the answer %+v counts here only", schema, a)
				}
			}
		}
	})
}
