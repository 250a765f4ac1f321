package service

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// mostPictures limits the pictures of tools that are sent with one answer. The last ones show the result.
const mostPictures = 3

// toolPicture is a picture in the result of a tool.
type toolPicture struct {
	n    int // its position in record.Pictures, from 1
	row  string
	file string // its name for the contact
	size int64
}

// toolPictures returns the last pictures of the tools of a turn, and a row with the number of the others.
func (ib *inbox) toolPictures(m received, res record.Result) (files []fact.BridgeQueued, row string) {
	ch := ib.b.channels[ib.key.Channel]
	all, err := ib.newPictures(res)
	if err != nil {
		ib.b.warn("the pictures of a turn cannot be read", "run", string(res.Run), "error", err.Error())
		return nil, ""
	}
	if ch != nil && ch.Limits().Files {
		for _, p := range all[max(0, len(all)-mostPictures):] {
			if p.size <= largestFile {
				files = append(files, fact.BridgeQueued{Peer: ib.key, Chat: m.Chat, Kind: outReply,
					Text: ib.b.renderShort(ib.key.Channel, p.row), Picture: p.n, File: p.file})
			}
		}
	}
	if rest := len(all) - len(files); rest > 0 {
		row = fmt.Sprintf(ib.b.sentencesFor(ib.key).PicturesLeft, rest)
	}
	return files, row
}

// newPictures returns the different pictures of the tools of a turn. It omits a picture that the answer has, too.
func (ib *inbox) newPictures(res record.Result) (list []toolPicture, err error) {
	log, seen := ib.b.opt.Runner.Log(), map[[sha256.Size]byte]bool{}
	if len(res.Content) > 0 {
		for block, err := range record.Content(ib.b.hard, log, res.Run) {
			if err != nil {
				return nil, err
			}
			seen[sha256.Sum256(block.Data)] = true
		}
	}
	n := 0
	for block, err := range record.Pictures(ib.b.hard, log, res.Run) {
		if err != nil {
			return nil, err
		}
		n++
		if sum := sha256.Sum256(block.Data); !seen[sum] {
			seen[sum] = true
			list = append(list, toolPicture{n, ib.contentRow(block.Noun(), block.String()),
				fmt.Sprintf("tool-%d%s", n, block.Extension()), block.Size})
		}
	}
	return list, nil
}

// contentRow returns a row about a piece of an answer that is not text.
func (ib *inbox) contentRow(noun, text string) string {
	text = described(ib.b.sentencesFor(ib.key), noun, text)
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "'")
	if r := []rune(text); len(r) > longestRow {
		text = string(r[:longestRow]) + "…"
	}
	return "📎 `" + text + "`"
}
