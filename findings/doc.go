// Package findings has the words for what comes of comparing what is stored with its source: differences, the windows in which a stream is
// compared, and results that are sealed. No I/O. It knows the domain only.
package findings
