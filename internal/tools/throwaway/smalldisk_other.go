//go:build !linux

package throwaway

import "errors"

// SmallDisk needs Linux: here there is none.
type SmallDisk struct{}

// NewSmallDisk fails.
func NewSmallDisk(int64) (*SmallDisk, error) {
	return nil, errors.New("make a small disk: it needs Linux's mount namespaces")
}

// Run only calls fn.
func (*SmallDisk) Run(fn func() error) error { return fn() }

// Fill does nothing.
func (*SmallDisk) Fill() error { return nil }

// Free does nothing.
func (*SmallDisk) Free() error { return nil }

// Close does nothing.
func (*SmallDisk) Close() {}
