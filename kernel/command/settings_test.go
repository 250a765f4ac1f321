package command

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/agents"
)

// offering is the scenario of an agent that offers models and options.
const offering = `[session/new]
@set configOptions [{"id":"model","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"S"},{"value":"large","name":"L"}]},{"id":"fast","name":"Fast mode","type":"boolean","currentValue":false}]`

// refuses carries out a line, checks that it fails, and returns the error.
func (h *Host) refuses(t *testing.T, line string) error {
	t.Helper()
	l, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Do(t.Context(), l)
	if err == nil || out.Effect != None {
		t.Errorf("%s: got %+v, %v; want err != nil && out.Effect == None", line, out, err)
		return errors.New("it was carried out")
	}
	return err
}

// TestSettings checks that only the agent's offers can be chosen, and that the host then marks the choice.
func TestSettings(t *testing.T) {
	h := newHost(t, offering)
	h.says(t, map[string]string{"/model": "- `small` (now)\n- `large`\n",
		"/config": "- `fast` — Fast mode: on, off (now)\n"})
	for _, step := range [][3]string{
		{"/model large", "/model", "- `small`\n- `large` (now)\n"},
		{"/config fast on", "/config", "- `fast` — Fast mode: on (now), off\n"},
		{"/config fast off", "/config", "- `fast` — Fast mode: on, off (now)\n"},
		{"/config model small", "/model", "- `small` (now)\n"},
	} {
		h.does(t, step[0])
		h.says(t, map[string]string{step[1]: step[2]})
	}
	for line, want := range map[string]string{
		"/model huge":       `no model "huge"; it has small, large`,
		"/config fast warm": `"fast" has no value "warm"; it has on, off`,
		"/config model 7":   `no value "7"; it has small, large`,
		"/config heat on":   `no option "heat"; it has model, fast`,
		"/mode nosuch":      `no mode "nosuch"`,
	} {
		var offer *agents.OfferError
		if err := h.refuses(t, line); !errors.As(err, &offer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want errors.As(err, &offer) && strings.Contains(err.Error(), %v)", line, err, want)
		}
	}
}

// TestModeNames checks that the host shows the agent's name for a mode. It shows the id only in the list from which the
// user types it.
func TestModeNames(t *testing.T) {
	h := newHost(t, `[session/new]
@set modes {"currentModeId":"https://a.example/modes#agent","availableModes":[{"id":"https://a.example/modes#agent","name":"Agent","description":"Acts"},{"id":"https://a.example/modes#plan","name":"Plan"},{"id":"acceptEdits","name":"Accept Edits","description":"Edits unasked"}]}`)
	h.says(t, map[string]string{"/mode": "- `https://a.example/modes#agent` (now) — Agent: Acts\n- `https://a.example/modes#plan` — Plan\n- `acceptEdits` " +
		"— Edits unasked\n"})
	h.says(t, map[string]string{"/mode https://a.example/modes#plan": "The agent is in the mode `Plan`."})
	l, err := Parse("/status")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.Do(t.Context(), l); err != nil || !strings.Contains(out.Text, "- `Plan` — its mode\n") {
		t.Errorf("%+v, %v", out, err)
	}
	h.says(t, map[string]string{"/mode acceptEdits": "The agent is in the mode `acceptEdits`."})
}

// TestModelAmongOthers checks that the option with the id "model" chooses the model, although another option has the
// same category.
func TestModelAmongOthers(t *testing.T) {
	h := newHost(t, `[session/new]
@set configOptions [{"id":"provider","name":"Provider","category":"model","type":"select","currentValue":"p","options":[{"value":"p","name":"P"},{"value":"q","name":"Q"}]},{"id":"model","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"S"},{"value":"large","name":"L"}]}]`)
	h.says(t, map[string]string{"/model": "- `small` (now)\n- `large`\n"})
	h.does(t, "/model large")
	h.says(t, map[string]string{"/model": "- `small`\n- `large` (now)\n",
		"/config": "- `provider` — Provider: p (now), q\n- `model` — Model: small, large (now)\n"})
}

// TestComplete checks that the completions after a command are valid arguments of the command.
func TestComplete(t *testing.T) {
	h := newHost(t, offering, "@commands review help")
	h.says(t, map[string]string{"/model": "small"}) // after this the agent has opened its session
	h.does(t, "/session new a-name")
	for line, want := range map[string][]string{
		"/mo":                 {"/mode", "/model"},
		"/re":                 {"/resume", "/review"},
		"/help hel":           {"help"},
		"/model l":            {"large"},
		"/model large ":       nil,
		"/config ":            {"model", "fast"},
		"/config fast ":       {"on", "off"},
		"/config model s":     {"small"},
		"/config heat ":       nil,
		"/log v":              {"verify"},
		"/policy ":            {"revoke"},
		"/session re":         {"rename"},
		"/session use a-":     {"a-name"},
		"/resume a-":          {"a-name"},
		"/session rename a-":  nil,
		"/mode a":             {"ask", "auto"},
		"/provider predictab": {"predictable"},
		"/deny ":              nil,
		"//mo":                nil,
		"mo":                  nil,
	} {
		if got := h.Complete(t.Context(), line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestHelp checks that the help text lists every command. It must also list the agent's own commands with the right
// number of slashes.
func TestHelp(t *testing.T) {
	h := newHost(t, "[session/new]\n@commands review help compact")
	h.says(t, map[string]string{"/mode": "ask"})
	text := h.does(t, "/help").Text
	for _, c := range Commands() {
		if !strings.Contains(text, "- `"+strings.TrimSpace("/"+c.Name+" "+c.Args)+"` — "+c.Help+"\n") {
			t.Errorf("no /%s in\n%s", c.Name, text)
		}
	}
	for _, own := range []string{"- `/review`", "- `//help`", "- `/compact`"} {
		if !strings.Contains(text, own) {
			t.Errorf("no %s in\n%s", own, text)
		}
	}
	if one := h.does(t, "/help /allow").Text; !strings.HasPrefix(one, "- `/allow") || strings.Count(one, "\n") != 1 {
		t.Errorf("%q", one)
	}
	if err := h.refuses(t, "/help alow"); !strings.Contains(err.Error(), "did you mean /allow?") {
		t.Errorf(`got %v; want strings.Contains(err.Error(), "did you mean /allow?")`, err)
	}
	if got := brief(strings.Repeat("x", 80) + "\nmore"); got != strings.Repeat("x", 71)+"…" {
		t.Errorf(`got %q; want got == strings.Repeat("x", 71) + "…"`, got)
	}
}
