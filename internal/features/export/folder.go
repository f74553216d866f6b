package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// What is exported is as confidential as the ledger: beside its owner only a group may read it, which the umask may
// forbid too.
const folderMode, fileMode = 0o750, 0o640

// recovered is what a volume has at its root, of the file system itself.
const recovered = "lost+found"

// part ends the name of an unfinished file.
const part = ".part"

// Place is where an export lies. Names have slashes.
type Place interface {
	// AbortUploads removes the parts of files that an export did not finish, where a list does not show them.
	AbortUploads(ctx context.Context) error
	// List returns what is there, with its sizes.
	List(ctx context.Context) (map[string]int64, error)
	// Read copies a file as it is at that time. The error is fs.ErrNotExist where there is none, and one of to as it is.
	Read(ctx context.Context, name string, to io.Writer) error
	// Write calls fill to write a file. The file replaces an existing one when it is whole and on the disk; else nothing
	// changes.
	Write(ctx context.Context, name string, fill func(io.Writer) error) error
	// Remove removes a file.
	Remove(ctx context.Context, name string) error
	// String names the place in messages.
	String() string
	// URL is the address for engines, without a slash at its end.
	URL() string
}

// folder is a place in a file system.
type folder struct {
	root *os.Root
	url  string
}

func openFolder(name string, write bool) (*folder, error) {
	if write {
		if err := os.MkdirAll(name, folderMode); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	return &folder{root, "file://" + filepath.ToSlash(absolute)}, nil
}

// String returns the folder's name.
func (f *folder) String() string { return f.root.Name() }

// URL: see Place.
func (f *folder) URL() string { return f.url }

// AbortUploads does nothing: unfinished files are listed.
func (f *folder) AbortUploads(context.Context) error { return nil }

// List: see Place.
func (f *folder) List(context.Context) (map[string]int64, error) {
	found := map[string]int64{}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if name == recovered && entry.IsDir() { // only root may read it
			return fs.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[name] = info.Size()
		return nil
	})
	return found, err
}

// Read: see Place.
func (f *folder) Read(_ context.Context, name string, to io.Writer) error {
	file, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

// Remove: see Place.
func (f *folder) Remove(_ context.Context, name string) error {
	if err := f.root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.sync(path.Dir(name))
}

// Write: see Place.
func (f *folder) Write(_ context.Context, name string, fill func(io.Writer) error) (err error) {
	if err := f.root.MkdirAll(filepath.FromSlash(path.Dir(name)), folderMode); err != nil {
		return err
	}
	if err := f.sync("."); err != nil {
		return err
	}
	unfinished := filepath.FromSlash(name) + part
	file, err := f.root.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		file.Close()
		if err != nil { // if it can't be removed, the next export removes it
			_ = f.root.Remove(unfinished)
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			err = fmt.Errorf("%w; make room there, and run the command again: it continues where it was", err)
		}
	}()
	buffered := bufio.NewWriterSize(file, 1<<18)
	if err := fill(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := f.root.Rename(unfinished, strings.TrimSuffix(unfinished, part)); err != nil {
		return err
	}
	return f.sync(path.Dir(name))
}

// sync brings a folder's list of files to the disk.
func (f *folder) sync(name string) error {
	list, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer list.Close()
	return list.Sync()
}
