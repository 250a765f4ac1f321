// Package registry knows agents by their ids: their commands, their variables, and how to make each one ask.
// Its facts come only from the vendors' documentation, the agents' source code or the agents themselves.
package registry

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/perlica/perlica/provider"
)

// Self stands for Perlica's own executable as the first word of a command. A lookPath function should resolve
// it with os.Executable.
const Self = "perlica"

// Known is an agent in the registry.
type Known struct {
	ID       string     // "claude"
	Name     string     // "Claude Code"
	Commands [][]string // command lines in the order of preference
	Install  string     // a command that installs the agent, or the place of a description
	Program  string     // the vendor's own command, if Commands names an adapter instead
	Login    string     // how to log in
	Says     string     // the agent's name in agentInfo; empty means unknown
	Env      []string   // names of the agent's own variables, which it gets
	Website  string
	Asking   provider.Asking // how Perlica makes the agent ask; zero if there is nothing to select
	Sums     bool            // the usage in an answer is the total of the session
	Orderly  bool            // the agent sends nothing about a turn after the turn's answer
	Asks     string          // when the agent asks, in a few words
	Note     string          // other useful facts; may be empty
	Append   bool            // the agent accepts _meta.systemPrompt.append, even without announcing it
	Model    *Model          // set for a model without an agent
	// Folders have the agent's configuration and data, relative to the home. In a sandbox they exist, and the agent may
	// write there.
	Folders []string
	// Hosts are the hosts of the agent's API and of its logins, in the form of the key sandbox_hosts. A model without
	// an agent has the host of its address.
	Hosts []string
	// Files are further files of the agent's configuration, relative to the home. In a sandbox the agent may write to
	// existing ones.
	Files []string
	// Writes describe the inputs of the agent's tools that write files. They are used for tool calls without a diff.
	Writes []Write
	// Creates means that a diff without an old text is the content of a file that was missing or empty before.
	Creates bool
}

// Write describes the input of a tool that writes files. Each field is the name of a member of the input, or "". An
// input has this form if it has all named members. Only All may be missing. The members are texts, except All and
// Edits.
type Write struct {
	Path     string
	Text     string // names the whole new content
	Old, New string // name a text and its replacement
	All      string // names a bool: true replaces every place with the old text
	Edits    string // names a list of objects with the members Old and New
	Patch    string // names a patch in the form of apply_patch, which has the paths of its files
}

// Model is the HTTP API of a model that is asked without an agent.
type Model struct {
	API     string // the name in package model
	BaseURL string // empty means the vendor's
	KeyEnv  string // the variable with the key; empty if no key is needed
}

// All returns the known agents, the preferred ones first. The built-in predictable agent is the last. The
// caller may change the result.
func All() []Known {
	out := make([]Known, len(known))
	for i, k := range known {
		out[i] = k.clone()
	}
	return out
}

// Lookup returns the known agent with this id.
func Lookup(id string) (Known, bool) {
	for _, k := range known {
		if k.ID == id {
			return k.clone(), true
		}
	}
	return Known{}, false
}

// Uses reports whether a known agent uses the variable with this name.
func Uses(variable string) bool {
	return slices.ContainsFunc(known, func(k Known) bool { return slices.Contains(k.Env, variable) })
}

// Introduced returns the agent with this name in agentInfo. Case does not matter.
func Introduced(name string) (Known, bool) {
	for _, k := range known {
		if name != "" && strings.EqualFold(k.Says, name) {
			return k.clone(), true
		}
	}
	return Known{}, false
}

// Nearest returns the most similar id in the registry or in the list "more". It returns "" if no id is similar.
func Nearest(id string, more ...string) string {
	best, at := "", 3 // at most two edits, and fewer than half of the word
	for _, k := range known {
		more = append(more, k.ID)
	}
	for _, other := range more {
		d := levenshtein.Distance(strings.ToLower(id), strings.ToLower(other), nil)
		if d < at && 2*d < len(other) {
			best, at = other, d
		}
	}
	return best
}

