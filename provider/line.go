package provider

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
)

const (
	// maxLine is the default of Options.MaxLine, in bytes.
	maxLine = 64 << 20
	// keptOfOversized is the number of bytes that are kept of a line over the limit.
	keptOfOversized = 64 << 10
)

// lineReader reads lines from an agent's output.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// nextLine returns the next line without its line feed, in its own memory. For a line over the limit it returns
// the beginning, the length, the hash and the kind Oversized. The last line may lack a line feed. An error
// comes only after all data was returned; it is io.EOF at the end.
func (l *lineReader) nextLine() (Frame, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil { // the usual case: one copy
		line := append(make([]byte, 0, len(part)-1), part[:len(part)-1]...)
		if len(line) > l.max {
			return oversized(line, int64(len(line)), sha256.Sum256(line)), nil
		}
		return Frame{Line: line, Length: int64(len(line))}, nil
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
		return Frame{}, err
	} // any other error is returned by the next read, after the buffered data
	if len(line) > l.max {
		return oversized(line, int64(len(line)), sha256.Sum256(line)), nil
	}
	return Frame{Line: line, Length: int64(len(line))}, nil
}

// hasLine reports whether a complete line is buffered.
func (l *lineReader) hasLine() bool {
	rest, _ := l.r.Peek(l.r.Buffered()) // no error, because all these bytes are buffered
	return bytes.IndexByte(rest, '\n') >= 0
}

func oversized(line []byte, length int64, sum [sha256.Size]byte) Frame {
	head := append([]byte(nil), line[:min(len(line), keptOfOversized)]...)
	return Frame{Kind: Oversized, Line: head, Length: length, SHA256: sum[:]}
}
