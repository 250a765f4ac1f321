package fact

// This file has the payloads about the work that a machine does for a team. They are in the log of the context that is
// named after the team.

// TeamJoined is the payload of team.joined. This machine belongs to a team under a name.
type TeamJoined struct {
	// Team is the team's id.
	Team string `json:"team"`
	// Name is the team's name.
	Name string `json:"name"`
	// Admin is the verifier key of the first admin. All other keys follow from it.
	Admin string `json:"admin"`
	// As is this machine's name.
	As string `json:"as"`
	// Key is this machine's verifier key.
	Key string `json:"key"`
}

// TeamMember is the payload of team.member. An admin's statement about a member counts here from now on. It
// replaces an older statement about the same name.
type TeamMember struct {
	Name      string  `json:"name"`
	Version   int     `json:"version"`
	Key       string  `json:"key"`
	Rights    []Right `json:"rights"`
	Gone      bool    `json:"gone,omitempty"`
	Login     string  `json:"login"`
	Signer    string  `json:"signer"`
	Signature []byte  `json:"signature"`
}

// TeamClaimed is the payload of team.claimed. This worker owns an input for ever.
type TeamClaimed struct {
	Generation string `json:"generation"`
	// Position is the place in the hub's write-ahead log.
	Position int64  `json:"position"`
	Sender   string `json:"sender"`
	Project  string `json:"project"`
	Digest   string `json:"digest"`
	// Signature is the sender's.
	Signature []byte `json:"signature"`
}

// TeamRefused is the payload of team.refused. This worker makes no call for an input that it owns.
type TeamRefused struct {
	Why string `json:"why"`
}

// TeamCosigned is the payload of team.cosigned. This keeper verified the copy of a worker's log up to a checkpoint.
type TeamCosigned struct {
	Worker string `json:"worker"`
	// Origin is the log's name.
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	// Line is the signature line under the checkpoint.
	Line string `json:"line"`
}

// TeamAnswered is the payload of team.answered. An answer to a worker's question was signed here.
type TeamAnswered struct {
	Worker string `json:"worker"`
	Input  string `json:"input"`
	// Question is the id of the question.
	Question string `json:"question"`
	// Digest is the digest of the question as it was shown.
	Digest string `json:"digest"`
	Option string `json:"option"`
	// By is the person who gave the answer.
	By string `json:"by"`
	// Where is the front end, such as "web".
	Where string `json:"where,omitempty"`
	// Signature is this member's.
	Signature []byte `json:"signature"`
}

// TeamStopped is the payload of team.stop_requested. An input was withdrawn here, or its worker was asked to stop the
// input.
type TeamStopped struct {
	Input     string `json:"input"`
	By        string `json:"by"`
	Where     string `json:"where,omitempty"`
	Signature []byte `json:"signature"`
}