// Find returns the first of k's command lines with an installed program. The function lookPath finds the program, and
// its result becomes the first word of the command line. The usual lookPath is exec.LookPath, and os.Executable for
// Self.
func (k Known) Find(lookPath func(string) (string, error)) (argv []string, ok bool) {
	for _, c := range k.Commands {
		if path, err := lookPath(c[0]); err == nil {
			return append([]string{path}, c[1:]...), true
		}
	}
	return nil, false
}

// Installer returns the command that installs k, or nil if Install is only a link.
func (k Known) Installer() []string {
	if argv := strings.Fields(k.Install); argv[0] == "npm" || argv[0] == "uv" {
		return argv
	}
	return nil
}

// Agent returns the provider.Agent that starts k with the given command line.
func (k Known) Agent(argv []string) provider.Agent {
	k = k.clone()
	return provider.Agent{ID: k.ID, Command: slices.Clone(argv), Env: k.Env, Asking: k.Asking, Orderly: k.Orderly}
}

func (k Known) clone() Known {
	k.Commands = slices.Clone(k.Commands)
	for i, c := range k.Commands {
		k.Commands[i] = slices.Clone(c)
	}
	k.Env = slices.Clone(k.Env)
	k.Writes = slices.Clone(k.Writes)
	k.Folders, k.Files, k.Hosts = slices.Clone(k.Folders), slices.Clone(k.Files), slices.Clone(k.Hosts)
	k.Asking.Env, k.Asking.Stricter = slices.Clone(k.Asking.Env), slices.Clone(k.Asking.Stricter)
	return k
}

