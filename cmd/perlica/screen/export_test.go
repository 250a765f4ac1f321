package screen

// Harmless is the seam between this package and its external tests. The tests of the line editor, of the keys and of
// the terminal stay in this package: they drive one goroutine of readline to a state that no exported name shows.
var Harmless = harmless
