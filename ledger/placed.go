package ledger

import "time"

// UpdateKey is what an update is known by on every participant that sees it. What the update lacks is empty or zero.
type UpdateKey struct {
	ID             string
	SynchronizerID string
	RecordTime     time.Time // UTC
}

// Equal reports whether both are of the same update.
func (k UpdateKey) Equal(other UpdateKey) bool {
	return k.ID == other.ID && k.SynchronizerID == other.SynchronizerID && k.RecordTime.Equal(other.RecordTime)
}

// PlacedUpdate is an update at its offset.
type PlacedUpdate struct {
	Offset Offset
	UpdateKey
}

// Placed returns the update without its content.
func (u *Update) Placed() PlacedUpdate {
	p := PlacedUpdate{Offset: u.Offset, UpdateKey: UpdateKey{ID: u.ID}}
	if u.SynchronizerID != nil {
		p.SynchronizerID = *u.SynchronizerID
	}
	if u.RecordTime.Valid {
		p.RecordTime = u.RecordTime.Time
	}
	return p
}
