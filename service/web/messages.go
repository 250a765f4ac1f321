package web

import "github.com/perlica/perlica/eventlog/message"

// These are the sentences for people. Each sentence has a code.
var (
	absoluteDir = message.New("web.absolute-dir",
		"the working directory must be a path inside the project, relative to the project's directory")
	agentEnded = message.New("web.agent-ended",
		"the agent has just ended, so its mode and model could not be set, and nothing was sent")
	agentNotStarted = message.New("web.agent-not-started",
		"the agent cannot be started, so its mode and model could not be set, and nothing was sent: %s")
	agentsUnknown   = message.New("web.agents-unknown", "this server does not know the agents of a worker")
	allClients      = message.New("web.all-clients", "too many ACP clients are connected: close one and try again")
	answerUncounted = message.New("web.answer-uncounted", "the answer does not count: %s")
	askForWebSocket = message.New("web.ask-for-web-socket", "send a request for a WebSocket")
	badAttachments  = message.New("web.bad-attachments", "give at most %d attachments, each with a name")
	badBool         = message.New("web.bad-bool", "%s must be true or false")
	badCursor       = message.New("web.bad-cursor", "the cursor is not valid: start again without a cursor")
	badInputID      = message.New("web.bad-input-id",
		"an input's id is printable ASCII without blanks, 200 bytes at most")
	badKey         = message.New("web.bad-key", "the key cannot be read")
	badNumber      = message.New("web.bad-number", "%s must be a number from %d to %d")
	badPage        = message.New("web.bad-page", "the page marker is not valid: ask for the first page")
	badPermissions = message.New("web.bad-permissions", "permissions must be deny, ask, reads or allow")
	badPhrases     = message.New("web.bad-phrases", "q must be given 1 to 20 times, each time with a phrase")
	badState       = message.New("web.bad-state", "state must be all or open")
	badText        = message.New("web.bad-text", "text must be UTF-8, not empty and not too long")
	badTime        = message.New("web.bad-time", "%s must be a time in the form of RFC 3339")
	bodyTooLarge   = message.New("web.body-too-large", "the body may have at most %d bytes")
	bodyUnread     = message.New("web.body-unread", "the body cannot be read")
	bodyWrong      = message.New("web.body-wrong", "the body is not valid: %s")
	compressed     = message.New("web.compressed", "the body must not be compressed")
	copyOnly       = message.New("web.copy-only", "this is only a copy of the log of %s: %s")
	cursorBeyond   = message.New("web.cursor-beyond",
		"the log has only %d events, but the cursor points to event %d: start again without a cursor")
	forPrograms      = message.New("web.for-programs", "only programs with a token can use this")
	hubFailed        = message.New("web.hub-failed", "the team's hub cannot be used: %s")
	hubHasNot        = message.New("web.hub-has-not", "the hub no longer has this question")
	keysUnused       = message.New("web.keys-unused", "your keys are not used: %s")
	largeAttachments = message.New("web.large-attachments", "the attachments have more than %d bytes")
	laxPermissions   = message.New("web.lax-permissions",
		"the project's permissions are %q; a request can only make them stricter")
	longPath   = message.New("web.long-path", "the path is not in its shortest form")
	manyInputs = message.New("web.many-inputs",
		"%d inputs are already running or waiting, so nothing was sent: try again later")
	manyStreams  = message.New("web.many-streams", "%d streams are already open: close one and try again")
	mayCount     = message.New("web.may-count", "%s did not say whether the answer counts; it may still count")
	modeAsksLess = message.New("web.mode-asks-less",
		"in the mode %q the agent may ask less often; a request can only choose a mode in which the agent "+
			"asks, or does less")
	needsAdmin  = message.New("web.needs-admin", "this needs the right \"admin\", except for your own device")
	needsRight  = message.New("web.needs-right", "this needs the right %q")
	noCopy      = message.New("web.no-copy", "the team has no copy of the log of a worker with this name")
	noDevice    = message.New("web.no-device", "there is no such device")
	noDir       = message.New("web.no-dir", "there is no such working directory")
	noKind      = message.New("web.no-kind", "there is no such kind of text")
	noLogHasIt  = message.New("web.no-log-has-it", "no log contains it")
	noParameter = message.New("web.no-parameter", "there is no parameter %q")
	noProject   = message.New("web.no-project",
		"this server has no such project, or the project has no such context")
	noSession         = message.New("web.no-session", "there is no such session in this project")
	noSuchEvent       = message.New("web.no-such-event", "the log has no event %q")
	noTeam            = message.New("web.no-team", "no team is configured, or it is not shown here")
	noUpgrade         = message.New("web.no-upgrade", "this path cannot change to another protocol")
	noZone            = message.New("web.no-zone", "there is no such time zone")
	notDir            = message.New("web.not-dir", "the working directory is not a directory")
	notJSON           = message.New("web.not-json", "the Content-Type must be application/json")
	nothingHere       = message.New("web.nothing-here", "there is nothing at this path")
	nothingSent       = message.New("web.nothing-sent", "nothing was sent")
	onlyWorkerAppends = message.New("web.only-worker-appends",
		"only its worker can add to it. To send an input to the team, use 'perlica run --team'; to "+
			"continue a session of the team, add -s SESSION")
	otherDigest = message.New("web.other-digest",
		"the digest does not match this question: read the question again")
	otherDir       = message.New("web.other-dir", "the session's agent works in another directory")
	otherInput     = message.New("web.other-input", "another input with this id is already running")
	otherMethod    = message.New("web.other-method", "use the method %s for this path")
	otherOrigin    = message.New("web.other-origin", "the Origin does not belong to this server")
	otherProvider  = message.New("web.other-provider", "the session stays with its agent, %s")
	otherSession   = message.New("web.other-session", "the input was sent in another session before")
	otherSite      = message.New("web.other-site", "the request comes from a page of another site: %s")
	outerDir       = message.New("web.outer-dir", "the working directory leads out of the project")
	pageByGet      = message.New("web.page-by-get", "use the method GET for the page")
	pageConnects   = message.New("web.page-connects", "pages in a browser cannot connect here")
	parameterTwice = message.New("web.parameter-twice", "the parameter %q is given twice")
	projectMissing = message.New("web.project-missing", "the parameter project is missing")
	queryUnread    = message.New("web.query-unread", "the query cannot be read")
	revokedWaiting = message.New("web.revoked-waiting",
		"the device that this input came from was revoked while the input waited; the input did not go to "+
			"the agent")
	runNotUnderWay = message.New("web.run-not-under-way", "run %s is not under way")
	runsEndMakes   = message.New("web.runs-end-makes",
		"%s: Perlica makes one at the end of a run if it has a key")
	severalContexts  = message.New("web.several-contexts", "the project has %d contexts: name one")
	severalIDs       = message.New("web.several-ids", "the input has several different ids, or an empty one")
	startAgain       = message.New("web.start-again", "start again without a cursor")
	stoppedBy        = message.New("web.stopped-by", "stopped by %s")
	stoppedByBecause = message.New("web.stopped-by-because", "stopped by %s: %s")
	unsignedAnswer   = message.New("web.unsigned-answer", "the device did not sign the answer: %s")
	useHostName      = message.New("web.use-host-name", "use one of the host names in the configuration")
	verifyTeam       = message.New("web.verify-team",
		"to verify it with the keys of its worker and its keepers, use 'perlica log verify --team'")
	whyTooLong    = message.New("web.too-long", "the field \"why\" is too long: at most 1000 bytes")
	waitsOnRecord = message.New("web.waits-on-record",
		"the message is saved; it will be sent when the server has started again")
	filesAtWorker  = message.New("web.files-at-worker", "ask on the worker's machine, which has the files and the rules")
	fileUnread     = message.New("web.file-unread", "%s cannot be compared with the record: %s")
	manyRules      = message.New("web.many-rules", "try at most %d rules at a time")
	noRecordedFile = message.New("web.no-recorded-file", "the project has no file %q with a recorded change")
	pathMissing    = message.New("web.path-missing", "give the path of a file in the project")
	reportGone     = message.New("web.report-gone", "the address of the report no longer works: make the report again")
	workerProves   = message.New("web.worker-proves", "only its worker makes proofs of it")
	flowInputsLeft = message.New("web.flow-inputs-left",
		"the flow run %s is cancelled, but the team may still call its inputs: %s")
	flowRunOver  = message.New("web.flow-run-over", "the flow run %s has ended")
	manyFlowRuns = message.New("web.many-flow-runs",
		"%d flow runs are already under way, so nothing was sent: try again later")
	noFlowFile    = message.New("web.no-flow-file", "the project's folder \"flows\" has no flow %q")
	otherFlowFile = message.New("web.other-flow-file", "the flow %s has changed: read it again")
	otherFlowRun  = message.New("web.other-flow-run",
		"the flow run %s began with another file or other inputs: use another id")
	outerFlow   = message.New("web.outer-flow", "the file of the flow %q leads out of the project")
	revokedFlow = message.New("web.revoked-flow",
		"the device that started the flow run was revoked, so no further step begins")
	scheduleRunID = message.New("web.schedule-run-id", "only a schedule starts a flow run with this id")
)
