package provider

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/perlica/perlica/provider/jsonrpc"
)

const (
	// maxLine is the longest line that is acted upon, unless Options say otherwise.
	maxLine = 64 << 20
	// keptOfOversized is how much of a longer one is kept.
	keptOfOversized = 64 << 10
)

// lineReader takes lines off an agent's output.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// next returns the next line without its line feed, in memory of its own. Of a line
// longer than the limit it returns the beginning, with its length and hash, and kind
// Oversized. The last line may lack a line feed. An error, io.EOF at the end, comes after
// everything that was read.
func (l *lineReader) next() (jsonrpc.Frame, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil { // the usual case: one copy
		line := append(make([]byte, 0, len(part)-1), part[:len(part)-1]...)
		if len(line) > l.max {
			return oversized(line, int64(len(line)), sha256.Sum256(line)), nil
		}
		return jsonrpc.Frame{Line: line, Length: int64(len(line))}, nil
	}
	line := append([]byte(nil), part...)
	for errors.Is(err, bufio.ErrBufferFull) && len(line) <= l.max {
		part, err = l.r.ReadSlice('\n')
		line = append(line, part...)
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		sum := sha256.New()
		sum.Write(line)
		length := int64(len(line))
		for {
			part, err := l.r.ReadSlice('\n')
			if err == nil {
				part = part[:len(part)-1]
			}
			sum.Write(part)
			length += int64(len(part))
			if !errors.Is(err, bufio.ErrBufferFull) {
				return oversized(line, length, [sha256.Size]byte(sum.Sum(nil))), nil
			}
		}
	}
	if err == nil {
		line = line[:len(line)-1]
	} else if len(line) == 0 {
		return jsonrpc.Frame{}, err
	} // else the error comes again, after what was read
	if len(line) > l.max {
		return oversized(line, int64(len(line)), sha256.Sum256(line)), nil
	}
	return jsonrpc.Frame{Line: line, Length: int64(len(line))}, nil
}

// more reports whether the next line is at hand.
func (l *lineReader) more() bool {
	rest, _ := l.r.Peek(l.r.Buffered()) // which is there
	return bytes.IndexByte(rest, '\n') >= 0
}

func oversized(line []byte, length int64, sum [sha256.Size]byte) jsonrpc.Frame {
	head := append([]byte(nil), line[:min(len(line), keptOfOversized)]...)
	return jsonrpc.Frame{Kind: jsonrpc.Oversized, Line: head, Length: length, SHA256: sum[:]}
}
