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

// Sentences has all sentences for people, in one language. A comment such as "inserted: the id" lists the values that
// are inserted into a sentence, in their order.
type Sentences struct {
	// Name is the language's name in the language itself.
	Name string

	// Durations: the singular and the plural of days, hours, minutes and seconds. Joint goes between two units.
	Unit, Units [4]string // inserted: the number
	Joint       string

	// Pairing.
	Paired     string
	WrongCode  string
	AdminAlone string
	// Encrypted declines an invitation to an encrypted room.
	Encrypted string
	// AdminProven refuses the right to everything to a sender that nothing proves.
	AdminProven string

	// Sentences about the result of a message.
	Ack, ReactionAck string // ReactionAck is an emoji
	TooOld           string // inserted: the message's age, the maximum age
	NotRead          string // inserted: the kind of the message
	Unread           map[string]string
	MayNotAsk        string
	NotSent          string // inserted: the error
	Elsewhere        string
	Done             string
	// Silent is sent instead of an empty answer.
	Silent        string
	Failed        string // inserted: the error, the partial text
	Unknown       string // inserted: the known details, the partial text
	UnknownRecord string // follows Unknown; inserted: the run
	// Interrupted is the final text of a progress message if its bridge died.
	Interrupted    string
	Partial        string // inserted: the part of the answer that arrived
	StoppedBecause string // inserted: the reason
	StoppedBy      string // inserted: the person
	TokenLimit     string
	EndedWith      string // inserted: the agent's stop reason
	StopReasons    map[string]string
	Unasked, Freed string // inserted: the number of tool calls
	PicturesLeft   string // inserted: the number of pictures
	Pruned         string
	WholeFile      string
	CutFile        string
	AnswerRefused  string // inserted: the error
	NotYours       string

	// Sentences about waiting inputs.
	InLine, ForAgent   string // inserted: the position in the line
	TakeBack           string
	SendIt, TakeItBack string // labels of buttons
	NotWaiting         string
	NothingUnder       string
	NothingWaits       string
	SeveralHeld        string // inserted: the number of messages
	NotHeld            string
	HeldMark           string
	HowToTakeBack      string
	Held               string // inserted: the number of the message
	HeldNotYours       string // inserted: the sentence Held
	HeldOne            string // inserted: the sentence Held
	HeldSeveral        string // inserted: the number of questions, the sentence Held
	TakenBack          string
	TakenBackBy        string // inserted: the person, the front end
	GoesOn             string

	// Sentences about questions.
	MayNotSay string
	InRunOf   string // inserted: the sender of the input
	Asks      string // inserted: title, agent, id
	UseTool   string
	Address   string // inserted: the address
	TakesWord string // inserted: the word
	TakesText string // inserted: the number of the option
	CardFile  string // inserted: the number of messages that the whole question needs
	ByNumber  string // inserted: the id
	ByButton  string // inserted: the id
	// ByLink replaces ByButton on a channel where the name of a sender can be forged. RestElsewhere follows it if the
	// question has options that nobody can choose there.
	ByLink        string
	RestElsewhere string // inserted: the id
	YesTakesAll   string // inserted: the id
	AlwaysBehind  string
	Card          card.Words // the words on a question's card
	// Kinds has the names of the kinds of options, by the words of interaction/card.
	Kinds map[string]string
	// Offers has the labels of the approvals that Perlica offers to remember, by a part of the option's id.
	Offers  map[string]string
	NotOpen string
	NotHere string
	// OnlyByLink and NotByMail refuse answers on a channel where the name of a sender can be forged.
	OnlyByLink  string
	NotByMail   string
	NotWhole    string
	ByID        string // inserted: the id
	ByIDAndWord string // inserted: the id, the word
	NeedsText   string // inserted: the way to answer
	NeedsWord   string // inserted: the way to answer
	TooSoon     string // inserted: the way to answer
	GivesUp     string // inserted: the option, the agent
	TheAgent    string
	WhereMeant  string // inserted: the way to answer
	AnsweredBy  string // inserted: the person, the time, the place, the option
	BridgeDied  string
	BridgeEnded string
	ClosedWith  string // inserted: the reason
	Closings    map[string]string
	WhatItWas   string // inserted: the answer, as lines of a card

	// Sentences about unsent messages, and about messages that may arrive twice. Repeated goes before such a message.
	// It must not be longer than in English.
	Repeated      string
	UnsentMessage string
	UnsentCard    string // inserted: the question's id
	UnsentFile    string // inserted: the file's name
	UnsentAnswer  string

	// Sentences about progress.
	Tool, Tools          string // inserted: the last title; the number and the last title
	NotOne               string // inserted: the title
	NotOneOf, NotSeveral string // inserted: the number, the title; the number not completed, the number, the title

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
	NoExport       string // inserted: the session
	NoEarlierInput string
	LastInput      string // inserted: the text of the last input
	OtherSession   string
	Discarded      string
	LanguageIs     string // inserted: the language's name
	Languages      string // inserted: the language in use
	NoLanguage     string // inserted: the typed text

	// Sentences about several projects of one bot.
	OneProject            string
	ProjectIs, NoProject  string // inserted: the project's name; the typed text
	YouAreHere, NotServed string // each follows a project's name
	HowToSwitch           string
	InProject             string // inserted: the project's name
	Unserved, FailedAt    string // inserted: the project's name

	// News about turns of other front ends.
	Follows, FollowsNot string
	NeedsAdmin          string // inserted: the command
	AtDesk, EndedAtDesk string // inserted: the front end, the beginning of the input
	FailedAtDesk        string // inserted: the error
	UnknownAtDesk       string
	RestAtDesk          string // inserted: the run
	StillOpen           string // inserted: the question's id

	// Sentences about questions of a team's workers.
	InTeam         string // inserted: the worker, the input's sender, project and id
	InTeamUnsigned string // inserted: the worker, the input's id
	OfTeam         string // inserted: the worker
	TeamUnread     string // inserted: the error
	TeamAway       string // inserted: the worker
	TeamUnsure     string // inserted: the worker
	TeamNoRight    string
	TeamOtherwise  string
	TeamGone       string
	TeamElsewhere  string
	UnsentTeamCard string // inserted: the question's id

	// Answers of the commands.
	NotDone string // inserted: an error without a translation
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
