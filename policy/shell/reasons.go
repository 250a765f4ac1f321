package shell

import "github.com/perlica/perlica/eventlog/message"

// These are the reasons to ask about a command, or to refuse it.
var (
	deedCreates      = message.New("shell.deed-creates", "creates %s")
	deedDownloads    = message.New("shell.deed-downloads", "downloads to %s")
	deedEdits        = message.New("shell.deed-edits", "edits %s")
	deedLocks        = message.New("shell.deed-locks", "locks %s")
	deedMoves        = message.New("shell.deed-moves", "moves %s")
	deedUnpacks      = message.New("shell.deed-unpacks", "unpacks to %s")
	deedWrites       = message.New("shell.deed-writes", "writes to %s")
	doesRun          = message.New("shell.does-run", "runs commands")
	doesWrite        = message.New("shell.does-write", "writes to a file")
	placeAHome       = message.New("shell.place-ahome", "a user's home directory")
	placeAll         = message.New("shell.place-all", "everything in %s")
	placeHome        = message.New("shell.place-home", "the home directory")
	placeParent      = message.New("shell.place-parent", "a directory above the working directory")
	placeRoot        = message.New("shell.place-root", "the root directory")
	placeSystem      = message.New("shell.place-system", "a system directory")
	placeWorking     = message.New("shell.place-working", "the working directory")
	verbMovesAway    = message.New("shell.verb-moves-away", "moves away")
	verbOverwrites   = message.New("shell.verb-overwrites", "overwrites")
	verbPacks        = message.New("shell.verb-packs", "packs and removes")
	verbRemoves      = message.New("shell.verb-removes", "removes")
	verbRemovesExtra = message.New("shell.verb-removes-extra",
		"deletes files that the source does not have from")
	whyAddress = message.New("shell.address", "the value of %s is an address: %s")
	whyAnswers = message.New("shell.answers",
		"answers a question or changes something in Perlica's name: %s")
	whyArithmeticCommand = message.New("shell.arithmetic-command",
		"the arithmetic expression contains a command, which the shell will run: %s")
	whyArithmeticOnDownload = message.New("shell.arithmetic-on-download",
		"evaluates downloaded or decoded text as arithmetic: %s")
	whyChangesOwn        = message.New("shell.changes-own", "the agent would change Perlica's own files (%s): %s")
	whyChangesPlace      = message.New("shell.changes-place", "the agent would change %[2]s (%[1]s): %[3]s")
	whyConnectionCommand = message.New("shell.connection-command", "runs a command when a connection is made: %s")
	whyContainer         = message.New("shell.container",
		"starts a container that can reach the whole machine: %s")
	whyCopiesPrivate = message.New("shell.copies-private",
		"copies private data into the working directory: %s")
	whyDangerousCode = message.New("shell.dangerous-code",
		"the code writes, deletes, starts a process or opens a connection (%s): %s")
	whyDatabase         = message.New("shell.database", "deletes data from a database: %s")
	whyDeletesElsewhere = message.New("shell.deletes-elsewhere", "deletes something on another machine: %s")
	whyDestroys         = message.New("shell.destroys", "%s %s: %s")
	whyDestroysDevice   = message.New("shell.destroys-device", "%s a device: %s")
	whyDestroysOutside  = message.New("shell.destroys-outside", "%s something outside the working directory: %s")
	whyDestroysOwn      = message.New("shell.destroys-own", "%s Perlica's own files: %s")
	whyDrivesDesktop    = message.New("shell.drives-desktop",
		"types into a terminal, controls the desktop or starts a program elsewhere: %s")
	whyEditorCommand    = message.New("shell.editor-command", "runs a command from an editor: %s")
	whyEndsContainers   = message.New("shell.ends-containers", "stops or removes all containers of this machine: %s")
	whyEndsProcesses    = message.New("shell.ends-processes", "may end processes that the agent did not start: %s")
	whyForGood          = message.New("shell.for-good", "removes or sends something that cannot be taken back: %s")
	whyForeign          = message.New("shell.foreign", "reaches other accounts, machines or processes: %s")
	whyForkBomb         = message.New("shell.fork-bomb", "a fork bomb, which starts processes without end: %s")
	whyFunctionMeanings = message.New("shell.function-meanings",
		"the function has too many definitions to be judged: %s")
	whyGitAddress = message.New("shell.git-address",
		"changes the address that git sends to or fetches from: %s")
	whyGitSubcommand = message.New("shell.git-subcommand",
		"%s is a git subcommand that Perlica does not know: %s")
	whyGrants = message.New("shell.grants", "gives permissions in Perlica's name: %s")
	whyHidden = message.New("shell.hidden",
		"the sandbox %s hides %s from this command: it will fail there")
	whyHiddenRefusal = message.New("shell.hidden-refusal",
		"contains text that may be a command that Perlica refuses: %s")
	whyIfCdFails    = message.New("shell.if-cd-fails", "%s %s if the earlier cd fails: %s")
	whyInstalls     = message.New("shell.installs", "installs or runs a program from elsewhere: %s")
	whyLater        = message.New("shell.later", "sets up a command that runs later")
	whyLaterCommand = message.New("shell.later-command", "sets up a command that runs later: %s")
	whyLeadsOut     = message.New("shell.leads-out",
		"the value of %s leads outside the working directory: %s")
	whyLoadsCode        = message.New("shell.loads-code", "loads code into the shell: %s")
	whyLoadsForeignCode = message.New("shell.loads-foreign-code", "loads code from elsewhere: %s")
	whyLoadsOuterCode   = message.New("shell.loads-outer-code",
		"loads code from outside the working directory: %s")
	whyLong         = message.New("shell.long", "the command is too long to be judged")
	whyLongLoop     = message.New("shell.long-loop", "the loop is too long to be judged")
	whyLosesChanges = message.New("shell.loses-changes", "loses uncommitted changes: %s")
	whyLossyPush    = message.New("shell.lossy-push",
		"this push may remove commits from the remote repository: %s")
	whyMachine              = message.New("shell.machine", "changes this machine or its services: %s")
	whyMayRemoveUncommitted = message.New("shell.may-remove-uncommitted",
		"removes files that may be uncommitted: %s")
	whyMovesAll        = message.New("shell.moves-all", "moves all files away: %s")
	whyMovesToDevice   = message.New("shell.moves-to-device", "moves files to a device: %s")
	whyNamesCode       = message.New("shell.names-code", "names code that another program will run: %s")
	whyNamesGitCode    = message.New("shell.names-git-code", "names code that git will run: %s")
	whyNamesGitProgram = message.New("shell.names-git-program", "names a program that git will run: %s")
	whyNamesLoadedCode = message.New("shell.names-loaded-code", "names code that another program will load: %s")
	whyNamesProgram    = message.New("shell.names-program", "names a program that another program will run: %s")
	whyNamesRoot       = message.New("shell.names-root",
		"names the root directory, the home directory or a directory that contains the working directory: "+
			"%s")
	whyNamesShellCode = message.New("shell.names-shell-code", "names code that a shell will run: %s")
	whyNested         = message.New("shell.nested", "the command is nested too deeply to be judged")
	whyNoCheck        = message.New("shell.no-check", "does not verify the identity of the remote machine: %s")
	whyNotInside      = message.New("shell.not-inside",
		"%s needs more than the sandbox %s gives: this command will fail there")
	whyNotListed = message.New("shell.not-listed",
		"the sandbox %s does not let this command connect to %s: it will fail there")
	whyNotShell = message.New("shell.not-shell",
		"cannot be parsed: the command contains characters that no shell accepts")
	whyOpensToOthers = message.New("shell.opens-to-others", "the value of %s lets other machines connect: %s")
	whyOption        = message.New("shell.option", "has an option that a person must allow: %s")
	whyOtherMeaning  = message.New("shell.other-meaning", "redefines a command: %s")
	whyOtherSide     = message.New("shell.other-side", "runs a program in place of the remote server: %s")
	whyOthersRights  = message.New("shell.others-rights", "changes the rights of files that belong to others: %s")
	whyOuterFile     = message.New("shell.outer-file", "uses a file outside the working directory: %s")
	whyOuterLink     = message.New("shell.outer-link", "makes a link that leads outside the working directory: %s")
	whyOuterPatch    = message.New("shell.outer-patch",
		"applies a patch from or to a path outside the working directory: %s")
	whyOuterPath = message.New("shell.outer-path",
		"%s names a directory outside the working directory and the home directory: %s")
	whyOuterProgram     = message.New("shell.outer-program", "runs a program outside the working directory: %s")
	whyOuterScript      = message.New("shell.outer-script", "runs a script outside the working directory: %s")
	whyOutside          = message.New("shell.outside", "outside the working directory: %s")
	whyOverwritesDevice = message.New("shell.overwrites-device", "overwrites a device: %s")
	whyPackingCommand   = message.New("shell.packing-command", "runs a command while it packs files: %s")
	whyPrivileges       = message.New("shell.privileges", "gives a program other user rights: %s")
	whyProgram          = message.New("shell.program", "contains a program that %s: %s")
	whyProxy            = message.New("shell.proxy", "sends data through another machine: %s")
	whyReadOnly         = message.New("shell.read-only",
		"the sandbox %s does not let this command write to %s: it will fail there")
	whyReadsOutside       = message.New("shell.reads-outside", "reads a file outside the working directory: %s")
	whyRemovesRoot        = message.New("shell.removes-root", "removes the root directory: %s")
	whyRemovesUncommitted = message.New("shell.removes-uncommitted", "removes uncommitted files: %s")
	whyRights             = message.New("shell.rights", "changes the rights of %s: %s")
	whyRulesInLine        = message.New("shell.rules-in-line", "gives make rules on the command line: %s")
	whyRunsChanged        = message.New("shell.runs-changed", "runs %s, which this session changed: %s")
	whyRunsChangedCode    = message.New("shell.runs-changed-code",
		"runs code from a file that this session changed: %s")
	whyRunsCommand  = message.New("shell.runs-command", "runs a command: %s")
	whyRunsDownload = message.New("shell.runs-download", "runs downloaded or decoded code: %s")
	whySSHSetting   = message.New("shell.sshsetting",
		"this ssh setting may run a command or connect elsewhere: %s")
	whyScriptRuns    = message.New("shell.script-runs", "contains a script that runs commands: %s")
	whyScriptWrites  = message.New("shell.script-writes", "contains a script that writes to a file: %s")
	whySendsOuter    = message.New("shell.sends-outer", "sends a file outside the working directory: %s")
	whySendsPrivate  = message.New("shell.sends-private", "sends private data away: %s")
	whySettingInLine = message.New("shell.setting-in-line", "changes settings on the command line: %s")
	whyShellLine     = message.New("shell.shell-line", "gives a command line to a shell: %s")
	whyShortPath     = message.New("shell.short-path", "PATH loses its earlier directories: PATH=%s")
	whyTakesProcess  = message.New("shell.takes-process",
		"takes control of a process that the agent did not start: %s")
	whyToolHidden = message.New("shell.tool-hidden",
		"the sandbox %s hides %s from this tool: it will fail there")
	whyToolReadOnly = message.New("shell.tool-read-only",
		"the sandbox %s does not let this tool write to %s: it will fail there")
	whyTouchesOwn   = message.New("shell.touches-own", "touches Perlica's own files: %s")
	whyUnknownAlias = message.New("shell.unknown-alias",
		"the command that the git alias runs is known only at run time: %s")
	whyUnknownArithmetic = message.New("shell.unknown-arithmetic",
		"the arithmetic expression is known only at run time: %s")
	whyUnknownCode    = message.New("shell.unknown-code", "the code is known only at run time: %s")
	whyUnknownCommand = message.New("shell.unknown-command", "the program is known only at run time: %s")
	whyUnknownFile    = message.New("shell.unknown-file", "the script is known only at run time: %s")
	whyUnknownFiles   = message.New("shell.unknown-files", "changes files that are known only at run time: %s")
	whyUnknownInput   = message.New("shell.unknown-input",
		"the shell will run its input, which is known only at run time: %s")
	whyUnknownLanguage  = message.New("shell.unknown-language", "Perlica cannot judge code in this language: %s")
	whyUnknownLead      = message.New("shell.unknown-lead", "the file is known only at run time: %s")
	whyUnknownLink      = message.New("shell.unknown-link", "the target of the link is known only at run time: %s")
	whyUnknownLoss      = message.New("shell.unknown-loss", "%s something that is known only at run time: %s")
	whyUnknownOverwrite = message.New("shell.unknown-overwrite",
		"overwrites something that is known only at run time: %s")
	whyUnknownPlace = message.New("shell.unknown-place",
		"%s something in a directory that is known only at run time: %s")
	whyUnknownProgram = message.New("shell.unknown-program", "%s is a program that Perlica does not know: %s")
	whyUnknownPrompt  = message.New("shell.unknown-prompt",
		"expands text as a shell prompt, which may run commands: %s")
	whyUnknownRights = message.New("shell.unknown-rights",
		"changes the rights of files that are known only at run time: %s")
	whyUnknownScript = message.New("shell.unknown-script",
		"the shell runs code that is known only at run time: %s")
	whyUnknownTarget   = message.New("shell.unknown-target", "writes to a file that is known only at run time: %s")
	whyUnknownVariable = message.New("shell.unknown-variable", "the variable is known only at run time: %s")
	whyUnnamedAddress  = message.New("shell.unnamed-address",
		"sends commits to an address that is not in the project's settings: %s")
	whyUnpacksAnywhere = message.New("shell.unpacks-anywhere",
		"unpacks files to the paths that the archive names: %s")
	whyUnparsed     = message.New("shell.unparsed", "cannot be parsed: %v")
	whyValueCommand = message.New("shell.value-command", "the value of %s may be a command: %s")
	whyWord         = message.New("shell.word", "has an argument that a person must allow: %s")
	whyWritesDevice = message.New("shell.writes-device", "writes to a device or a connection: %s")
	whyPatchLink    = message.New("shell.patch-link", "the patch makes a link or a special file (mode %s)")
	whyPatchEscapes = message.New("shell.patch-escapes",
		"the patch hides the name of a file in escape sequences")
	whyOdd          = message.New("shell.odd", "%s: %s")
	deedOf          = message.New("shell.deed-of", "%s of %s")
	whySettingsFile = message.New("shell.settings-file", "a settings file in the home directory: %s")
)

