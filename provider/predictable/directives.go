package predictable

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

// directive is one command that a script can use, such as @say.
type directive struct {
	Name string // without the @
	Args string // the form of its arguments
	Help string // one or two sentences

	text    bool // the argument is the rest of the line as one text with escapes
	prepare func(a *args) func(ctx context.Context, r *request) error
}

// Usage returns the name of the directive with the form of its arguments, such as "@sleep DURATION".
func (d directive) Usage() string { return strings.TrimSpace("@" + d.Name + " " + d.Args) }

// directives has all directives, in the order of docs/predictable.md.
var directives = [...]directive{
	// These directives send texts and updates.
	{Name: "say", Args: "TEXT", text: true, prepare: sayText, Help: "One message chunk with exactly this text."},
	{Name: "only", prepare: nothing, Help: "The prompt's other text is not echoed."},
	{Name: "thought", Args: "TEXT", text: true, prepare: thought, Help: "One thought chunk."},
	{Name: "prompt", prepare: sayPrompt, Help: "Says the text of the prompt as it came."},
	{Name: "show", Args: "params|session|history|pid|env NAME", prepare: show,
		Help: "Says what this request holds, byte for byte; the session's directory and mode; its earlier turns; the " +
			"process id; a variable of the environment."},
	{Name: "stream", Args: "COUNT SIZE [every=DURATION] [kind=message|thought]", prepare: stream,
		Help: "COUNT chunks of SIZE bytes of text each, as fast as they are read; from 12 bytes on each is a line that " +
			"begins with its number, from 000000000. `@stream 1 20000000` is one huge line."},
	{Name: "plan", Args: "[STATUS:]ENTRY…", prepare: plan, Help: "A plan; STATUS is pending, in_progress or completed."},
	{Name: "usage", Args: "USED SIZE [cost=USD]", prepare: usage,
		Help: "A usage_update: tokens in the context and its size."},
	{Name: "title", Args: "TEXT", text: true, prepare: title, Help: "A session_info_update with this title."},
	{Name: "mode", Args: "ID", prepare: mode, Help: "Changes the session's mode unasked, with a current_mode_update."},
	{Name: "commands", Args: "NAME…", prepare: commands, Help: "An available_commands_update."},
	{Name: "update", Args: "JSON [session=ID]", prepare: update,
		Help: "Any session/update, byte for byte: unknown kinds, contents and fields, large integers, another session."},

	// These directives claim tool calls or send requests to the client.
	{Name: "tool", Args: "KIND TITLE " + toolArgs + " [steps=STATUS,…] [text=OUTPUT] [exit=N]", prepare: tool,
		Help: "A tool call without a question, reported pending, in_progress, completed (or as steps= says). announce=no " +
			"leaves out the tool_call, so that its updates refer to nothing."},
	{Name: "ask", Args: "KIND TITLE " + toolArgs + " [options=ID:KIND[:NAME],…] [count=N] [wait=no] [rpcid=JSON]",
		prepare: ask,
		Help: "Asks for permission, says `permission: OPTION-ID`, `permission: cancelled` or `permission: error …`, and " +
			"claims to have done it or not. count= asks N times at once and says `permission TOOL-CALL-ID: …` as answers " +
			"come; wait=no goes on without them; rpcid= is the request's id; announce=no leaves out the tool call's own " +
			"updates. After a cancel it still waits for its answers. In a mode named auto it does not ask."},
	{Name: "read", Args: "PATH", prepare: readFile, Help: "Requests fs/read_text_file and says what came back."},
	{Name: "write", Args: "PATH TEXT", prepare: writeFile, Help: "Requests fs/write_text_file and says what came back."},
	{Name: "terminal", Args: "COMMAND [ARG…]", prepare: terminal,
		Help: "Requests terminal/create and, if there is one, waits for its exit, takes its output and releases it; says " +
			"what came back each time."},
	{Name: "elicit", Args: "MESSAGE [schema=JSON] [url=URL]", prepare: elicit,
		Help: "Requests elicitation/create (a form, or an address) and says what came back."},
	{Name: "request", Args: "METHOD [JSON] [wait=no] [rpcid=JSON]", prepare: sendRequest,
		Help: "Any request. Says `METHOD: result JSON` or `METHOD: error CODE MESSAGE`. Without JSON, params hold the " +
			"session id."},
	{Name: "notify", Args: "METHOD [JSON]", prepare: notify, Help: "Any notification."},

	// These directives determine times.
	{Name: "sleep", Args: "DURATION", prepare: sleep, Help: "Waits; a cancel ends it."},
	{Name: "delay", Args: "DURATION", prepare: setDelay,
		Help: "Waits this long before each update from here on; in [start], of every script."},
	{Name: "hang", prepare: hang, Help: "Waits for ever, that is for a cancel or the end of standard input."},
	{Name: "ignore", Args: "cancel|stdin|eof|term", prepare: ignore,
		Help: "cancel: this turn, from its beginning, cannot be cancelled. stdin: nothing more is read. eof: the end of " +
			"standard input does not end the process. term: nor does SIGTERM."},
	{Name: "cancel", prepare: cancelTurn,
		Help: "Cancels the session's turn; for [session/cancel], which replaces what a cancel does."},
	{Name: "cancelled", prepare: nothing,
		Help: "What follows is done only when the turn was cancelled; then it decides how the turn ends."},

	// These directives determine the response.
	{Name: "answer", prepare: answer,
		Help: "Sends the response now. What follows comes after it; a second @answer sends it twice."},
	{Name: "stop", Args: "REASON", prepare: stop, Help: "The stop reason, known or not."},
	{Name: "tokens", Args: "INPUT OUTPUT", prepare: tokens, Help: "The turn's usage, in the response."},
	{Name: "set", Args: "PATH JSON", prepare: set,
		Help: "Changes a field of the result, such as agentCapabilities.loadSession."},
	{Name: "unset", Args: "PATH", prepare: unset, Help: "Removes a field of the result."},
	{Name: "result", Args: "JSON", prepare: result, Help: "The whole result, such as null or {}."},
	{Name: "error", Args: "CODE MESSAGE [data=JSON]", prepare: rpcFailure,
		Help: "An error instead of a result; CODE may be any JSON."},
	{Name: "auth", prepare: requireAuth,
		Help: "Answers `authentication required` (-32000), unless authenticate succeeded."},

	// These directives write to the wire.
	{Name: "line", Args: "TEXT", text: true, prepare: line, Help: "Writes a line of its own. $session and $id stand for this request's, as in @update, @request, @notify, " +
		"@result and @set."},
	{Name: "bytes", Args: "TEXT", text: true, prepare: rawBytes, Help: "Writes bytes without a line ending."},
	{Name: "garbage", Args: "SIZE", prepare: garbage, Help: "Writes a line of SIZE bytes that is no JSON."},
	{Name: "eol", Args: "TEXT", text: true, prepare: eol, Help: `What ends each line from here on: \r\n, or \n\n for blank lines; nothing for \n again.`},

	// These directives act on the process.
	{Name: "stderr", Args: "TEXT", text: true, prepare: stderr, Help: "Writes a line to standard error."},
	{Name: "flood", Args: "SIZE", prepare: flood, Help: "Writes SIZE bytes to standard error, in lines of 80."},
	{Name: "close", prepare: closeStdout, Help: "Closes standard output and lives on."},
	{Name: "exit", Args: "CODE", prepare: exit, Help: "Ends the process at once."},
	{Name: "kill", prepare: kill, Help: "Ends the process as SIGKILL does."},
	{Name: "spawn", Args: "DURATION [daemon] [stubborn] [stdout] [stderr]", prepare: spawnChild,
		Help: "Starts a child that sleeps, and says `spawned: PID`. daemon: in a session of its own. stubborn: it ignores " +
			"SIGTERM. stdout, stderr: it holds ours open."},
}

