package acp

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// TestSplit checks that the agent's arguments begin with the first argument that is not for the command acp. The
// arguments of other commands are not divided.
func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		"acp":                                    "acp |",
		"acp --provider claude":                  "acp --provider claude |",
		"acp --provider claude --cli auth login": "acp --provider claude | --cli auth login",
		"acp --provider=claude --cli --provider x -- y": "acp --provider=claude | --cli --provider x -- y",
		"acp --provider claude login":                   "acp --provider claude | login",
		"acp --provider login --cli":                    "acp --provider login | --cli",
		// Here --cli is the value of --provider.
		"acp --provider --cli x":                         "acp --provider --cli | x",
		"acp --agent acp acp":                            "acp --agent acp | acp",
		"acp --context c --env A --mode m --setup-token": "acp --context c --env A --mode m | --setup-token",
		"--context acp acp --permissions ask -x":         "--context acp acp --permissions ask | -x",
		"acp -h --cli":                                   "acp -h | --cli",
		"acp --help":                                     "acp --help |",
		"acp --cli --help":                               "acp | --cli --help",
		"acp -- agent --cli":                             "acp -- agent --cli |",
		"acp --provider claude -- agent --cli":           "acp --provider claude -- agent --cli |",
		"acp - x":                                        "acp | - x",
		// The flag itself reports that its value is missing.
		"acp --provider":  "acp --provider |",
		"other --cli acp": "other --cli acp |",
		"other acp --cli": "other acp --cli |",
		"--cli acp":       "--cli acp |",
		"":                "|",
	} {
		a := frame.NewApp("test")
		root := &cobra.Command{Use: "perlica"}
		root.PersistentFlags().StringVar(&a.ContextFlag, "context", "", "")
		root.AddCommand(Command(a), &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}})
		own, agents := Split(root, strings.Fields(line))
		if got := strings.TrimSpace(strings.Join(slices.Concat(own, []string{"|"}, agents), " ")); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
