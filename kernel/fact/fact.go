// Package fact is what the facts of a run say: for each type of event that the kernel
// writes, the struct that is its payload.
//
// It promises that a field, once written, keeps its name in JSON and its meaning: the log
// is read by later versions, and by programs that are not Perlica. A field may be added.
// It decides nothing and writes nothing. The payloads of questions and of standing
// approvals are those of packages interaction and policy, that of run.cancel_requested is
// kernel.Stop; a frame's payload is the line itself.
//
// The one idea: a run follows from its facts alone. What is not in one of these structs, a
// later start does not know.
package fact

import "github.com/perlica/perlica/eventlog/event"

// Decode reads the payload of an event as a T. It does not look at the event's type. The
// error is that of event.Event.Decode.
func Decode[T any](e event.Event) (v T, err error) {
	err = e.Decode(&v)
	return v, err
}

// Voucher is the payload of voucher.given and voucher.revoked.
type Voucher struct {
	Decision string `json:"decision_sha256"` // of its JSON
}
