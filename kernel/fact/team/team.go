// Package team has the payloads of the facts about the work that a machine does for a team. They are in the log of
// the context that is named after the team. It decides nothing and writes nothing.
package team

// Joined is the payload of team.joined: under which name this machine belongs to which team.
type Joined struct {
	Team  string `json:"team"`  // its id
	Name  string `json:"name"`  // its name
	Admin string `json:"admin"` // the verifier key of its first admin, from which all others follow
	As    string `json:"as"`    // this machine's name
	Key   string `json:"key"`   // this machine's verifier key
}

// Member is the payload of team.member: a statement of an admin about a member, which counts here from now on. An
// older one about the same name counts no more.
type Member struct {
	Name      string   `json:"name"`
	Version   int      `json:"version"`
	Key       string   `json:"key"`
	Rights    []string `json:"rights"`
	Gone      bool     `json:"gone,omitempty"`
	Login     string   `json:"login"`
	Signer    string   `json:"signer"`
	Signature []byte   `json:"signature"`
}

// Claimed is the payload of team.claimed: this worker owns an input, for ever.
type Claimed struct {
	Generation string `json:"generation"`
	Position   int64  `json:"position"` // of the hub's write-ahead log
	Sender     string `json:"sender"`
	Project    string `json:"project"`
	Digest     string `json:"digest"`
	Signature  []byte `json:"signature"` // the sender's
}

// Refused is the payload of team.refused: this worker makes no call for an input that it owns.
type Refused struct {
	Why string `json:"why"`
}

// Cosigned is the payload of team.cosigned: this keeper verified the copy of a worker's log up to a checkpoint.
type Cosigned struct {
	Worker string `json:"worker"`
	Origin string `json:"origin"` // the log's name
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Line   string `json:"line"` // the signature, as it stands under the checkpoint
}

// Answered is the payload of team.answered: an answer to a worker's question was signed here.
type Answered struct {
	Worker    string `json:"worker"`
	Input     string `json:"input"`
	Question  string `json:"question"` // its id
	Digest    string `json:"digest"`   // of the question as it was shown
	Option    string `json:"option"`
	By        string `json:"by"`              // who gave it, as an answer to a question of this machine's names people
	Where     string `json:"where,omitempty"` // as "web"
	Signature []byte `json:"signature"`       // this member's, as the worker gets it
}

// Stopped is the payload of team.stop_requested: an input was withdrawn here, or its worker was asked to stop it.
type Stopped struct {
	Input     string `json:"input"`
	By        string `json:"by"`
	Where     string `json:"where,omitempty"`
	Signature []byte `json:"signature"`
}
