// Package torture runs the real programs against a simulated ledger and a real PostgreSQL while faults hit all of them,
// and then compares every row with the simulation's truth.
//
// A seed decides what is run and which faults come, with all their numbers, in which order. What the machine makes of it,
// such as which request meets a fault, is not repeatable: a failure is found again by running its seed a few times.
//
// Only faults that took effect are counted: a kill of a process that was alive, a cut at a COMMIT that was on its way, an
// answer that was really cut off.
package torture
