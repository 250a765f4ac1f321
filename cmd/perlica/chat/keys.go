package chat

// keysHelp is the help for a single question mark. It lists the keys of the table in docs/chat.md.
const keysHelp = "- `Enter` — sends the line; during a turn it queues it\n" +
	"- `Ctrl-J, Alt-Enter` — a line break in the line; so does Enter after a backslash\n" +
	"- `Esc` — during a turn: asks the agent to stop\n" +
	"- `Ctrl-C` — clears the line, or asks the agent to stop; twice: ends it, or leaves\n" +
	"- `Shift-Tab` — the next of the agent's modes\n" +
	"- `Up, Down` — earlier lines; during a turn Up takes back what was queued last\n" +
	"- `Ctrl-R, Ctrl-S` — search the earlier lines\n" +
	"- `Tab` — completes commands, sessions, providers, and paths after `@`\n" +
	"- `Ctrl-G, Ctrl-X Ctrl-E` — edits the line in `$VISUAL` or `$EDITOR`\n" +
	"- `Ctrl-A, Ctrl-E, Alt-B, Alt-F, Ctrl-Left, Ctrl-Right` — begin, end, word by word\n" +
	"- `Ctrl-U, Ctrl-K, Ctrl-W, Alt-D, Ctrl-Y` — delete, and put back\n" +
	"- `Ctrl-L` — clears the terminal\n" +
	"- `Ctrl-Z` — suspends\n" +
	"- `Ctrl-D` — on an empty line: leaves\n" +
	"\n`/help` lists the commands.\n"
