// Package interaction keeps the questions: what was asked, in which order, who may
// answer what, and whose answer counted.
//
// It promises that the first valid answer wins, wherever it comes from, and that every
// other one is told who was first; that an answer is on the log before anybody acts upon
// it; and that a question which no one answers ends with a stated reason. It refuses
// free text where the choice is between options: "don't allow" approves nothing. It
// knows no terminal and no protocol.
//
// The one idea: the log decides. An answer counts if its event could be appended; a
// unique index admits one to each question. Anyone who answers from another process
// appends the event and then wakes the asker over a socket.
package interaction
