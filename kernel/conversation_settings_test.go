package kernel

import (
	"errors"
	"strings"
	"testing"
)

// TestSettings checks that a conversation accepts only modes, models and options that the agent offers.
func TestSettings(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	if err := c.SetMode(t.Context(), "auto"); err != nil {
		t.Fatal(err)
	}
	if o, _, ok := c.Offers(); !ok || o.Mode != "auto" || len(o.Modes) != 2 {
		t.Errorf("%+v, %t", o, ok)
	}
	var input *InputError
	if err := c.SetMode(t.Context(), "yolo"); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has ask, auto") {
		t.Errorf("%v", err)
	}
	if err := c.SetModel(t.Context(), "x"); !errors.As(err, &input) {
		t.Errorf("%v", err)
	}
	if err := c.SetOption(t.Context(), "x", "y"); !errors.As(err, &input) {
		t.Errorf("%v", err)
	}
	say(t, c, "@commands review test")
	if o, _, _ := c.Offers(); len(o.Commands) != 2 || o.Commands[0].Name != "review" {
		t.Errorf("%+v", o)
	}
	closeConversation(t, c)
}

// TestModesAsAnOption checks an agent that offers its modes only as a config option. A choice must survive the end of
// the agent's process.
func TestModesAsAnOption(t *testing.T) {
	r := openRunner(t)
	const offers = `@unset modes
@set configOptions [{"id":"m","name":"Mode","category":"mode","type":"select","currentValue":"build","options":[{"value":"build","name":"Build"},{"value":"plan","name":"Plan"}]},{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]
`
	c := converse(t, r, "", t.TempDir(), "[session/new]\n"+offers+"[session/resume]\n"+offers)
	present := func() (mode, effort string) {
		o, _, _ := c.Offers()
		for _, opt := range o.Options {
			if opt.Select.Id == "effort" {
				effort = string(opt.Select.CurrentValue)
			}
		}
		return o.Mode, effort
	}
	say(t, c, "the first")
	if o, _, _ := c.Offers(); o.Mode != "build" || len(o.Modes) != 2 || o.Modes[1].Name != "Plan" {
		t.Errorf("%+v", o)
	}
	var input *InputError
	if err := c.SetMode(t.Context(), "yolo"); !errors.As(err, &input) ||
		!strings.Contains(err.Error(), "it has build, plan") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(c.SetOption(t.Context(), "m", "build"), c.SetMode(t.Context(), "plan"),
		c.SetOption(t.Context(), "effort", "high")); err != nil {
		t.Fatal(err)
	}
	if mode, effort := present(); mode != "plan" || effort != "high" {
		t.Errorf("%s, %s", mode, effort)
	}
	if !c.Rest() {
		t.Fatal("it does not rest")
	}
	say(t, c, "the second")
	if mode, effort := present(); mode != "plan" || effort != "high" {
		t.Errorf("after a rest: %s, %s", mode, effort)
	}
	if err := c.SetOption(t.Context(), "m", "build"); err != nil {
		t.Fatal(err)
	}
	c.Rest()
	say(t, c, "the third")
	if mode, effort := present(); mode != "build" || effort != "high" {
		t.Errorf("after another: %s, %s", mode, effort)
	}
	closeConversation(t, c)
}

// TestTheAgentsOwnMode checks that setting an option does not change the mode.
func TestTheAgentsOwnMode(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", `[session/new]
@set configOptions [{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]
`)
	say(t, c, `@update {"sessionUpdate":"current_mode_update","currentModeId":"auto"}`)
	if err := c.SetOption(t.Context(), "effort", "high"); err != nil {
		t.Fatal(err)
	}
	if o, _, _ := c.Offers(); o.Mode != "auto" {
		t.Errorf("%+v", o)
	}
	closeConversation(t, c)
}
