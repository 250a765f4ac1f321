package sandbox

// CachesTable returns the table of caches for docs/sandbox.md.
func CachesTable() string {
	table := "| tool | caches in the home |\n|---|---|\n"
	for _, c := range caches {
		table += "| `" + c.tool + "` |"
		for _, f := range c.folders {
			table += " `" + f + "`"
		}
		table += " |\n"
	}
	return table
}
