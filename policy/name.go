package policy

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// role is the meaning of a field's value, derived from the field's name.
type role int

const (
	unknown role = iota
	inert        // a description, a timeout, an id
	text         // search terms, or a message for somebody; the text names no file or command
	body         // text that the call adds to a file or removes from it
	command
	program // a command without its arguments
	args
	argv // a command and its arguments
	commandList
	script // a text for a shell
	stdin
	env
	dir // starting directory of a command; otherwise a path
	path
	glob // a pattern of paths
	address
	patch
	mode
	input // an object with more fields, a patch, or the standard input of a command
)

// general maps the names of fields that have one meaning for every agent. The keys are names as plainName returns
// them.
var general = sync.OnceValue(func() map[string]role {
	return table(map[role]string{
		inert: `description explanation reason justification purpose timeout timeoutms timeoutseconds
		yieldtimems maxoutputtokens id callid toolcallid tooluseid requestid sessionid conversationid threadid turnid
		messageid traceid approvalid requiresapproval`,
		command:     `command cmd commandline cmdline shellcommand bashcommand terminalcommand bash exec execute run`,
		program:     `program executable exe binary`,
		args:        `args arguments parameters params flags options`,
		argv:        `argv commandargv`,
		commandList: `commands cmds steps`,
		script:      `script shellscript scripttext`,
		stdin:       `stdin standardinput stdintext`,
		env:         `env environment envvars environmentvariables envs`,
		dir: `cwd workdir workingdir workingdirectory currentworkingdirectory currentdirectory chdir cd directory dir
			dirpath
		directorypath startdir execdir projectdir`,
		path: `path paths file files filepath filepaths filename filenames fullpath fullfilepath absolutepath
			absolutefilepath
		relativepath relativeworkspacepath target targets targetfile targetfiles targetpath targetdirectory targetdir
		destination destinations destinationpath destinationfile dest destpath dst dstpath source sources sourcepath
		sourcefile src srcpath from frompath to topath oldpath newpath oldfile newfile oldfilepath newfilepath
		folder folders folderpath root rootdir rootpath directories dirs notebookpath location locations output
		outputpath outputfile outfile inputfile inputpath linkpath symlink basepath basedir workspace workspacepath
		workspaceroot savepath saveto movepath read write`,
		glob:    `glob globs globpattern include includes includepattern filepattern`,
		address: `url urls uri uris href link endpoint`,
		patch:   `patch patches patchtext diff diffs unifieddiff patchcontent changes`,
		mode: `mode modeid newmode targetmode approvalmode permissionmode approvalpolicy sandbox sandboxmode ` +
			`sandboxpolicy`,
		input: `input rawinput toolinput payload`,
	})
})

// byKind maps each ACP tool kind to the names of fields that have a meaning only for tools of this kind.
var byKind = sync.OnceValue(func() map[string]map[string]role {
	return map[string]map[string]role{
		"edit":   bodies(),
		"delete": bodies(),
		"move":   bodies(),
		"read":   reads(),
		"search": reads(),
		"fetch":  reads(),
		"think": table(map[role]string{
			text: `prompt thought thoughts todos tasks plan text content subject message question questions query
				activeform agent subagenttype
			intent fact`,
		}),
		"switch_mode": table(map[role]string{text: `plan text content message`}),
	}
})

var bodies = sync.OnceValue(func() map[string]role {
	return table(map[role]string{
		body: `content contents filecontent filecontents filetext text newtext newstring newstr oldtext oldstring
			oldstr newcontent
		oldcontent newsource oldsource codeedit code data insert inserttext replacement replace search replacewith
		instruction instructions newvalue oldvalue`,
		input: `edits replacements hunks operations chunks`,
	})
})

var reads = sync.OnceValue(func() map[string]role {
	return table(map[role]string{
		text: `query queries regex regexp text search searchterm searchquery prompt question questions objective
			keywords
		alloweddomains blockeddomains type filetype headers`,
		glob: `pattern patterns exclude excludes excludepattern ignore`,
	})
})

// table turns lists of names into a map from names to roles.
func table(lists map[role]string) map[string]role {
	out := map[string]role{}
	// The loop follows the order of the roles: a name that occurs twice gets the later role.
	for _, r := range slices.Sorted(maps.Keys(lists)) {
		for name := range strings.FieldsSeq(lists[r]) {
			out[name] = r
		}
	}
	return out
}

// plainName returns a name in lower case, without underscores, hyphens, spaces and dots.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case '_', '-', ' ', '.':
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// roleOf returns the role of a field with this name. It looks first in the agent's own table, then in the table of the
// tool kind, then in the general table.
func (r *reader) roleOf(name string) role {
	name = plainName(name)
	for _, t := range []map[string]role{r.names, byKind()[r.call.Kind], general()} {
		if role, ok := t[name]; ok {
			return role
		}
	}
	if strings.HasSuffix(name, "command") || strings.HasSuffix(name, "cmd") || strings.HasSuffix(name, "script") {
		return script // a script that runs before, after or instead of the command
	}
	return unknown
}

// stopping are parts of the names of modes in which an agent asks for fewer permissions.
var stopping = []string{"bypass", "yolo", "acceptedit", "auto", "dontask", "neverask", "noask", "fullaccess", "danger",
	"never", "unrestricted", "onfailure", "trust"}

// stopsAsking reports whether an agent asks for fewer permissions in the mode with this name.
func stopsAsking(mode string) bool {
	return slices.ContainsFunc(stopping, func(part string) bool { return strings.Contains(plainName(mode), part) })
}

// ofAgent maps each agent to the names of fields that have a meaning for this agent only. The source code of each agent
// shows these names. Names with a meaning for one tool kind stand in byKind, for all agents.
var ofAgent = sync.OnceValue(func() map[string]map[string]role {
	return map[string]map[string]role{
		// @agentclientprotocol/claude-agent-acp 0.49 sends the inputs of Claude Code's own tools.
		"claude": table(map[role]string{
			inert: `subagenttype model activeform headlimit outputmode taskid shellid bashid cellid`,
			text:  `todos questions plan`,
		}),
		// @agentclientprotocol/codex-acp 2.6 sends "command", "cwd", "url" and "additionalPermissions".
		"codex": table(map[role]string{inert: `itemid environmentid reasoningeffort status`}),
		// @google/gemini-cli 0.61 sends no rawInput at all. @qwen-code/qwen-code 0.15 sends the arguments of its
		// tools as the model wrote them.
		"qwen": table(map[role]string{text: `todos plan`}),
		// cline 3.0 sends {commands}, {path, old_text, new_text, insert_line}, {files: [{path, start_line}]}.
		"cline": table(map[role]string{text: `taskprogress`}),
		// pi-acp 0.0.34 sends the arguments of pi's tools.
		"pi": table(map[role]string{inert: `method`}),
	}
})

// titles has the agents that send a command only as the title of the call. In @google/gemini-cli 0.61 the title is the
// command alone, and the call's content has "[in DIR] (description) [background]". Earlier versions append this text to
// the title. Qwen, a fork of Gemini CLI, is not here, because it sends the command in its rawInput. In pi-acp 0.0.34
// the title of a shell command is the command.
var titles = map[string]bool{"gemini": true, "pi": true}
