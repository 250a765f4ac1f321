package eventlog

import (
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/verify"
)

func TestGoAgrees(t *testing.T) {
	leaveToOtherBuild(t)
	path, vkey, last := soundLog(t)
	v, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range damages() {
		if d.kind == "rule" {
			continue
		}
		r := readerOf(t, d.inflict(t, path))
		opt := verify.Options{Keys: []note.Verifier{v}}
		if d.since {
			opt.Since = &last
		}
		rep, err := verify.Log(t.Context(), r, opt)
		kind := ""
		if len(rep.Findings) > 0 {
			kind = string(rep.Findings[0].Kind)
		}
		if err != nil || kind != d.kind || rep.FirstBad != d.first {
			t.Errorf("%s: %v: %s at %d, want %s at %d; %+v", d.name, err, kind, rep.FirstBad, d.kind, d.first,
				rep.Findings[:min(3, len(rep.Findings))])
		}
	}
}
