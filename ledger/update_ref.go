package ledger

import "time"

// UpdateKey identifies an update on every participant that sees it. A part that the update lacks is empty or zero.
type UpdateKey struct {
	ID             string    `json:"update_id"`
	SynchronizerID string    `json:"synchronizer_id,omitempty"`
	RecordTime     time.Time `json:"record_time,omitzero"` // UTC
}

// Equal reports whether both identify the same update.
func (k UpdateKey) Equal(other UpdateKey) bool {
	return k.ID == other.ID && k.SynchronizerID == other.SynchronizerID && k.RecordTime.Equal(other.RecordTime)
}

// UpdateRef identifies an update, and says at which offset a participant or a database has it.
type UpdateRef struct {
	Offset Offset `json:"offset"`
	UpdateKey
}

// Ref returns the key and the offset of the update.
func (u *Update) Ref() UpdateRef {
	p := UpdateRef{Offset: u.Offset, UpdateKey: UpdateKey{ID: u.ID}}
	if u.SynchronizerID != nil {
		p.SynchronizerID = *u.SynchronizerID
	}
	if u.RecordTime.Valid {
		p.RecordTime = u.RecordTime.Time
	}
	return p
}
