package language

import (
	"github.com/perlica/perlica/interaction/card"

	"github.com/perlica/perlica/eventlog/message"
)

// Command is a command in the help text of a phone.
type Command struct {
	Name string
	Args string // as the help text shows them
	Help string
}

// Sentences has all sentences for people, in one language. The comment after a field lists the values that are
// inserted, in their order.
type Sentences struct {
	// Name is the language's name in the language itself.
	Name string

	// Durations: the singular and the plural of days, hours, minutes and seconds. Joint goes between two units.
	Unit, Units [4]string // the number
	Joint       string

	// Pairing.
	Paired     string
	WrongCode  string
	AdminAlone string

	// Sentences about the result of a message.
	Ack, ReactionAck string // ReactionAck is an emoji
	TooOld           string // the message's age, the maximum age
	NotRead          string // the kind of the message
	Unread           map[string]string
	MayNotAsk        string
	NotSent          string // the error
	Elsewhere        string
	Done             string
	// Silent is sent instead of an empty answer.
	Silent  string
	Failed  string // the error, the partial text
	Unknown string // the known details, the partial text, the run
	// Interrupted is the final text of a progress message if its bridge died.
	Interrupted    string
	Partial        string // the part of the answer that arrived
	StoppedBecause string // the reason
	StoppedBy      string // the person
	TokenLimit     string
	EndedWith      string // the agent's stop reason
	StopReasons    map[string]string
	Unasked, Freed string // the number of tool calls
	Pruned         string
	WholeFile      string
	CutFile        string
	AnswerRefused  string // the error
	NotYours       string

	// Sentences about waiting inputs.
	InLine, ForAgent   string // the position in the line
	TakeBack           string
	SendIt, TakeItBack string // labels of buttons
	NotWaiting         string
	NothingUnder       string
	NothingWaits       string
	SeveralHeld        string // the number of messages
	NotHeld            string
	HeldMark           string
	HowToTakeBack      string
	Held               string // the number of the message
	HeldNotYours       string // the sentence Held
	HeldOne            string // the sentence Held
	HeldSeveral        string // the number of questions, the sentence Held
	TakenBack          string
	TakenBackBy        string // the person, the front end
	GoesOn             string

	// Sentences about questions.
	MayNotSay    string
	InRunOf      string // the sender of the input
	Asks         string // title, agent, id
	UseTool      string
	Address      string // the address
	TakesWord    string // the word
	TakesText    string // the number of the option
	CardFile     string // the number of messages that the whole question needs
	ByNumber     string // the id
	ByButton     string // the id
	YesTakesAll  string // the id
	AlwaysBehind string
	Card         card.Words // the words on a question's card
	// Kinds has the names of the kinds of options, by the words of interaction/card.
	Kinds map[string]string
	// Offers has the labels of the approvals that Perlica offers to remember, by a part of the option's id.
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
	WhatItWas   string // the answer, as lines of a card

	// Sentences about unsent messages, and about messages that may arrive twice. Repeated goes before such a message.
	// It must not be longer than in English.
	Repeated      string
	UnsentMessage string
	UnsentCard    string // the question's id
	UnsentFile    string // the file's name
	UnsentAnswer  string

	// Sentences about progress.
	Tool, Tools          string // the last title; the number and the last title
	NotOne               string // the title
	NotOneOf, NotSeveral string // the number, the last title; the number not completed, the number, the last title

	// Sentences of commands.
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
	LastInput      string // the text of the last input
	OtherSession   string
	Discarded      string
	LanguageIs     string // the language's name
	Languages      string // the language in use
	NoLanguage     string // the typed text

	// Sentences about several projects of one bot.
	OneProject            string
	ProjectIs, NoProject  string // the project's name; the typed text
	YouAreHere, NotServed string // each follows a project's name
	HowToSwitch           string
	InProject             string // the project's name
	Unserved, FailedAt    string // the project's name

	// News about turns of other front ends.
	Follows, FollowsNot string
	NeedsAdmin          string // the command
	AtDesk, EndedAtDesk string // the front end, the beginning of the input
	FailedAtDesk        string // the error
	UnknownAtDesk       string
	RestAtDesk          string // the run
	StillOpen           string // the question's id

	// Sentences about questions of a team's workers.
	InTeam         string // the worker, the input's sender, project and id
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
	NotDone string // an error without a translation
	// Checks has the names of the checks of /doctor and of their results.
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
	// SeeDoctor names the command that shows the details of failed checks.
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

	// Messages has the translations of the sentences that have a code. It is nil for English.
	Messages map[message.Code]string

	// Words translates words of fixed sets. It is nil for English.
	Words map[string]string
}
