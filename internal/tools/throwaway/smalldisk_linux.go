package throwaway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// SmallDisk is a folder for temporary files on a file system in memory that can become full. Only the functions that
// Run runs, and the programs that they start, see it: it is mounted in a namespace of its own, which the system removes
// with the last process in it, so there is nothing to clean up.
type SmallDisk struct {
	tasks  chan func()
	folder string
}

// NewSmallDisk makes a disk of this size, in bytes. It needs the rights of root (CAP_SYS_ADMIN); the error says what is
// missing.
func NewSmallDisk(bytes int64) (*SmallDisk, error) {
	d := &SmallDisk{tasks: make(chan func()), folder: os.TempDir()}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread and its namespace end with this function
		err := d.mount(bytes)
		made <- err
		if err != nil {
			return
		}
		for task := range d.tasks {
			task()
		}
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("make a small disk: %w", err)
	}
	return d, nil
}

func (d *SmallDisk) mount(bytes int64) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount("smalldisk", d.folder, "tmpfs", 0, fmt.Sprintf("mode=1777,size=%d", bytes)); err != nil {
		return fmt.Errorf("mount on %s: %w", d.folder, err)
	}
	return nil
}

// Run calls fn with os.TempDir on the disk, one call at a time. Connect over TCP to a server that fn starts: its socket
// is on the disk too.
func (d *SmallDisk) Run(fn func() error) error {
	done := make(chan error)
	d.tasks <- func() { done <- fn() }
	return <-done
}

func (d *SmallDisk) ballast() string { return filepath.Join(d.folder, "ballast") }

// Fill fills the disk to its last byte.
func (d *SmallDisk) Fill() error {
	return d.Run(func() error {
		f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		for block := make([]byte, 1<<20); err == nil; {
			_, err = f.Write(block)
		}
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		return fmt.Errorf("fill the disk: %w", err)
	})
}

// Free frees the filled space.
func (d *SmallDisk) Free() error {
	return d.Run(func() error {
		if err := os.Remove(d.ballast()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("free the disk: %w", err)
		}
		return nil
	})
}

// Close releases the disk. End everything that runs on it before, by Run.
func (d *SmallDisk) Close() { close(d.tasks) }
