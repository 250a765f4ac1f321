package language

import (
	"github.com/perlica/perlica/interaction/card"

	"github.com/perlica/perlica/eventlog/message"
)

// Command is a command that a message can give.
type Command struct {
	Name string
	Args string // as help shows them
	Help string
}

// Sentences are all sentences for people, in one language. The comment after a field names its insertions, in their
// order.
type Sentences struct {
	// Name is the language's name in the language itself.
	Name string

	// Durations: the singular and the plural of days, hours, minutes and seconds, and the text between two of them.
	Unit, Units [4]string // the number
	Joint       string

	// Pairing.
	Paired     string
	WrongCode  string
	AdminAlone string

	// The result of a message.
	Ack, ReactionAck string // the second is an emoji
	TooOld           string // its age, the longest age
	NotRead          string // its kind
	Unread           map[string]string
	MayNotAsk        string
	NotSent          string // the error
	Elsewhere        string
	Done             string
	// Silent replaces the answer of an agent that answered nothing.
	Silent  string
	Failed  string // the error, the partial text
	Unknown string // the known details, the partial text, the run
	Died    string // the known details, without a record
	// Interrupted is the last text of a progress message after the bridge died.
	Interrupted    string
	Partial        string // the text
	StoppedBecause string // the reason
	StoppedBy      string // the person
	TokenLimit     string
	EndedWith      string // the agent's stop reason
	StopReasons    map[string]string
	Unasked, Freed string // the number
	Pruned         string
	WholeFile      string
	CutFile        string
	AnswerRefused  string // the error
	NotYours       string

	// Waiting inputs.
	InLine, ForAgent   string // the number
	TakeBack           string
	SendIt, TakeItBack string // buttons
	NotWaiting         string
	NothingUnder       string
	NothingWaits       string
	SeveralHeld        string // the number
	NotHeld            string
	HeldMark           string
	HowToTakeBack      string
	Held               string // the word of the message
	HeldNotYours       string // the sentence Held
	HeldOne            string // the sentence Held
	HeldSeveral        string // the number of questions, the sentence Held
	TakenBack          string
	TakenBackBy        string // the person, the place
	GoesOn             string

	// Questions.
	MayNotSay    string
	InRunOf      string // the person
	Asks         string // title, agent, id
	UseTool      string
	Address      string // the address
	TakesWord    string // the word
	TakesText    string // the number
	CardFile     string // the number of messages that it would take
	ByNumber     string // the id
	ByButton     string // the id
	YesTakesAll  string // the id
	AlwaysBehind string
	Card         card.Words // the words of a question's card
	// Kinds names the kinds of options, by their words in interaction/card.
	Kinds map[string]string
	// Offers names the approvals that Perlica offers to remember, by the option's id.
	Offers      map[string]string
	NotOpen     string
	NotHere     string
	NotWhole    string
	ByID        string // the id
	ByIDAndWord string // the id, the word
	NeedsText   string // the way to answer
	NeedsWord   string // the way to answer
	TooSoon     string // the way to answer
	GivesUp     string // the option, the agent
	TheAgent    string
	WhereMeant  string // the way to answer
	AnsweredBy  string // the person, the time, the place, the option
	BridgeDied  string
	BridgeEnded string
	ClosedWith  string // the reason
	Closings    map[string]string
	WhatItWas   string // the answer, as rows

	// Unsent messages, and messages that may arrive twice.
	// Repeated stands before the message. It is no longer than the English text.
	Repeated      string
	UnsentMessage string
	UnsentCard    string // the question's id
	UnsentFile    string // its name
	UnsentAnswer  string

	// Progress.
	Tool, Tools          string // the last title; the number, the last title
	NotOne               string // its title
	NotOneOf, NotSeveral string // the number, the last title; the number refused, the number, the last title

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
	NoLanguage     string // the typed text

	// Several projects.
	OneProject            string
	ProjectIs, NoProject  string // its name; the typed text
	YouAreHere, NotServed string // after its name
	HowToSwitch           string
	InProject             string // its name
	Unserved, FailedAt    string // its name

	// News from other front ends.
	Follows, FollowsNot string
	NeedsAdmin          string // the command
	AtDesk, EndedAtDesk string // the place, the beginning of the input
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

	// Answers of the commands.
	NotDone string // the error, if it has no sentence of its own
	// Checks names the checks of /doctor and their states.
	Checks           map[string]string
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
	// SeeDoctor names the place with the details of failed checks.
	SeeDoctor     string
	NoSession     string
	NewestTurns   string
	NoTurns       string
	OffLists      string
	KeptAs        string
	InMode        string
	NoModes       string
	UsesModel     string
	NoModels      string
	OptionIs      string
	NoOptions     string
	Revoked       string
	NoApprovals   string
	ApprovalBy    string
	TheSession    string
	ItsAgent      string
	ItsModel      string
	ItsMode       string
	TheProject    string
	TheLog        string
	QuestionsWait string
	UseAs         string
	NoCommand     string
	NoCommandNear string

	// Messages translates the sentences that have a code. It is nil for English.
	Messages map[message.Code]string

	// Recorded translates the record. Nil means that the record is in this language.
	Recorded *Recorded
}
