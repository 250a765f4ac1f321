package verify

import "github.com/perlica/perlica/eventlog/message"

// These are the faults of the events, of the stored hashes, of the lists and of the schema.
var (
	eventMissing  = message.New("verify.event-missing", "event %d is missing")
	eventsMissing = message.New("verify.events-missing", "events %d to %d are missing")
	eventCut      = message.New("verify.event-cut", "event %d is missing, and all later events were renumbered")
	eventsCut     = message.New("verify.events-cut", "events %d to %d are missing, and all later events were renumbered")
	eventAdded    = message.New("verify.event-added", "event %d was inserted, and all later events were renumbered")
	eventsAdded   = message.New("verify.events-added",
		"events %d to %d were inserted, and all later events were renumbered")
	eventUnreadable  = message.New("verify.event-unreadable", "event %d cannot be read: %s")
	eventsUnreadable = message.New("verify.events-unreadable", "events %d to %d cannot be read: %s")
	restUnreadable   = message.New("verify.rest-unreadable", "something after event %d cannot be read: %s")
	noImport         = message.New("verify.no-import",
		"%s: the file lists them as absent, but only an import may lack events, and an import has no anchor "+
			"and no checkpoints")
	absentNoImport = message.New("verify.absent-no-import",
		"%s; the file lists them as absent, but only an import may lack events, and this file is not an import")
	withheldNoImport = message.New("verify.withheld-no-import",
		"%d payloads are listed as withheld, but only an import may withhold payloads, and this file is not an import")
	eventMoved       = message.New("verify.event-moved", "the event with number %d was written as event %d")
	eventLate        = message.New("verify.event-late", "event %d stands after event %d")
	valueWrong       = message.New("verify.value-wrong", "event %d: a value is missing or of another kind")
	payloadChanged   = message.New("verify.payload-edited", "event %d: the payload was edited")
	headerChanged    = message.New("verify.header-edited", "event %d: the header was edited")
	payloadMissing   = message.New("verify.payload-missing", "event %d: the payload is missing, and nothing says why")
	notFirst         = message.New("verify.not-first", "event 1 is not the first of %s")
	eventTwice       = message.New("verify.event-twice", "there is more than one event %d, or it stands at a wrong place")
	impossibleNumber = message.New("verify.impossible-number", "an event has the impossible number %d")
	withoutNumber    = message.New("verify.without-number", "%d events have no number")
	notSubtree       = message.New("verify.not-subtree",
		"the absent events from event %d on do not form a part of a tree")
	shorter         = message.New("verify.shorter", "the log ends with event %d, and %s covers %d")
	shorterThanHash = message.New("verify.shorter-than-hash", "the log ends with event %d, and a stored hash covers %d")
	nodesUnreadable = message.New("verify.nodes-unreadable", "the stored hashes of the tree cannot be read: %s")
	nodeWrong       = message.New("verify.node-wrong", "the stored hash over events %d to %d is wrong, or missing")
	nodeDiffers     = message.New("verify.node-differs",
		"the stored hash over events %d to %d does not match these events: either the hash was changed, or "+
			"an event from event %d on")
	nodeMissing   = message.New("verify.node-missing", "the hash over events %d to %d is missing")
	nodeMisplaced = message.New("verify.node-misplaced", "a hash is stored at an impossible place: level %d, number %d")
	runListed     = message.New("verify.run-listed",
		"run %.80q is listed as open by event %d, and that does not follow from the events")
	runUnlisted = message.New("verify.run-unlisted",
		"run %.80q has an intent and no outcome, and is not listed as open")
	runsUnreadable  = message.New("verify.runs-unreadable", "the list of open runs: %s")
	checkpointSizes = message.New("verify.checkpoint-sizes",
		"%d checkpoints of the file are stored for an impossible number of events")
	tableMissing  = message.New("verify.table-missing", "the table %s is missing")
	tableOther    = message.New("verify.table-other", "the %s %s does not belong to a log")
	openToChanges = message.New("verify.open-to-changes", "%s; the log accepts changes and additions that it must refuse")
	manyNames     = message.New("verify.many-names",
		"the file has more than one name (hard links), and others could write to it through each of them")
	unsigned    = message.New("verify.unsigned", "no valid checkpoint is signed by a requested key")
	intentsLost = message.New("verify.intents-lost",
		"the log lost events: %s names %d calls that the log had on disk and no longer has, the first as "+
			"event %d; they count as called")
)

