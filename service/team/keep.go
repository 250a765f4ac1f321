package team

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/team/hub"
)

// keeperName returns the name under which a member cosigns.
func keeperName(member string) string { return keyName + "/" + member }

// Keeper returns a keeper that verifies the copies of all workers. It uses the pinned keys and this machine's earlier
// cosignatures. If cosigns is true, the keeper also cosigns. The function "audit" returns an auditor of a copy's
// events. If this function is nil, the events are not audited.
func (t *Team) Keeper(ctx context.Context, cosigns bool, audit func() verify.Auditor) (*hub.Keeper, error) {
	own, err := t.Log().Origin(ctx)
	if err != nil {
		return nil, err
	}
	k := &hub.Keeper{Hub: t.Hub, Name: t.As, Own: own, Kept: map[string]hub.Kept{}, Keys: t.keysOf,
		Witnesses: t.witnesses(), Audit: audit}
	for e, err := range t.Log().Events(ctx, event.Query{Types: []event.Type{event.TeamCosigned}}) {
		if err != nil {
			return nil, err
		}
		var c fact.TeamCosigned
		if err := e.Decode(&c); err != nil {
			return nil, err
		}
		root, err := strict.Hash(c.Root)
		if err != nil {
			return nil, err
		}
		k.Kept[c.Worker] = hub.Kept{Checkpoint: evidence.Checkpoint{Origin: c.Origin, Size: c.Size, Root: root}, Line: c.Line}
	}
	if cosigns {
		k.Sign = t.cosignCheckpoint
	}
	return k, nil
}

// cosignCheckpoint signs a checkpoint. The signature is on this machine's log before another
// machine sees it.
func (t *Team) cosignCheckpoint(ctx context.Context, worker string, c evidence.Checkpoint) (line string, err error) {
	if line, err = t.keys.Cosign(keeperName(t.As), c, time.Now()); err != nil {
		return "", err
	}
	_, err = t.Log().Append(ctx, event.NewFact(event.TeamCosigned, "perlica", event.Refs{}, fact.TeamCosigned{
		Worker: worker, Origin: c.Origin, Size: c.Size, Root: c.Root.String(), Line: line,
	}))
	return line, err
}

// keysOf returns all keys that a member has had.
func (t *Team) keysOf(name string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.had[name])
}

// WitnessKeys returns the verifier keys of the cosigning members, by name.
func (t *Team) WitnessKeys() (list []string) {
	for _, m := range t.Members() {
		for _, key := range t.keysOf(m.Name) {
			if vkey, err := evidence.KeyUnder(key, keeperName(m.Name), true); err == nil {
				list = append(list, vkey)
			}
		}
	}
	return list
}

func (t *Team) witnesses() (list []note.Verifier) {
	for _, vkey := range t.WitnessKeys() {
		if v, err := evidence.NewVerifier(vkey); err == nil {
			list = append(list, v)
		}
	}
	return list
}

// LogKeys returns the verifier keys of a worker's log with this origin.
func (t *Team) LogKeys(worker, origin string) (list []string) {
	for _, key := range t.keysOf(worker) {
		if vkey, err := evidence.KeyUnder(key, origin, false); err == nil {
			list = append(list, vkey)
		}
	}
	return list
}

// Fetch verifies the copy of a worker's log and writes it as an export. The export ends at the newest signed checkpoint
// and includes the keepers' signatures. Without such a checkpoint, Fetch writes the whole copy unsigned. It does not
// write an unsound copy. audit returns an auditor of the events, or audit is nil.
func (t *Team) Fetch(ctx context.Context, worker string, w io.Writer,
	audit func() verify.Auditor) (v hub.Verdict, done export.Summary, err error) {
	k, err := t.Keeper(ctx, false, audit)
	if err != nil {
		return v, done, err
	}
	list, err := hub.ListCopies(ctx, t.Hub)
	if err != nil {
		return v, done, err
	}
	i := slices.IndexFunc(list, func(c hub.Copy) bool { return c.Worker == worker })
	if i < 0 {
		return v, done, fmt.Errorf("%w: %s", hub.ErrNone, worker)
	}
	if v, err = k.Look(ctx, list[i]); err != nil || !v.Sound() {
		return v, done, err
	}
	err = hub.ReadCopy(ctx, t.Hub, worker, tree.Range{}, func(src *hub.CopySource) error {
		head, ok := src.Checkpoint(v.Signed)
		if !ok {
			head = evidence.Checkpoint{Origin: v.Origin, Size: v.Events, Root: v.Root}
		}
		done, err = export.Copy(w, head, src.Events(ctx))
		return err
	})
	return v, done, err
}
