package policy

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// A role is what a field's name says of its value.
type role int

const (
	unknown role = iota
	inert        // a description, a timeout, an id
	text         // words that are looked for or handed on: they name nothing that is touched
	body         // what is put into a file or taken out of it
	command
	program // a command without its arguments
	args
	argv // a command and its arguments
	commandList
	script // a text for a shell
	stdin
	env
	dir // where a command starts, else a path
	path
	glob // a pattern of paths
	address
	patch
	mode
	input // any of: an object, a patch, or what a command reads
)

// general are the names of fields that mean the same with every agent, without case and
// underscores. What stands here for some kinds of tools only is in byKind.
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
		dir: `cwd workdir workingdir workingdirectory currentworkingdirectory currentdirectory chdir cd directory dir dirpath
		directorypath startdir execdir projectdir`,
		path: `path paths file files filepath filepaths filename filenames fullpath fullfilepath absolutepath absolutefilepath
		relativepath relativeworkspacepath target targets targetfile targetfiles targetpath targetdirectory targetdir
		destination destinations destinationpath destinationfile dest destpath dst dstpath source sources sourcepath
		sourcefile src srcpath from frompath to topath oldpath newpath oldfile newfile oldfilepath newfilepath
		folder folders folderpath root rootdir rootpath directories dirs notebookpath location locations output
		outputpath outputfile outfile inputfile inputpath linkpath symlink basepath basedir workspace workspacepath
		workspaceroot savepath saveto movepath read write`,
		glob:    `glob globs globpattern include includes includepattern filepattern`,
		address: `url urls uri uris href link endpoint`,
		patch:   `patch patches patchtext diff diffs unifieddiff patchcontent changes`,
		mode:    `mode modeid newmode targetmode approvalmode permissionmode approvalpolicy sandbox sandboxmode sandboxpolicy`,
		input:   `input rawinput toolinput payload`,
	})
})

// byKind are the names that mean something with tools of a kind only.
var byKind = sync.OnceValue(func() map[string]map[string]role {
	return map[string]map[string]role{
		"edit":   bodies(),
		"delete": bodies(),
		"move":   bodies(),
		"read":   reads(),
		"search": reads(),
		"fetch":  reads(),
		"think": table(map[role]string{
			text: `prompt thought thoughts todos tasks plan text content subject message question questions query activeform agent subagenttype
			intent fact`,
		}),
		"switch_mode": table(map[role]string{text: `plan text content message`}),
	}
})

var bodies = sync.OnceValue(func() map[string]role {
	return table(map[role]string{
		body: `content contents filecontent filecontents filetext text newtext newstring newstr oldtext oldstring oldstr newcontent
		oldcontent newsource oldsource codeedit code data insert inserttext replacement replace search replacewith
		instruction instructions newvalue oldvalue`,
		input: `edits replacements hunks operations chunks`,
	})
})

var reads = sync.OnceValue(func() map[string]role {
	return table(map[role]string{
		text: `query queries regex regexp text search searchterm searchquery prompt question questions objective keywords
		alloweddomains blockeddomains type filetype headers`,
		glob: `pattern patterns exclude excludes excludepattern ignore`,
	})
})

// table turns lists of names into a table of roles.
func table(lists map[role]string) map[string]role {
	out := map[string]role{}
	// In the order of the roles: of a name that stands twice the later role counts.
	for _, r := range slices.Sorted(maps.Keys(lists)) {
		for name := range strings.FieldsSeq(lists[r]) {
			out[name] = r
		}
	}
	return out
}

// plainName is a name without case, underscores and the like.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case '_', '-', ' ', '.':
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// roleOf looks a name up: with the agent, with the kind, then with all.
func (r *reader) roleOf(name string) role {
	name = plainName(name)
	for _, t := range []map[string]role{r.names, byKind()[r.call.Kind], general()} {
		if role, ok := t[name]; ok {
			return role
		}
	}
	if strings.HasSuffix(name, "command") || strings.HasSuffix(name, "cmd") || strings.HasSuffix(name, "script") {
		return script // one that runs before or after, or instead
	}
	return unknown
}

// stopping are parts of the names of modes in which agents ask less or nothing.
var stopping = []string{"bypass", "yolo", "acceptedit", "auto", "dontask", "neverask", "noask", "fullaccess", "danger", "never", "unrestricted", "onfailure", "trust"}

// stopsAsking says whether a mode of that name is one in which agents ask less.
func stopsAsking(mode string) bool {
	return slices.ContainsFunc(stopping, func(part string) bool { return strings.Contains(plainName(mode), part) })
}

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

// titles are the agents whose title is the command where they say it nowhere else.
// @google/gemini-cli 0.61: the title is the command alone, and the content tells
// "[in DIR] (description) [background]"; earlier ones have that after the command. Qwen, which
// came of it, sends its tools' arguments. pi-acp 0.0.34: the title of a shell command is the command.
var titles = map[string]bool{"gemini": true, "pi": true}
