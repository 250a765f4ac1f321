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

// Checkpoint signs the tree of all events recorded before the call. It stores the signed note in
// the log, appends it to the anchor, and returns it. The end of a run makes a checkpoint without
// this call. If no key is usable, the checkpoint has no note and the error wraps [evidence.ErrKey].
// A failed write of the anchor is an error, too. An empty log has no checkpoint.
func (l *Log) Checkpoint(ctx context.Context) (evidence.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return evidence.Checkpoint{}, err
	}
	r := l.awaitCommit(entry{checkpoint: true})
	if r.err != nil {
		return evidence.Checkpoint{}, r.err
	}
	return r.checkpoint, l.queue.lastAnchorErr()
}

// Anchored waits until the anchor has the checkpoints of all events recorded before the call. The error is the reason
// why the last checkpoint is not in the anchor or has no signature ([evidence.ErrKey]).
func (l *Log) Anchored() error {
	// Wait only for entries without a result. SyncTo would also return the loss of an earlier entry, and such a loss is
	// not an error of the anchor.
	if m, pending := l.queue.end(); pending {
		if err := l.SyncTo(m); err != nil {
			return err
		}
	}
	if err := l.Err(); err != nil {
		return err
	}
	return l.queue.lastAnchorErr()
}

// StoreCheckpoint stores another note for a checkpoint of this log, such as a cosigned note. It does not replace
// earlier notes. The error wraps [evidence.ErrCheckpoint] if the log's tree of that size has another root.
// StoreCheckpoint does not verify signatures.
func (l *Log) StoreCheckpoint(ctx context.Context, msg string) error {
	c, err := evidence.ParseCheckpoint(msg)
	if err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if err := l.IsOwn(ctx, c); err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	return l.awaitCommit(entry{store: &c}).err // IsOwn still holds at the commit, because events never change.
}

const putNote = `INSERT INTO checkpoints (size, note) VALUES (?, ?)`

// makeCheckpoint signs the tree that the log has after this transaction, and stores the note.
func (w *batchWriter) makeCheckpoint(ctx context.Context) error {
	w.newest = evidence.Checkpoint{Origin: w.origin, Size: w.next.Size, Root: w.next.Root()}
	if w.next.Size == 0 {
		return nil
	}
	var signer note.Signer
	if signer, w.unsigned = w.signer(); w.unsigned != nil {
		return nil
	}
	if w.next.Size == w.tree.Size { // No event is new, so the log may have a note of this tree.
		var old string
		err := w.conn.QueryRowContext(ctx, `SELECT note FROM checkpoints WHERE size = ? ORDER BY id DESC LIMIT 1`,
			w.next.Size).Scan(&old)
		if err == nil && w.isSignedBy(old, signer) {
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
	return w.execStatement(ctx, putNote, w.newest.Size, w.newest.Note)
}

// signer returns the signer of the log.
func (w *batchWriter) signer() (note.Signer, error) {
	if w.keys == nil {
		return nil, evidence.ErrKey
	}
	return w.keys.Signer(w.origin)
}

// isSignedBy reports whether msg is a note of the newest tree with a signature of the signer's key.
func (w *batchWriter) isSignedBy(msg string, signer note.Signer) bool {
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

// appendAnchor appends the checkpoint of the last commit to the anchor, if that commit made one. The error is the
// reason why the checkpoint is not in the anchor or has no signature.
func (w *batchWriter) appendAnchor() error {
	if w.newest.Size == 0 {
		return nil
	}
	if err := w.failpoint("anchor"); err != nil {
		return err
	}
	if err := anchor.Append(w.path, w.newest, w.withWriteLock); err != nil {
		return err
	}
	return errors.Join(w.unsigned, w.failpoint("anchored"))
}

// withWriteLock calls the function f while no other process can write to the log.
func (w *batchWriter) withWriteLock(f func() error) error {
	ctx := context.Background()
	if err := w.retryWhileBusy(ctx, func() error { return w.execStatement(ctx, `BEGIN IMMEDIATE`) }); err != nil {
		return disk.Explain(err)
	}
	err := f()
	_ = w.execStatement(ctx, `ROLLBACK`) // Nothing was written. If the lock remains, the next BEGIN fails.
	return err
}
