package ledger

import (
	"fmt"
	"time"
)

// A Scan service serves the updates of its network as the party that operates the network (the DSO) sees them, in the
// order of migration id and record time. NetworkOffset makes one offset of the two, so that these updates are a ledger
// like a participant's.

const (
	networkTimeBits  = 52
	mostNetworkTime  = 1<<networkTimeBits - 1
	mostMigrationID  = 1<<(63-networkTimeBits) - 1
	networkTimeLimit = "2112-09-17T23:53:47.370495Z" // mostNetworkTime
)

// NetworkOffset returns the offset of the update with a migration id and a record time. Its upper bits are the
// migration id, 0 to 2047, and its lower 52 bits the record time in microseconds since 1970, up to 2112-09-17. So
// offsets have the order of the updates, and the record times of two migrations may overlap. What does not fit, or has
// parts of a microsecond, is an error.
func NetworkOffset(migrationID int64, recordTime Time) (Offset, error) {
	micros := recordTime.Time.UnixMicro()
	switch {
	case migrationID < 0 || migrationID > mostMigrationID:
		return 0, fmt.Errorf("migration id %d is not 0 to %d, so it has no place in an offset", migrationID, mostMigrationID)
	case recordTime.Exact != "":
		return 0, fmt.Errorf("record time %s has parts of a microsecond, which have no place in an offset", recordTime.Exact)
	case micros < 0 || micros > mostNetworkTime:
		return 0, fmt.Errorf("record time %s is not in 1970 to %s, so it has no place in an offset",
			recordTime.Time.Format(time.RFC3339Nano), networkTimeLimit)
	case migrationID == 0 && micros == 0:
		return 0, fmt.Errorf("the first microsecond of 1970 in migration 0 is offset 0, the beginning of the ledger, which " +
			"no update has")
	}
	return Offset(migrationID<<networkTimeBits | micros), nil
}

// NetworkPosition returns the migration id and the record time of a [NetworkOffset].
func (o Offset) NetworkPosition() (migrationID int64, recordTime time.Time) {
	return int64(o) >> networkTimeBits, time.UnixMicro(int64(o) & mostNetworkTime).UTC()
}

// LastOfMigration returns the highest [NetworkOffset] that an update of a migration can have.
func LastOfMigration(migrationID int64) Offset {
	return Offset(migrationID<<networkTimeBits | mostNetworkTime)
}

// networkPlace returns the position of a NetworkOffset, for errors.
func networkPlace(o Offset) string {
	migrationID, recordTime := o.NetworkPosition()
	return fmt.Sprintf("migration %d, %s", migrationID, recordTime.Format("2006-01-02T15:04:05.000000Z"))
}
