package screen

// Harmless lets the external tests of this package use an unexported function. The tests of the line editor, the keys
// and the terminal stay inside the package. They bring a goroutine of readline into a state that no exported name
// shows.
var Harmless = harmless
