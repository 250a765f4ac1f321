package screen

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chzyer/readline"
)

// ShowPages writes rows that fit in the terminal and waits for a key after each screen. The space bar shows the next
// screen and Enter the next row. The keys q, Esc and Ctrl-C end it. It fails with io.EOF if the terminal is closed,
// and with ctx's error.
func ShowPages(ctx context.Context, keys *Keys, out io.Writer, height func() int, rows []string) error {
	var typing typingReader
	defer func() { keys.Unread(typing.buf) }() // The keys that were not used are for the next reader.
	read := func(ctx context.Context, wait time.Duration) ([]byte, error) { return keys.Read(ctx, wait) }
	for shown, next := 0, height()-1; ; {
		next = max(1, min(next, len(rows)-shown))
		if _, err := io.WriteString(out, strings.Join(rows[shown:shown+next], "\n")+"\n"); err != nil {
			return err
		}
		if shown += next; shown == len(rows) {
			return nil
		}
		hint := fmt.Sprintf("-- %d of %d rows: Space, Enter, q --", shown, len(rows))
		if _, err := io.WriteString(out, hint); err != nil {
			return err
		}
		for next = 0; next == 0; {
			k, err := typing.nextKey(ctx, read)
			if err != nil {
				return err
			}
			next = goOn(k, height()-1)
		}
		if _, err := io.WriteString(out, "\r"+strings.Repeat(" ", len(hint))+"\r"); err != nil || next < 0 {
			return err
		}
	}
}

// goOn returns the number of rows that a key asks for. 0 means no rows, and -1 ends the pages.
func goOn(k Key, screen int) int {
	switch {
	case k.Kind == KeyEsc, k.Kind == KeyRune && (k.Rune == 'q' || k.Rune == 'Q'),
		k.IsControl(readline.CharInterrupt), k.IsControl(readline.CharDelete):
		return -1
	case k.Kind == KeyRune && k.Rune == ' ':
		return max(screen, 1)
	case k.IsControl(readline.CharEnter), k.IsControl(readline.CharNext):
		return 1
	}
	return 0
}
