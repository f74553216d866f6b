package session

// Lease is the right to write certain streams, to prune, or to repair. At most one process has it at a time.
type Lease string

// The leases. The snapshot backfill takes LeaseUpdates: the stream of updates continues what it stored.
const (
	LeaseUpdates      Lease = "updates"
	LeaseTransactions Lease = "transactions"
	LeasePruning      Lease = "pruning"
	LeaseRepair       Lease = "repair"
)

// Leases are all of them, in the order in which their turns are locked.
var Leases = []Lease{LeaseRepair, LeasePruning, LeaseUpdates, LeaseTransactions}
