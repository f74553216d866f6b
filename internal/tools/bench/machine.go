package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// describeMachine notes what the figures depend on.
func (h *harness) describeMachine(ctx context.Context) error {
	version, err := queryOne[string](ctx, h.db, "SELECT current_setting('server_version')")
	if err != nil {
		return err
	}
	sync, err := syncLatency(h.folder)
	if err != nil {
		return err
	}
	h.report.commit = commit(ctx)
	h.report.about = fmt.Sprintf("*Measured %s at commit %s, medians of %d: %d cores, %s of memory, %s, fdatasync of 8 "+
		"kB in %.2f ms; PostgreSQL %s with its default settings%s, %s, pgx %s.*",
		time.Now().UTC().Format(time.DateOnly), h.report.commit, h.Runs, runtime.NumCPU(), memory(), kernel(),
		milliseconds(sync),
		version, h.otherSettings(), runtime.Version(), moduleVersion("github.com/jackc/pgx/v5"))
	return nil
}

// otherSettings names the settings that are no defaults.
func (h *harness) otherSettings() string {
	settings := map[string]string{}
	maps.Copy(settings, h.Setting)
	if h.asks() {
		settings["shared_buffers"] = sharedBuffers
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		others = append(others, name+" of "+settings[name])
	}
	if len(others) == 0 {
		return ""
	}
	return " but " + strings.Join(others, ", ")
}

// commit returns the tree's commit, with a plus if files are changed.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(changed) > 0 {
		id += "+"
	}
	return id
}

// moduleVersion returns the version of a module that this program is built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

// memory returns the machine's memory, if known.
func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	var kilobytes int64
	if err != nil {
		return "an unknown amount"
	}
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes); err != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%d GiB", (kilobytes+1<<19)>>20)
}

// kernel returns the name and release of the operating system.
func kernel() string {
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		return runtime.GOOS + " " + strings.TrimSpace(string(release))
	}
	return runtime.GOOS
}

// syncLatency returns the median time until a block is on disk.
func syncLatency(folder string) (time.Duration, error) {
	f, err := os.CreateTemp(folder, "sync-")
	if err != nil {
		return 0, err
	}
	defer f.Close() // the folder is removed
	block := make([]byte, 8192)
	var took []time.Duration
	for range 200 {
		if _, err := f.WriteAt(block, 0); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := syncData(f.Fd()); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return percentile(took, 50), nil
}
