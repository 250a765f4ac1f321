package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// savedFile is a file that Save made from a block of the answer.
type savedFile struct {
	block int // index in the content of the result
	path  string
}

// Save writes the files that the agent embedded in its answer to the directory of --save-to. Perlica chooses the
// names and overwrites no file. The caller calls Save before Finish, because Finish lists the files.
func (p *Printer) Save(ctx context.Context, r *kernel.Runner, res record.Result) error {
	want := countEmbedded(res.Content)
	if p.saveTo == "" || want == 0 {
		return nil
	}
	if err := os.MkdirAll(p.saveTo, 0o700); err != nil {
		return err
	}
	n := 0
	ctx = context.WithoutCancel(ctx) // After a stop ctx has ended, and the stopped turn may have an answer, too.
	for b, err := range record.Content(ctx, r.Log(), res.Run) {
		if err != nil {
			return err
		}
		if b.Embedded() && b.Size > 0 && n < len(res.Content) {
			path, err := saveBlock(p.saveTo, "perlica-"+frame.ShortID(res.Run), n+1, b)
			if err != nil {
				return err
			}
			p.saved = append(p.saved, savedFile{n, path})
		}
		n++
	}
	// Perlica masked the other files before it recorded them, or they were pruned.
	if left := want - len(p.saved); left > 0 {
		return fmt.Errorf("%d of the %d files are not on record as they came", left, want)
	}
	return nil
}

// mostDrawn is the largest number of images drawn for an answer.
const mostDrawn = 8

// Draw draws the images of an answer on standard error if standard error is a terminal that can draw. It reads the
// images from the record.
func (p *Printer) Draw(ctx context.Context, r *kernel.Runner, res record.Result) error {
	columns, drawn := screen.TerminalWidth(p.a.Stderr), 0
	if columns == 0 || countEmbedded(res.Content) == 0 {
		return nil
	}
	for b, err := range record.Content(context.WithoutCancel(ctx), r.Log(), res.Run) {
		if err != nil {
			return err
		}
		if drawing := picture(b.Data, columns, p.a.Getenv); drawing != "" && drawn < mostDrawn {
			drawn++
			if _, err := io.WriteString(p.a.Stderr, drawing); err != nil {
				return err
			}
		}
	}
	return nil
}

// countEmbedded counts the blocks of an answer that contain a file.
func countEmbedded(list []provider.Block) (n int) {
	for _, b := range list {
		if !b.Link() && b.Size > 0 {
			n++
		}
	}
	return n
}

// mostNames is the largest number of names that saveBlock tries for a file.
const mostNames = 1000

// saveBlock writes a file under a name that no file in dir has yet.
func saveBlock(dir, stem string, n int, b provider.Block) (string, error) {
	for i := range mostNames {
		name := fmt.Sprintf("%s-%d", stem, n)
		if i > 0 {
			name += fmt.Sprintf("-%d", i+1)
		}
		path := filepath.Join(dir, name+b.Extension())
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(b.Data)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(path)) // A partly written file is useless.
		}
		return path, nil
	}
	return "", fmt.Errorf("%s: %d files of the run are there", dir, mostNames)
}

// explainContent lists the parts of an answer that are not text. If the answer is empty, it says so.
func (p *Printer) explainContent(res record.Result) {
	counts := map[string]int{}
	sizes := map[string]int64{}
	var nouns []string
	for _, b := range res.Content {
		if b.Link() {
			p.Note("not opened: " + p.fitRow(b.String(), len("perlica: not opened: ")))
			continue
		}
		if b.Size == 0 { // The block is only an address, or has no valid data.
			p.Note(p.fitRow(b.String(), len("perlica: ")))
			continue
		}
		if counts[b.Noun()]++; counts[b.Noun()] == 1 {
			nouns = append(nouns, b.Noun())
		}
		sizes[b.Noun()] += b.Size
	}
	var parts []string
	for _, noun := range nouns {
		parts = append(parts, frame.Count(counts[noun], noun)+", "+humanize.Bytes(uint64(max(sizes[noun], 0))))
	}
	switch {
	case len(parts) > 0 && p.saveTo == "":
		p.Note("the answer has " + strings.Join(parts, "; ") + "; --save-to DIR writes them to files")
	case len(parts) > 0:
		p.Note("the answer has " + strings.Join(parts, "; "))
	case len(res.Content) == 0 && !p.usageShownElsewhere && res.Outcome == record.OutcomeResponded && res.Stopped == nil &&
		!res.Pruned && strings.TrimSpace(res.Text) == "":
		p.Note("the answer is empty")
	}
	for _, s := range p.saved {
		p.Note("saved: " + s.path + " (" + humanize.Bytes(uint64(max(res.Content[s.block].Size, 0))) + ")")
	}
}

// printSaying prints a text that the agent sends outside of its messages, such as a warning. It prints each text
// once.
func (p *Printer) printSaying(u provider.Update) {
	text := frame.OneLine(u.Saying())
	if text == "" || p.sayings[text] || len(p.sayings) >= mostSayings {
		return
	}
	p.sayings[text] = true
	p.Note(text)
}

// mostSayings is the largest number of texts that printSaying prints in a turn. The record has all of them.
const mostSayings = 20
