package provider_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/perlica/perlica/provider"
)

const (
	goodMode   = `{"id":"ask","name":"Ask"}`
	goodOption = `{"id":"model","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}`
	goodLogin  = `{"id":"key","name":"Key"}`
)

// TestLenient checks that a part of the wrong form in an answer before a prompt is left out, with one warning for each
// answer. The other parts are used.
func TestLenient(t *testing.T) {
	for name, tt := range map[string]struct {
		initialize, session string // additional members of the two answers
		modes, options      int    // the numbers of modes and options that remain
		logins              int
		warnings            int
	}{
		"all well": {`,"authMethods":[` + goodLogin + `]`,
			`,"modes":{"currentModeId":"ask","availableModes":[` + goodMode + `]},"configOptions":[` + goodOption + `]`, 1, 1, 1,
			0},
		"unknown option type": {"", `,"configOptions":[{"id":"x","name":"X","type":"slider","currentValue":5},` + goodOption +
			`]`, 0, 1, 0, 1},
		"null in lists": {`,"authMethods":[null,` + goodLogin + `]`,
			`,"modes":{"currentModeId":"ask","availableModes":[null,` + goodMode + `]},"configOptions":[null,` + goodOption +
				`]`, 1, 1, 1, 2},
		"one bad mode": {"", `,"modes":{"currentModeId":"ask","availableModes":[{"id":5},` + goodMode +
			`,"ask"]},"configOptions":[` + goodOption + `]`, 1, 1, 0, 1},
		"mode without an id": {"", `,"modes":{"currentModeId":"ask","availableModes":[{"name":"x"},` + goodMode + `]}`, 1, 0,
			0, 1},
		"modes are a list": {"", `,"modes":[` + goodMode + `],"configOptions":[` + goodOption + `]`, 0, 1, 0, 1},
		"one bad login":    {`,"authMethods":[7,` + goodLogin + `,{"id":[]}]`, "", 0, 0, 1, 1},
		"wrong agentInfo":  {`,"agentInfo":"me 1.0","authMethods":[` + goodLogin + `]`, "", 0, 0, 1, 1},
		"wrong loadSession": {`,"agentCapabilities":{"loadSession":"yes","promptCapabilities":{"image":1}},"authMethods":[` +
			goodLogin + `]`, "",
			0, 0, 1, 1},
		"wrong version": {`,"agentInfo":{"name":"a","version":1}`, "", 0, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1`+tt.initialize+`}}`,
				"<", `>{"id":1,"result":{"sessionId":"s"`+tt.session+`}}`), w)
			info, err := c.Initialize(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.NewSession(t.Context(), t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			modes := 0
			if s.Modes != nil {
				modes = len(s.Modes.AvailableModes)
			}
			if modes != tt.modes || len(s.Options) != tt.options || len(info.AuthMethods) != tt.logins {
				t.Errorf("modes %+v, options %+v, logins %+v", s.Modes, s.Options, info.AuthMethods)
			}
			if got := w.warned(); len(got) != tt.warnings || len(slices.Compact(got)) > 1 {
				t.Errorf("warnings %v", got)
			}
		})
	}
}

// TestNoVersion checks that an agent that states no version of the protocol counts as speaking Perlica's version, with
// a warning.
func TestNoVersion(t *testing.T) {
	for answer, warnings := range map[string]int{`{}`: 1, `null`: 1,
		`{"protocolVersion":[],"agentInfo":{"name":"a","version":"1"}}`: 2, `{"protocolVersion":null}`: 1, `"hello"`: 2} {
		t.Run(answer, func(t *testing.T) {
			w := &watcher{}
			c := start(t, child("liar", "<", `>{"id":0,"result":`+answer+`}`, "<", `>{"id":1,"result":{"sessionId":"s"}}`), w)
			info, err := c.Initialize(t.Context(), "test")
			if err != nil || info.ProtocolVersion != 1 {
				t.Fatalf("got %+v, %v; want err == nil && info.ProtocolVersion == 1", info, err)
			}
			if _, err := c.NewSession(t.Context(), t.TempDir(), nil); err != nil {
				t.Error(err)
			}
			if got := w.warned(); len(got) != warnings || !slices.Contains(got, "protocol_version") {
				t.Errorf("warnings %v", got)
			}
		})
	}
}

// TestLenientLater checks that an answer without required members succeeds with any content.
func TestLenientLater(t *testing.T) {
	for _, result := range []string{`null`, `"ok"`, `[]`, `5`, `true`, `{"configOptions":7,"modes":[]}`} {
		t.Run(result, func(t *testing.T) {
			w := &watcher{}
			lie := func(id int) string { return fmt.Sprintf(`>{"id":%d,"result":%s}`, id, result) }
			c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<", lie(1), "<", lie(2), "<", lie(3),
				"<", lie(4), "<", lie(5)), w)
			if _, err := c.Initialize(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			s, err := c.LoadSession(t.Context(), "s", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.ResumeSession(t.Context(), "s", t.TempDir(), nil)
			for _, err := range []error{err, s.SetMode(t.Context(), "x"), s.SetOption(t.Context(), "o", "v"),
				s.Close(t.Context())} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLenientUpdates checks that a list in an update loses only its items of the wrong form.
func TestLenientUpdates(t *testing.T) {
	u, ok := provider.ParseUpdate(updateLine(
		`{"sessionUpdate":"config_option_update","configOptions":[{"type":"slider"},`+goodOption+`]}`), "")
	if !ok || len(u.Options) != 1 {
		t.Errorf("options %+v, %v", u.Options, ok)
	}
	u, ok = provider.ParseUpdate(updateLine(
		`{"sessionUpdate":"available_commands_update","availableCommands":[5,{"name":"x","description":"y"}]}`), "")
	if !ok || len(u.Commands) != 1 {
		t.Errorf("commands %+v, %v", u.Commands, ok)
	}
	u, ok = provider.ParseUpdate(updateLine(
		`{"sessionUpdate":"plan","entries":[5,{"content":"x","priority":"high","status":"pending"}]}`), "")
	if !ok || len(u.Plan) != 1 {
		t.Errorf("plan %+v, %v", u.Plan, ok)
	}
}

// TestModeFollows checks that if an agent repeats its modes as an option, SetMode changes that option, too.
func TestModeFollows(t *testing.T) {
	c := start(t, child("liar", "<",
		`>{"id":0,"result":{"sessionId":"s","modes":{"currentModeId":"auto","availableModes":[`+goodMode+
			`]},"configOptions":[`+
			goodOption+
			`,{"id":"mode","name":"M","category":"mode","type":"select","currentValue":"auto","options":[{"value":"ask","name":"A"},{"value":"auto","name":"B"}]}]}}`,
		"<", `>{"id":1,"result":{}}`), &watcher{})
	s, err := c.NewSession(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetMode(t.Context(), "ask"); err != nil {
		t.Fatal(err)
	}
	if a, b := s.Options[0].Select.CurrentValue, s.Options[1].Select.CurrentValue; a != "a" || b != "ask" {
		t.Errorf("model %q, mode %q", a, b)
	}
}

// TestLenientChoices checks that an option's value of the wrong form is left out, and the other values can be chosen.
func TestLenientChoices(t *testing.T) {
	for options, want := range map[string]string{
		`{"value":"a","name":"A"},{"value":"b","name":"B"}`:                                        "a=A b=B 0",
		`{"value":"a","name":"A"},{"value":1},{"value":"b","name":"B"}`:                            "a=A b=B 1",
		`{"value":"a","name":"A"},{"value":"b","name":"B"},null,7,[],{"value":"","name":"none"}`:   "a=A b=B 1",
		`{"value":"a"},{"value":"b","name":5,"description":[]}`:                                    "a=a b=b 1",
		`{"value":"a","name":"A","_meta":5},{"value":"b","name":"B","_meta":{"x":1}}`:              "a=A b=B 1",
		`{"group":"g","name":"G","_meta":[],"options":[{"value":"a","name":"A"}]}`:                 "a=A 1",
		`{"group":"g","name":"G","options":[{"value":"a","name":"A"},{"value":[]}]}`:               "a=A 1",
		`{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}`:                            "a=A 0",
		`{"group":"g","name":"G","options":[{"value":"a","name":"A"}]},{"value":"b","name":"B"}`:   "a=A b=B 1",
		`{"group":1,"options":[{"value":"a","name":"A"}]},{"group":"h","name":"H","options":null}`: "a=A 1",
	} {
		t.Run(options, func(t *testing.T) {
			w := &watcher{}
			c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`,
				"<", `>{"id":1,"result":{"sessionId":"s","configOptions":[{"id":"m","name":"M","category":"mode","type":"select","currentValue":"z","options":[`+options+`]}]}}`), w)
			if _, err := c.Initialize(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			s, err := c.NewSession(t.Context(), t.TempDir(), nil)
			if err != nil || len(s.Options) != 1 {
				t.Fatalf("%s: got %+v, %v; want err == nil && len(s.Options) == 1", options, s, err)
			}
			got := ""
			for _, v := range provider.OptionValues(s.Options[0].Select.Options) {
				got += string(v.Value) + "=" + v.Name + " "
			}
			if got += fmt.Sprint(len(w.warned())); got != want {
				t.Errorf("%s: %q, want %q", options, got, want)
			}
			if s.Modes == nil || len(s.Modes.AvailableModes) != len(provider.OptionValues(s.Options[0].Select.Options)) {
				t.Errorf("%s: modes %+v", options, s.Modes)
			}
		})
	}
}
