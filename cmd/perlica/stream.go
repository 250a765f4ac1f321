package main

import (
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// emit prints a notice as one line of stream-json.
func (p *printer) emit(n kernel.Notice) {
	line := streamjson.NewLine(n)
	p.n++
	line["n"] = p.n
	p.json(line)
}
