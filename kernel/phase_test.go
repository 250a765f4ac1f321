package kernel

import (
	"maps"
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// alphabet has every event type that can change or need a run's phase.
var alphabet = []event.Type{
	event.Requested, event.RequestSent, event.InteractionRequested, event.InteractionAnswered,
	event.CancelRequested, event.Responded, event.ProviderError, event.OutcomeUnknown,
}

func TestEveryPairOfPhaseAndEvent(t *testing.T) {
	want := map[phase]string{
		phaseAccepted: "llm.provider_error llm.requested run.cancel_requested",
		phaseIntended: "acp.request.sent llm.outcome_unknown llm.provider_error run.cancel_requested",
		phasePrompted: "interaction.answered interaction.requested llm.outcome_unknown llm.provider_error llm.responded " +
			"run.cancel_requested",
		phaseEnded: "",
	}
	for phase, allowed := range want {
		var got []string
		for _, ty := range alphabet {
			s := state{phase: phase}
			if err := s.advance(ty); err == nil {
				got = append(got, string(ty))
			} else if !s.is(phase) {
				t.Errorf("%s: %s was refused and moved the state to %s", phase, ty, s.phase)
			}
		}
		slices.Sort(got)
		if joined := join(got); joined != allowed {
			t.Errorf("%s allows %s, want %s", phase, joined, allowed)
		}
	}
	for phase := range maps.Keys(next) {
		if _, ok := want[phase]; !ok {
			t.Errorf("phase %s is in the table and not in this test", phase)
		}
	}
}

func join(s []string) string {
	out := ""
	for i, x := range s {
		if i > 0 {
			out += " "
		}
		out += x
	}
	return out
}

// TestEverySequence tries every sequence of six events. It checks Perlica's promises for the sequences that the phases
// admit.
func TestEverySequence(t *testing.T) {
	admitted := 0
	var walk func(s phase, trace []event.Type)
	walk = func(phase phase, trace []event.Type) {
		admitted++
		count := map[event.Type]int{}
		outcomes := 0
		for i, ty := range trace {
			count[ty]++
			if ty.Outcome() {
				outcomes++
				if i != len(trace)-1 {
					t.Fatalf("something follows the outcome: %v", trace)
				}
			}
			if ty == event.RequestSent && count[event.Requested] == 0 {
				t.Fatalf("a prompt without its intent: %v", trace)
			}
		}
		if count[event.Requested] > 1 || count[event.RequestSent] > 1 || outcomes > 1 {
			t.Fatalf("twice what may be once: %v", trace)
		}
		if (count[event.Responded] > 0 || count[event.InteractionRequested] > 0) && count[event.RequestSent] == 0 {
			t.Fatalf("an answer or a question without a prompt: %v", trace)
		}
		if len(trace) == 6 {
			return
		}
		for _, ty := range alphabet {
			s := state{phase: phase}
			if s.advance(ty) == nil {
				walk(s.phase, append(slices.Clone(trace), ty))
			}
		}
	}
	walk(phaseAccepted, nil)
	if admitted < 100 {
		t.Errorf("only %d sequences were looked at", admitted)
	}
}
