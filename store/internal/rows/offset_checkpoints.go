package rows

import (
	"cmp"
	"iter"
	"slices"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
)

// How much of offset checkpoints goes into one statement: a page may bring very many, and each row has all that its
// checkpoint says besides the times. The last row may exceed the bytes.
const (
	CheckpointRowsAtOnce  = 5_000
	checkpointBytesAtOnce = 8 << 20
)

// CheckpointKey is what a row of offset_checkpoints is of.
type CheckpointKey struct {
	Offset          int64
	SynchronizerRef int32
}

type checkpointTime struct {
	key        CheckpointKey
	checkpoint *ledger.OffsetCheckpoint
	ordinal    int // in the checkpoint's list
}

func (t *checkpointTime) time() ledger.SynchronizerTime { return t.checkpoint.Times[t.ordinal] }

// LatestTimes returns the latest time of each synchronizer at each offset in the pages. Of equal times the first
// counts, as in the upsert. The list is in the order of offsets and synchronizers, so that two writers never wait for
// each other's rows.
func LatestTimes(r *names.References, pages []ledger.Page) []checkpointTime {
	var all []checkpointTime
	place := map[CheckpointKey]int{}
	for i := range pages {
		for j := range pages[i].Checkpoints {
			checkpoint := &pages[i].Checkpoints[j]
			for ordinal, t := range checkpoint.Times {
				said := checkpointTime{CheckpointKey{int64(checkpoint.Offset), *r.Synchronizer(t.SynchronizerID)}, checkpoint,
					ordinal}
				at, known := place[said.key]
				switch {
				case !known:
					place[said.key] = len(all)
					all = append(all, said)
				case all[at].time().RecordTime.Time.Before(t.RecordTime.Time):
					all[at] = said
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b checkpointTime) int {
		return cmp.Or(cmp.Compare(a.key.Offset, b.key.Offset), cmp.Compare(a.key.SynchronizerRef, b.key.SynchronizerRef))
	})
	return all
}

// Checkpoints are the rows of one statement.
type Checkpoints struct {
	dbsqlc.OffsetCheckpointsUpsertParams
	bytes int
}

// CheckpointStatements divides rows among statements, in their order. There is none for no rows.
func CheckpointStatements(all []checkpointTime) iter.Seq[*Checkpoints] {
	return func(yield func(*Checkpoints) bool) {
		for len(all) > 0 {
			rows := new(Checkpoints)
			for len(all) > 0 && len(rows.LedgerOffsets) < CheckpointRowsAtOnce && rows.bytes < checkpointBytesAtOnce {
				rows.add(all[0])
				all = all[1:]
			}
			if !yield(rows) {
				return
			}
		}
	}
}

func (c *Checkpoints) add(said checkpointTime) {
	t := said.time()
	var exact Exact
	extra := exact.Value("checkpoint_extra", said.checkpoint.Extra)
	exact.Time("checkpoint_time", t.RecordTime)
	kept := exact.Column()
	c.LedgerOffsets = append(c.LedgerOffsets, said.key.Offset)
	c.SynchronizerRefs = append(c.SynchronizerRefs, said.key.SynchronizerRef)
	c.RecordTimes = append(c.RecordTimes, Timestamp(t.RecordTime))
	c.Ordinals = append(c.Ordinals, int32(said.ordinal))
	c.Extras = append(c.Extras, extra)
	c.Exacts = append(c.Exacts, kept)
	c.bytes += len(extra) + len(kept)
}
