package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ticks is how many of them Linux counts in a second of processor time.
const ticks = 100

// cpu is the processor time that the server has taken so far with all its processes, those that have ended included; 0 where the
// system does not tell.
func (d *database) cpu() (total time.Duration) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", d.postmaster))
	for _, pid := range append(strings.Fields(string(children)), strconv.Itoa(d.postmaster)) {
		total += processCPU(pid)
	}
	return total
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

// apart gives the server one half of the processors, and this process the other one, with all that it starts: as where a database has
// a machine of its own.
func (h *harness) apart(ctx context.Context) (err error) {
	all, err := processors()
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return fmt.Errorf("there are %d processors, and PostgreSQL is to have one for itself", len(all))
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
func processors() (numbers []string, err error) {
	status, _ := os.ReadFile("/proc/self/status")
	_, list, told := strings.Cut(string(status), "Cpus_allowed_list:")
	if !told {
		return nil, errors.New("the system does not tell in /proc which processors there are; only Linux does")
	}
	list, _, _ = strings.Cut(list, "\n")
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("the processors that the system tells, %q: %w", list, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("the processors that the system tells, %q: %w", list, err)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, strconv.Itoa(n))
		}
	}
	return numbers, nil
}

// place has the server run on some processors, and this process, with what it starts from now on, on others.
func (h *harness) place(ctx context.Context, server, own []string) error {
	aside, err := query[int](ctx, h.db, "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend'")
	if err != nil {
		return err
	}
	for _, pid := range append(aside, h.db.postmaster) {
		if err := pin(ctx, pid, server); err != nil {
			return err
		}
	}
	return pin(ctx, os.Getpid(), own)
}

// pin has a process run on some processors, with what it starts from now on.
func pin(ctx context.Context, pid int, processors []string) error {
	args := []string{"--all-tasks", "--cpu-list", "--pid", strings.Join(processors, ","), strconv.Itoa(pid)}
	if out, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("taskset (it must be in PATH) of process %d: %w: %s", pid, err, out)
	}
	return nil
}
