package form

import "golang.org/x/net/idna"

// Host returns the name of a host as Perlica shows it. A name with letters outside ASCII is shown in both forms, such
// as "xn--bcher-kva.example (bücher.example)". Such letters may look like the letters of another host.
func Host(name string) string {
	ascii, err := idna.Punycode.ToASCII(name)
	if err != nil {
		ascii = name // This is not a valid name of a host.
	}
	letters, err := idna.Punycode.ToUnicode(name)
	if err != nil {
		letters = name // This is not a valid name of a host.
	}
	if ascii == letters {
		return name
	}
	return ascii + " (" + letters + ")"
}