// These are descriptions of checkpoints and the faults of checkpoints.
var (
	checkpointOfFile = message.New("verify.checkpoint-of-file", "checkpoint %d of the file")
	someCheckpoint   = message.New("verify.some-checkpoint", "a checkpoint in the file")
	keptElsewhere    = message.New("verify.kept-elsewhere", "the checkpoint kept elsewhere")
	lineOfAnchor     = message.New("verify.line-of-anchor", "line %d of the anchor")
	notHolding       = message.New("verify.not-holding", "%s does not hold: %s")
	otherRoot        = message.New("verify.other-root",
		"%s does not hold: its root differs from the root of the first %d events, which %s also covers")
	eventsChanged = message.New("verify.events-changed",
		"%s does not hold: some of the events %d to %d were changed after they were written")
	eventsChangedMore = message.New("verify.events-changed-more",
		"%s does not hold, and neither do %d after it: some of the events %d to %d were changed after they were "+
			"written")
	ofOtherLog     = message.New("verify.of-other-log", "it belongs to another log: %s")
	otherSize      = message.New("verify.other-size", "it covers %d events and is stored for %d")
	notStored      = message.New("verify.not-stored", "it is not the checkpoint that is stored for as many events")
	badSignature   = message.New("verify.bad-signature", "its signature by %s does not hold")
	lineUnreadable = message.New("verify.line-unreadable", "%s cannot be read: %s")
)

// These are the warnings.
var (
	lineTorn     = message.New("verify.line-torn", "%s is torn: a crash cut it short")
	lineUnsigned = message.New("verify.line-unsigned",
		"%s is not signed, although the lines before and after it are: it may have replaced another line")
	lineBare = message.New("verify.line-bare",
		"%s is not signed, although a signed checkpoint of as many events is stored with the log: it may "+
			"have replaced another line")
	newestUnsigned = message.New("verify.newest-unsigned",
		"the newest checkpoint, of %d events, is not signed by a key that is known here, and older ones are, up to event %d")
	uncheckable = message.New("verify.uncheckable",
		"%s could not be checked: some of its %d events are absent or damaged")
	uncheckedOfFile = message.New("verify.unchecked-of-file",
		"checkpoints of the file that could not be checked, in a part that is absent or damaged: %d")
	uncheckedLines = message.New("verify.unchecked-lines",
		"lines of the anchor that could not be checked, in a part that is absent or damaged: %d")
	anchorLarge = message.New("verify.anchor-large",
		"the anchor has %d bytes: only the last %d MiB of it were read, and its lines are counted from there")
	unknownKey        = message.New("verify.unknown-key", "a signature by a key that is not known here: %s")
	unknownKeys       = message.New("verify.unknown-keys", "%d signatures by a key that is not known here: %s")
	clockBack         = message.New("verify.clock-back", "the clock went back once, first by %s at event %d")
	clockBackOften    = message.New("verify.clock-back-often", "the clock went back %d times, first by %s at event %d")
	intentsUnreadable = message.New("verify.intents-unreadable", "the second place of the intents cannot be read: %s")
	intentsMissing    = message.New("verify.intents-missing", "%s is missing: the next call makes it from the log")
	intentsShort      = message.New("verify.intents-short",
		"%s does not name %d of the calls: the next call adds them, or it was changed by others")
	intentsDamaged = message.New("verify.intents-damaged", "lines of %s that cannot be read: %d")
	intentsUnsure  = message.New("verify.intents-unsure",
		"%s names %d calls whose intents were being written and are not in the log: their process ended, or "+
			"is still writing; they count as called")
	writable = message.New("verify.writable",
		"every user of this machine can write %[1]s, and replace the log: chmod o-w %[1]s")
	withheldWritten = message.New("verify.withheld-written",
		"payloads are withheld as in an import, but events were appended later: if this is not an import, somebody "+
			"removed the payloads")
	noEvidence = message.New("verify.no-evidence",
		"runs have ended, and there is neither a checkpoint nor an anchor of them: they were removed, or "+
			"could not be written")
	checkpointsMissing = message.New("verify.checkpoints-missing",
		"checkpoints of the file are missing: their numbers end at %d, and their count is %d")
	linesAlone = message.New("verify.lines-alone",
		"signed lines of the anchor without a checkpoint in the file: %d; the checkpoints were removed")
	endUnsealed = message.New("verify.end-unsealed",
		"the last run ended after the newest checkpoint, which covers %d events: the run's own checkpoint was "+
			"removed, or could not be written")
)
