package language

import "github.com/perlica/perlica/interaction/card"

// Command is a command that can be given by a message.
type Command struct {
	Name string
	Args string // as help shows them
	Help string
}

// Sentences are what a person can be told, in one language. What stands behind a field says what is inserted.
type Sentences struct {
	Name string // of the language, in itself

	// Durations: of one and of several days, hours, minutes and seconds, and what joins two of them.
	Unit, Units [4]string // the number
	Joint       string

	// Pairing.
	Paired     string
	WrongCode  string
	AdminAlone string

	// What comes of a message.
	Ack, ReactionAck string // the second is an emoji
	TooOld           string // its age, the longest age
	NotRead          string // of what kind it is
	Unread           map[string]string
	MayNotAsk        string
	NotSent          string // the error
	Elsewhere        string
	Done             string
	Silent           string // what is said for an agent that said nothing
	Failed           string // the error, the text that had come
	Unknown          string // what is known, the text that had come, the run
	Died             string // what is known where nothing is on record
	Interrupted      string // what a sign of progress says whose bridge died
	Partial          string // the text
	StoppedBecause   string // why
	StoppedBy        string // who
	Reasons          map[string]string
	TokenLimit       string
	EndedWith        string // the agent's stop reason
	StopReasons      map[string]string
	Unasked, Freed   string // how many
	Pruned           string
	WholeFile        string
	CutFile          string
	AnswerRefused    string // the error
	NotYours         string

	// What waits.
	InLine, ForAgent   string // the number
	TakeBack           string
	SendIt, TakeItBack string // buttons
	NotWaiting         string
	NothingUnder       string
	NothingWaits       string
	SeveralHeld        string // how many
	NotHeld            string
	HeldMark           string
	HowToTakeBack      string
	Held               string // the word of the message
	HeldNotYours       string // what Held says
	HeldOne            string // what Held says
	HeldSeveral        string // how many questions, what Held says
	TakenBack          string
	TakenBackBy        string // who, where
	GoesOn             string

	// Questions.
	MayNotSay    string
	InRunOf      string // whose
	Asks         string // title, agent, id
	UseTool      string
	Address      string // the address
	TakesWord    string // the word
	TakesText    string // the number
	CardFile     string // how many messages it would be
	ByNumber     string // the id
	ByButton     string // the id
	YesTakesAll  string // the id
	AlwaysBehind string
	Card         card.Words        // of a question
	Kinds        map[string]string // of options, by their words in interaction/card
	Offers       map[string]string // what Perlica offers to remember, by the option's id
	NotOpen      string
	NotHere      string
	NotWhole     string
	ByID         string // the id
	ByIDAndWord  string // the id, the word
	NeedsText    string // how to answer
	NeedsWord    string // how to answer
	TooSoon      string // how to answer
	GivesUp      string // the option, the agent
	TheAgent     string
	WhereMeant   string // how to answer
	AnsweredBy   string // who, when, from where, the option
	BridgeDied   string
	BridgeEnded  string
	ClosedWith   string // why
	Closings     map[string]string
	WhatItWas    string // what was answered, as rows

	// What cannot be sent, and what may come twice.
	Repeated      string // ahead of the message; no longer than in English
	UnsentMessage string
	UnsentCard    string // the question's id
	UnsentFile    string // its name
	UnsentAnswer  string

	// Progress.
	Tool, Tools          string // the last one's title; how many, the last one's title
	NotOne               string // its title
	NotOneOf, NotSeveral string // of how many, the last one's title; how many, of how many, the last one's title

	// Commands.
	Commands       []Command
	AgentsOwn      string
	SlashSlash     string
	NoExit         string
	NoThoughts     string
	NoAttach       string
	NoResume       string
	NoFolds        string
	NoCopy         string
	NoExport       string // the session
	NoEarlierInput string
	LastInput      string // the text
	OtherSession   string
	Discarded      string
	LanguageIs     string // its name
	Languages      string // the language in use
	NoLanguage     string // what was said

	// Several projects.
	OneProject            string
	ProjectIs, NoProject  string // its name; what was said
	YouAreHere, NotServed string // behind its name
	HowToSwitch           string
	InProject             string // its name
	Unserved, FailedAt    string // its name

	// What happens elsewhere.
	Follows, FollowsNot string
	NeedsAdmin          string // the command
	AtDesk, EndedAtDesk string // where it came from, the beginning of the input
	FailedAtDesk        string // the error
	UnknownAtDesk       string
	RestAtDesk          string // the run
	StillOpen           string // the question's id

	// Questions of a team's workers.
	InTeam         string // the worker, the input's sender, its project, its id
	InTeamUnsigned string // the worker, the input's id
	OfTeam         string // the worker
	TeamUnread     string // the error
	TeamAway       string // the worker
	TeamUnsure     string // the worker
	TeamNoRight    string
	TeamOtherwise  string
	TeamGone       string
	TeamElsewhere  string
	UnsentTeamCard string // the question's id

	// What the commands answer.
	NotDone          string            // the error, where no more is known
	Checks           map[string]string // the names of those of /doctor, and their states
	AskedToStop      string
	StopsElsewhere   string
	Now              string
	NoQuestion       string
	HowToAnswer      string
	WhereMeantChoose string
	Answered         string
	Damaged          string
	Verified         string
	NothingOnLog     string
	Turn             string
	Turns            string
	Call             string
	Calls            string
	Tokens           string
	Stop             string
	ChecksAreWell    string
	SeeDoctor        string // where more is said of checks that are not well
	NoSession        string
	NewestTurns      string
	NoTurns          string
	OffLists         string
	KeptAs           string
	InMode           string
	NoModes          string
	UsesModel        string
	NoModels         string
	OptionIs         string
	NoOptions        string
	Revoked          string
	NoApprovals      string
	ApprovalBy       string
	TheSession       string
	ItsAgent         string
	ItsModel         string
	ItsMode          string
	TheProject       string
	TheLog           string
	QuestionsWait    string
	UseAs            string
	NoCommand        string
	NoCommandNear    string

	// Errors are what errors say that people can get, by the words of the error.
	Errors map[string]string

	// Recorded is what stands on the record; nil: the record is in this language.
	Recorded *Recorded
}
