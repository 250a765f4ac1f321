package toolcall

import "sync"

// ofAgent are the names that mean something with one agent only, as its source says. Where a
// kind needs it, byKind has them for all agents.
var ofAgent = sync.OnceValue(func() map[string]map[string]role {
	return map[string]map[string]role{
		// @agentclientprotocol/claude-agent-acp 0.49: the inputs of Claude Code's own tools.
		"claude": table(map[role]string{
			inert: `subagenttype model activeform headlimit outputmode taskid shellid bashid cellid`,
			text:  `todos questions plan`,
		}),
		// @agentclientprotocol/codex-acp 2.6: rawInput is {command, cwd, url, additionalPermissions}.
		"codex": table(map[role]string{inert: `itemid environmentid reasoningeffort status`}),
		// @google/gemini-cli 0.61 sends no rawInput at all.
		// @qwen-code/qwen-code 0.15: the arguments of its tools as the model wrote them.
		"qwen": table(map[role]string{text: `todos plan`}),
		// cline 3.0: {commands}, {path, old_text, new_text, insert_line}, {files: [{path, start_line}]}.
		"cline": table(map[role]string{text: `taskprogress`}),
		// pi-acp 0.0.34: the arguments of pi's tools.
		"pi": table(map[role]string{inert: `method`}),
	}
})

func namesOf(provider string) map[string]role { return ofAgent()[provider] }

// titles are the agents whose title is the command where they say it nowhere else.
// @google/gemini-cli 0.61: the title is the command alone, and the content tells
// "[in DIR] (description) [background]"; earlier ones have that after the command. Qwen, which
// came of it, sends its tools' arguments.
var titles = map[string]bool{"gemini": true}
