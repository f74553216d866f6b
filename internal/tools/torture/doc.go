// Package torture runs the real programs against a simulated ledger and a real PostgreSQL while faults hit all of them,
// and then compares every row with the simulation's truth.
//
// A seed decides what is run, and the faults with all their parameters and their order. Timing, such as which request a
// fault hits, is not repeatable: to reproduce a failure, run its seed a few times.
//
// Only faults that took effect are counted: a kill of a live process, a cut at a COMMIT in flight, an answer that was
// really cut off.
package torture
