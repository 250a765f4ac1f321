package screen

// Harmless lets the external tests of this package use an unexported function. Some tests stay inside the package:
// those of the line editor, the keys and the terminal. They bring a goroutine of readline into a state that no
// exported name shows.
var Harmless = harmless
