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
	"github.com/perlica/perlica/provider"
)

// saved is a file that was made of a block of the answer.
type saved struct {
	block int // its place in the result's content
	path  string
}

// Save writes what the agent embedded in an answer to files in the directory of --save-to, if there is one.
// Their names are of its own making and nothing is overwritten. It is called before Finish, which names them.
func (p *Printer) Save(ctx context.Context, r *kernel.Runner, res kernel.Result) error {
	want := embedded(res.Content)
	if p.saveTo == "" || want == 0 {
		return nil
	}
	if err := os.MkdirAll(p.saveTo, 0o700); err != nil {
		return err
	}
	n := 0
	ctx = context.WithoutCancel(ctx) // the turn may have been stopped; what came of it is an answer, too
	for b, err := range r.Content(ctx, res.Run) {
		if err != nil {
			return err
		}
		if b.Embedded() && b.Size > 0 && n < len(res.Content) {
			path, err := saveBlock(p.saveTo, "perlica-"+frame.ShortID(res.Run), n+1, b)
			if err != nil {
				return err
			}
			p.saved = append(p.saved, saved{n, path})
		}
		n++
	}
	if left := want - len(p.saved); left > 0 { // masked before it was recorded, or pruned
		return fmt.Errorf("%d of the %d files are not on record as they came", left, want)
	}
	return nil
}

// mostDrawn is how many images of an answer are drawn.
const mostDrawn = 8

// Draw draws the images of an answer on the terminal of standard error, where that can. They are taken from the record.
func (p *Printer) Draw(ctx context.Context, r *kernel.Runner, res kernel.Result) error {
	columns, drawn := screen.TerminalWidth(p.a.Stderr), 0
	if columns == 0 || embedded(res.Content) == 0 {
		return nil
	}
	for b, err := range r.Content(context.WithoutCancel(ctx), res.Run) {
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

// embedded is how many pieces of an answer held something.
func embedded(list []provider.Block) (n int) {
	for _, b := range list {
		if !b.Link() && b.Size > 0 {
			n++
		}
	}
	return n
}

// mostNames is how many names are tried for a file.
const mostNames = 1000

// saveBlock writes a file whose name no file has yet.
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
			return "", errors.Join(err, os.Remove(path)) // half an image is none
		}
		return path, nil
	}
	return "", fmt.Errorf("%s: %d files of the run are there", dir, mostNames)
}

// explainContent says what of an answer is no text, and that an answer is empty.
func (p *Printer) explainContent(res kernel.Result) {
	counts := map[string]int{}
	sizes := map[string]int64{}
	var nouns []string
	for _, b := range res.Content {
		if b.Link() {
			p.Note("not opened: " + p.row(b.String(), len("perlica: not opened: ")))
			continue
		}
		if b.Size == 0 { // an address alone, or what has not its form
			p.Note(p.row(b.String(), len("perlica: ")))
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
	case len(res.Content) == 0 && !p.beside && res.Outcome == kernel.OutcomeResponded && res.Stopped == nil && !res.Pruned && strings.TrimSpace(res.Text) == "":
		p.Note("the answer is empty")
	}
	for _, s := range p.saved {
		p.Note("saved: " + s.path + " (" + humanize.Bytes(uint64(max(res.Content[s.block].Size, 0))) + ")")
	}
}

// saying prints what an agent says beside its messages, once.
func (p *Printer) saying(u provider.Update) {
	text := frame.OneLine(u.Saying())
	if text == "" || p.sayings[text] || len(p.sayings) >= mostSayings {
		return
	}
	p.sayings[text] = true
	p.Note(text)
}

// mostSayings is how many different ones are shown of a turn; all are on record.
const mostSayings = 20
