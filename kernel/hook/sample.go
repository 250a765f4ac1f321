package hook

import (
	"context"
	"encoding/json"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/policy"
)

// Test starts the hook's program for one event and records nothing.
func (h Hook) Test(ctx context.Context, store *program.Store, e event.Event) (program.Result, error) {
	input, err := json.Marshal(e)
	if err != nil {
		return program.Result{}, err
	}
	return store.Run(ctx, program.Start{Command: h.Command, Kind: KindHook, Input: append(input, '\n'),
		Timeout: h.Timeout, Limit: "deny"})
}

// Test asks the policy program about the command make in dir, and returns its decision.
func (j Judge) Test(ctx context.Context, store *program.Store, dir string) (res program.Result, decision string,
	err error) {
	const command = "make"
	input, err := json.Marshal(Question{Version: 1, Type: "permission", Project: store.Project, Dir: dir,
		Provider: "example", Mode: policy.ModeAsk, Tier: "ordinary", MayAllow: true, Title: command,
		Subject: interaction.Subject{Provider: "example", Kind: "execute", Commands: []string{command}, Dir: dir,
			Tier: "ordinary"},
		Options: []interaction.Option{{ID: "allow_once", Label: "Allow", Kind: "allow_once"},
			{ID: "reject_once", Label: "Reject", Kind: "reject_once"}}})
	if err != nil {
		return res, "", err
	}
	res, err = store.Run(ctx, program.Start{Command: j.Command, Kind: KindPolicy, Input: append(input, '\n'),
		Timeout: j.Timeout, Limit: "deny"})
	if err != nil {
		return res, string(policy.Ask), err
	}
	said, err := readAnswer(res.Stdout)
	if err != nil {
		return res, string(policy.Ask), err
	}
	return res, string(said.Effect), nil
}
