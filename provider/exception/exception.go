// Package exception has the table of the JSON-RPC lines that Perlica does not pass on unchanged between an editor and
// its agent. Every other line passes unchanged. The package only says how a line is treated. The packages provider,
// kernel and service/acp carry out the treatment.
//
// Each exception is a row of the variable table. A test writes the table in docs/acp.md from these rows.
package exception

import (
	"slices"
	"strings"
)

// Side names the sender of a line.
type Side string

// These are the two sides of a connection between an editor and an agent.
const (
	Client Side = "client" // the editor
	Agent  Side = "agent"
)

// Treatment says how Perlica handles the lines of a method.
type Treatment string

// These are the treatments. Each comment describes a line with this treatment. An empty Treatment means that the line
// passes unchanged.
const (
	Initializes   Treatment = "initializes"    // passes without the capabilities that Perlica withholds
	Opens         Treatment = "opens"          // opens a session; Perlica then sets the asking mode
	Prompts       Treatment = "prompts"        // is an input
	Cancels       Treatment = "cancels"        // stops the turns of a session
	Closes        Treatment = "closes"         // stops the turns of a session and closes it
	Withdraws     Treatment = "withdraws"      // withdraws an earlier request
	Chooses       Treatment = "chooses"        // chooses a mode or an option of a session
	Steers        Treatment = "steers"         // would be an input that Perlica does not record
	Reserved      Treatment = "reserved"       // has a name that is reserved for Perlica
	Asks          Treatment = "asks"           // is a question that the policy judges
	Elicits       Treatment = "elicits"        // is a form, which may ask for an approval or a secret
	Acts          Treatment = "acts"           // begins an operation of the editor, judged like a tool call
	Continues     Treatment = "continues"      // continues such an operation
	Unknown       Treatment = "unknown"        // has an unknown method with the name prefix of such operations
	DescribesHTTP Treatment = "describes HTTP" // describes an HTTP exchange of a model agent
)

// Row is one exception: the methods to which it applies, and the treatment of their lines.
type Row struct {
	Methods []string // names of methods; a * at the end matches any rest; empty if the exception has no method
	From    Side
	Does    Treatment
	Tool    string // with Acts: the ACP tool kind by which the policy judges the request
	Outside bool   // a client on another machine may send the request, too

	// Line, Effect and Why are the texts of the row in docs/acp.md. Tests names the tests of the exception. The
	// document has no separate row for a Row with an empty Line, because the Row before it describes the exception.
	Line, Effect, Why string
	Tests             []string
}

// Of returns the first row for a method of a sender, or an empty Row if its lines pass unchanged.
func Of(from Side, method string) Row {
	for i := range table {
		r := &table[i]
		if r.From == from && slices.ContainsFunc(r.Methods, func(name string) bool {
			head, any := strings.CutSuffix(name, "*")
			return name == method || any && strings.HasPrefix(method, head)
		}) {
			return *r
		}
	}
	return Row{}
}

// OfEditor reports whether the agent asks the editor to act on files or terminals with the methods of the row.
func (r Row) OfEditor() bool { return r.Does == Acts || r.Does == Continues || r.Does == Unknown }

