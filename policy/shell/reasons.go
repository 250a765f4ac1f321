package shell

import "github.com/perlica/perlica/eventlog/message"

// These are the reasons to ask about a command, or to refuse it.
var (
	deedCreates          = message.New("shell.deed-creates", "creates %s")
	deedDownloads        = message.New("shell.deed-downloads", "downloads to %s")
	deedEdits            = message.New("shell.deed-edits", "edits %s")
	deedLocks            = message.New("shell.deed-locks", "locks %s")
	deedMoves            = message.New("shell.deed-moves", "moves %s")
	deedUnpacks          = message.New("shell.deed-unpacks", "unpacks to %s")
	deedWrites           = message.New("shell.deed-writes", "writes to %s")
	doesRun              = message.New("shell.does-run", "runs commands")
	doesWrite            = message.New("shell.does-write", "writes to a file")
	placeAHome           = message.New("shell.place-ahome", "a home directory")
	placeAll             = message.New("shell.place-all", "everything in %s")
	placeHome            = message.New("shell.place-home", "the home directory")
	placeParent          = message.New("shell.place-parent", "a parent of the working directory")
	placeRoot            = message.New("shell.place-root", "the root directory")
	placeSystem          = message.New("shell.place-system", "a system directory")
	placeWorking         = message.New("shell.place-working", "the working directory")
	verbMovesAway        = message.New("shell.verb-moves-away", "moves away")
	verbOverwrites       = message.New("shell.verb-overwrites", "overwrites")
	verbPacks            = message.New("shell.verb-packs", "packs and removes")
	verbRemoves          = message.New("shell.verb-removes", "removes")
	verbRemovesExtra     = message.New("shell.verb-removes-extra", "removes extra files from")
	whyAddress           = message.New("shell.address", "the value of %s is an address: %s")
	whyAnswers           = message.New("shell.answers", "answers or changes something in Perlica's name: %s")
	whyArithmeticCommand = message.New("shell.arithmetic-command",
		"arithmetic runs a command that stands in a text: %s")
	whyArithmeticOnDownload = message.New("shell.arithmetic-on-download",
		"arithmetic on downloaded or decoded text: %s")
	whyChangesOwn        = message.New("shell.changes-own", "%s of Perlica's own files: %s")
	whyChangesPlace      = message.New("shell.changes-place", "%s of %s: %s")
	whyConnectionCommand = message.New("shell.connection-command", "runs a command for a connection: %s")
	whyContainer         = message.New("shell.container", "a container that reaches the whole machine: %s")
	whyCopiesPrivate     = message.New("shell.copies-private",
		"copies something private into the working directory: %s")
	whyDangerousCode = message.New("shell.dangerous-code",
		"code that writes, deletes, starts a process or opens a connection (%s): %s")
	whyDatabase         = message.New("shell.database", "takes data out of a database: %s")
	whyDeletesElsewhere = message.New("shell.deletes-elsewhere", "deletes something on another machine: %s")
	whyDestroys         = message.New("shell.destroys", "%s %s: %s")
	whyDestroysDevice   = message.New("shell.destroys-device", "%s a device: %s")
	whyDestroysOutside  = message.New("shell.destroys-outside", "%s something outside the working directory: %s")
	whyDestroysOwn      = message.New("shell.destroys-own", "%s Perlica's own files: %s")
	whyDrivesDesktop    = message.New("shell.drives-desktop",
		"types into a terminal, drives the desktop or starts something elsewhere: %s")
	whyEditorCommand  = message.New("shell.editor-command", "runs a command from an editor: %s")
	whyEndsContainers = message.New("shell.ends-containers", "ends containers that are not its own: %s")
	whyEndsProcesses  = message.New("shell.ends-processes", "ends processes that are not its own: %s")
	whyForGood        = message.New("shell.for-good", "removes or sends something for good: %s")
	whyForeign        = message.New("shell.foreign",
		"reaches accounts, machines or processes that are not its own: %s")
	whyForkBomb         = message.New("shell.fork-bomb", "a fork bomb: %s")
	whyFunctionMeanings = message.New("shell.function-meanings", "a function with too many meanings: %s")
	whyGitAddress       = message.New("shell.git-address", "changes where git sends or from where it fetches: %s")
	whyGitSubcommand    = message.New("shell.git-subcommand", "%s is not in the table of git's subcommands: %s")
	whyGrants           = message.New("shell.grants", "grants something in Perlica's name: %s")
	whyHiddenRefusal    = message.New("shell.hidden-refusal", "a text that may be a command which is refused: %s")
	whyIfCdFails        = message.New("shell.if-cd-fails", "%s %s if the earlier cd fails: %s")
	whyInstalls         = message.New("shell.installs", "installs or runs something from elsewhere: %s")
	whyLater            = message.New("shell.later", "leaves a command that runs later")
	whyLaterCommand     = message.New("shell.later-command", "leaves a command that runs later: %s")
	whyLeadsOut         = message.New("shell.leads-out",
		"the value of %s leads outside the working directory: %s")
	whyLoadsCode        = message.New("shell.loads-code", "loads code into the shell: %s")
	whyLoadsForeignCode = message.New("shell.loads-foreign-code", "loads code from elsewhere: %s")
	whyLoadsOuterCode   = message.New("shell.loads-outer-code",
		"loads code from outside the working directory: %s")
	whyLong                 = message.New("shell.long", "too long to be judged")
	whyLongLoop             = message.New("shell.long-loop", "too long a loop to be judged")
	whyLosesChanges         = message.New("shell.loses-changes", "loses changes that are in no commit: %s")
	whyLossyPush            = message.New("shell.lossy-push", "a push that may take commits away: %s")
	whyMachine              = message.New("shell.machine", "changes the machine or its services: %s")
	whyMayRemoveUncommitted = message.New("shell.may-remove-uncommitted",
		"removes files that may be in no commit: %s")
	whyMovesAll        = message.New("shell.moves-all", "moves everything away: %s")
	whyMovesToDevice   = message.New("shell.moves-to-device", "moves files onto a device: %s")
	whyNamesCode       = message.New("shell.names-code", "names code that others will run: %s")
	whyNamesGitCode    = message.New("shell.names-git-code", "names code that git will run: %s")
	whyNamesGitProgram = message.New("shell.names-git-program", "names a program that git will run: %s")
	whyNamesLoadedCode = message.New("shell.names-loaded-code", "names code that others will load: %s")
	whyNamesProgram    = message.New("shell.names-program", "names a program that others will run: %s")
	whyNamesRoot       = message.New("shell.names-root",
		"names the root, the home or a folder around the working directory: %s")
	whyNamesShellCode = message.New("shell.names-shell-code", "names code that a shell will run: %s")
	whyNested         = message.New("shell.nested", "nested too deeply to be judged")
	whyNoCheck        = message.New("shell.no-check", "turns off the check of the other machine: %s")
	whyNotShell       = message.New("shell.not-shell", "cannot be parsed: words that no shell can hold")
	whyOpensToOthers  = message.New("shell.opens-to-others", "the value of %s opens it to other machines: %s")
	whyOption         = message.New("shell.option", "an option that needs a person's yes: %s")
	whyOtherMeaning   = message.New("shell.other-meaning", "gives a command another meaning: %s")
	whyOtherSide      = message.New("shell.other-side", "runs a program as the other side: %s")
	whyOthersRights   = message.New("shell.others-rights",
		"changes the rights of files that belong to others: %s")
	whyOuterFile  = message.New("shell.outer-file", "a file outside the working directory: %s")
	whyOuterLink  = message.New("shell.outer-link", "a link that leads outside the working directory: %s")
	whyOuterPatch = message.New("shell.outer-patch", "a patch outside the working directory: %s")
	whyOuterPath  = message.New("shell.outer-path",
		"a %s with a directory outside the working directory and the home: %s")
	whyOuterProgram       = message.New("shell.outer-program", "runs a program outside the working directory: %s")
	whyOuterScript        = message.New("shell.outer-script", "runs a script outside the working directory: %s")
	whyOutside            = message.New("shell.outside", "outside the working directory: %s")
	whyOverwritesDevice   = message.New("shell.overwrites-device", "overwrites a device: %s")
	whyPackingCommand     = message.New("shell.packing-command", "runs a command for the files that it packs: %s")
	whyPrivileges         = message.New("shell.privileges", "changes privileges: %s")
	whyProgram            = message.New("shell.program", "a program that %s: %s")
	whyProxy              = message.New("shell.proxy", "sends downloads through another machine: %s")
	whyReadsOutside       = message.New("shell.reads-outside", "reads a file outside the working directory: %s")
	whyRemovesRoot        = message.New("shell.removes-root", "removes the root directory: %s")
	whyRemovesUncommitted = message.New("shell.removes-uncommitted", "removes files that are in no commit: %s")
	whyRights             = message.New("shell.rights", "changes the rights of %s: %s")
	whyRulesInLine        = message.New("shell.rules-in-line", "rules that stand on the command line: %s")
	whyRunsChanged        = message.New("shell.runs-changed", "runs %s, which this session changed: %s")
	whyRunsChangedCode    = message.New("shell.runs-changed-code",
		"runs code from a file that this session changed: %s")
	whyRunsCommand  = message.New("shell.runs-command", "runs a command: %s")
	whyRunsDownload = message.New("shell.runs-download", "runs downloaded or decoded code: %s")
	whySSHSetting   = message.New("shell.sshsetting",
		"a setting of ssh that may run a command or lead elsewhere: %s")
	whyScriptRuns        = message.New("shell.script-runs", "a script that runs commands: %s")
	whyScriptWrites      = message.New("shell.script-writes", "a script that writes to a file: %s")
	whySendsOuter        = message.New("shell.sends-outer", "sends a file outside the working directory: %s")
	whySendsPrivate      = message.New("shell.sends-private", "sends something private away: %s")
	whySettingInLine     = message.New("shell.setting-in-line", "a setting on the command line: %s")
	whyShellLine         = message.New("shell.shell-line", "hands a line to a shell: %s")
	whyShortPath         = message.New("shell.short-path", "a PATH without its earlier folders: PATH=%s")
	whyTakesProcess      = message.New("shell.takes-process", "takes hold of a process that is not its own: %s")
	whyTouchesOwn        = message.New("shell.touches-own", "touches Perlica's own files: %s")
	whyUnknownAlias      = message.New("shell.unknown-alias", "the text does not tell what the alias runs: %s")
	whyUnknownArithmetic = message.New("shell.unknown-arithmetic",
		"the text does not tell what the arithmetic evaluates: %s")
	whyUnknownCode    = message.New("shell.unknown-code", "the text does not tell what code is run: %s")
	whyUnknownCommand = message.New("shell.unknown-command", "the text does not tell which command this is: %s")
	whyUnknownFile    = message.New("shell.unknown-file", "the text does not tell which script this runs: %s")
	whyUnknownFiles   = message.New("shell.unknown-files",
		"the text does not tell which files this changes: %s")
	whyUnknownInput = message.New("shell.unknown-input",
		"the text does not tell what the shell reads and runs: %s")
	whyUnknownLanguage  = message.New("shell.unknown-language", "a language that cannot be judged: %s")
	whyUnknownLead      = message.New("shell.unknown-lead", "the text does not tell where this leads: %s")
	whyUnknownLink      = message.New("shell.unknown-link", "the text does not tell where the link leads: %s")
	whyUnknownLoss      = message.New("shell.unknown-loss", "the text does not tell what it %s: %s")
	whyUnknownOverwrite = message.New("shell.unknown-overwrite", "the text does not tell what it overwrites: %s")
	whyUnknownPlace     = message.New("shell.unknown-place", "the text does not tell where it %s: %s")
	whyUnknownProgram   = message.New("shell.unknown-program", "%s is not in the table of known programs: %s")
	whyUnknownPrompt    = message.New("shell.unknown-prompt", "the text does not tell what the prompt runs: %s")
	whyUnknownRights    = message.New("shell.unknown-rights",
		"the text does not tell whose rights it changes: %s")
	whyUnknownScript = message.New("shell.unknown-script",
		"the text does not tell what the shell is given to run: %s")
	whyUnknownTarget   = message.New("shell.unknown-target", "the text does not tell what it writes to: %s")
	whyUnknownVariable = message.New("shell.unknown-variable",
		"the text does not tell which variable this is: %s")
	whyUnnamedAddress = message.New("shell.unnamed-address",
		"sends commits to an address that no setting of the project names: %s")
	whyUnpacksAnywhere = message.New("shell.unpacks-anywhere", "unpacks to wherever the archive says: %s")
	whyUnparsed        = message.New("shell.unparsed", "cannot be parsed: %v")
	whyValueCommand    = message.New("shell.value-command", "the value of %s may be a command: %s")
	whyWord            = message.New("shell.word", "a word that needs a person's yes: %s")
	whyWritesDevice    = message.New("shell.writes-device", "writes to a device or a connection: %s")
	whyPatchLink       = message.New("shell.patch-link", "the patch makes a link or a special file, mode %s")
	whyPatchEscapes    = message.New("shell.patch-escapes", "the patch hides a name of a file in escapes")
	whyOdd             = message.New("shell.odd", "%s: %s")
	deedOf             = message.New("shell.deed-of", "%s of %s")
	whySettingsFile    = message.New("shell.settings-file", "a settings file of the home directory: %s")
)

// plantedReasons has the reasons of targets.txt.
var plantedReasons = map[string]*message.Text{
	"git runs it later or keeps its history in it": message.New("shell.planted-git",
		"git runs it later or keeps its history in it: %s"),
	"an agent takes its permissions or its programs from it": message.New("shell.planted-agent",
		"an agent takes its permissions or its programs from it: %s"),
	"a shell or another program reads it when it starts": message.New("shell.planted-shell",
		"a shell or another program reads it when it starts: %s"),
	"an editor or a container runs it when the folder is opened": message.New("shell.planted-editor",
		"an editor or a container runs it when the folder is opened: %s"),
	"a server runs it after a push": message.New("shell.planted-server",
		"a server runs it after a push: %s"),
}

// kinds are ACP's kinds of tools, as words in a reason.
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

// KindText returns a kind of tool as a word in a reason.
func KindText(kind string) *message.Text {
	if t := kinds[kind]; t != nil {
		return t
	}
	return &message.Text{Text: kind}
}
