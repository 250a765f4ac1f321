package fact

// This file has the payloads about the work that a machine does for a team. The events are in the log of the context
// with the team's name.

// TeamJoined is the payload of team.joined: this machine belongs to a team now.
type TeamJoined struct {
	// Team is the team's id.
	Team string `json:"team"`
	// Name is the team's name.
	Name string `json:"name"`
	// Admin is the verifier key of the first admin. Admins vouch for all other keys, directly or indirectly.
	Admin string `json:"admin"`
	// As is the name of this machine in the team.
	As string `json:"as"`
	// Key is this machine's verifier key.
	Key string `json:"key"`
}

// TeamMember is the payload of team.member: an admin's statement about a member, which this machine accepted. It
// replaces older statements about the same name.
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

// TeamClaimed is the payload of team.claimed: this worker has claimed an input, for ever.
type TeamClaimed struct {
	Generation string `json:"generation"`
	// Position is the position in the hub's write-ahead log.
	Position int64  `json:"position"`
	Sender   string `json:"sender"`
	Project  string `json:"project"`
	Digest   string `json:"digest"`
	// Signature is the sender's signature of the input.
	Signature []byte `json:"signature"`
}

// TeamRefused is the payload of team.refused: this worker makes no call for an input that it has claimed.
type TeamRefused struct {
	Why string `json:"why"`
}

// TeamCosigned is the payload of team.cosigned: this keeper has verified its copy of a worker's log up to a checkpoint.
type TeamCosigned struct {
	Worker string `json:"worker"`
	// Origin is the name of the log.
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	// Line is the signature line under the checkpoint.
	Line string `json:"line"`
}

// TeamAnswered is the payload of team.answered: this member has signed an answer to a worker's question.
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
	// Signature is the signature of this member.
	Signature []byte `json:"signature"`
}

// TeamStopped is the payload of team.stop_requested: a person withdrew an input on this machine, or asked its worker to
// stop it.
type TeamStopped struct {
	Input     string `json:"input"`
	By        string `json:"by"`
	Where     string `json:"where,omitempty"`
	Signature []byte `json:"signature"`
}
