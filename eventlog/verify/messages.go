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
	restUnreadable   = message.New("verify.rest-unreadable", "the log cannot be read after event %d: %s")
	noImport         = message.New("verify.no-import",
		"%s: the file lists them as absent, but only an import may lack events, and an import has no anchor "+
			"and no checkpoints")
	absentNoImport = message.New("verify.absent-no-import",
		"%s; the file lists them as absent, but only an import may lack events, and this file is not an import")
	withheldNoImport = message.New("verify.withheld-no-import",
		"%d payloads are listed as withheld, but only an import may withhold payloads, and this file is not an import")
	eventMoved     = message.New("verify.event-moved", "the event with number %d was written as event %d")
	eventLate      = message.New("verify.event-late", "event %d is stored after event %d")
	valueWrong     = message.New("verify.value-wrong", "event %d: a value is missing or has the wrong type")
	payloadChanged = message.New("verify.payload-edited", "event %d: the payload was edited")
	headerChanged  = message.New("verify.header-edited", "event %d: the header was edited")
	payloadMissing = message.New("verify.payload-missing", "event %d: the payload is missing, and nothing says why")
	notFirst       = message.New("verify.not-first", "event 1 here is not the event with which the log %s began")
	eventTwice     = message.New("verify.event-twice",
		"there is more than one event %d, or it is stored at a wrong place")
	impossibleNumber = message.New("verify.impossible-number", "an event has the impossible number %d")
	withoutNumber    = message.New("verify.without-number", "%d events have no number")
	notSubtree       = message.New("verify.not-subtree",
		"the list of absent events in the file is not possible for a log, from event %d on")
	shorter         = message.New("verify.shorter", "the log ends with event %d, but %s covers %d events")
	shorterThanHash = message.New("verify.shorter-than-hash",
		"the log ends with event %d, but a stored hash covers %d events")
	nodesUnreadable = message.New("verify.nodes-unreadable", "the stored hashes of the tree cannot be read: %s")
	nodeWrong       = message.New("verify.node-wrong", "the stored hash over events %d to %d is wrong, or missing")
	nodeDiffers     = message.New("verify.node-differs",
		"the stored hash over events %d to %d does not match these events: the hash was changed, or an "+
			"event from event %d on")
	nodeMissing   = message.New("verify.node-missing", "the hash over events %d to %d is missing")
	nodeMisplaced = message.New("verify.node-misplaced", "a hash is stored at an impossible place: level %d, number %d")
	runListed     = message.New("verify.run-listed",
		"the list of open runs contains run %.80q since event %d, but the events do not show this")
	runUnlisted = message.New("verify.run-unlisted",
		"run %.80q has an intent and no outcome, but is not in the list of open runs")
	runsUnreadable  = message.New("verify.runs-unreadable", "the list of open runs cannot be read: %s")
	checkpointSizes = message.New("verify.checkpoint-sizes",
		"%d checkpoints of the file are stored for an impossible number of events")
	tableMissing  = message.New("verify.table-missing", "the table %s is missing")
	tableOther    = message.New("verify.table-other", "the %s %s does not belong to a log")
	openToChanges = message.New("verify.open-to-changes", "%s; the log accepts changes and additions that it must refuse")
	manyNames     = message.New("verify.many-names",
		"the file has more than one name (hard links), so other programs could write to it through another "+
			"name")
	unsigned    = message.New("verify.unsigned", "none of the requested keys signed a valid checkpoint")
	intentsLost = message.New("verify.intents-lost",
		"the log lost events: %s lists %d calls that were in the log and are no longer there, the first as "+
			"event %d; Perlica will not make them again")
)

