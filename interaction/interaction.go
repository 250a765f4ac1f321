// Package interaction manages the questions to a person: the options, their order, and the answer that counts.
//
// The package promises:
//
// - The first valid answer wins, from any process. Every later answer gets an error that names the first one.
// - An answer is on the log before any process acts on it.
// - An unanswered question ends with a recorded reason.
// - Free text never chooses an option: "don't allow" approves nothing.
//
// The package contains no code for terminals or protocols.
//
// The log decides which answer counts. An answer counts if its event could be appended. A unique index allows only
// one answer to each question. A process that answers a question of another process appends the answer first. Then it
// wakes the other process over a socket.
package interaction