type action = func(ctx context.Context, r *request) error

func sayText(a *args) action {
	return func(ctx context.Context, r *request) error { return r.sayChunk(ctx, a.text) }
}

func thought(a *args) action {
	return func(ctx context.Context, r *request) error { return r.updateSession(ctx, chunk(thoughtChunk, a.text)) }
}

func sayPrompt(*args) action {
	return func(ctx context.Context, r *request) error { return r.sayChunk(ctx, r.text) }
}

func sleep(a *args) action {
	d := a.duration("DURATION", a.word("DURATION"))
	return func(ctx context.Context, _ *request) error { return pause(ctx, d) }
}

func setDelay(a *args) action {
	d := a.duration("DURATION", a.word("DURATION"))
	return plainStep(func(r *request) error {
		r.delay = d
		if r.method == sectionStart {
			r.agent.delay.Store(int64(d))
		}
		return nil
	})
}

func hang(*args) action {
	return func(ctx context.Context, _ *request) error { return pause(ctx, time.Duration(math.MaxInt64)) }
}

func ignore(a *args) action {
	what := a.oneOf("WHAT", "cancel", "stdin", "eof", "term")
	a.deaf = what == "cancel"
	return plainStep(func(r *request) error {
		switch what {
		case "stdin":
			r.agent.deafStdin.Store(true)
		case "eof":
			r.agent.ignoreEOF.Store(true)
		case "term":
			if r.agent.opt.IgnoreTerm == nil {
				return errors.New("@ignore term: not possible here")
			}
			r.agent.opt.IgnoreTerm()
		}
		return nil
	})
}

