// Package interaction keeps the questions to a person: their order, the allowed answers, and the answer that counted.
//
// The package promises:
//
// - The first valid answer wins, from any process. Every later answer gets an error that names the first one.
// - An answer is on the log before any process acts on it.
// - An unanswered question ends with a recorded reason.
// - Free text never chooses an option: "don't allow" approves nothing.
//
// The package knows no terminal and no protocol.
//
// The log decides which answer counts. An answer counts if its event could be appended, and a unique index admits one
// answer to each question. An answer from another process is appended first. That process then wakes the asker over a
// socket.
package interaction
