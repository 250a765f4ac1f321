package verify_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	hubtest.Remove()
	os.Exit(code)
}

// suite has the one database that all cases use, because making a database takes longer than a case.
var suite struct {
	sync.Once
	url string
}

// asCopy writes the pieces into the tables of a hub, the server of a team. A person with all rights in the hub's
// database could do that.
func asCopy(t *testing.T, p pieces) func(verify.Options) (verify.Report, error) {
	for i := range p.events {
		if p.events[i].Withheld == event.Masked {
			t.Skip("a copy is of all of a log: nothing in it is withheld")
		}
	}
	if len(p.absent) > 0 {
		t.Skip("a copy is of all of a log: nothing in it is absent")
	}
	suite.Do(func() {
		s, db := hubtest.Shared(t)
		suite.url = s.URL("owner", db)
	})
	if suite.url == "" {
		t.Skip("NOT TESTED: the copies of a team's logs are verified: PostgreSQL is not installed")
	}
	h, err := hub.Open(suite.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // only read
	if err := h.MakeSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = h.Do(t.Context(), func(ctx context.Context, c *hub.Conn) error {
		var x hub.Exchange
		x.Add(`TRUNCATE perlica.logs, perlica.events, perlica.checkpoints, perlica.cosignatures`)
		x.Add(`INSERT INTO perlica.logs (worker, origin) VALUES ('w', $1)`, p.origin)
		for i := range p.events {
			e := &p.events[i]
			payload := e.Payload
			if e.Withheld != "" {
				payload = nil
			}
			x.Add(`INSERT INTO perlica.events (worker, seq, leaf, header, payload) VALUES ('w', $1, $2, $3, $4)`,
				int64(e.Seq), e.LeafHash[:], e.AppendHeader(nil), payload)
		}
		for _, k := range p.heads {
			x.Add(`INSERT INTO perlica.checkpoints (worker, size, note) VALUES ('w', $1, $2)`, k.Size, k.Note)
		}
		return c.Send(ctx, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(opt verify.Options) (rep verify.Report, err error) {
		err = hub.ReadCopy(t.Context(), h, "w", tree.Range{}, func(src *hub.CopySource) (err error) {
			rep, err = verify.Check(t.Context(), src, opt)
			return err
		})
		return rep, err
	}
}