func cancelTurn(*args) action {
	return plainStep(func(r *request) error {
		if r.sess != nil {
			r.agent.cancelSession(r.sess)
		}
		return nil
	})
}

func nothing(*args) action { return plainStep(func(*request) error { return nil }) }

func answer(*args) action { return plainStep((*request).sendAnswer) }

func stop(a *args) action {
	return setTo([]string{"stopReason"}, quote(a.word("REASON")))
}

func tokens(a *args) action {
	in, out := a.number("INPUT", 0, math.MaxInt32), a.number("OUTPUT", 0, math.MaxInt32)
	return setTo([]string{"usage"}, string(agentside.Encode(map[string]int{
		"inputTokens": in, "outputTokens": out, "totalTokens": in + out,
	})))
}

func set(a *args) action {
	path := strings.Split(a.word("PATH"), ".")
	return setTo(path, a.nextWord("JSON").json())
}

func unset(a *args) action {
	return setTo(strings.Split(a.word("PATH"), "."), "")
}

// setTo returns a step that sets the field at path in the result of the request. An empty value removes the field.
func setTo(path []string, value string) action {
	return plainStep(func(r *request) error {
		var v json.RawMessage
		if value != "" {
			v = json.RawMessage(r.fillIDs(value))
		}
		changed, err := setPath(r.result, path, v)
		if err == nil {
			r.result, r.err = changed, nil
		}
		return err
	})
}

func result(a *args) action {
	v := a.nextWord("JSON").json()
	return plainStep(func(r *request) error {
		r.result, r.err = json.RawMessage(r.fillIDs(v)), nil
		return nil
	})
}

func rpcFailure(a *args) action {
	o := &object{}
	o.addRaw("code", a.nextWord("CODE").json()).addString("message", a.word("MESSAGE")).addRaw("data", a.jsonKey("data"))
	v := o.endObject()
	return plainStep(func(r *request) error {
		r.err = v
		return nil
	})
}

func requireAuth(*args) action {
	return plainStep(func(r *request) error {
		r.agent.mu.Lock()
		defer r.agent.mu.Unlock()
		if !r.agent.authed {
			return &agentside.Error{Code: agentside.CodeAuthRequired, Message: "Authentication required"}
		}
		return nil
	})
}
