package command

import (
	"context"
	"strings"
)

// schedules lists the schedules, or pauses or resumes one of them.
func (h *Host) schedules(ctx context.Context, args []string) (Output, error) {
	if h.Schedules == nil {
		return Output{Text: h.say().Say(noSchedules)}, nil
	}
	verb, id := "", ""
	if len(args) > 0 {
		if len(args) != 2 || args[0] != "pause" && args[0] != "resume" {
			return Output{}, errUsage
		}
		verb, id = args[0], args[1]
	}
	lines, err := h.Schedules(ctx, verb, id, h.By)
	if err != nil {
		return Output{}, err
	}
	if len(lines) == 0 {
		return Output{Text: h.say().Say(noSchedules)}, nil
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("- " + h.say().Say(line) + "\n")
	}
	return Output{Text: b.String()}, nil
}
