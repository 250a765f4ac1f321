package eventlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/evidence"
)

// Checkpoint signs the tree over all that was recorded before, stores the signed note with the
// log, appends it to the anchor, and returns it. The end of a run does the same unasked.
// Without a usable key the checkpoint has no note, and the error wraps [evidence.ErrKey]; an anchor that
// cannot be written is an error, too. An empty log has no checkpoint.
func (l *Log) Checkpoint(ctx context.Context) (evidence.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return evidence.Checkpoint{}, err
	}
	r := l.await(entry{checkpoint: true})
	if r.err != nil {
		return evidence.Checkpoint{}, r.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.checkpoint, l.anchor
}

// Anchored waits until the checkpoint of what was recorded before the call is anchored, and
// returns why the last one is not, or is not signed ([evidence.ErrKey]).
func (l *Log) Anchored() error {
	l.mu.Lock()
	m, pending := l.queued, l.completed < l.queued
	l.mu.Unlock()
	if pending { // what was lost before the call is no fault of the anchor
		if err := l.SyncTo(m); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return l.anchor
}

// StoreCheckpoint stores one more note for a checkpoint of this log, such as one that a witness
// has cosigned; what was stored before stays. It fails with an error wrapping
// [evidence.ErrCheckpoint] unless the log's tree has that root at that size. Signatures are not
// looked at.
func (l *Log) StoreCheckpoint(ctx context.Context, msg string) error {
	c, err := evidence.ParseCheckpoint(msg)
	if err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if err := l.IsOwn(ctx, c); err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	return l.await(entry{store: &c}).err // what it stands for cannot change in the meantime
}

const putNote = `INSERT INTO checkpoints (size, note) VALUES (?, ?)`

// checkpoint signs the tree as this transaction leaves it and stores the note.
func (w *batchWriter) checkpoint(ctx context.Context) error {
	w.newest = evidence.Checkpoint{Origin: w.origin, Size: w.next.Size, Root: w.next.Root()}
	if w.next.Size == 0 {
		return nil
	}
	var signer note.Signer
	if signer, w.unsigned = w.signature(); w.unsigned != nil {
		return nil
	}
	if w.next.Size == w.tree.Size { // nothing is new, so there may be one
		var old string
		err := w.conn.QueryRowContext(ctx, `SELECT note FROM checkpoints WHERE size = ? ORDER BY id DESC LIMIT 1`, w.next.Size).Scan(&old)
		if err == nil && w.signs(old, signer) {
			w.newest.Note = old
			return nil
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	msg, err := note.Sign(&note.Note{Text: w.newest.Text()}, signer)
	if err != nil {
		w.unsigned = fmt.Errorf("%w: %w", evidence.ErrKey, err)
		return nil
	}
	w.newest.Note = string(msg)
	return w.exec(ctx, putNote, w.newest.Size, w.newest.Note)
}

// signature returns what signs for the log.
func (w *batchWriter) signature() (note.Signer, error) {
	if w.keys == nil {
		return nil, evidence.ErrKey
	}
	return w.keys.Signer(w.origin)
}

// signs reports whether msg is what signer would sign now.
func (w *batchWriter) signs(msg string, signer note.Signer) bool {
	c, err := evidence.ParseCheckpoint(msg)
	if err != nil || c.Text() != w.newest.Text() {
		return false
	}
	for _, v := range w.keys.Verifiers(w.origin) {
		if v.KeyHash() == signer.KeyHash() {
			_, err := c.Signed(v)
			return err == nil
		}
	}
	return false
}

// anchor appends the checkpoint that the last commit made, if it made one, to the anchor. It
// returns why the checkpoint is missing there, or is not signed.
func (w *batchWriter) anchor() error {
	if w.newest.Size == 0 {
		return nil
	}
	if err := w.failpoint("anchor"); err != nil {
		return err
	}
	if err := anchor.Append(w.path, w.newest, w.locked); err != nil {
		return err
	}
	return errors.Join(w.unsigned, w.failpoint("anchored"))
}

// locked calls f while no other process can write to the log.
func (w *batchWriter) locked(f func() error) error {
	ctx := context.Background()
	if err := w.patiently(ctx, func() error { return w.exec(ctx, `BEGIN IMMEDIATE`) }); err != nil {
		return disk.Explain(err)
	}
	err := f()
	_ = w.exec(ctx, `ROLLBACK`) // nothing was written; a lock that stays is the next begin's error
	return err
}