// These are descriptions of checkpoints and the faults of checkpoints.
var (
	checkpointOfFile = message.New("verify.checkpoint-of-file", "checkpoint %d of the file")
	someCheckpoint   = message.New("verify.some-checkpoint", "a checkpoint in the file")
	keptElsewhere    = message.New("verify.kept-elsewhere", "the checkpoint kept elsewhere")
	lineOfAnchor     = message.New("verify.line-of-anchor", "line %d of the anchor")
	notHolding       = message.New("verify.not-holding", "%s is not valid: %s")
	otherRoot        = message.New("verify.other-root",
		"%s is not valid: its root hash is not that of the first %d events, although %s confirms these "+
			"events")
	eventsChanged = message.New("verify.events-changed",
		"%s does not match the log: some of the events %d to %d were changed after they were written")
	eventsChangedMore = message.New("verify.events-changed-more",
		"%s and the %d after it do not match the log: some of the events %d to %d were changed after they "+
			"were written")
	ofOtherLog = message.New("verify.of-other-log", "it belongs to another log: %s")
	otherSize  = message.New("verify.other-size",
		"it covers %d events, but it is stored as a checkpoint of %d")
	notStored = message.New("verify.not-stored",
		"the file has another checkpoint for the same number of events")
	badSignature   = message.New("verify.bad-signature", "its signature by %s is not valid")
	lineUnreadable = message.New("verify.line-unreadable", "%s cannot be read: %s")
)

// These are the warnings.
var (
	lineTorn     = message.New("verify.line-torn", "%s is incomplete: a crash cut it short")
	lineUnsigned = message.New("verify.line-unsigned",
		"%s is not signed, although the lines before and after it are: it may have replaced another line")
	lineBare = message.New("verify.line-bare",
		"%s is not signed, although the log contains a signed checkpoint of the same number of events: it "+
			"may have replaced another line")
	newestUnsigned = message.New("verify.newest-unsigned",
		"no known key signed the newest checkpoint (%d events), although older checkpoints up to event %d "+
			"are signed")
	uncheckable = message.New("verify.uncheckable",
		"%s could not be checked: some of its %d events are absent or damaged")
	uncheckedOfFile = message.New("verify.unchecked-of-file",
		"%d checkpoints in the file could not be checked, because their part of the log is absent or "+
			"damaged")
	uncheckedLines = message.New("verify.unchecked-lines",
		"%d lines of the anchor could not be checked, because their part of the log is absent or damaged")
	anchorLarge = message.New("verify.anchor-large",
		"the anchor has %d bytes: only the last %d MiB of it were read, and its lines are counted from there")
	unknownKey = message.New("verify.unknown-key",
		"the log has a signature by a key that is not known here: %s")
	unknownKeys = message.New("verify.unknown-keys",
		"the log has %d signatures by a key that is not known here: %s")
	clockBack      = message.New("verify.clock-back", "the clock went back once, by %s at event %d")
	clockBackOften = message.New("verify.clock-back-often",
		"the clock went back %d times, the first time by %s at event %d")
	intentsUnreadable = message.New("verify.intents-unreadable",
		"the second record of the calls cannot be read: %s")
	intentsMissing = message.New("verify.intents-missing",
		"%s is missing: the next call makes it again from the log")
	intentsShort = message.New("verify.intents-short",
		"%s does not list %d of the calls: another program may have changed the file; the next call adds the missing lines")
	intentsDamaged = message.New("verify.intents-damaged", "%[2]d lines of %[1]s cannot be read")
	intentsUnsure  = message.New("verify.intents-unsure",
		"%s lists %d calls that are not in the log: their process ended before it wrote them there, or is "+
			"still writing; Perlica will not make them again")
	writable = message.New("verify.writable",
		"every user of this machine can write to %[1]s and so replace the log. To prevent this: chmod o-w "+
			"%[1]s")
	withheldWritten = message.New("verify.withheld-written",
		"payloads are withheld as in an import, but events were appended later: if this is not an import, somebody "+
			"removed the payloads")
	noEvidence = message.New("verify.no-evidence",
		"runs have ended, but the log has neither a checkpoint nor an anchor: they were removed, or could "+
			"not be written")
	checkpointsMissing = message.New("verify.checkpoints-missing",
		"checkpoints are missing from the file: the last one has the number %d, but the file contains only "+
			"%d")
	linesAlone = message.New("verify.lines-alone",
		"%d signed lines of the anchor have no checkpoint in the file: the checkpoints were removed")
	endUnsealed = message.New("verify.end-unsealed",
		"the last run ended after the newest checkpoint, which covers %d events: the run's own checkpoint was "+
			"removed, or could not be written")
)
