// Package dialog is a turn at a terminal or in a pipe: its flags, what is printed while it goes on, and
// the questions that are asked and answered in between. run, chat and watch share it.
package dialog
