package session

// Role is a writing role: at most one process has it at a time, and only it writes the role's streams.
type Role string

// The roles. The snapshot backfill takes RoleUpdates, because it lays the ground the updates stream stands on.
const (
	RoleUpdates      Role = "updates"
	RoleTransactions Role = "transactions"
	RoleBackfill     Role = "backfill"
	RoleRepair       Role = "repair"
)

// RoleNumbers tell the advisory locks of the roles apart. See Schemas.RoleNumber.
var RoleNumbers = map[Role]int32{RoleUpdates: 1, RoleTransactions: 2, RoleBackfill: 3, RoleRepair: 4}

// The first keys of advisory locks.
const (
	LockClass = 0x4c49 // "LI": keeps clear of other programs' advisory locks in the same database
	// TurnClass is that of the locks in whose queue the writers of a role and repairs wait for their turn.
	TurnClass = LockClass + 1
)