// plantedReasons maps the titles in targets.txt to the reasons that a person sees.
var plantedReasons = map[string]*message.Text{
	"git runs it later or keeps its history in it": message.New("shell.planted-git",
		"git runs this file later or keeps its history in it: %s"),
	"an agent takes its permissions or its programs from it": message.New("shell.planted-agent",
		"an agent takes its permissions or its programs from this file: %s"),
	"a shell or another program reads it when it starts": message.New("shell.planted-shell",
		"a shell or another program reads this file when it starts: %s"),
	"an editor or a container runs it when the folder is opened": message.New("shell.planted-editor",
		"an editor or a container runs this file when the folder is opened: %s"),
	"a server runs it after a push": message.New("shell.planted-server",
		"a server runs this file after a push: %s"),
}

// kinds maps each tool kind of ACP to a word for a reason.
var kinds = map[string]*message.Text{
	"read":        message.New("kind.read", "read"),
	"edit":        message.New("kind.edit", "edit"),
	"delete":      message.New("kind.delete", "delete"),
	"move":        message.New("kind.move", "move"),
	"search":      message.New("kind.search", "search"),
	"execute":     message.New("kind.execute", "execute"),
	"think":       message.New("kind.think", "think"),
	"fetch":       message.New("kind.fetch", "fetch"),
	"switch_mode": message.New("kind.switch-mode", "switch_mode"),
	"other":       message.New("kind.other", "other"),
	"change":      message.New("kind.change", "change"),
}

// KindText returns the word for a tool kind in a reason.
func KindText(kind string) *message.Text {
	if t := kinds[kind]; t != nil {
		return t
	}
	return &message.Text{Text: kind}
}
