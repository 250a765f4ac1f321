package fact

// This file has the payloads about the work that a machine does for a team. They are in the log of the context that is
// named after the team.

// TeamJoined is the payload of team.joined. This machine belongs to a team under a name.
type TeamJoined struct {
	Team  string `json:"team"`  // its id
	Name  string `json:"name"`  // its name
	Admin string `json:"admin"` // the verifier key of its first admin, from which all others follow
	As    string `json:"as"`    // this machine's name
	Key   string `json:"key"`   // this machine's verifier key
}

// TeamMember is the payload of team.member. An admin's statement about a member counts here from now on. It
// replaces an older statement about the same name.
type TeamMember struct {
	Name      string   `json:"name"`
	Version   int      `json:"version"`
	Key       string   `json:"key"`
	Rights    []string `json:"rights"`
	Gone      bool     `json:"gone,omitempty"`
	Login     string   `json:"login"`
	Signer    string   `json:"signer"`
	Signature []byte   `json:"signature"`
}

// TeamClaimed is the payload of team.claimed. This worker owns an input for ever.
type TeamClaimed struct {
	Generation string `json:"generation"`
	Position   int64  `json:"position"` // of the hub's write-ahead log
	Sender     string `json:"sender"`
	Project    string `json:"project"`
	Digest     string `json:"digest"`
	Signature  []byte `json:"signature"` // the sender's
}

// TeamRefused is the payload of team.refused. This worker makes no call for an input that it owns.
type TeamRefused struct {
	Why string `json:"why"`
}

// TeamCosigned is the payload of team.cosigned. This keeper verified the copy of a worker's log up to a checkpoint.
type TeamCosigned struct {
	Worker string `json:"worker"`
	Origin string `json:"origin"` // the log's name
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Line   string `json:"line"` // the signature line under the checkpoint
}

// TeamAnswered is the payload of team.answered. An answer to a worker's question was signed here.
type TeamAnswered struct {
	Worker    string `json:"worker"`
	Input     string `json:"input"`
	Question  string `json:"question"` // its id
	Digest    string `json:"digest"`   // of the question as it was shown
	Option    string `json:"option"`
	By        string `json:"by"`              // the person who gave the answer
	Where     string `json:"where,omitempty"` // as "web"
	Signature []byte `json:"signature"`       // this member's
}

// TeamStopped is the payload of team.stop_requested. An input was withdrawn here, or its worker was asked to stop the input.
type TeamStopped struct {
	Input     string `json:"input"`
	By        string `json:"by"`
	Where     string `json:"where,omitempty"`
	Signature []byte `json:"signature"`
}
