package sandbox

// CachesTable is the table of docs/sandbox.md.
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