// known is the registry. Its facts come only from the vendor's documentation, the source code, the public ACP
// registry or the agent itself. Unknown facts are left empty. Env has no variables that make an agent ask
// less.
var known = []Known{
	{
		ID: "claude", Says: "@agentclientprotocol/claude-agent-acp", Name: "Claude Code",
		Website:  "https://github.com/agentclientprotocol/claude-agent-acp",
		Commands: [][]string{{"claude-agent-acp"}, {"claude-code-acp"}},
		Install:  "npm install -g @agentclientprotocol/claude-agent-acp",
		Hosts:    []string{"api.anthropic.com", "claude.ai", "platform.claude.com"},
		Folders:  []string{".claude", ".cache/claude-cli-nodejs", ".local/share/claude", ".local/state/claude"},
		Files:    []string{".claude.json"},
		Program:  "claude",
		Login:    "run `claude` and log in, or set ANTHROPIC_API_KEY",
		Env: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL",
			"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_EXECUTABLE",
			"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "MAX_THINKING_TOKENS",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"},
		Append: true,
		Asking: provider.Asking{Mode: "default", Stricter: []string{"plan"}},
		Asks:   "before actions that it considers dangerous; its own settings can allow more",
		Note: "`claude-code-acp` is the adapter's former name. Needs Node 22. " +
			"As root its own sandbox does not start in Perlica's.",
		Writes: []Write{
			{Path: "file_path", Text: "content"},
			{Path: "file_path", Old: "old_string", New: "new_string", All: "replace_all"},
			{Path: "file_path", Edits: "edits", Old: "old_string", New: "new_string", All: "replace_all"},
		},
	},
	{
		ID: "codex", Says: "@agentclientprotocol/codex-acp", Name: "Codex",
		Website:  "https://github.com/agentclientprotocol/codex-acp",
		Commands: [][]string{{"codex-acp"}},
		Install:  "npm install -g @agentclientprotocol/codex-acp",
		Hosts:    []string{"api.openai.com", "chatgpt.com", "auth.openai.com"},
		Folders:  []string{".codex"},
		Program:  "codex",
		Login:    "run `codex login`, or set CODEX_API_KEY or OPENAI_API_KEY",
		Env: []string{"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME", "CODEX_PATH",
			"CODEX_CONFIG", "MODEL_PROVIDER", "DEFAULT_AUTH_REQUEST", "NO_BROWSER", "APP_SERVER_LOGS"},
		Asking: provider.Asking{Mode: "read-only"},
		Asks:   "before edits and network access; in its own default mode `agent` a model reviews instead",
		Note: "`workspace-write` asks only outside the working directory. Often stays when stdin closes. " +
			"As root its own sandbox does not start in Perlica's.",
		Writes: []Write{{Patch: "input"}, {Patch: "patch"}}, Creates: true,
	},
	{
		ID: "gemini", Says: "gemini-cli", Name: "Gemini CLI", Website: "https://github.com/google-gemini/gemini-cli",
		Commands: [][]string{{"gemini", "--acp"}},
		Install:  "npm install -g @google/gemini-cli",
		Hosts:    []string{"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"},
		Folders:  []string{".gemini"},
		Login:    "run `gemini` and log in, or set GEMINI_API_KEY",
		Env: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
			"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_VERTEXAI", "GEMINI_MODEL", "GOOGLE_GEMINI_BASE_URL",
			"GEMINI_CLI_HOME"},
		Asking: provider.Asking{Mode: "default", Stricter: []string{"plan"}},
		Asks:   "before edits, and before commands that it does not consider harmless",
		Note:   "older versions: `gemini --experimental-acp`",
		Writes: []Write{
			{Path: "file_path", Text: "content"}, {Path: "file_path", Old: "old_string", New: "new_string"},
		},
		Creates: true,
	},
	{
		ID: "opencode", Says: "OpenCode", Name: "OpenCode", Website: "https://opencode.ai",
		Commands: [][]string{{"opencode", "acp"}},
		Install:  "npm install -g opencode-ai",
		Hosts:    []string{"opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com"},
		Folders:  []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
		Login:    "run `opencode auth login`",
		Env: []string{"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT", "OPENCODE_API_KEY",
			"OPENCODE_DISABLE_AUTOUPDATE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Asking: provider.Asking{Env: []string{`OPENCODE_PERMISSION={"edit":"ask","bash":"ask","webfetch":"ask"}`}},
		Asks:   "before edits, commands and fetches; left alone it asks for nothing",
		Note:   "The setting replaces the agent's own `permission` rules for these three, denials included.",
		Writes: []Write{
			{Path: "filePath", Text: "content"},
			{Path: "filePath", Old: "oldString", New: "newString", All: "replaceAll"},
			{Patch: "patchText"},
		},
		Creates: true,
	},
	{
		ID: "qwen", Says: "qwen-code", Name: "Qwen Code", Website: "https://github.com/QwenLM/qwen-code",
		Commands: [][]string{{"qwen", "--acp"}},
		Install:  "npm install -g @qwen-code/qwen-code",
		Hosts:    []string{"portal.qwen.ai", "chat.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"},
		Folders:  []string{".qwen"},
		Login:    "run `qwen` and log in, or set OPENAI_API_KEY",
		Env:      []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"},
		Asking:   provider.Asking{Mode: "default", Stricter: []string{"plan"}},
		Asks:     "before edits, and before commands that it does not consider harmless; left alone it edits unasked",
		Writes: []Write{
			{Path: "file_path", Text: "content"},
			{Path: "file_path", Old: "old_string", New: "new_string", All: "replace_all"},
		},
		Creates: true,
	},
	{
		ID: "copilot", Says: "Copilot", Name: "GitHub Copilot CLI", Website: "https://github.com/github/copilot-cli",
		Commands: [][]string{{"copilot", "--acp"}},
		Install:  "npm install -g @github/copilot",
		Hosts:    []string{"api.github.com", "*.githubcopilot.com"},
		Folders:  []string{".copilot", ".config/github-copilot", ".cache/copilot"},
		Login:    "run `copilot login`, or set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN",
		Env: []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE",
			"COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN",
			"COPILOT_PROVIDER_HEADERS", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_WIRE_MODEL", "COPILOT_PROVIDER_MODEL_ID",
			"COPILOT_PROVIDER_TRANSPORT", "COPILOT_PROVIDER_AZURE_API_VERSION", "COPILOT_PROVIDER_MAX_PROMPT_TOKENS",
			"COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "COPILOT_AUTO_UPDATE", "COPILOT_GH_HOST", "GH_HOST"},
		Asking: provider.Asking{Option: "allow_all", Value: "off"},
		Asks:   "unless it was told otherwise",
		Sums:   true,
		Note:   "It reports the usage of its whole session so far. Totals count each token once.",
		Writes: []Write{
			{Path: "path", Text: "file_text"}, {Path: "path", Old: "old_str", New: "new_str"},
		},
		Creates: true,
	},
	{
		ID: "goose", Name: "goose", Website: "https://block.github.io/goose/",
		Commands: [][]string{{"goose", "acp"}},
		Install:  "see https://block.github.io/goose/docs/getting-started/installation",
		Hosts:    []string{"api.anthropic.com", "api.openai.com"},
		Folders:  []string{".config/goose", ".local/share/goose", ".local/state/goose"},
		Login:    "run `goose configure`",
		Env: []string{"GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_PROVIDER__TYPE", "GOOSE_PROVIDER__HOST",
			"GOOSE_PROVIDER__API_KEY", "GOOSE_DISABLE_KEYRING", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Asking: provider.Asking{Env: []string{"GOOSE_MODE=approve"}},
		Asks:   "before every tool; left alone it asks for nothing",
		Note:   "A database migration tool has the same name.",
	},
	{
		ID: "cline", Says: "cline", Name: "Cline", Website: "https://cline.bot/cli",
		Commands: [][]string{{"cline", "--acp"}},
		Install:  "npm install -g cline",
		Hosts:    []string{"api.cline.bot"},
		Folders:  []string{".cline"},
		Login:    "run `cline auth`, or set CLINE_API_KEY",
		Env: []string{"CLINE_API_KEY", "CLINE_PROVIDER", "CLINE_MODEL", "CLINE_DIR", "CLINE_DATA_DIR", "CLINE_TEAM_DATA_DIR",
			"CLINE_SANDBOX", "CLINE_SANDBOX_DATA_DIR", "CLINE_NO_AUTO_UPDATE"},
		Asking: provider.Asking{Option: "auto_approve", Value: "off"},
		Asks:   "before edits and commands",
		Note:   "Starts a daemon outside its process group; Perlica ends it on Linux.",
		Writes: []Write{{Patch: "input"}}, Creates: true,
	},
	{
		ID: "auggie", Name: "Auggie", Website: "https://www.augmentcode.com/",
		Commands: [][]string{{"auggie", "--acp"}},
		Install:  "npm install -g @augmentcode/auggie",
		Hosts:    []string{"*.api.augmentcode.com"},
		Folders:  []string{".augment"},
		Login:    "run `auggie login`, or set AUGMENT_SESSION_AUTH",
		Env:      []string{"AUGMENT_SESSION_AUTH", "AUGMENT_DISABLE_AUTO_UPDATE"},
	},
	{
		ID: "kimi", Name: "Kimi CLI", Website: "https://github.com/MoonshotAI/kimi-cli",
		Commands: [][]string{{"kimi", "acp"}},
		Install:  "uv tool install --python 3.13 kimi-cli",
		Hosts:    []string{"api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"},
		Folders:  []string{".kimi"},
		Login:    "run `kimi` and send `/login`",
		Env:      []string{"KIMI_API_KEY", "KIMI_BASE_URL", "KIMI_MODEL_NAME"},
		Note:     "It has one mode only.",
	},
	{
		ID: "cursor", Name: "Cursor", Website: "https://cursor.com/docs/cli/acp",
		Commands: [][]string{{"cursor-agent", "acp"}},
		Install:  "see https://cursor.com/cli",
		Hosts:    []string{"*.cursor.sh"},
		Folders:  []string{".cursor", ".config/cursor", ".local/share/cursor-agent"},
		Login:    "run `cursor-agent login`, or set CURSOR_API_KEY",
		Env:      []string{"CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"},
		Note:     "Its documentation calls the command `agent`, which is too common a name to be looked for.",
	},
	{
		ID: "vibe", Name: "Mistral Vibe", Website: "https://mistral.ai/products/vibe",
		Commands: [][]string{{"vibe-acp"}},
		Install:  "uv tool install mistral-vibe",
		Hosts:    []string{"api.mistral.ai"},
		Folders:  []string{".vibe"},
		Login:    "run `vibe --setup`, or set MISTRAL_API_KEY",
		Env:      []string{"MISTRAL_API_KEY", "VIBE_HOME"},
		Asking:   provider.Asking{Mode: "default"},
		Asks:     "before tools that need approval",
	},
	{
		ID: "droid", Name: "Factory Droid", Website: "https://factory.ai/product/cli",
		Commands: [][]string{{"droid", "exec", "--output-format", "acp-daemon"}},
		Install:  "npm install -g droid",
		Hosts:    []string{"api.factory.ai"},
		Folders:  []string{".factory"},
		Login:    "run `droid` and log in, or set FACTORY_API_KEY",
		Env:      []string{"FACTORY_API_KEY", "DROID_DISABLE_AUTO_UPDATE", "FACTORY_DROID_AUTO_UPDATE_ENABLED"},
		Note:     "older versions: `droid exec --output-format acp`",
	},
	{
		ID: "kilo", Name: "Kilo", Website: "https://kilo.ai/",
		Commands: [][]string{{"kilo", "acp"}},
		Install:  "npm install -g @kilocode/cli",
		Folders:  []string{".config/kilo", ".local/share/kilo", ".local/state/kilo", ".cache/kilo"},
		Login:    "run `kilo` and send `/connect`",
	},
	{
		ID: "junie", Name: "Junie", Website: "https://junie.jetbrains.com",
		Commands: [][]string{{"junie", "--acp=true"}},
		Install:  "see https://github.com/JetBrains/junie-acp-release",
		Folders:  []string{".junie"},
	},
	{
		ID: "qoder", Name: "Qoder CLI", Website: "https://docs.qoder.com/cli/acp",
		Commands: [][]string{{"qodercli", "--acp"}},
		Install:  "npm install -g @qoder-ai/qodercli",
		Folders:  []string{".qoder"},
	},
	{
		ID: "pi", Says: "pi-acp", Name: "pi", Website: "https://github.com/svkozak/pi-acp",
		Commands: [][]string{{"pi-acp"}},
		Install:  "npm install -g pi-acp @earendil-works/pi-coding-agent",
		Folders:  []string{".pi"},
		Program:  "pi",
		Env: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY", "DEEPSEEK_API_KEY",
			"MISTRAL_API_KEY", "GROQ_API_KEY", "CEREBRAS_API_KEY", "XAI_API_KEY", "OPENROUTER_API_KEY", "AI_GATEWAY_API_KEY",
			"ZAI_API_KEY", "KIMI_API_KEY", "MINIMAX_API_KEY", "FIREWORKS_API_KEY", "HF_TOKEN", "OPENCODE_API_KEY",
			"PI_ACP_PI_COMMAND", "PI_ACP_ENABLE_EMBEDDED_CONTEXT", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR",
			"PI_OFFLINE", "PI_SKIP_VERSION_CHECK", "PI_TELEMETRY"},
		Asks:   "never",
		Note:   "An adapter by a third party. With pi 0.73.1 it never opens a session.",
		Writes: []Write{{Path: "path", Text: "content"}, {Path: "path", Old: "oldText", New: "newText"}},
	},
	{
		ID: "amp", Name: "Amp", Website: "https://github.com/tao12345666333/amp-acp",
		Commands: [][]string{{"amp-acp"}},
		Install:  "see https://github.com/tao12345666333/amp-acp",
		Hosts:    []string{"ampcode.com"},
		Folders:  []string{".config/amp", ".local/share/amp", ".cache/amp"},
		Program:  "amp",
		Note:     "An adapter by a third party.",
	},
	{
		ID: "anthropic-api", Name: "Anthropic API", Website: "https://platform.claude.com/docs",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set ANTHROPIC_API_KEY", Env: []string{"ANTHROPIC_API_KEY"},
		Hosts: []string{"api.anthropic.com"},
		Asks:  "never: it has no tools", Orderly: true,
		Model: &Model{API: "anthropic", KeyEnv: "ANTHROPIC_API_KEY"},
	},
	{
		ID: "openai-api", Name: "OpenAI API", Website: "https://platform.openai.com/docs",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set OPENAI_API_KEY", Env: []string{"OPENAI_API_KEY"},
		Hosts: []string{"api.openai.com"},
		Asks:  "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai", KeyEnv: "OPENAI_API_KEY"},
	},
	{
		ID: "gemini-api", Name: "Gemini API", Website: "https://ai.google.dev/gemini-api/docs",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set GEMINI_API_KEY", Env: []string{"GEMINI_API_KEY"},
		Hosts: []string{"generativelanguage.googleapis.com"},
		Asks:  "never: it has no tools", Orderly: true,
		Model: &Model{API: "gemini", KeyEnv: "GEMINI_API_KEY"},
	},
	{
		ID: "xai", Name: "xAI API", Website: "https://docs.x.ai",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set XAI_API_KEY", Env: []string{"XAI_API_KEY"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY"},
	},
	{
		ID: "together", Name: "Together AI", Website: "https://docs.together.ai",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set TOGETHER_API_KEY", Env: []string{"TOGETHER_API_KEY"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://api.together.xyz/v1", KeyEnv: "TOGETHER_API_KEY"},
	},
	{
		ID: "cerebras", Name: "Cerebras Inference", Website: "https://inference-docs.cerebras.ai",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set CEREBRAS_API_KEY", Env: []string{"CEREBRAS_API_KEY"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://api.cerebras.ai/v1", KeyEnv: "CEREBRAS_API_KEY"},
	},
	{
		ID: "nvidia", Name: "NVIDIA NIM", Website: "https://docs.api.nvidia.com",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set NVIDIA_API_KEY", Env: []string{"NVIDIA_API_KEY"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://integrate.api.nvidia.com/v1", KeyEnv: "NVIDIA_API_KEY"},
	},
	{
		ID: "github-models", Name: "GitHub Models", Website: "https://docs.github.com/github-models",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set GITHUB_TOKEN", Env: []string{"GITHUB_TOKEN"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://models.github.ai/inference", KeyEnv: "GITHUB_TOKEN"},
	},
	{
		ID: "huggingface", Name: "Hugging Face Inference Providers",
		Website:  "https://huggingface.co/docs/inference-providers",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "set HF_TOKEN", Env: []string{"HF_TOKEN"},
		Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "https://router.huggingface.co/v1", KeyEnv: "HF_TOKEN"},
	},
	{
		ID: "ollama", Name: "Ollama", Website: "https://ollama.com",
		Commands: [][]string{{Self, "agent", "model"}}, Install: "built in",
		Login: "none; Ollama must run", Asks: "never: it has no tools", Orderly: true,
		Model: &Model{API: "openai-chat", BaseURL: "http://127.0.0.1:11434/v1"},
	},
	{
		ID: "predictable", Name: "Predictable", Website: "",
		Commands: [][]string{{Self, "agent", "predictable"}}, Creates: true,
		Install: "built in",
		Login:   "none",
		Asks:    "when the prompt says so",
		Note:    "Calls no model: the prompt is its script.",
		Orderly: true,
	},
}