// table has all exceptions, in the order of docs/acp.md. The program must not change it.
var table = []Row{
	{
		Methods: []string{"initialize"}, From: Client, Does: Initializes, Outside: true,
		Line: "`initialize` of the client",
		Effect: "`protocolVersion` becomes 1. Its capabilities lose `fs` and `terminal`, unless " +
			"`editor.client_tools` is `judge`",
		Why:   "Perlica speaks version 1. An agent asks for files and commands only if they are offered",
		Tests: []string{"TestInitialize", "TestLocal"},
	},
	{
		From: Agent,
		Line: "the answer to `initialize`",
		Effect: "announcements of steering and goal methods are removed. If the agent speaks another version than " +
			"1, the client gets an error here and for each further request, and the agent gets none",
		Why:   "these methods do not pass",
		Tests: []string{"TestAnnouncements", "TestOtherVersion"},
	},
	{
		Methods: []string{"fs/read_text_file"}, From: Agent, Does: Acts, Tool: "read",
		Line: "`fs/*`, `terminal/*` of the agent",
		Effect: "refused with -32601. `judge` judges `fs/*` and `terminal/create` like a tool call: allowed ones " +
			"go on, refused ones get -32000, open ones wait for another front end than the editor. " +
			"`terminal/create` gets Perlica's marks in its `env`. `output`, `wait_for_exit`, `kill` and `release` " +
			"pass",
		Why:   "Perlica executes nothing. The marks identify the agent's processes if the editor passes them on",
		Tests: []string{"TestLocal"},
	},
	{Methods: []string{"fs/write_text_file"}, From: Agent, Does: Acts, Tool: "edit"},
	{Methods: []string{"terminal/create"}, From: Agent, Does: Acts, Tool: "execute"},
	{
		Methods: []string{"terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"},
		From:    Agent, Does: Continues,
	},
	{Methods: []string{"fs/*", "terminal/*"}, From: Agent, Does: Unknown},
	{
		Methods: []string{"session/new", "session/load", "session/resume"}, From: Client, Does: Opens, Outside: true,
		Line:   "`session/new`, `load`, `resume`, `fork`",
		Effect: "without an absolute `cwd`, refused with -32602",
		Why:    "the directory names the project and its log",
		Tests:  []string{"TestACPTightensOnly"},
	},
	{Methods: []string{"session/fork"}, From: Client, Does: Opens},
	{
		From: Agent,
		Line: "the answer to `session/new`, `load`, `resume`, `fork`",
		Effect: "if the agent is not in its asking mode, Perlica then sends its own `session/set_mode` or " +
			"`session/set_config_option`, and tells the client unless the agent does. Prompts wait for it. " +
			"`editor.mode = \"leave\"` keeps the agent's mode",
		Why:   "in other modes the agent does not ask",
		Tests: []string{"TestMode"},
	},
	{
		Methods: []string{"session/set_mode", "session/set_config_option"}, From: Client, Does: Chooses,
		Line:   "`session/set_mode`, `session/set_config_option` of the client",
		Effect: "waits for Perlica's own choice. Then it counts",
		Why:    "the later choice is the client's",
		Tests:  []string{"TestWhileChoosing"},
	},
	{
		Methods: []string{"session/request_permission"}, From: Agent, Does: Asks,
		Line:   "`session/request_permission`",
		Effect: "see [Questions](#questions)",
		Why:    "a person or a written rule says yes",
		Tests:  []string{"TestQuestions"},
	},
	{
		Methods: []string{"session/prompt"}, From: Client, Does: Prompts, Outside: true,
		Line: "`session/prompt`",
		Effect: "waits for a running prompt of its session, and for the answer to a `session/load`. Perlica " +
			"answers an input that was called",
		Why:   "one input makes at most one call",
		Tests: []string{"TestTurn", "TestInputID", "TestReload"},
	},
	{
		Methods: []string{"session/cancel"}, From: Client, Does: Cancels,
		Line: "`session/cancel`, `$/cancel_request` for a prompt, `session/close`, `session/delete`",
		Effect: "the agent gets the client's line once; during a turn Perlica sends `session/cancel` before " +
			"`close` and `delete`. Waiting prompts are answered `cancelled` and never sent, and a " +
			"`$/cancel_request` for one does not go on. Open questions are answered `cancelled` after the line, or " +
			"after 100 ms if the agent does not read",
		Why:   "the stop is on disk first",
		Tests: []string{"TestCancel", "TestStopOnce", "TestStopWaiting", "TestClosed"},
	},
	{Methods: []string{"$/cancel_request"}, From: Client, Does: Withdraws},
	{Methods: []string{"session/close"}, From: Client, Does: Closes, Outside: true},
	{Methods: []string{"session/delete"}, From: Client, Does: Closes},
	{
		Methods: []string{"$/cancel_request"}, From: Agent, Does: Withdraws,
		Line: "`$/cancel_request` of the agent for a question",
		Effect: "ends the question everywhere. The agent gets -32800. It goes on if the client has the question. A " +
			"later answer is recorded and dropped",
		Why:   "the question waits at all front ends",
		Tests: []string{"TestWithdrawn"},
	},
	{
		Methods: []string{"elicitation/create", "session/elicitation"}, From: Agent, Does: Elicits,
		Line:   "`elicitation/create` that asks for approval (`_meta` of codex)",
		Effect: "judged first. A refusal is answered `decline`",
		Why:    "only the client can accept one",
		Tests:  []string{"TestApprovalByForm"},
	},
	{
		From:   Agent,
		Line:   "`elicitation/create` with a field that looks like a secret",
		Effect: "answered `decline`",
		Why:    "the record would keep the secret",
		Tests:  []string{"TestSecretByForm"},
	},
	{
		Methods: []string{"_session/steering", "_session/goal", "_codex/session/goal_control"}, From: Client, Does: Steers,
		Line: "`_session/steering`, `_session/goal`, `_codex/session/goal_control`, and each request except " +
			"`session/prompt` with a `prompt` array",
		Effect: "refused with -32601",
		Why:    "it would be a second kind of input",
		Tests:  []string{"TestBlocked"},
	},
	{
		From:   Client,
		Line:   "a client's line that is not a JSON-RPC message, or has a carriage return before its end",
		Effect: "-32700",
		Why:    "some programs end a line at a carriage return",
		Tests:  []string{"TestMalformed", "TestClientFaults"},
	},
	{
		From:   Client,
		Line:   "a request from another machine that would loosen something",
		Effect: "refused with -32602, or with -32601 if it may not use the method",
		Why:    "such a client can only make things stricter",
		Tests:  []string{"TestACPTightensOnly"},
	},
	{
		From:   Client,
		Line:   "a client's request with the id of an open one",
		Effect: "refused with -32600",
		Why:    "an answer would belong to both",
		Tests:  []string{"TestIDs", "TestIDsByValue"},
	},
	{
		From:   Client,
		Line:   "a line of either side with an id of Perlica's own requests",
		Effect: "a request is refused with -32600, other lines are dropped",
		Why:    "it would answer for Perlica",
		Tests:  []string{"TestOwnIDs"},
	},
	{
		Methods: []string{"_perlica.dev/*"}, From: Client, Does: Reserved,
		Line:   "`_perlica.dev/*` of the client",
		Effect: "refused with -32601",
		Why:    "these names are Perlica's own",
		Tests:  []string{"TestBlocked"},
	},
	{
		Methods: []string{"_perlica.dev/http/*"}, From: Agent, Does: DescribesHTTP,
		Line:   "`_perlica.dev/http/*` of Perlica's model agent",
		Effect: "answered by Perlica and not passed on",
		Why:    "it is the agent's HTTP exchange, [on record](models.md#on-the-record)",
		Tests:  []string{"TestModelExchange"},
	},
}
