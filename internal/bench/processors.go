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

// ticks is how many of them Linux counts in a second of processor time.
const ticks = 100

// cpu is the processor time that the server has taken so far with all its processes, those that have ended included; 0 where the
// system does not tell.
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
		own = now // one has ended meanwhile: it may have been counted twice, or not at all
	}
}

// processCPU is the processor time of a process, and of those children of it that have ended.
func processCPU(pid string) (total time.Duration) {
	const first, last = 11, 14 // utime, stime, cutime and cstime, behind the name, which may have spaces
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for i := first; i <= last && i < len(fields); i++ {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // what is no number is nothing that could be told
		total += time.Duration(n) * time.Second / ticks
	}
	return total
}

// measured runs something, and gives how long it took, and the server's processor time.
func (d *database) measured(run func() error) (u usage, err error) {
	began, cpu := time.Now(), d.cpu()
	err = run()
	u.wall, u.postgres = time.Since(began), d.cpu()-cpu
	return u, err
}

const apartName = "apart"

// apart gives the server one half of the processors, and this process the other one, with all that it starts: as where a database has
// a machine of its own. Where that can't be done it is left out, unless it was asked for.
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
	if err := h.place(ctx, all[:len(all)/2], all[len(all)/2:]); err != nil {
		return err
	}
	h.isApart = true
	defer func() {
		h.isApart = false
		err = errors.Join(err, h.place(context.WithoutCancel(ctx), all, all))
	}()
	for _, part := range []func(context.Context) error{h.catchup, h.snapshot, h.history} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// processors are the numbers of those that this process may run on.
func processors(ctx context.Context) ([]string, error) { return processorsOf(ctx, os.Getpid()) }

// processorsOf are the numbers of those that a process may run on, and that are there: /proc has some that are not, on some machines.
func processorsOf(ctx context.Context, pid int) (numbers []string, err error) {
	told, err := taskset(ctx, "--cpu-list", "--pid", strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	list := strings.TrimSpace(told[strings.LastIndexByte(told, ':')+1:])
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

// place has the server run on some processors, and this process, with what it starts from now on, on others.
func (h *harness) place(ctx context.Context, server, own []string) error {
	if err := pin(ctx, h.db.postmaster, server); err != nil { // first: what it starts meanwhile is where it is
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

// pin has a process run on some processors, with what it starts from now on.
func pin(ctx context.Context, pid int, processors []string) error {
	_, err := taskset(ctx, "--all-tasks", "--cpu-list", "--pid", strings.Join(processors, ","), strconv.Itoa(pid))
	return err
}

// hasEnded tells that a process is not there any more, as those that vacuum may be.
func hasEnded(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return errors.Is(err, fs.ErrNotExist)
}

// taskset tells, or says, on which processors a process runs. Only Linux has it.
func taskset(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("taskset %s (it must be in PATH; only Linux has it): %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
