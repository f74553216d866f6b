package session

// Role is a writing role: at most one process has it at a time, and only it writes the role's streams.
type Role string

// The roles. The snapshot backfill takes RoleUpdates, because it lays the ground the updates stream stands on.
const (
	RoleUpdates      Role = "updates"
	RoleTransactions Role = "transactions"
	RolePruning      Role = "pruning"
	RoleRepair       Role = "repair"
)

// Roles are all of them, in the order in which their turns are locked.
var Roles = []Role{RoleRepair, RolePruning, RoleUpdates, RoleTransactions}
