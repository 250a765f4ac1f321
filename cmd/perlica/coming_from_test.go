package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/run"
	"github.com/perlica/perlica/kernel/command"
)

// flagsOfOthers lists the flags in the help of other programs: claude 2.1.331, codex-cli 0.169.0 (also exec, resume
// and review) and acpx 0.19.1 (also prompt, exec, compare and sessions).
var flagsOfOthers = map[string]string{
	"claude": `add-dir agent agents allow-dangerously-skip-permissions allowedTools allowed-tools append-system-prompt autocompact
		ax-screen-reader bare betas bg background brief chrome cloud continue dangerously-skip-permissions debug debug-file desktop
		disable-slash-commands disallowedTools disallowed-tools effort environment exclude-dynamic-system-prompt-sections fallback-model file
		fork-session forward-subagent-text from-pr help ide include-hook-events include-partial-messages input-format json-schema
		max-budget-usd mcp-config model name no-chrome no-session-persistence output-format permission-mode
		permission-prompt-tool permission-prompts plugin-dir plugin-url print prompt-suggestions remote-control
		remote-control-session-name-prefix replay-user-messages restricted resume safe-mode session-id setting-sources settings
		strict-mcp-config system-prompt system-prompt-snapshot teleport tmux tools verbose version worktree`,
	"codex": `add-dir all base commit title uncommitted approve-for-me ask-for-approval cd color config cyber-access-program
		dangerously-bypass-approvals-and-sandbox dangerously-bypass-hook-trust disable enable ephemeral help ignore-rules
		ignore-user-config image include-non-interactive json last local-provider model no-alt-screen no-daemon oss
		output-last-message output-schema profile remote remote-auth-token-env sandbox search skip-git-repo-check strict-config
		thread-source trust version worktree`,
	"acpx": `agent allowed-tools append-system-prompt approve-all approve-reads auth-policy config-option cursor cwd deny-all file
		filter-cwd format help json json-strict local max-turns mcp-config model name no-fs no-terminal no-wait
		non-interactive-permissions permission-policy policy prompt-file prompt-retries resume-session session suppress-reads system-prompt
		timeout ttl verbose version`,
}

// commandsOfOthers lists the commands in the help of the same programs. acpx also has one command for each agent.
var commandsOfOthers = map[string]string{
	"claude": `agents attach auth auto-mode doctor gateway import install kill logs mcp plugin purge respawn rm setup-token stop ultrareview
		update upgrade`,
	"codex": `agents app-server apply archive cloud completion debug delete doctor exec exec-server features fork help login logout mcp
		migrate-nfs-db migrate-rollouts plugin queue remote-control resume review sandbox unarchive update`,
	"acpx": `cancel compare config exec flow prompt sessions set set-mode status`,
}

// slashCommandsOfOthers lists the slash commands that codex lists, and those in the table of claude's documentation.
const slashCommandsOfOthers = `access add-dir advisor agents allowed-tools android app approve archive artifacts auto-mode-setup autocompact
	autofix-pr background bashes bg branch break-reminder breaks brief btw bug cd checkpoint chrome clear cloud-plugins color compact
	config context copy cost daemon delete design-consent design-login design-revoke desktop diff downtime effort exit experimental
	export extra-usage fast feedback focus fork goal heapdump help hooks ide import init insights install install-github-app
	install-slack-app ios keybindings keymap list-agents login logout marketplace mcp memories memory memory-pause mention mobile
	model name new output-style passes pause-memory peers permissions pets plan plugin plugins powerup presets privacy-settings
	pro-trial-expired project ps pwd quit radio rate-limit-options raw rc recap reload-plugins reload-skills remote remote-control
	remote-env rename restart resume review rewind routines schedule scroll-speed session settings setup-bedrock setup-vertex side
	skill-doctor skills stats status statusline stickers stop subagents subtask tasks team-onboarding teleport terminal-setup theme
	title toggle-memory tp tui ultraplan ultrareview undo update upgrade usage usage-credits use-case version vim voice warnings
	web-setup wellbeing workflow-launch-exec workflows worktree`

// TestComingFrom checks that docs/coming-from.md mentions every flag and command of the other programs. It must also
// mention every flag, key and command of Perlica. TestCommandsInDocs checks that the named commands exist.
func TestComingFrom(t *testing.T) {
	page := documents(t)["docs/coming-from.md"]
	for program, flags := range flagsOfOthers {
		_, section, ok := strings.Cut(page, "\n## Flags of "+program+"\n")
		if section, _, _ = strings.Cut(section, "\n## "); !ok {
			t.Fatalf("nothing is said of %s", program)
		}
		for flag := range strings.FieldsSeq(flags) {
			if !strings.Contains(section, "`--"+flag+"`") {
				t.Errorf("%s: --%s has no place", program, flag)
			}
		}
	}
	for program, commands := range commandsOfOthers {
		for command := range strings.FieldsSeq(commands) {
			if !strings.Contains(page, "`"+program+" "+command+"`") {
				t.Errorf("%s %s has no place", program, command)
			}
		}
	}
	_, slash, _ := strings.Cut(page, "\n## Slash commands\n")
	for command := range strings.FieldsSeq(slashCommandsOfOthers) {
		if !strings.Contains(slash, "`/"+command+"`") {
			t.Errorf("/%s has no place", command)
		}
	}
	run.Command(frame.NewApp(version)).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("our --%s has no place", f.Name)
		}
	})
	for _, c := range command.Commands() {
		if !strings.Contains(page, "`/"+c.Name) {
			t.Errorf("our /%s has no place", c.Name)
		}
	}
	_, keys, _ := strings.Cut(page, "\n## Keys\n")
	keys, _, _ = strings.Cut(keys, "\n## ")
	_, table, _ := strings.Cut(documents(t)["docs/chat.md"], "| key | at the prompt |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		for key := range strings.SplitSeq(strings.TrimSpace(strings.Split(row, "|")[1]), ", ") {
			if !strings.Contains(keys, key) {
				t.Errorf("our key %s has no place", key)
			}
		}
	}
}
