package event

// Pruning is the payload of log.pruned: which payloads are removed, who wanted it, and why.
// An event whose payload is missing is damage, unless a later log.pruned covers it.
type Pruning struct {
	Until   Seq       `json:"until"`             // events up to this one
	Session SessionID `json:"session,omitempty"` // only this session's
	Run     RunID     `json:"run,omitempty"`     // only this run's
	Class   Class     `json:"class,omitempty"`   // only "frame": facts are kept
	Events  int64     `json:"events"`            // how many payloads there were to remove
	Bytes   int64     `json:"bytes"`             // their lengths together
	By      string    `json:"by"`
	Why     string    `json:"why,omitempty"`
}

// Covers reports whether e is one of the events that lose their payload.
func (p Pruning) Covers(e *Event) bool {
	return e.Seq <= p.Until && !e.Type.Kept() &&
		(p.Session == "" || e.Session == p.Session) &&
		(p.Run == "" || e.Run == p.Run) &&
		(p.Class == "" || e.Class == p.Class)
}
