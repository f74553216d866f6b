// Package findings has the results of comparing stored rows with their source: differences, the windows in which a
// stream is compared, and sealed results. No I/O. It knows the domain only.
package findings
