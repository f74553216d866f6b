package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is Linux's unit of processor time, per second; how much of it programs use is measured here.
const ticks = 100

// cpu returns the processor time of all the server's processes so far, ended ones included; 0 where the system does not
// report it.
func (d *database) cpu() time.Duration {
	postmaster := strconv.Itoa(d.postmaster)
	for own := processCPU(postmaster); ; {
		children, _ := os.ReadFile("/proc/" + postmaster + "/task/" + postmaster + "/children")
		total := own
		for _, pid := range strings.Fields(string(children)) {
			total += processCPU(pid)
		}
		now := processCPU(postmaster)
		if now == own {
			return total
		}
		own = now // a process has ended meanwhile: it may have been counted twice, or not at all
	}
}

// processCPU returns the processor time of a process and its ended children.
func processCPU(pid string) (total time.Duration) {
	const first, last = 11, 14 // utime, stime, cutime and cstime, after the name, which may contain spaces
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for i := first; i <= last && i < len(fields); i++ {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // always numbers
		total += time.Duration(n) * time.Second / ticks
	}
	return total
}

// measured runs a function and returns how long it took, with the server's processor time.
func (d *database) measured(run func() error) (u usage, err error) {
	began, cpu := time.Now(), d.cpu()
	err = run()
	u.wall, u.postgres = time.Since(began), d.cpu()-cpu
	return u, err
}

const apartName = "apart"

// apart gives the server one half of the processors, and this process and its children the other half, as if the
// database had a machine of its own. If that is not possible, it does nothing, unless --apart was given.
func (h *harness) apart(ctx context.Context) (err error) {
	all, err := processors(ctx)
	if err == nil && len(all) < 2 {
		err = errors.New("there is one processor, and PostgreSQL is to have one for itself")
	}
	if err != nil {
		if slices.Contains(h.Only, apartName) {
			return err
		}
		h.say("%s: left out: %v", apartName, err)
		return nil
	}
	if err := h.pinAll(ctx, all[:len(all)/2], all[len(all)/2:]); err != nil {
		return err
	}
	h.isApart = true
	defer func() {
		h.isApart = false
		err = errors.Join(err, h.pinAll(context.WithoutCancel(ctx), all, all))
	}()
	for _, part := range []func(context.Context) error{h.catchup, h.snapshot, h.history} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// processors returns the numbers of the processors that this process may run on.
func processors(ctx context.Context) ([]string, error) { return processorsOf(ctx, os.Getpid()) }

// processorsOf returns the numbers of the existing processors that a process may run on. On some machines /proc lists
// others too.
func processorsOf(ctx context.Context, pid int) (numbers []string, err error) {
	text, err := taskset(ctx, "--cpu-list", "--pid", strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	list := strings.TrimSpace(text[strings.LastIndexByte(text, ':')+1:])
	for part := range strings.SplitSeq(list, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("the processors that taskset tells, %q: %w", list, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("the processors that taskset tells, %q: %w", list, err)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, strconv.Itoa(n))
		}
	}
	return numbers, nil
}

// pinAll pins the server to some processors, and this process, with its future children, to others.
func (h *harness) pinAll(ctx context.Context, server, own []string) error {
	if err := pin(ctx, h.db.postmaster, server); err != nil { // first, because its new processes inherit it
		return err
	}
	aside, err := query[int](ctx, h.db, "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend'")
	if err != nil {
		return err
	}
	for _, pid := range aside {
		if err := pin(ctx, pid, server); err != nil && !hasEnded(pid) {
			return err
		}
	}
	return pin(ctx, os.Getpid(), own)
}

// pin pins a process and its future children to some processors.
func pin(ctx context.Context, pid int, processors []string) error {
	_, err := taskset(ctx, "--all-tasks", "--cpu-list", "--pid", strings.Join(processors, ","), strconv.Itoa(pid))
	return err
}

// hasEnded reports whether a process has ended, as a vacuum worker may have.
func hasEnded(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return errors.Is(err, fs.ErrNotExist)
}

// taskset reads or sets the processors of a process. Only Linux has it.
func taskset(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("taskset %s (it must be in PATH; only Linux has it): %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
