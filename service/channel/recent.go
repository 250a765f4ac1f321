package channel

// mostRecent is how many a [Recent] keeps.
const mostRecent = 4096

// Recent keeps what was put in last. The zero value is empty.
type Recent[T any] struct {
	values map[string]T
	keys   []string // the oldest first
}

// Put keeps a value, in the place of the one that was there under its key.
func (r *Recent[T]) Put(key string, value T) {
	if r.values == nil {
		r.values = map[string]T{}
	}
	if _, known := r.values[key]; !known {
		r.keys = append(r.keys, key)
	}
	r.values[key] = value
	if len(r.keys) > mostRecent {
		delete(r.values, r.keys[0])
		r.keys = r.keys[1:]
	}
}

// Get returns what is kept under a key.
func (r *Recent[T]) Get(key string) (value T, ok bool) {
	value, ok = r.values[key]
	return value, ok
}
